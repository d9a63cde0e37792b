// SPDX-License-Identifier: Apache-2.0
// Reads magic number, size and index.
// read.cc draws the layout.
#include "formats/ztensor/v0/index.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "base/checked.h"
#include "base/endian.h"
#include "codecs/checksum.h"
#include "core/reading/rules.h"
#include "formats/ztensor/v0/format.h"
#include "formats/ztensor/v0/layout.h"

namespace weighbridge::ztensor0 {
namespace {

bool check_magic(const Source& source, core::Findings& findings) {
  std::array<std::byte, kMagicSize> bytes{};
  const auto head = std::span(bytes).first(static_cast<std::size_t>(std::min(source.size(), kMagicSize)));
  if (!head.empty()) source.read_at(0, head);
  const auto magic = std::as_bytes(std::span(kMagic));
  findings.span(Span::Kind::field, 0, head.size(), "magic");
  if (!head.empty() && std::ranges::equal(head, magic.first(head.size()))) return true;
  return findings.fail(rules::kBadMagic, {.offset = 0}, codecs::to_hex(magic), codecs::to_hex(head));
}

}  // namespace

std::optional<core::HeaderMemory> read_index(const Source& source, const Context& context, core::Findings& findings) {
  const std::uint64_t size = source.size();
  const auto fail = [&](const Rule& rule, std::uint64_t at, const core::Said& expected, std::uint64_t found) {
    findings.report(rule, {.offset = at}, expected, found);
    return std::nullopt;
  };
  if (!check_magic(source, findings)) return std::nullopt;
  if (size < kMinFile) return fail(rules::kTooShort, size, core::at_least(kMinFile, " bytes"), size);
  std::array<std::byte, kFooterSize> footer{};
  source.read_at(size - kFooterSize, footer);
  const auto length = base::load_le<std::uint64_t>(footer.data());
  const std::uint64_t at = size - kFooterSize;
  findings.span(Span::Kind::field, at, size, "length of the index", [&] { return std::to_string(length); });
  const std::uint64_t maximum = size - kMagicSize - kFooterSize;
  if (length == 0 || length > maximum) return fail(rules::kIndexRange, at, {"1 to ", maximum}, length);
  if (length > context.limits.header)
    return fail(core::rules::kLimitHeader, at, core::at_most(context.limits.header), length);
  core::HeaderMemory text(length);
  source.read_at(size - kFooterSize - length, text.bytes());
  return text;
}

}  // namespace weighbridge::ztensor0
