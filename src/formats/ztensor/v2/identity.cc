// SPDX-License-Identifier: Apache-2.0
// The content digest of 6.4: the manifest's objects without the places of their bytes.
#include <algorithm>
#include <string>

#include "base/fail.h"
#include "codecs/checksum.h"
#include "core/model/draft.h"
#include "formats/ztensor/v2/format.h"
#include "formats/ztensor/v2/layout.h"
#include "formats/ztensor/v2/manifest.h"
#include "wire/cbor_writer.h"

namespace weighbridge::ztensor2 {
namespace {

constexpr std::string_view kTag = "zt.content/1";

// The entries with these keys.
Entries kept(std::string_view map, std::initializer_list<std::string_view> keys) {
  Entries out = entries_of(map);
  std::erase_if(out, [&](const auto& entry) { return std::ranges::find(keys, entry.first) == keys.end(); });
  return out;
}

// Writes a map; `item` writes the item of an entry.
template <class Item> void write_map(wire::CborWriter& out, const Entries& entries, Item item) {
  out.map(entries.size());
  for (const auto& [key, value] : entries) {
    out.text(key);
    item(key, value);
  }
}

void write_part(wire::CborWriter& out, std::string_view object, std::string_view part, std::string_view item) {
  const Entries fields = kept(item, {kDtype, kType, kDigest});
  if (std::ranges::none_of(fields, [](const auto& e) { return e.first == kDigest; }))
    base::misuse("no-digest",
                 "part \"" + std::string(part) + "\" of \"" + std::string(object) +
                     "\" has no digest, so zTensor 2 defines no content digest for this file: convert it to "
                     "zt2 with digests first",
                 base::option_hint("digest", "xxh3"));
  write_map(out, fields, [&](std::string_view, std::string_view value) { out.raw(value); });
}

void write_object(wire::CborWriter& out, std::string_view name, std::string_view item) {
  write_map(out, kept(item, {kShape, kLayout, kAttributes, kParts}), [&](std::string_view key, std::string_view value) {
    if (key != kParts) return out.raw(value);
    write_map(out, entries_of(value),
              [&](std::string_view role, std::string_view part) { write_part(out, name, role, part); });
  });
}

}  // namespace

Digest content_identity(const Model& model) {
  const std::string_view manifest = core::retained_header(model);
  if (model.format() != "zt2" || core::is_view(model) || manifest.empty())
    base::misuse("identity",
                 "only a zTensor 2 file with a manifest has this content digest; convert the "
                 "model to zt2 first");
  wire::CborWriter out;
  out.array(2);
  out.text(kTag);
  write_map(out, entries_of(kept(manifest, {kObjects}).front().second),
            [&](std::string_view name, std::string_view item) { write_object(out, name, item); });
  return {codecs::sha256(std::as_bytes(std::span(out.data()))), 0};
}

}  // namespace weighbridge::ztensor2
