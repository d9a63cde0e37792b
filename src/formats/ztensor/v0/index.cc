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

// The size of the first read at a file's end, which covers the whole index of most files.
constexpr std::uint64_t kTailRead = std::uint64_t{64} << 10;

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
  if (!check_magic(source, findings)) return std::nullopt;
  if (size < kMinFile) {
    findings.report(rules::kTooShort, {.offset = size}, core::at_least(kMinFile, " bytes"), size);
    return std::nullopt;
  }
  std::vector<std::byte> tail(static_cast<std::size_t>(std::min(size - kMagicSize, kTailRead)));
  source.read_at(size - tail.size(), tail);
  const auto length = base::load_le<std::uint64_t>(tail.data() + tail.size() - kFooterSize);
  const core::At at{.offset = size - kFooterSize};
  findings.span(Span::Kind::field, size - kFooterSize, size, "length of the index",
                [&] { return std::to_string(length); });
  const std::uint64_t most = size - kMagicSize - kFooterSize;
  if (length == 0 || length > most) {
    findings.report(rules::kIndexRange, at, core::Said("1 to ", most), length);
    return std::nullopt;
  }
  if (length > context.limits.header) {
    findings.report(core::rules::kLimitHeader, at, core::at_most(context.limits.header), length);
    return std::nullopt;
  }
  core::HeaderMemory text(length);
  const auto out = text.bytes();
  if (length > tail.size() - kFooterSize)
    source.read_at(size - kFooterSize - length, out);
  else
    std::ranges::copy(std::span(tail).last(out.size() + kFooterSize).first(out.size()), out.begin());
  return text;
}

}  // namespace weighbridge::ztensor0
