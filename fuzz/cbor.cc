// SPDX-License-Identifier: Apache-2.0
// Fuzz target: the CBOR reader. Pulling every item and skipping the whole document must agree on whether it is well
// formed, where it ends and what is wrong with it. Slices must lie within the bytes.
#include "harness.h"
#include "wire/cbor_reader.h"

namespace weighbridge::fuzz {
namespace {

constexpr std::uint32_t kDepth = 24;

class Walk {
 public:
  explicit Walk(std::string_view bytes) : bytes_(bytes), in_(bytes, kDepth) {}

  // Pulls the whole document.
  bool run() { return item() && in_.finish(); }
  const wire::CborError& error() const { return in_.error(); }
  bool has_tagged_float() const { return tagged_float_; }

 private:
  void expect_within(std::string_view slice) const {
    expect(slice.data() >= bytes_.data() && slice.size() <= bytes_.size() &&
               static_cast<std::size_t>(slice.data() - bytes_.data()) <= bytes_.size() - slice.size(),
           "a slice past the bytes");
  }

  // A copy of the reader skips the item in one step; both must end at the same place.
  bool item() {
    const bool compare = in_.depth() <= 3;  // each compared level costs one more pass over its content
    wire::CborReader skipping = in_;
    std::string_view raw;
    const std::size_t start = in_.offset();
    const bool skipped = compare && skipping.skip_item(raw);
    const bool pulled = pull();
    if (compare) {
      expect(skipped == pulled, "skipping an item and pulling it disagree");
      expect(skipping.error().code == in_.error().code && skipping.error().offset == in_.error().offset,
             "skipping an item and pulling it find different errors");
      if (pulled) {
        expect_within(raw);
        expect(skipping.offset() == in_.offset(), "skipping an item and pulling it end at different places");
        expect(raw.size() == in_.offset() - start, "the verbatim item is not what was pulled");
      }
    }
    return pulled;
  }

  bool pull() {
    using Kind = wire::CborKind;
    switch (in_.peek()) {
      case Kind::unsigned_integer: return integer(false);
      case Kind::negative_integer: return integer(true);
      case Kind::bytes:
      case Kind::text: return string();
      case Kind::array: return array();
      case Kind::map: return map();
      case Kind::tag: return tag();
      case Kind::boolean: {
        bool out = false;
        return in_.read_bool(out);
      }
      case Kind::null: return in_.read_null();
      case Kind::undefined:
      case Kind::simple: {
        std::uint8_t out = 0;
        return in_.read_simple(out);
      }
      case Kind::floating: {
        wire::CborFloat out;
        if (!in_.read_float(out)) return false;
        expect(out.width == 2 || out.width == 4 || out.width == 8, "a float of an odd width");
        return true;
      }
      case Kind::none: break;
    }
    in_.skip_item();
    expect(!in_.ok(), "no item can start here, and yet it was passed");
    return false;
  }

  bool integer(bool negative) {
    wire::CborReader other = in_;
    std::uint64_t direct = 0;
    const bool is_u64 = other.read_u64(direct);
    wire::CborInteger out;
    if (!in_.read_integer(out)) return false;
    expect(out.negative == negative, "an integer of the other sign");
    expect(is_u64 == !negative && (negative || direct == out.argument), "two ways to read an integer disagree");
    return true;
  }

  bool string() {
    const bool is_text = in_.peek() == wire::CborKind::text;
    wire::CborString out;
    if (!(is_text ? in_.read_text(out) : in_.read_bytes(out))) return false;
    expect_within(out.raw);
    std::string scratch;
    expect(wire::cbor_text(out, scratch).size() <= out.raw.size(), "putting chunks together made them longer");
    return true;
  }

  bool array() {
    if (!in_.enter_array()) return false;
    while (in_.next_element())
      if (!item()) return false;
    return in_.ok();
  }

  bool map() {
    if (!in_.enter_map()) return false;
    while (in_.next_entry())
      if (!item() || !item()) return false;
    return in_.ok();
  }

  bool tag() {
    std::uint64_t number = 0;
    if (!in_.read_tag(number)) return false;
    if (number >= 1240 && number < 1300 && in_.depth() > 1 && in_.peek() == wire::CborKind::floating)
      tagged_float_ = true;
    return item();
  }

  std::string_view bytes_;
  wire::CborReader in_;
  bool tagged_float_ = false;
};

}  // namespace
}  // namespace weighbridge::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weighbridge;
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  fuzz::Walk walk(bytes);
  const bool taken = walk.run();
  fuzz::expect(taken == (walk.error().code == wire::CborErrorCode::none), "refused without an error, or the reverse");
  fuzz::expect(walk.error().offset <= size, "an error behind the end of the bytes");
  if (fuzz::is_planted() && taken && walk.has_tagged_float())
    fuzz::fail("planted bug: a float under a tag from 1240 to 1299, inside of an array or map");
  return 0;
}
