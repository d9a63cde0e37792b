// SPDX-License-Identifier: Apache-2.0
// Parses the options of a conversion. plan.cc decides which containers support which options.
#include <algorithm>
#include <iterator>
#include <string>

#include "base/fail.h"
#include "core/format_options.h"
#include "weighbridge/convert.h"
#include "wire/json_reader.h"

namespace weighbridge {
namespace {

void allow_kinds(Options& options, std::string_view kinds) {
  for (;;) {
    const std::size_t end = std::min(kinds.find(','), kinds.size());
    const std::string_view word = kinds.substr(0, end);
    const auto kind = loss_kind_from_name(word);
    if (!kind) core::refuse_word("allow", word, Options::words("allow"));
    options.allow.push_back(*kind);
    if (end == kinds.size()) return;
    kinds.remove_prefix(end + 1);
  }
}

}  // namespace

void core::detail::assign(std::uint64_t& to, std::string_view text) {
  constexpr std::string_view kPrefixes = "kmgt";
  std::string lower(text);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  const std::size_t end = std::min(lower.find_first_not_of("0123456789."), lower.size());
  const std::string_view digits = std::string_view(lower).substr(0, end);
  std::string_view unit = std::string_view(lower).substr(end);
  double factor = 1;
  bool known = unit.empty() || unit == "b";
  if (const std::size_t power = unit.empty() ? kPrefixes.npos : kPrefixes.find(unit.front()); power != kPrefixes.npos) {
    unit.remove_prefix(1);
    known = unit.empty() || unit == "b" || unit == "ib";
    for (std::size_t i = 0; i <= power; ++i) factor *= unit == "ib" ? 1024 : 1000;
  }
  if (const auto whole = known && factor == 1 ? wire::as_u64(digits) : std::nullopt; whole && *whole > 0) {
    to = *whole;
    return;
  }
  const auto number = known && !digits.empty() && digits[0] != '.' ? wire::as_double(digits) : std::nullopt;
  if (!number || *number * factor < 1 || *number * factor >= 0x1p63)
    base::misuse("shard-size",
                 core::quoted(core::excerpt(text)) + " is not a size such as 5GB, 500M, 200KiB or a number of bytes");
  to = static_cast<std::uint64_t>(*number * factor);
}

void core::detail::assign(double& to, std::string_view text) {
  const auto number = wire::as_double(text);
  if (!number || !(*number > 0 && *number <= 1))
    base::misuse("share", core::quoted(core::excerpt(text)) + " is not a share above 0 and at most 1, such as 0.25");
  to = *number;
}

std::vector<std::string_view> Options::words(std::string_view option) {
  std::vector<std::string_view> out;
  if (option == "allow")
    for (std::size_t i = 0; i < kLossKindCount; ++i) out.push_back(name(static_cast<LossKind>(i)));
  if (option == "cast")
    for (const DTypeInfo& dtype : all_dtypes())
      if (dtype.kind == DTypeKind::real) out.push_back(dtype.name);
  if (option == "dequantize") out = {name(DType::f32), name(DType::f16), name(DType::bf16)};
  if (option == "encoding")
    out = {name(Encoding::raw), name(Encoding::zstd), name(Encoding::deflate), name(Encoding::zstd_seekable)};
  if (option == "digest") out = {"none", "sha256", "crc32c", "xxh3"};
  if (option == "gptq") out = {"auto", "v1", "v2"};
  if (option == "quantize") {
    for (const BlockTypeInfo& type : all_block_types())
      if (type.can_encode && std::ranges::find(out, type.name) == out.end()) out.push_back(type.name);
    // GGUF: matrices only, as its programs do it.
    for (const DType dtype : {DType::bf16, DType::f16}) out.push_back(name(dtype));
  }
  const core::FormatOption* const own = core::find_format_option(option);
  if (option == "naming") out.assign(std::begin(core::kNamings), std::end(core::kNamings));
  if (option == "sparse") out.assign(std::begin(core::kSparseLayouts), std::end(core::kSparseLayouts));
  if (option == "canonical" || (own != nullptr && own->is_switch))
    out.assign(std::begin(core::kSwitch), std::end(core::kSwitch));
  return out;
}

void Options::set(std::string_view option, std::string_view text) {
  if (option == "allow") return allow_kinds(*this, text);
  if (const core::FormatOption* const own = core::find_format_option(option)) {
    if (const auto known = words(option); !known.empty()) core::check_word(option, text, known);
    return own->set(*this, text);
  }
  core::check_word(option, text, words(option));
  if (option == "cast") cast = *dtype_from_name(text);
  if (option == "dequantize") dequantize = *dtype_from_name(text);
  if (option == "encoding") encoding = text;
  if (option == "digest") digest = text;
  if (option == "quantize") quantize = text;
  if (option == "gptq") gptq = text;
  if (option == "canonical") core::detail::assign(canonical, text);
}

}  // namespace weighbridge
