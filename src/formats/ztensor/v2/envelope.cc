// SPDX-License-Identifier: Apache-2.0
#include "formats/ztensor/v2/manifest.h"

#include <algorithm>
#include <array>

#include "base/checked.h"
#include "base/endian.h"
#include "codecs/checksum.h"
#include "core/reading/rules.h"
#include "formats/ztensor/v2/format.h"
#include "formats/ztensor/v2/layout.h"

namespace weighbridge::ztensor2 {
namespace {

struct Ends {
  std::array<std::byte, kMagicSize> head{};
  std::array<std::byte, kFooterSize> tail{};
  Footer footer;

  explicit Ends(const Source& source) {
    const ReadRange both[] = {{0, head}, {source.size() - kFooterSize, tail}};
    source.read(both);
    footer = base::load_record<Footer>(tail.data());
  }
  bool begins() const noexcept { return std::ranges::equal(head, std::as_bytes(std::span(kMagic))); }
  bool ends() const noexcept { return std::ranges::equal(footer.magic, kMagic); }
};

}  // namespace

bool is_container(const Source& source) {
  if (source.size() < kMinFile) return false;
  const Ends ends(source);
  return ends.begins() && ends.ends() && ends.footer.version == kVersion;
}

std::optional<Envelope> read_envelope(const Source& source, const Context& context, core::Findings& findings) {
  const std::uint64_t size = source.size();
  const auto fail = [&](const Rule& rule, std::uint64_t at, const core::Said& expected, const core::Said& found) {
    findings.report(rule, {.offset = at}, expected, found);
    return std::nullopt;
  };
  if (size < kMinFile) return fail(rules::kTooShort, size, "at least 48 bytes", size);
  const Ends ends(source);
  findings.span(Span::Kind::field, 0, kMagicSize, "magic");
  findings.record<Footer>(Span::Kind::structure, size - kFooterSize, ends.tail, "footer");
  const std::string magic = codecs::to_hex(std::as_bytes(std::span(kMagic)));
  if (!ends.begins()) return fail(rules::kBadMagic, 0, magic, codecs::to_hex(ends.head));
  if (!ends.ends())
    return fail(rules::kBadFooter, size - kMagicSize, magic,
                codecs::to_hex(std::as_bytes(std::span(ends.footer.magic))));
  const std::uint64_t footer = size - kFooterSize;
  const auto& [offset, length, hash, version, reserved, end_magic] = ends.footer;
  if (version != kVersion) return fail(rules::kVersionRule, footer + base::offset_of(&Footer::version), "2", version);
  if (length == 0) {
    if (offset == 0 && hash == 0) return Envelope{};
    return fail(rules::kShardFooter, footer, "0 and 0", {offset, " and ", hash});
  }
  if (length > kMaxManifest)
    return fail(rules::kManifestTooLarge, footer + base::offset_of(&Footer::manifest_length),
                core::at_most(kMaxManifest), length);
  if (offset < kAlignment || offset % kAlignment != 0)
    return fail(rules::kManifestOffset, footer, "a multiple of 4096 from 4096 on", offset);
  if (!base::fits(offset, length, footer))
    return fail(rules::kManifestRange, footer, {"an end of at most ", footer}, {offset, " + ", length});
  if (length > context.limits.header)
    return fail(core::rules::kLimitHeader, footer + base::offset_of(&Footer::manifest_length),
                core::at_most(context.limits.header), length);
  core::HeaderMemory text(length);
  source.read_at(offset, text.bytes());
  const std::uint64_t found = codecs::xxh3_64(text.bytes());
  if (found != hash) return fail(rules::kManifestHash, offset, codecs::to_hex(hash), codecs::to_hex(found));
  return Envelope{offset, std::move(text)};
}

}  // namespace weighbridge::ztensor2
