// SPDX-License-Identifier: Apache-2.0
// Writes deterministic CBOR: shortest heads, definite lengths (RFC 8949, section 4.2.1). The caller orders map keys and
// must keep the counts given to array() and map().
#pragma once
#include <cstddef>
#include <cstdint>
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

  // The bytes written so far.
  const std::string& data() const noexcept { return out_; }
  std::string take() noexcept { return std::move(out_); }

 private:
  void head(unsigned major, std::uint64_t argument);
  template <class T> void fixed(unsigned first, T value);

  std::string out_{};
};

}  // namespace weighbridge::wire
