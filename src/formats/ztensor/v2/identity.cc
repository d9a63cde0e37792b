// SPDX-License-Identifier: Apache-2.0
// The content digest of 6.4: the manifest's objects without the places of their bytes.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "codecs/checksum.h"
#include "core/model/draft.h"
#include "formats/ztensor/v2/format.h"
#include "formats/ztensor/v2/layout.h"
#include "wire/cbor_reader.h"
#include "wire/cbor_writer.h"

namespace weighbridge::ztensor2 {
namespace {

constexpr std::string_view kTag = "zt.content/1";
using Kept = std::vector<std::pair<std::string_view, std::string_view>>;  // keys and items, in the order of the file

// The entries of the next map whose keys are among these, in the manifest's order, which is by the bytes of the keys.
Kept entries(wire::CborReader& in, std::initializer_list<std::string_view> keys) {
  Kept out;
  in.enter_map();
  while (in.next_entry()) {
    wire::CborString key;
    std::string_view item;
    const bool text = in.read_text(key);
    if (!text) in.skip_item();
    in.skip_item(item);
    if (text && std::ranges::find(keys, key.raw) != keys.end()) out.emplace_back(key.raw, item);
  }
  return out;
}

void write_part(wire::CborWriter& out, std::string_view object, std::string_view part, std::string_view item) {
  wire::CborReader in(item, kMaxDepth);
  const Kept kept = entries(in, {kDtype, kType, kDigest});
  if (std::ranges::none_of(kept, [](const auto& e) { return e.first == kDigest; }))
    base::misuse("no-digest",
                 "part \"" + std::string(part) + "\" of \"" + std::string(object) +
                     "\" has no digest, so zTensor 2 defines no content digest for this file: convert it to "
                     "zt2 with digests first",
                 base::option_hint("digest", "xxh3"));
  out.map(kept.size());
  for (const auto& [key, value] : kept) {
    out.text(key);
    out.raw(value);
  }
}

void write_object(wire::CborWriter& out, std::string_view name, std::string_view item) {
  wire::CborReader in(item, kMaxDepth);
  const Kept kept = entries(in, {kShape, kLayout, kAttributes, kParts});
  out.map(kept.size());
  for (const auto& [key, value] : kept) {
    out.text(key);
    if (key != kParts) {
      out.raw(value);
      continue;
    }
    wire::CborReader parts(value, kMaxDepth);
    Kept all;
    parts.enter_map();
    while (parts.next_entry()) {
      wire::CborString role;
      std::string_view part;
      parts.read_text(role);
      parts.skip_item(part);
      all.emplace_back(role.raw, part);
    }
    out.map(all.size());
    for (const auto& [role, part] : all) {
      out.text(role);
      write_part(out, name, role, part);
    }
  }
}

}  // namespace

Digest content_identity(const Model& model) {
  const std::string_view manifest = core::retained_header(model);
  if (model.format() != "zt2" || core::is_view(model) || manifest.empty())
    base::misuse("identity",
                 "only a zTensor 2 file with a manifest has this content digest; convert the "
                 "model to zt2 first");
  wire::CborReader in(manifest, kMaxDepth);
  const Kept root = entries(in, {kObjects});
  wire::CborReader objects(root.front().second, kMaxDepth);
  Kept all;
  objects.enter_map();
  while (objects.next_entry()) {
    wire::CborString name;
    std::string_view item;
    objects.read_text(name);
    objects.skip_item(item);
    all.emplace_back(name.raw, item);
  }
  wire::CborWriter out;
  out.array(2);
  out.text(kTag);
  out.map(all.size());
  for (const auto& [name, item] : all) {
    out.text(name);
    write_object(out, name, item);
  }
  return {codecs::sha256(std::as_bytes(std::span(out.data()))), 0};
}

}  // namespace weighbridge::ztensor2
