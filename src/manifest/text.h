// SPDX-License-Identifier: Apache-2.0
// Reads one JSON text of a bundle from front to back, and says what is wrong with it in the words of its layer.
#pragma once
#include <algorithm>
#include <cmath>
#include <functional>
#include <initializer_list>
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

inline Finding finding_of(std::string_view rule, Severity severity, std::string message) {
  Finding out;
  out.rule = rule;
  out.severity = severity;
  out.message = std::move(message);
  return out;
}

// One JSON text, read from front to back. `layer` names it in messages.
class Text {
 public:
  Text(std::string_view text, const Limits& limits, std::string_view layer, std::string_view rule, Report& report)
      : in_(text, limits.depth), layer_(layer), rule_(rule), report_(report) {}

  using Keys = std::set<std::string, std::less<>>;
  // Calls member(key) for each member of the object that is next; member() reads the value, and returns whether it
  // knows the key. A key must not repeat: readers disagree on which one counts. Returns the keys.
  template <class Call> Keys object(std::string_view what, Call&& member) {
    if (!in_.enter_object()) wrong_kind(what, "an object");
    Keys seen;
    std::string scratch;
    for (wire::JsonString key; in_.next_key(key);) {
      const std::string name(wire::json_text(key, scratch));
      if (!seen.insert(name).second) fail(std::string(what) + " has the member " + quote(name) + " twice");
      if (member(std::string_view(name))) continue;
      require(in_.skip_value());
      warn("manifest/member", std::string(what) + " has a member that nobody defines: " + quote(name));
    }
    require(in_.ok());
    return seen;
  }
  // The same for an object whose members are listed. One that is needed and not there is an error.
  struct Member {
    std::string_view key;
    std::function<void()> read;
    bool needed = false;
  };
  enum class Others { warned, skipped };
  Keys object(std::string_view what, std::initializer_list<Member> members, Others others = Others::warned) {
    Keys keys = object(what, [&](std::string_view key) {
      const Member* const known = std::ranges::find(members, key, &Member::key);
      if (known == members.end()) return others == Others::skipped && skip();
      known->read();
      return true;
    });
    for (const Member& each : members)
      if (each.needed && !keys.contains(each.key)) lacks(what, each.key);
    return keys;
  }
  [[noreturn]] void lacks(std::string_view what, std::string_view key) const {
    fail(std::string(what) + " lacks '" + std::string(key) + "'");
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
  // Empty for null.
  std::string string_or_null(std::string_view what) {
    return in_.peek() == wire::JsonKind::null && in_.read_null() ? std::string() : string(what);
  }
  bool skip() {
    require(in_.skip_value());
    return true;
  }
  void finish() { require(in_.finish()); }

  [[noreturn]] void fail(std::string message) const { base::malformed(rule_, std::move(message)); }
  void warn(std::string_view rule, std::string message) {
    report_.add(finding_of(rule, Severity::warning, std::move(message)));
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
