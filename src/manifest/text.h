// SPDX-License-Identifier: Apache-2.0
// Reads one JSON text of a bundle from front to back, and says what is wrong with it in the words of its layer.
#pragma once
#include <cmath>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/fail.h"
#include "manifest/bundle.h"
#include "weighbridge/context.h"
#include "weighbridge/error.h"
#include "wire/json_reader.h"

namespace weighbridge::signing {

inline std::string_view kind_text(wire::JsonKind kind) {
  using wire::JsonKind;
  switch (kind) {
    case JsonKind::object: return "an object";
    case JsonKind::array: return "an array";
    case JsonKind::string: return "a text";
    case JsonKind::number: return "a number";
    case JsonKind::boolean: return "a boolean";
    case JsonKind::null: return "null";
    case JsonKind::none: break;
  }
  return "nothing";
}

// One JSON text, read from front to back. `layer` names it in messages.
class Text {
 public:
  Text(std::string_view text, const Limits& limits, std::string_view layer, std::string_view rule, Report& report)
      : in_(text, limits.depth), layer_(layer), rule_(rule), report_(report) {}

  // Calls member(key) for each member of the object that is next; member() reads the value, and returns whether it
  // knows the key. A key must not repeat: readers disagree on which one counts.
  template <class Member> void object(std::string_view what, Member&& member) {
    if (!in_.enter_object()) wrong_kind(what, "an object");
    std::set<std::string, std::less<>> seen;
    std::string scratch;
    for (wire::JsonString key; in_.next_key(key);) {
      const std::string name(wire::json_text(key, scratch));
      if (!seen.insert(name).second) fail(std::string(what) + " has the member " + quote(name) + " twice");
      if (member(std::string_view(name))) continue;
      require(in_.skip_value());
      warn("manifest/member", std::string(what) + " has a member that nobody defines: " + quote(name));
    }
    require(in_.ok());
  }
  template <class Element> void array(std::string_view what, Element&& element) {
    if (!in_.enter_array()) wrong_kind(what, "an array");
    while (in_.next_element()) element();
    require(in_.ok());
  }
  std::string string(std::string_view what) {
    wire::JsonString text;
    if (!in_.read_string(text)) wrong_kind(what, "a text");
    std::string scratch;
    return std::string(wire::json_text(text, scratch));
  }
  bool boolean(std::string_view what) {
    bool value = false;
    if (!in_.read_bool(value)) wrong_kind(what, "true or false");
    return value;
  }
  // Also "1000.0", as writers through protobuf spell whole numbers.
  std::uint64_t number(std::string_view what) {
    constexpr double kExact = 9007199254740992;  // 2^53
    std::uint64_t value = 0;
    if (in_.read_u64(value)) return value;
    wire::JsonNumber spelled;
    if (!in_.read_number(spelled)) wrong_kind(what, "a whole number");
    const double number = wire::as_double(spelled.raw).value_or(-1);
    if (!(number >= 0 && number <= kExact) || number != std::floor(number))
      fail(std::string(what) + " must be a whole number, not " + std::string(spelled.raw));
    return static_cast<std::uint64_t>(number);
  }
  bool null() { return in_.peek() == wire::JsonKind::null && in_.read_null(); }
  bool skip() {
    require(in_.skip_value());
    return true;
  }
  void finish() { require(in_.finish()); }

  [[noreturn]] void fail(std::string message) const { base::malformed(rule_, std::move(message)); }
  void warn(std::string_view rule, std::string message) {
    Finding finding;
    finding.rule = rule;
    finding.severity = Severity::warning;
    finding.message = std::move(message);
    report_.add(std::move(finding));
  }

 private:
  void require(bool good) {
    if (good || in_.ok()) return;
    fail(std::string(layer_) + " is not valid JSON: " + std::string(in_.error().sentence) + " (byte " +
         std::to_string(in_.error().offset) + ")");
  }
  [[noreturn]] void wrong_kind(std::string_view what, std::string_view wanted) {
    const wire::JsonKind kind = in_.peek();
    require(in_.ok());
    fail(std::string(what) + " must be " + std::string(wanted) + ", not " + std::string(kind_text(kind)));
  }

  wire::JsonReader in_;
  std::string_view layer_, rule_;
  Report& report_;
};

}  // namespace weighbridge::signing
