// SPDX-License-Identifier: Apache-2.0
// Options of a conversion as people write them. Which container has which of the words is judged in plan.cc.
#include <algorithm>
#include <iterator>

#include "core/format_options.h"
#include "weighbridge/convert.h"

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

std::vector<std::string_view> Options::words(std::string_view option) {
  std::vector<std::string_view> out;
  if (option == "allow")
    for (std::size_t i = 0; i < kLossKindCount; ++i) out.push_back(name(static_cast<LossKind>(i)));
  if (option == "cast")
    for (const DTypeInfo& dtype : all_dtypes())
      if (dtype.kind == DTypeKind::real) out.push_back(dtype.name);
  if (option == "encoding") out = {name(Encoding::raw), name(Encoding::zstd)};
  if (option == "digest") out = {"none", "sha256", "crc32c"};
  if (option == "quantize")
    for (const BlockTypeInfo& type : all_block_types())
      if (type.can_encode && std::ranges::find(out, type.name) == out.end()) out.push_back(type.name);
  const core::FormatOption* const own = core::find_format_option(option);
  if (own != nullptr && own->is_switch) out.assign(std::begin(core::kSwitch), std::end(core::kSwitch));
  return out;
}

void Options::set(std::string_view option, std::string_view text) {
  if (option == "allow") return allow_kinds(*this, text);
  if (const core::FormatOption* const own = core::find_format_option(option)) {
    if (own->is_switch) core::check_word(option, text, core::kSwitch);
    return own->set(*this, text);
  }
  core::check_word(option, text, words(option));
  if (option == "cast") cast = *dtype_from_name(text);
  if (option == "encoding") encoding = text;
  if (option == "digest") digest = text;
  if (option == "quantize") quantize = text;
}

}  // namespace weighbridge
