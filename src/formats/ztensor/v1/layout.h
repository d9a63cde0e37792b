// SPDX-License-Identifier: Apache-2.0
// The constants of a zTensor 1.x file: magic, footer, alignment, limits, the keys of the manifest, and the dtypes.
// Sections are those of the specification (1.1.0), Y and G are the project's readings.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/record.h"
#include "formats/ztensor/cbor_entry.h"
#include "formats/ztensor/cbor_value.h"
#include "tokenizers/tokenizer_rules.h"
#include "weighbridge/dtype.h"

namespace weighbridge::ztensor1 {

inline constexpr std::string_view kMagic = "ZTEN1000";  // I.1: at the start and at the end
inline constexpr std::uint64_t kMagicSize = 8;
WB_RECORD(Footer, (u64, manifest_length, "length of the manifest"), (char[8], magic));  // I.1
inline constexpr std::uint64_t kFooterSize = 16;
static_assert(base::record_size<Footer>() == kFooterSize);
inline constexpr std::uint64_t kMinFile = kMagicSize + kFooterSize;
inline constexpr std::uint64_t kAlignment = 64;  // I.2; also the first offset that a component may have (Y4)
inline constexpr std::uint64_t kMaxManifest = 1'073'741'824;  // IV.1 step 4
inline constexpr std::size_t kMaxRank = 64;                   // a limit of the object model
inline constexpr std::size_t kMaxRoles = 256;                 // different roles in one file; real files have eight

// Keys of the manifest (II.1 to II.3, Y8).
inline constexpr std::string_view kVersion = "version", kAttributes = "attributes", kObjects = "objects";
inline constexpr std::string_view kShape = "shape", kFormatKey = "format", kComponents = "components";
inline constexpr std::string_view kDtype = "dtype", kType = "type", kOffset = "offset", kLength = "length",
                                  kUncompressedLength = "uncompressed_length", kEncoding = "encoding",
                                  kDigest = "digest";

// Compares with a key known at compile time, which becomes one or two loads.
inline bool is(std::string_view name, std::string_view key) noexcept {
  return name.size() == key.size() && __builtin_memcmp(name.data(), key.data(), key.size()) == 0;
}

// Roles (III).
inline constexpr std::string_view kData = "data", kValues = "values", kIndices = "indices", kIndptr = "indptr",
                                  kCoords = "coords", kPackedWeight = "packed_weight", kScales = "scales",
                                  kZeros = "zeros";

// This project's own attributes (Y10).
using tokenizers::kTokenizerKey, ztensor::kTypesKey;

// II.4: the dtypes of components. The project uses the same names (G8).
inline constexpr std::array kDtypes{DType::boolean, DType::u8,     DType::i8,  DType::u16,       DType::i16,
                                    DType::u32,     DType::i32,    DType::u64, DType::i64,       DType::f16,
                                    DType::bf16,    DType::f32,    DType::f64, DType::complex64, DType::complex128,
                                    DType::f8_e4m3, DType::f8_e5m2};

constexpr bool holds(DType dtype) noexcept {
  for (const DType d : kDtypes)
    if (d == dtype) return true;
  return false;
}

// Y8
using ztensor::LogicalType;
inline constexpr std::array<LogicalType, 4> kLogicalTypes{{{"f8_e4m3fn", DType::f8_e4m3, DType::u8},
                                                           {"f8_e5m2", DType::f8_e5m2, DType::u8},
                                                           {"complex64", DType::complex64, DType::f32},
                                                           {"complex128", DType::complex128, DType::f64}}};

// Y1: MAJOR.MINOR.PATCH in decimal without leading zeros.
struct Version {
  std::uint32_t major = 0, minor = 0, patch = 0;
};
constexpr std::optional<Version> parse_version(std::string_view text) noexcept {
  std::uint32_t parts[3] = {};
  for (int i = 0; i < 3; ++i) {
    if (i > 0) {
      if (text.empty() || text.front() != '.') return std::nullopt;
      text.remove_prefix(1);
    }
    std::size_t digits = 0;
    while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9' && digits < 7) {
      parts[i] = parts[i] * 10 + static_cast<std::uint32_t>(text[digits] - '0');
      ++digits;
    }
    if (digits == 0 || digits == 7 || (digits > 1 && text.front() == '0')) return std::nullopt;
    text.remove_prefix(digits);
  }
  if (!text.empty()) return std::nullopt;
  return Version{parts[0], parts[1], parts[2]};
}
// From 1.2 on, components carry `type` and `uncompressed_length`, and root attributes may be any value.
constexpr bool has_keys_of_1_2(std::string_view version) noexcept {
  const auto v = parse_version(version);
  return v && (v->major > 1 || v->minor >= 2);
}

}  // namespace weighbridge::ztensor1
