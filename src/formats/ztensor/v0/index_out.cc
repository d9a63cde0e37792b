// SPDX-License-Identifier: Apache-2.0
// Writes the index as CBOR, with keys in the order of reading Z6.
#include "core/writing/layout.h"
#include "formats/ztensor/v0/index.h"

#include "base/endian.h"
#include "formats/ztensor/cbor_value.h"
#include "formats/ztensor/v0/layout.h"
#include "wire/cbor_writer.h"

namespace weighbridge::ztensor0 {
namespace {

// Z2: spells a checksum as the published packages do, with the digits of a CRC in upper case.
std::string spell(std::string digest) {
  constexpr std::string_view kCrc = "crc32c:0x";
  if (!digest.starts_with(kCrc)) return digest;
  for (std::size_t i = kCrc.size(); i < digest.size(); ++i)
    if (digest[i] >= 'a' && digest[i] <= 'f') digest[i] = static_cast<char>(digest[i] - 'a' + 'A');
  return digest;
}

void text_field(wire::CborWriter& out, std::string_view key, std::string_view value) {
  out.text(key);
  out.text(value);
}

void write_entry(wire::CborWriter& out, const OutEntry& e, const core::Stored& stored) {
  const std::string checksum = e.keep_checksum ? std::string(e.part.digest()) : spell(stored.digest);
  const auto extra = e.keep_extra ? e.part.extra() : Attributes();
  out.map(6 + (e.layout.empty() ? 0U : 1U) + extra.size() + (e.big_endian ? 1U : 0U) + (checksum.empty() ? 0U : 1U) +
          e.attribute_count);
  text_field(out, kName, e.from.name());
  out.text(kOffset);
  out.u64(stored.offset);
  out.text(kSize);
  out.u64(stored.length);
  text_field(out, kDtype, e.dtype == DType::unknown ? e.from.type_name() : name_of(e.dtype));
  if (!e.layout.empty()) text_field(out, kLayout, e.layout);
  out.text(kShape);
  const Shape shape = e.from.shape();
  out.array(shape.size());
  for (const std::uint64_t dim : shape) out.u64(dim);
  text_field(out, kEncoding, e.encoding == Encoding::unknown ? e.part.encoding_name() : name(e.encoding));
  for (const auto& [key, value] : extra) {  // data_endianness of tensors that this build does not support
    out.text(key);
    ztensor::write_value(out, value);
  }
  if (e.big_endian) text_field(out, kEndianness, kBig);
  if (!checksum.empty()) text_field(out, kChecksum, checksum);
  out.raw(e.attributes);
}

}  // namespace

std::string OutIndex::tail(std::span<const core::Stored> stored) const {
  wire::CborWriter out;
  out.array(entries.size());
  for (const OutEntry& e : entries) write_entry(out, e, stored[e.payload]);
  std::string tail = out.take();
  char size[kFooterSize];
  base::store_le<std::uint64_t>(size, tail.size());
  tail.append(size, sizeof size);
  return tail;
}

}  // namespace weighbridge::ztensor0
