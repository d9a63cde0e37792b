// SPDX-License-Identifier: Apache-2.0
// Writes the manifest as CBOR, with keys in the order of reading Y6.
#include "formats/ztensor/v1/manifest.h"

#include <algorithm>

#include "base/endian.h"
#include "base/utf8.h"
#include "core/payload/payload.h"
#include "core/writing/layout.h"
#include "formats/ztensor/cbor_value.h"
#include "formats/ztensor/v1/layout.h"
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
    out_.text(kVersion);
    out_.text(m_.version);
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
    const Shape shape = object.from.shape();
    out_.array(shape.size());
    for (const std::uint64_t dim : shape) out_.u64(dim);
    out_.text(kFormatKey);
    out_.text(object.format);
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
    out_.text(kDtype);
    out_.text(type ? name(type->storage) : c.dtype == DType::unknown ? c.part.dtype_name() : name(c.dtype));
    if (type) {
      out_.text(kType);
      out_.text(type->type);
    }
    out_.text(kOffset);
    out_.u64(stored.offset);
    out_.text(kLength);
    out_.u64(stored.length);
    if (states_size) {
      out_.text(kUncompressedLength);
      out_.u64(c.size);
    }
    if (states_encoding) {
      out_.text(kEncoding);
      out_.text(c.encoding == Encoding::unknown ? c.part.encoding_name() : name(c.encoding));
    }
    if (!digest.empty()) {
      out_.text(kDigest);
      out_.text(digest);
    }
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
        item.text(key);
        item.text(type);
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

}  // namespace weighbridge::ztensor1
