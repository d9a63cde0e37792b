// SPDX-License-Identifier: Apache-2.0
// Fuzz target: the JSON reader. Pulling every token and skipping the whole value must agree on whether it is JSON,
// where it ends and what is wrong with it. Slices must lie within the text. nlohmann-json must agree, except for what
// we refuse on purpose. The front matter of model cards has its strings in this syntax, and is read of the same bytes.
#include <nlohmann/json.hpp>

#include "base/utf8.h"
#include "harness.h"
#include "wire/front_matter.h"
#include "wire/json_reader.h"

namespace weighbridge::fuzz {
namespace {

constexpr std::uint32_t kDepth = 24;

class Walk {
 public:
  explicit Walk(std::string_view text) : text_(text), in_(text, kDepth) {}

  // Pulls the whole document.
  bool run() { return value() && in_.finish(); }
  const wire::JsonError& error() const { return in_.error(); }
  bool has_huge_number() const { return huge_; }
  bool has_forbidden_key() const { return forbidden_key_; }

 private:
  void expect_within(std::string_view slice) const {
    expect(slice.data() >= text_.data() && slice.size() <= text_.size() &&
               static_cast<std::size_t>(slice.data() - text_.data()) <= text_.size() - slice.size(),
           "a slice past the text");
  }

  // A copy of the reader skips the value in one step; both must end at the same place.
  bool value() {
    const bool compare = in_.depth() <= 3;  // each compared level costs one more pass over its content
    wire::JsonReader skipping = in_;
    std::string_view raw;
    const bool skipped = compare && skipping.skip_value(raw);
    const bool pulled = pull();
    if (compare) {
      expect(skipped == pulled, "skipping a value and pulling it disagree");
      expect(skipping.error().code == in_.error().code && skipping.error().offset == in_.error().offset,
             "skipping a value and pulling it find different errors");
      if (pulled) {
        expect_within(raw);
        expect(skipping.offset() == in_.offset(), "skipping a value and pulling it end at different places");
      }
    }
    return pulled;
  }

  bool pull() {
    switch (in_.peek()) {
      case wire::JsonKind::object: return object();
      case wire::JsonKind::array: return array();
      case wire::JsonKind::string: return string();
      case wire::JsonKind::number: return number();
      case wire::JsonKind::boolean: return boolean();
      case wire::JsonKind::null: return in_.read_null();
      case wire::JsonKind::none: break;
    }
    in_.skip_value();
    expect(!in_.ok(), "nothing can stand here, and yet it was passed");
    return false;
  }

  bool object() {
    if (!in_.enter_object()) return false;
    for (wire::JsonString key; in_.next_key(key);) {
      expect_within(key.raw);
      if (in_.depth() > 1 && has_forbidden_sign(key.raw)) forbidden_key_ = true;
      if (!value()) return false;
    }
    return in_.ok();
  }

  bool array() {
    if (!in_.enter_array()) return false;
    while (in_.next_element())
      if (!value()) return false;
    return in_.ok();
  }

  bool string() {
    wire::JsonString out;
    if (!in_.read_string(out)) return false;
    expect_within(out.raw);
    std::string scratch;
    expect(wire::json_text(out, scratch).size() <= out.raw.size(), "undoing escapes made a text longer");
    return true;
  }

  bool number() {
    wire::JsonReader other = in_;
    std::uint64_t direct = 0;
    const bool is_u64 = other.read_u64(direct);
    wire::JsonNumber out;
    if (!in_.read_number(out)) {
      expect(!is_u64, "an integer that is no number");
      return false;
    }
    expect_within(out.raw);
    const auto integer = wire::as_u64(out.raw);
    expect(integer.has_value() == is_u64 && integer.value_or(0) == direct, "two ways to read an integer disagree");
    const auto real = wire::as_double(out.raw);
    if (!real) huge_ = true;
    if (integer && real) expect(*real == static_cast<double>(*integer), "integer and real disagree");
    return true;
  }

  bool boolean() {
    bool out = false;
    return in_.read_bool(out);
  }

  std::string_view text_;
  wire::JsonReader in_;
  bool huge_ = false;
  bool forbidden_key_ = false;
};

}  // namespace
}  // namespace weighbridge::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weighbridge;
  const std::string text(reinterpret_cast<const char*>(data), size);
  fuzz::Walk walk(text);
  const bool ours = walk.run();
  fuzz::expect(ours == (walk.error().code == wire::JsonErrorCode::none), "refused without an error, or the reverse");
  fuzz::expect(walk.error().offset <= size, "an error behind the end of the text");

  for (const auto& [key, values] : wire::read_front_matter("---\n" + text + "\n---\n").entries)
    for (const std::string& value : values)
      fuzz::expect(base::is_utf8(key) && base::is_utf8(value) && value.size() <= size + 1,
                   "a value that is not of the card");

  // We refuse on purpose what others accept: deep nesting, a byte-order mark. We accept a number beyond the largest
  // double, which nlohmann-json cannot hold. It also treats a zero byte outside of a string as the end of the text.
  using Code = wire::JsonErrorCode;
  const Code code = walk.error().code;
  const bool theirs = nlohmann::json::accept(text);
  if (ours && !walk.has_huge_number()) fuzz::expect(theirs, "taken, though it is no JSON");
  const bool ends_early = text.find('\0') != std::string::npos;
  if (!ours && code != Code::too_deep && code != Code::byte_order_mark && !ends_early) {
    fuzz::expect(!theirs, "JSON, and refused");
  }

  if (fuzz::is_planted() && ours && walk.has_forbidden_key())
    fuzz::fail("planted bug: a forbidden key in an object inside of another");
  return 0;
}
