// SPDX-License-Identifier: Apache-2.0
// Reads the two ends of the file.
#include "formats/ztensor/v1/manifest.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "base/checked.h"
#include "base/endian.h"
#include "core/reading/rules.h"
#include "formats/ztensor/v1/format.h"
#include "formats/ztensor/v1/layout.h"
#include "io/read.h"
#include "wire/cbor_reader.h"

namespace weighbridge::ztensor1 {
namespace {

// How much of a file to search for a manifest of the 1.0 draft. They were small, and the search only improves a
// message.
constexpr std::uint64_t kDraftSearch = std::uint64_t{16} << 20;
constexpr std::uint32_t kDraftDepth = 64;

std::string_view as_text(std::span<const std::byte> bytes) noexcept {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string hex_bytes(std::span<const std::byte> bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (const std::byte b : bytes) {
    if (!out.empty()) out += ' ';
    out += kDigits[std::to_integer<unsigned>(b) >> 4];
    out += kDigits[std::to_integer<unsigned>(b) & 15];
  }
  return out;
}

bool is_draft(std::string_view manifest) {
  wire::CborReader in(manifest, kDraftDepth);
  bool version = false, tensors = false;
  if (!in.enter_map()) return false;
  while (in.next_entry()) {
    wire::CborString key, value;
    if (!in.read_text(key)) return false;
    if (key.raw == kVersion && in.read_text(value)) {
      version = value.raw == "1.0";
      continue;
    }
    tensors |= key.raw == "tensors";
    if (!in.skip_item()) return false;
  }
  return in.ok() && version && tensors;
}

// Y0: a file of the 1.0 draft ends with the manifest's size instead of a magic, and its manifest has a root key
// `tensors`.
void report_footer(const Source& source, core::Findings& findings, std::uint64_t size,
                   std::span<const std::byte> last) {
  const auto length = base::load_le<std::uint64_t>(last.data());
  if (length > 0 && length <= std::min(size - 2 * kMagicSize, kDraftSearch)) {
    if (is_draft(io::text_of(source, size - kMagicSize - length, length)))
      return findings.report(rules::kDraft, {.offset = size - kMagicSize});
  }
  findings.report(rules::kBadFooter, {.offset = size - kMagicSize}, hex_bytes(std::as_bytes(std::span(kMagic))),
                  hex_bytes(last));
}

}  // namespace

std::optional<core::HeaderMemory> read_manifest(const Source& source, const Context& context,
                                                core::Findings& findings) {
  const std::uint64_t size = source.size();
  const auto fail = [&](const Rule& rule, std::uint64_t at, const core::Said& expected, const core::Said& found) {
    findings.report(rule, {.offset = at}, expected, found);
    return std::nullopt;
  };
  std::array<std::byte, kMagicSize> magic{};
  const auto head = std::span(magic).first(static_cast<std::size_t>(std::min(size, kMagicSize)));
  if (!head.empty()) source.read_at(0, head);
  findings.span(Span::Kind::field, 0, head.size(), "magic");
  if (as_text(head) != kMagic.substr(0, head.size()) || head.empty())
    return fail(rules::kBadMagic, 0, hex_bytes(std::as_bytes(std::span(kMagic))), hex_bytes(head));
  if (size < kMinFile) return fail(rules::kTooShort, size, core::at_least(kMinFile, " bytes"), size);
  std::array<std::byte, kFooterSize> bytes{};
  source.read_at(size - kFooterSize, bytes);
  const std::span<const std::byte> footer(bytes);
  const std::uint64_t at = size - kFooterSize;
  findings.record<Footer>(Span::Kind::structure, at, footer, "footer");
  if (as_text(footer.last(kMagicSize)) != kMagic) {
    report_footer(source, findings, size, footer.last(kMagicSize));
    return std::nullopt;
  }
  const auto length = base::load_le<std::uint64_t>(footer.data());
  if (length > kMaxManifest) return fail(rules::kManifestTooLarge, at, core::at_most(kMaxManifest), length);
  if (length > size - kMinFile) return fail(rules::kManifestRange, at, core::at_most(size - kMinFile), length);
  if (length > context.limits.header)
    return fail(core::rules::kLimitHeader, at, core::at_most(context.limits.header), length);
  core::HeaderMemory text(length);
  source.read_at(size - kFooterSize - length, text.bytes());
  return text;
}

}  // namespace weighbridge::ztensor1
