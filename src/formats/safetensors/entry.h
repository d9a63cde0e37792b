// SPDX-License-Identifier: Apache-2.0
// One tensor's entry while it is read. Collects dimensions without storing more of them than the model can hold. One
// object is reused for all entries, so that none of them allocates.
#pragma once
#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/safetensors/layout.h"
#include "weighbridge/error.h"
#include "weighbridge/model.h"
#include "wire/json_reader.h"

namespace weighbridge::safetensors {

// Compares with a length known at compile time: one or two loads, while comparing string_views is a call.
template <std::size_t N> bool is(std::string_view text, const char (&literal)[N]) noexcept {
  return text.size() == N - 1 && std::memcmp(text.data(), literal, N - 1) == 0;
}

struct Entry {
  bool has_dtype = false, has_shape = false, has_offsets = false;  // the key was present
  bool shape_good = false, offsets_good = false;                   // its value could be read
  bool broken = false;
  DType dtype = DType::unknown;
  std::string_view dtype_name;  // in the header, or dtype_scratch
  std::array<std::uint64_t, 2> offsets{};
  std::uint64_t dtype_at = 0, shape_at = 0, offsets_at = 0;  // in the file
  std::uint64_t rank = 0;
  std::string dtype_scratch;
  std::optional<Finding> unsupported;

  void clear() {
    has_dtype = has_shape = has_offsets = shape_good = offsets_good = broken = false;
    dtype = DType::unknown;
    dtype_name = {};
    rank = 0;
    product_ = 1;
    empty_ = overflow_ = false;
    unsupported.reset();
  }

  // Fast path: reads an entry in the spelling of the published package: these three keys in this order, without white
  // space. `text` begins at offset `at` of the file. Returns the entry's length; 0 for any other spelling, valid or
  // not, after which the entry must be cleared.
  std::size_t read_usual(std::string_view text, std::uint64_t at) noexcept {
    const char *next = text.data(), *const end = next + text.size();
    const auto offset = [&] { return at + static_cast<std::uint64_t>(next - text.data()); };
    const auto passes = [&]<std::size_t N>(const char(&literal)[N]) {
      if (static_cast<std::size_t>(end - next) < N - 1 || std::memcmp(next, literal, N - 1) != 0) return false;
      next += N - 1;
      return true;
    };
    const auto number = [&](std::uint64_t& value) {
      const std::size_t digits = wire::short_u64(next, end, value);
      next += digits;
      return digits != 0;
    };
    if (!passes("{\"dtype\":\"")) return 0;
    dtype_at = offset() - 1;
    const char* const name = next;
    while (next != end && ((*next >= '0' && *next <= '9') || (*next >= 'A' && *next <= 'Z') || *next == '_')) ++next;
    set_dtype({name, static_cast<std::size_t>(next - name)});
    if (!passes("\",\"shape\":[")) return 0;
    shape_at = offset() - 1;
    if (!passes("]")) {
      for (std::uint64_t dim = 0;;) {
        if (rank == kMaxRank || !number(dim)) return 0;
        add_dimension(dim);
        if (passes("]")) break;
        if (!passes(",")) return 0;
      }
    }
    if (!passes(",\"data_offsets\":[")) return 0;
    offsets_at = offset() - 1;
    if (!number(offsets[0]) || !passes(",") || !number(offsets[1]) || !passes("]}")) return 0;
    has_dtype = has_shape = has_offsets = shape_good = offsets_good = true;
    return static_cast<std::size_t>(next - text.data());
  }

  // The flag of a key that the format defines; null for any other.
  bool* seen(std::string_view key) noexcept {
    if (is(key, "dtype")) return &has_dtype;
    if (is(key, "shape")) return &has_shape;
    if (is(key, "data_offsets")) return &has_offsets;
    return nullptr;
  }

  void set_dtype(std::string_view name) noexcept {
    dtype_name = name;
    // Neighboring tensors mostly share a dtype.
    if (last_ < kDTypeRanks && kDTypes[last_].name == name) {
      dtype = kDTypes[last_].dtype;
      return;
    }
    for (std::size_t i = 0; i < kDTypeRanks; ++i) {
      if (kDTypes[i].name != name) continue;
      dtype = kDTypes[i].dtype;
      last_ = i;
      return;
    }
  }

  void add_dimension(std::uint64_t dim) noexcept {
    if (rank < kMaxRank) dims_[static_cast<std::size_t>(rank)] = dim;
    ++rank;
    empty_ |= dim == 0;
    if (dim != 0) overflow_ |= __builtin_mul_overflow(product_, dim, &product_);
  }
  // 0 if any dimension is 0 (reading G1); nullopt above 2^64 - 1.
  std::optional<std::uint64_t> elements() const noexcept {
    if (empty_) return 0;
    if (overflow_) return std::nullopt;
    return product_;
  }
  // Nothing beyond dtype, shape and offsets, unknown keys aside.
  bool plain() const noexcept { return dtype != DType::unknown && !unsupported; }
  // Requires that the rank is at most kMaxRank.
  Shape shape() const noexcept { return Shape(dims_.data(), static_cast<std::size_t>(rank)); }

 private:
  std::array<std::uint64_t, kMaxRank> dims_;
  std::uint64_t product_ = 1;
  bool empty_ = false, overflow_ = false;
  std::size_t last_ = kDTypeRanks;
};

}  // namespace weighbridge::safetensors
