// SPDX-License-Identifier: Apache-2.0
/// \file
/// The containers that this build supports, and what each can hold.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "weighbridge/dtype.h"
#include "weighbridge/error.h"
#include "weighbridge/model.h"
#include "weighbridge/source.h"

namespace weighbridge {

/// One reason to reject a file or to warn about it, as the format's rules.def states it.
struct Rule {
  /// What a violation makes invalid: the whole file, one tensor, or nothing.
  enum class Reach : std::uint8_t { file, tensor, note };
  /// What must be read to check the rule. verify() checks every rule; open() skips those of `payload`.
  enum class Phase : std::uint8_t {
    structure,        ///< the structure of the file; open() checks it
    payload,          ///< tensor data; open() does not check it
    payload_on_open,  ///< tensor data; open() checks it
    either,           ///< structure or tensor data; open() may find it, or leave it to verify()
    whole             ///< what belongs to the model and is not there: open() reads the rest, and warns
  };
  std::string_view id;             ///< "<format>/<rule>", stable
  Reach reach;                     ///< what a violation makes invalid
  Severity severity;               ///< of a finding by this rule
  std::string_view section;        ///< of the specification or reading
  std::string_view sentence;       ///< lower case, no final full stop
  Phase phase = Phase::structure;  ///< what must be read to check it
};

/// What a format can hold. In a conversion, the rest is a loss or a blocker.
struct Holds {
  std::span<const DType> dtypes;                ///< of elements
  std::span<const Layout> layouts;              ///< of tensors
  std::span<const Encoding> encodings;          ///< raw first
  std::span<const std::string_view> digests{};  ///< per part: "sha256", "crc32c"; empty: none
  std::string_view attributes;                  ///< one line: "text", "any value", "none"
  bool names = true;                            ///< of tensors; false: names are lost or go to a sidecar
  bool tokenizer = false;                       ///< whether it can hold a vocabulary
  std::uint64_t max_tensors = UINT64_MAX;       ///< in one file
};

/// One container: its names, what it holds, its rules.
struct FormatInfo {
  std::string_view name;                         ///< as --to takes it
  std::string_view title;                        ///< for display
  std::span<const std::string_view> extensions;  ///< lower case, no dot; the first is the default
  std::string_view versions;                     ///< "1.1, keys of 1.2"
  bool reads = true;                             ///< open() reads it
  bool writes = true;                            ///< plan() takes it as a target
  bool folder = false;                           ///< it is a folder, not one file
  bool tokenizer_file = false;                   ///< its tokenizer is a separate file: OpenOptions::tokenizer
  Holds holds;                                   ///< what a file can hold
  std::span<const std::string_view> options{};   ///< options for this target only: "keep-gqa"
  std::span<const Rule> rules;                   ///< in the order of rules.def
};

/// Every format, in the registry's order.
std::span<const FormatInfo> formats() noexcept;
const FormatInfo* find_format(std::string_view name) noexcept;  ///< by FormatInfo::name; null if there is none
/// The format that writes files of this extension (lower case, without the dot); null if none does.
const FormatInfo* format_for_extension(std::string_view extension) noexcept;
/// The rules that belong to no format: "file/..." (not a tensor file at all), "claim/..." (untrue metadata) and
/// "limit/...".
std::span<const Rule> common_rules() noexcept;

}  // namespace weighbridge
