// SPDX-License-Identifier: Apache-2.0
// A package from deltas: header, directory, payloads in the given order, and at the end the two checksums.
#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/checked.h"
#include "base/endian.h"
#include "base/fail.h"
#include "base/record.h"
#include "codecs/checksum.h"
#include "codecs/indexed_checksum.h"
#include "core/writing/layout.h"
#include "formats/slm_adapter/format.h"

namespace weighbridge::slm_adapter {
namespace {

std::uint64_t fitting(std::optional<std::uint64_t> size) {
  if (!size) base::misuse("too-large", "the package would be larger than a file can be");
  return *size;
}
std::uint64_t aligned(std::uint64_t offset) { return fitting(base::align_up(offset, kAlignment)); }

// Roles of the kind's payloads, in order.
std::span<const std::string_view> roles(Kind kind) {
  static constexpr std::string_view kDense[] = {kData}, kSparse[] = {kIndices, kValues}, kLowRank[] = {kA, kB};
  switch (kind) {
    case Kind::dense: return kDense;
    case Kind::sparse: return kSparse;
    case Kind::low_rank: break;
  }
  return kLowRank;
}

// Writes both checksums: one pass over the payloads, and one over the head from the layout.
void seal(const core::WrittenFile& file, std::string head) {
  std::vector<std::byte> buffer(std::size_t{1} << 20);
  codecs::IndexedChecksum payload;
  for (std::uint64_t at = head.size(); at < file.size;) {
    const auto piece =
        std::span(buffer).first(static_cast<std::size_t>(std::min<std::uint64_t>(buffer.size(), file.size - at)));
    file.read(at, piece);
    payload.update(piece);
    at += piece.size();
  }
  base::store_le<std::uint64_t>(head.data() + kPayloadChecksumAt, payload.value());
  const std::uint64_t whole = codecs::indexed_checksum(std::as_bytes(std::span(head)));  // as if its own field were 0
  base::store_le<std::uint64_t>(head.data() + kHeadChecksumAt, whole);
  static_assert(kHeadChecksumAt == kPayloadChecksumAt + 8);
  file.write(kPayloadChecksumAt, std::as_bytes(std::span(head)).subspan(kPayloadChecksumAt, 16));
}

}  // namespace

core::WriteLayout package_layout(Kind kind, const Identity& base, const std::vector<Delta>& deltas) {
  if (deltas.empty()) base::misuse("adapter", "a package has at least one delta");
  core::WriteLayout out;
  Header header;
  std::memcpy(header.magic, magic(kind).data(), sizeof header.magic);
  header.version = kVersion;
  header.header_length = kHeaderSize;
  header.directory_offset = kHeaderSize;
  header.entry_count = static_cast<std::uint32_t>(deltas.size());
  header.base_flags = base.flags;
  header.base_tensor_count = base.tensor_count;
  header.base_parameter_count = base.parameter_count;
  header.base_tensor_layout_checksum = base.tensor_layout_checksum;
  header.base_tokenizer_checksum = base.tokenizer_checksum;
  header.base_directory_identity = base.directory_identity;
  header.data_offset = aligned(kHeaderSize + deltas.size() * kEntrySize);
  const auto names = std::make_shared<std::vector<std::string>>();
  names->reserve(deltas.size());
  std::string directory;
  std::uint64_t cursor = header.data_offset;
  for (const Delta& delta : deltas) {
    Entry entry;
    entry.name_hash = delta.name_hash;
    entry.rank = static_cast<std::uint32_t>(delta.dims.size());
    std::ranges::transform(delta.dims, entry.dims, [](std::uint64_t d) { return static_cast<std::uint32_t>(d); });
    entry.count = delta.count;
    const auto tensor = static_cast<std::uint32_t>(out.tensors.size());
    names->push_back("#" + codecs::to_hex(delta.name_hash));
    out.tensors.push_back({.name = names->back(),
                           .from = delta.parts.front(),
                           .layout = kind == Kind::dense ? Layout::dense : Layout::structural,
                           .dtype = DType::f32,
                           .same_shape = false});
    std::uint64_t* const places[][2] = {{&entry.first_offset, &entry.first_length},
                                        {&entry.second_offset, &entry.second_length}};
    const auto kind_roles = roles(kind);
    for (std::size_t i = 0; i < kind_roles.size(); ++i) {
      core::Payload p;
      p.form = core::Payload::Form::dense;
      p.dtype = kind_roles[i] == kIndices ? DType::u64 : DType::f32;
      p.tensor = delta.parts[i];
      p.out_tensor = tensor;
      p.role = kind_roles[i];
      p.logical_size = p.stored_size =
          fitting(packed_size(p.dtype, fitting(base::element_count(delta.parts[i].shape()))));
      p.alignment = kAlignment;
      cursor = aligned(cursor);
      *places[i][0] = cursor;
      *places[i][1] = p.stored_size;
      cursor = fitting(base::checked_add(cursor, p.stored_size));
      out.payloads.push_back(std::move(p));
    }
    directory += base::store_record(entry);
  }
  const std::uint64_t end = aligned(cursor);
  header.file_size = end;
  out.head = base::store_record(header) + directory;
  out.head.resize(base::to_size(header.data_offset));
  out.tail = [padding = end - cursor](std::span<const core::Stored>) {
    return std::string(base::to_size(padding), '\0');
  };
  out.finalize = [head = out.head](const core::WrittenFile& file) { seal(file, head); };
  out.size = end;
  out.owner = names;
  return out;
}

}  // namespace weighbridge::slm_adapter
