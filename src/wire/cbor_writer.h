// SPDX-License-Identifier: Apache-2.0
// Writes deterministic CBOR: shortest heads, definite lengths (RFC 8949, section 4.2.1). The caller orders map keys and
// must keep the counts given to array() and map(). Also checks that bytes have this form, and makes it from any item.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace weighbridge::wire {

class CborWriter {
 public:
  void u64(std::uint64_t value) { head(0, value); }
  void i64(std::int64_t value);
  void negative(std::uint64_t argument) { head(1, argument); }  // the integer -1 - argument
  void bytes(std::span<const std::byte> data);
  void text(std::string_view text);                    // Error{misuse} unless UTF-8
  void array(std::uint64_t count) { head(4, count); }  // `count` items follow
  void map(std::uint64_t count) { head(5, count); }    // `count` keys follow, each with its value
  void tag(std::uint64_t number) { head(6, number); }  // the tagged item follows
  void boolean(bool value);
  void null();
  void undefined();
  void simple(std::uint8_t value);  // Error{misuse} for 24 to 31
  void floating(double value);      // the narrowest of half, single and double that keeps every bit
  void float16(std::uint16_t bits);
  void float32(float value);
  void float64(double value);
  // A complete item, not checked.
  void raw(std::string_view item) { out_ += item; }
  void numbers(std::span<const std::uint64_t> values) {  // an array of them
    array(values.size());
    for (const std::uint64_t value : values) u64(value);
  }
  // A key of a map with its value.
  void member(std::string_view key, std::string_view value) { text(key), text(value); }
  void member(std::string_view key, std::uint64_t value) { text(key), u64(value); }

  // The bytes written so far.
  const std::string& data() const noexcept { return out_; }
  std::string take() noexcept { return std::move(out_); }

 private:
  void head(unsigned major, std::uint64_t argument);
  template <class T> void fixed(unsigned first, T value);

  std::string out_{};
};

// Deterministic CBOR (RFC 8949, section 4.2.1) without tags: the form that zTensor 2 requires of its manifest. Checks
// it and makes it. Reading it is the work of CborReader.

struct DeterministicFault {
  enum class Kind : std::uint8_t {
    malformed,          // not one well-formed item of definite lengths, or one with a tag, undefined or another simple
    not_deterministic,  // a number that is wider than needed, or keys of a map that are not sorted
    duplicate_key,
    too_deep
  };
  Kind kind;
  std::size_t offset;         // in the bytes
  std::string_view sentence;  // lower case, no full stop; static
};

// The first fault of the bytes, which must be one item; nullopt if they are deterministic. `max_depth`: maximum number
// of open arrays and maps. Time is linear; memory is that of the depth.
std::optional<DeterministicFault> check_deterministic(std::string_view bytes, std::uint32_t max_depth);

// The item in this form: shortest numbers, one NaN, sorted keys. nullopt if it has a tag, undefined, another simple
// value, a key twice, or too many levels.
std::optional<std::string> make_deterministic(std::string_view item, std::uint32_t max_depth);

}  // namespace weighbridge::wire
