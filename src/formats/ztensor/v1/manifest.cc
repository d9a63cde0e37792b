// SPDX-License-Identifier: Apache-2.0
// Writes the manifest as CBOR, with keys in the order of reading Y6.
#include "formats/ztensor/v1/manifest.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "base/checked.h"
#include "base/endian.h"
#include "base/utf8.h"
#include "core/payload/payload.h"
#include "core/reading/rules.h"
#include "core/writing/layout.h"
#include "formats/ztensor/cbor_value.h"
#include "formats/ztensor/v1/format.h"
#include "formats/ztensor/v1/layout.h"
#include "io/read.h"
#include "wire/cbor_reader.h"
#include "wire/cbor_writer.h"
#include "wire/json_writer.h"

namespace weighbridge::ztensor1 {
namespace {

// The entries, sorted by the bytes of their keys.
std::vector<const Value::Entry*> sorted(std::span<const Value::Entry> entries) {
  std::vector<const Value::Entry*> out;
  out.reserve(entries.size());
  for (const Value::Entry& e : entries) out.push_back(&e);
  std::sort(out.begin(), out.end(), [](const Value::Entry* a, const Value::Entry* b) { return a->first < b->first; });
  return out;
}

bool is_field(std::string_view key) noexcept {
  return key == kShape || key == kFormatKey || key == kAttributes || key == kComponents;
}

class Writer {
 public:
  Writer(const Manifest& manifest, std::span<const core::Stored> stored) : m_(manifest), stored_(stored) {}

  std::string run() {
    out_.map(2 + (m_.attributes.empty() ? 0U : 1U) + m_.extra.size());
    out_.member(kVersion, m_.version);
    if (!m_.attributes.empty()) {
      out_.text(kAttributes);
      out_.raw(m_.attributes);
    }
    out_.text(kObjects);
    out_.map(m_.objects.size() + m_.kept.size());
    std::size_t old = 0;
    for (const OutObject& object : m_.objects) {
      while (old < m_.kept.size() && m_.kept[old].first < object.name) write_kept(old++);
      write_object(object);
    }
    while (old < m_.kept.size()) write_kept(old++);
    for (const auto& [key, item] : m_.extra) {
      out_.text(key);
      out_.raw(item);
    }
    std::string tail = out_.take();
    char size[8];
    base::store_le<std::uint64_t>(size, tail.size());
    tail.append(size, sizeof size);
    tail.append(kMagic);
    return tail;
  }

 private:
  void write_kept(std::size_t i) {
    out_.text(m_.kept[i].first);
    out_.raw(m_.kept[i].second);
  }

  void write_object(const OutObject& object) {
    const std::string attributes = encode_attributes(object.from.attributes(), false, {});
    const auto extra = object.from.extra();
    std::size_t fields = 3 + (attributes.empty() ? 0U : 1U);
    for (const auto& [key, value] : extra) fields += is_field(key) || !can_keep(value) ? 0U : 1U;
    out_.text(object.name);
    out_.map(fields);
    out_.text(kShape);
    out_.numbers(object.from.shape());
    out_.member(kFormatKey, object.format);
    if (!attributes.empty()) {
      out_.text(kAttributes);
      out_.raw(attributes);
    }
    out_.text(kComponents);
    out_.map(object.component_count);
    for (std::uint32_t i = 0; i < object.component_count; ++i)
      write_component(m_.components[object.first_component + i]);
    if (extra.empty()) return;
    for (const Value::Entry* e : sorted(extra)) {
      if (is_field(e->first) || !can_keep(e->second)) continue;
      out_.text(e->first);
      ztensor::write_value(out_, e->second);
    }
  }

  static bool can_keep(const Value& value) noexcept {
    return value.kind() != Value::Kind::foreign || value.grammar() == "cbor";
  }

  void write_component(const OutComponent& c) {
    const core::Stored& stored = stored_[c.payload];
    const std::string digest = c.keep_digest ? std::string(c.part.digest()) : stored.digest;
    const LogicalType* type = nullptr;
    for (const LogicalType& t : kLogicalTypes)
      if (m_.keys_of_1_2 && t.logical == c.dtype) type = &t;
    const bool states_size = m_.keys_of_1_2 && core::is_coded(c.encoding);
    const bool states_encoding = c.encoding != Encoding::raw;
    const auto extra = c.keep_extra ? c.part.extra() : std::span<const Value::Entry>{};
    out_.text(c.role);
    out_.map(3 + (type ? 1U : 0U) + (states_size ? 1U : 0U) + (states_encoding ? 1U : 0U) + (digest.empty() ? 0U : 1U) +
             extra.size());
    out_.member(kDtype, type ? name(type->storage) : c.dtype == DType::unknown ? c.part.dtype_name() : name(c.dtype));
    if (type) out_.member(kType, type->type);
    out_.member(kOffset, stored.offset);
    out_.member(kLength, stored.length);
    if (states_size) out_.member(kUncompressedLength, c.size);
    if (states_encoding)
      out_.member(kEncoding, c.encoding == Encoding::unknown ? c.part.encoding_name() : name(c.encoding));
    if (!digest.empty()) out_.member(kDigest, digest);
    if (extra.empty()) return;
    for (const Value::Entry* e : sorted(extra)) {
      out_.text(e->first);
      ztensor::write_value(out_, e->second);
    }
  }

  const Manifest& m_;
  std::span<const core::Stored> stored_;
  wire::CborWriter out_;
};

// Reads the two ends of the file.

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

std::string Manifest::tail(std::span<const core::Stored> stored) const { return Writer(*this, stored).run(); }

std::string encode_attributes(std::span<const Value::Entry> entries, bool as_text,
                              const std::function<void(LossKind, const Value::Entry&, std::string_view to)>& judge) {
  if (entries.empty()) return {};
  struct Out {
    std::string_view key;
    std::string item;
  };
  std::vector<Out> out;
  std::vector<std::pair<std::string_view, std::string>> types;
  const auto add_loss = [&](LossKind kind, const Value::Entry& entry, std::string_view to) {
    if (judge) judge(kind, entry, to);
  };
  for (const Value::Entry* entry : sorted(entries)) {
    const auto& [key, value] = *entry;
    if (key == kTypesKey) {  // a reader would confuse it with the one written below
      add_loss(LossKind::attribute, *entry, "dropped: the key is weighbridge's own");
      continue;
    }
    const auto text = value.as_text();
    if (!base::is_utf8(key) || (text && !base::is_utf8(*text))) {
      add_loss(LossKind::attribute, *entry, "dropped: it is not UTF-8");
      continue;
    }
    ztensor::Stated stated = ztensor::state(value, as_text);
    if (!stated.exact) add_loss(LossKind::attribute_type, *entry, as_text ? "text" : "a plain value");
    wire::CborWriter item;
    ztensor::write_value(item, stated.value);
    out.push_back({key, item.take()});
    if (!stated.type.empty()) types.emplace_back(key, std::move(stated.type));
  }
  if (!types.empty()) {
    wire::CborWriter item;
    if (as_text) {
      wire::JsonWriter json(wire::JsonWriter::Style::compact);
      json.begin_object();
      for (const auto& [key, type] : types) {
        json.key(key).string(type);
      }
      json.end_object();
      item.text(json.text());
    } else {
      item.map(types.size());
      for (const auto& [key, type] : types) {
        item.member(key, type);
      }
    }
    const auto place = std::lower_bound(out.begin(), out.end(), kTypesKey,
                                        [](const Out& o, std::string_view key) { return o.key < key; });
    out.insert(place, {kTypesKey, item.take()});
  }
  if (out.empty()) return {};
  wire::CborWriter map;
  map.map(out.size());
  for (const Out& o : out) {
    map.text(o.key);
    map.raw(o.item);
  }
  return map.take();
}

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
