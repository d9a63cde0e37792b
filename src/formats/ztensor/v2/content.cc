// SPDX-License-Identifier: Apache-2.0
// The content rules of zTensor 2: digests, seekable zstd and bools in one pass over the payload, then the half bytes
// and the index parts of sparse objects, then the digests of shards and the bytes between the blobs.
#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/checked.h"
#include "base/endian.h"
#include "codecs/checksum.h"
#include "core/model/draft.h"
#include "core/payload/content.h"
#include "core/payload/extents.h"
#include "core/payload/part_digest.h"
#include "core/payload/payload.h"
#include "formats/ztensor/v2/format.h"
#include "formats/ztensor/v2/layout.h"
#include "formats/ztensor/v2/shards.h"
#include "io/caching_source.h"
#include "io/read.h"
#include "wire/cbor_reader.h"

namespace weighbridge::ztensor2 {
namespace {

// Appendix A: the half of the last byte that an odd number of f4_e2m1 leaves unused.
void check_nibbles(const Model& model, const Context& context, std::vector<Finding>& out) {
  for (const Tensor& tensor : model)
    for (const Part& part : tensor.parts()) {
      const auto extent = part.extent();
      if (part.dtype() != DType::f4 || part.count() % 2 == 0 || !extent) continue;
      std::byte last{};
      if (part.encoding() == Encoding::raw) {
        core::source_of(part).read_at(extent->offset + extent->length - 1, {&last, 1});
      } else if (core::is_coded(part.encoding())) {
        try {
          part.stream(context, [&](std::span<const std::byte> piece) {
            if (!piece.empty()) last = piece.back();
            return true;
          });
        } catch (const Error& error) {  // the pass over the payload has reported it
          if (error.kind() != Kind::malformed && error.kind() != Kind::limit) throw;
          continue;
        }
      }
      if ((last & std::byte{0xF0}) != std::byte{0})
        out.push_back(core::Findings::make(rules::kNibble, {.offset = extent->offset, .tensor = tensor.name()}, "0",
                                           std::to_integer<unsigned>(last) >> 4, {"part \"", part.role(), "\""}));
    }
}

void check_file(const Source& source, std::uint32_t index, std::string_view declared, core::Progress& progress,
                std::vector<Finding>& out) {
  const core::DigestText digest = core::parse_decoded_digest(declared);
  if (digest.kind == core::PartDigest::none) return;
  core::Digester digester(digest.kind);
  io::read_pieces(source, 0, source.size(), [&](std::uint64_t, std::span<const std::byte> piece) {
    digester.update(piece);
    progress.add(0);
    return true;
  });
  const std::string found(core::parse_decoded_digest(digester.finish()).digits);
  if (found == digest.digits) return;
  Finding finding = core::Findings::make(rules::kShardDigest, {}, digest.digits, found);
  finding.file = {std::string(source.name()), index};
  out.push_back(std::move(finding));
}

// 7.3: the digests of the shards' files, which the table has. A data shard has no table.
void check_shards(const Model& model, core::Progress& progress, std::vector<Finding>& out) {
  const auto sources = model.sources();
  std::map<std::string_view, std::uint32_t, std::less<>> by_name;
  for (std::uint32_t i = 1; i < sources.size(); ++i) by_name.emplace(sources[i]->file_name(), i);
  for (const auto& [key, table] : entries_of(core::retained_header(model))) {
    if (key != kShards) continue;
    for (const auto& [name, fields] : entries_of(table)) {
      const auto source = by_name.find(shard_file(sources[0]->file_name(), name));
      if (source == by_name.end()) continue;
      for (const auto& [field, item] : entries_of(fields)) {
        wire::CborString digest;
        if (field == kDigest && wire::CborReader(item).read_text(digest))
          check_file(*sources[source->second], source->second, digest.raw, progress, out);
      }
    }
  }
}

// Warns of bytes outside all blobs that are not zero: once, for the first.
void check_padding(const Model& model, core::Progress& progress, std::vector<Finding>& out) {
  const std::shared_ptr<const Source> source = io::cached(model.sources()[0]);
  const std::string_view manifest = core::retained_header(model);
  if (manifest.empty()) return;
  std::vector<core::Range> ranges;
  const core::Extents extents = core::Extents::of(model);
  for (const core::Range& range : extents.sorted())
    if (range.source == 0 && range.length > 0) ranges.push_back(range);
  std::array<std::byte, 8> footer{};
  source->read_at(source->size() - kFooterSize, footer);
  ranges.push_back({0, base::load_le<std::uint64_t>(footer.data()), manifest.size(), 0});
  std::ranges::sort(ranges);
  std::uint64_t at = kMagicSize;
  std::optional<std::uint64_t> bad;
  const auto between = [&](std::uint64_t end) {
    if (end <= at || bad) return;
    io::read_pieces(*source, at, end, [&](std::uint64_t from, std::span<const std::byte> piece) {
      progress.add(0);
      const auto first = std::ranges::find_if(piece, [](std::byte b) { return b != std::byte{0}; });
      if (first == piece.end()) return true;
      bad = from + static_cast<std::uint64_t>(first - piece.begin());
      return false;
    });
  };
  for (const core::Range& range : ranges) {
    between(range.offset);
    at = std::max(at, range.end());
  }
  between(source->size() - kFooterSize);
  if (bad) out.push_back(core::Findings::make(rules::kPadding, {.offset = *bad}));
}

}  // namespace

void check_share(const Model& model, const Share& share, const Context& context, core::Findings& findings) {
  constexpr core::StatedRules kRules{core::parse_decoded_digest,
                                     rules::kDigestRule,
                                     rules::kZstd,
                                     &rules::kBool,
                                     {rules::kIndptrRule, rules::kIndexRange, rules::kDuplicateEntries,
                                      rules::kEntriesUnchecked, &rules::kIndexOrder}};
  core::check_stated(model, kRules, share, context, findings,
                     [&](core::Progress& progress, std::vector<Finding>& found) {
                       check_nibbles(model, context, found);
                       // These read the manifest again, or take the bytes of a broken part for padding: both need a
                       // file without errors.
                       if (findings.errors() != 0) return;
                       check_shards(model, progress, found);
                       check_padding(model, progress, found);
                     });
}

}  // namespace weighbridge::ztensor2
