// SPDX-License-Identifier: Apache-2.0
// Writes the manifest in deterministic CBOR: maps are gathered, sorted by the bytes of their encoded keys, and written.
#include "formats/ztensor/v2/manifest.h"

#include <algorithm>
#include <array>

#include "base/checked.h"
#include "base/utf8.h"
#include "codecs/checksum.h"
#include "core/reading/rules.h"
#include "core/writing/layout.h"
#include "formats/ztensor/cbor_value.h"
#include "formats/ztensor/v2/format.h"
#include "formats/ztensor/v2/layout.h"
#include "wire/cbor_writer.h"

namespace weighbridge::ztensor2 {
namespace {

std::string text(std::string_view value) {
  wire::CborWriter out;
  out.text(value);
  return out.take();
}
std::string number(std::uint64_t value) {
  wire::CborWriter out;
  out.u64(value);
  return out.take();
}
std::string map(Items entries) {
  for (auto& entry : entries) entry.first = text(entry.first);
  std::ranges::sort(entries);
  wire::CborWriter out;
  out.map(entries.size());
  for (const auto& [key, value] : entries) {
    out.raw(key);
    out.raw(value);
  }
  return out.take();
}
std::string numbers(std::span<const std::uint64_t> values) {
  wire::CborWriter out;
  out.numbers(values);
  return out.take();
}

Items part_items(const OutPart& part, const core::Stored& stored) {
  const std::uint64_t blob[] = {stored.offset, stored.length};
  Items out = part.extra;
  out.emplace_back(kDtype, text(part.dtype));
  if (!part.type.empty()) out.emplace_back(kType, text(part.type));
  out.emplace_back(kBlob, numbers(blob));
  if (!part.shard.empty()) out.emplace_back(kShard, text(part.shard));
  if (!part.encoding.empty()) {
    out.emplace_back(kEncoding, text(part.encoding));
    out.emplace_back(kDecodedLength, number(part.size));
  }
  const std::string& digest = part.keeps_digest ? part.digest : stored.digest;
  if (!digest.empty()) out.emplace_back(kDigest, text(digest));
  return out;
}

// Reads the two ends of the file.

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

std::string Manifest::cbor(std::span<const core::Stored> stored) const {
  Items all;
  all.reserve(objects.size());
  for (const OutObject& object : objects) {
    Items parts;
    for (const OutPart& part : object.parts) parts.emplace_back(part.name, map(part_items(part, stored[part.payload])));
    Items fields = object.extra;
    fields.emplace_back(kShape, numbers(object.shape));
    fields.emplace_back(kLayout, text(object.layout));
    if (!object.attributes.empty()) fields.emplace_back(kAttributes, object.attributes);
    fields.emplace_back(kParts, map(std::move(parts)));
    all.emplace_back(object.name, map(std::move(fields)));
  }
  Items root = extra;
  root.emplace_back(kObjects, map(std::move(all)));
  if (!attributes.empty()) root.emplace_back(kAttributes, attributes);
  if (!shards.empty()) {
    Items table;
    for (const OutShard& shard : shards)
      table.emplace_back(shard.name,
                         map({{std::string(kSize), number(shard.size)}, {std::string(kDigest), text(shard.digest)}}));
    root.emplace_back(kShards, map(std::move(table)));
  }
  return map(std::move(root));
}

std::string Manifest::tail(std::span<const core::Stored> stored) const {
  std::uint64_t end = kMagicSize;
  if (shards.empty())
    for (const core::Stored& each : stored) end = std::max(end, each.end());
  const std::uint64_t at = base::align_up(end, kPlacement).value_or(end);  // the plan has checked it
  const std::string manifest = cbor(stored);
  std::string out(static_cast<std::size_t>(at - end), '\0');  // below kPlacement
  out += manifest;
  Footer footer{.manifest_offset = at,
                .manifest_length = manifest.size(),
                .manifest_hash = codecs::xxh3_64(std::as_bytes(std::span(manifest))),
                .version = kVersion};
  std::ranges::copy(kMagic, footer.magic);
  base::append_record(out, footer);
  return out;
}

Entries entries_of(std::string_view map) {
  Entries out;
  wire::CborReader in(map, kMaxDepth);
  in.enter_map();
  while (in.next_entry()) {
    wire::CborString key;
    std::string_view item;
    const bool text = in.read_text(key);
    if (!text) in.skip_item();
    in.skip_item(item);
    if (text) out.emplace_back(key.raw, item);
  }
  return out;
}

std::optional<std::string> encode_value(const Value& value, std::uint32_t level) {
  if (value.kind() == Value::Kind::foreign && value.grammar() != "cbor") return std::nullopt;
  if (const auto words = value.as_text(); words && !base::is_utf8(*words)) return std::nullopt;
  wire::CborWriter item;
  try {
    ztensor::write_value(item, value, ztensor::Floats::shortest);
  } catch (const Error&) {  // a text inside that is not UTF-8
    return std::nullopt;
  }
  return wire::make_deterministic(item.data(), kMaxDepth - level);
}

std::string encode_attributes(std::span<const Value::Entry> entries, std::uint32_t level,
                              const std::function<void(LossKind, const Value::Entry&, std::string_view to)>& judge) {
  Items out, types;
  for (const Value::Entry& entry : entries) {
    const auto& [key, value] = entry;
    if (key == ztensor::kTypesKey) {  // a reader would confuse it with the one written below
      judge(LossKind::attribute, entry, "dropped: the key is weighbridge's own");
      continue;
    }
    if (!base::is_utf8(key) || !is_name(key)) {
      judge(LossKind::attribute, entry, "dropped: a key has 1 to 1024 bytes of UTF-8, without NUL");
      continue;
    }
    const bool other = value.kind() == Value::Kind::foreign && value.grammar() != "cbor";
    ztensor::Stated stated =
        other ? ztensor::state(value, true) : ztensor::state(value, false, ztensor::Floats::shortest);
    auto item = encode_value(stated.value, level);
    if (!item) {  // tags, levels, or repeated keys that the manifest does not take: its text, with the item beside it
      stated = ztensor::state(value, true);
      item = encode_value(stated.value, level);
    }
    if (!item) {
      judge(LossKind::attribute, entry, "dropped: it is not UTF-8");
      continue;
    }
    if (!stated.exact) judge(LossKind::attribute_type, entry, "a plain value");
    out.emplace_back(key, *std::move(item));
    if (!stated.type.empty()) types.emplace_back(key, text(stated.type));
  }
  if (!types.empty()) out.emplace_back(ztensor::kTypesKey, map(std::move(types)));
  return out.empty() ? std::string() : map(std::move(out));
}

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
