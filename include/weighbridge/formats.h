// SPDX-License-Identifier: Apache-2.0
/// \file
/// Which containers this build knows, and what each can hold.
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

/// One reason to reject or to remark, as the format's rules.def states it.
struct Rule {
  /// What a breach spoils: the whole file, one tensor, nothing.
  enum class Reach : std::uint8_t { file, tensor, note };
  /// What has to be read to tell. verify() checks every rule; of the errors, open() leaves out those of `payload`.
  enum class Phase : std::uint8_t {
    structure,       ///< the structure of the file: open() refuses a breach
    payload,         ///< what tensors hold: open() does not look
    payload_on_open  ///< what tensors hold, and open() refuses a breach
  };
  std::string_view id;             ///< "<format>/<rule>", stable
  Reach reach;                     ///< what it spoils
  Severity severity;               ///< of a finding by this rule
  std::string_view section;        ///< of the specification or reading
  std::string_view sentence;       ///< lower case, no final full stop
  Phase phase = Phase::structure;  ///< who checks it
};

/// What a format can hold; a conversion names as loss or blocker what it cannot.
struct Holds {
  std::span<const DType> dtypes;              ///< of elements
  std::span<const Layout> layouts;            ///< of tensors
  std::span<const Encoding> encodings;        ///< raw first
  std::span<const std::string_view> digests;  ///< per part: "sha256", "crc32c"; empty: none
  std::string_view attributes;                ///< one line: "text", "any value", "none"
  bool names = true;                          ///< of tensors; false: a loss or a sidecar
  bool tokenizer = false;                     ///< a vocabulary beside the tensors
  std::uint64_t max_tensors = UINT64_MAX;     ///< in one file
};

/// One container: how it is called, what it holds, by which rules.
struct FormatInfo {
  std::string_view name;                         ///< as --to takes it
  std::string_view title;                        ///< as a person says it
  std::span<const std::string_view> extensions;  ///< lower case, no dot; the first one is the usual one
  std::string_view versions;                     ///< "1.1, keys of 1.2"
  bool reads = true;                             ///< open() knows it
  bool writes = true;                            ///< plan() takes it as a target
  bool folder = false;                           ///< a folder of files rather than one file
  bool tokenizer_file = false;                   ///< its tokenizer is a file of its own: OpenOptions::tokenizer
  Holds holds;                                   ///< what a file of it can carry
  std::span<const std::string_view> options;     ///< of Options, that this target takes and others refuse: "keep-gqa"
  std::span<const Rule> rules;                   ///< every reason to reject or remark, in the order of rules.def
};

/// Every format, in the registry's order.
std::span<const FormatInfo> formats() noexcept;
const FormatInfo* find_format(std::string_view name) noexcept;  ///< by FormatInfo::name; null if there is none
/// The format that writes files of this extension (lower case, without the dot); null if none does.
const FormatInfo* format_for_extension(std::string_view extension) noexcept;
/// The rules that belong to no format: "file/..." (what is no tensor file at all) and "limit/...".
std::span<const Rule> common_rules() noexcept;

}  // namespace weighbridge
