// SPDX-License-Identifier: Apache-2.0
#include "corpus/repair.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/endian.h"
#include "codecs/checksum.h"
#include "codecs/indexed_checksum.h"
#include "core/archive/zip.h"
#include "formats/embd/layout.h"
#include "formats/hdf5/file.h"
#include "formats/llama2c/layout.h"
#include "formats/slm/layout.h"
#include "formats/slm_adapter/layout.h"
#include "formats/stb/layout.h"
#include "formats/ztensor/v0/layout.h"
#include "formats/ztensor/v1/layout.h"
#include "formats/ztensor/v2/layout.h"

namespace weighbridge::test {
namespace {

template <class Number> Number at(const std::string& bytes, std::size_t place) {
  return base::load_le<Number>(bytes.data() + place);
}
template <class Number> void put(std::string& bytes, std::size_t place, Number number) {
  base::store_le<Number>(bytes.data() + place, number);
}
std::span<const std::byte> part(const std::string& bytes, std::uint64_t begin, std::uint64_t end) {
  return std::as_bytes(std::span(bytes))
      .subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
}

// The position of a format's index, and of the field with its length.
struct Index {
  std::size_t at, size, length_at;
};

std::optional<Index> index_of(std::string_view format, const std::string& bytes) {
  if (format == "safetensors") {
    if (bytes.size() < 8 || at<std::uint64_t>(bytes, 0) > bytes.size() - 8) return std::nullopt;
    return Index{8, static_cast<std::size_t>(at<std::uint64_t>(bytes, 0)), 0};
  }
  const std::size_t footer = format == "zt"    ? std::size_t{ztensor1::kFooterSize}
                             : format == "zt0" ? std::size_t{ztensor0::kFooterSize}
                                               : 0;
  if (footer == 0 || bytes.size() < 8 + footer) return std::nullopt;
  const std::size_t length_at = bytes.size() - footer;
  const std::uint64_t size = at<std::uint64_t>(bytes, length_at);
  if (size > length_at - 8) return std::nullopt;
  return Index{length_at - static_cast<std::size_t>(size), static_cast<std::size_t>(size), length_at};
}

void change_around(const Index& index, std::string& bytes, const Change& change, Mutator& mutator) {
  if (mutator.one_in(4)) {  // the payload, before or behind the index
    const std::size_t begin = index.length_at < index.at ? index.at + index.size : 8;
    const std::size_t end = index.length_at < index.at ? bytes.size() : index.at;
    std::string payload = bytes.substr(begin, end - begin);
    change(payload);
    bytes.replace(begin, end - begin, payload);
    return;
  }
  std::string text = bytes.substr(index.at, index.size);
  change(text);
  put<std::uint64_t>(bytes, index.length_at, text.size());
  bytes.replace(index.at, index.size, text);
}

// Sets sizes and checksums to match the rest of the file, if there is room for them.
void seal_stb(std::string& bytes) {
  if (bytes.size() >= stb::kHeaderSize)
    put<std::uint64_t>(bytes, base::offset_of(&stb::Header::file_size), bytes.size());
}

void seal_embd(std::string& bytes) {
  if (bytes.size() < embd::kHeaderSize + embd::kFooterSize) return;
  const std::size_t footer = bytes.size() - embd::kFooterSize;
  put<std::uint64_t>(bytes, base::offset_of(&embd::Header::total_file_size), bytes.size());
  bytes.replace(footer + base::offset_of(&embd::Footer::magic_end), 4, "DBME");
  put(bytes, embd::kHeaderSummed, codecs::crc32(part(bytes, 0, embd::kHeaderSummed)));
  const std::uint64_t data = at<std::uint32_t>(bytes, base::offset_of(&embd::Header::tensor_data_offset));
  const auto size = at<std::uint64_t>(bytes, base::offset_of(&embd::Header::tensor_data_size));
  if (data <= footer && size <= footer - data) put(bytes, footer, codecs::crc32(part(bytes, data, data + size)));
  put(bytes, footer + 4, codecs::crc32(part(bytes, 0, footer)));
}

void seal_slm(std::string& bytes) {
  if (bytes.size() < slm_format::kHeaderSize) return;
  put(bytes, slm_format::kChecksumAt, std::uint64_t{0});
  put(bytes, slm_format::kChecksumAt, codecs::indexed_checksum(part(bytes, 0, bytes.size())));
}

void seal_adapter(std::string& bytes) {
  using namespace slm_adapter;
  if (bytes.size() < kHeaderSize) return;
  put<std::uint64_t>(bytes, base::offset_of(&Header::file_size), bytes.size());
  const auto data = at<std::uint64_t>(bytes, base::offset_of(&Header::data_offset));
  if (data < kHeaderSize || data > bytes.size()) return;
  put(bytes, kPayloadChecksumAt, codecs::indexed_checksum(part(bytes, data, bytes.size())));
  put(bytes, kHeadChecksumAt, std::uint64_t{0});
  put(bytes, kHeadChecksumAt, codecs::indexed_checksum(part(bytes, 0, data)));
}

// Resizes the file to the length that the header gives, if that is not large.
void seal_llama2c(std::string& bytes) {
  if (bytes.size() < llama2c::kHeaderSize) return;
  std::uint64_t field[7];
  for (std::size_t i = 0; i < 7; ++i) {
    const auto value = static_cast<std::int32_t>(at<std::uint32_t>(bytes, 4 * i));
    field[i] = static_cast<std::uint64_t>(i == 5 && value < 0 ? -std::int64_t{value} : std::int64_t{value});
    if (field[i] == 0 || field[i] > 1024) return;
  }
  const auto [dim, hidden, layers, heads, kv_heads, vocab, length] = field;
  const std::uint64_t kv = dim / heads * kv_heads;
  const std::uint64_t layer = 2 * dim + 2 * dim * dim + 2 * dim * kv + 3 * dim * hidden;
  const std::uint64_t outputs = at<std::uint32_t>(bytes, 20) >> 31 != 0 ? 2 : 1;
  const std::uint64_t size =
      llama2c::kHeaderSize + 4 * (outputs * vocab * dim + layers * layer + dim + length * (dim / heads));
  if (size <= std::uint64_t{64} << 10) bytes.resize(static_cast<std::size_t>(size));
}

// Changes the manifest of a zTensor 2 file, which is before the footer, or what is before it, and sets the footer's
// fields to the new manifest. False if the footer gives none.
bool change_zt2(std::string& bytes, const Change& change, Mutator& mutator) {
  using namespace ztensor2;
  if (bytes.size() < kMinFile) return false;
  const std::size_t footer = bytes.size() - kFooterSize;
  const std::uint64_t offset = at<std::uint64_t>(bytes, footer), length = at<std::uint64_t>(bytes, footer + 8);
  if (offset < kMagicSize || offset > footer || length != footer - offset) return false;
  const auto begin = static_cast<std::size_t>(offset);
  if (mutator.one_in(4) && begin > kAlignment) {  // the blobs, whose places stay
    std::string blobs = bytes.substr(kAlignment, begin - kAlignment);
    const std::size_t size = blobs.size();
    change(blobs);
    blobs.resize(size);
    bytes.replace(kAlignment, size, blobs);
    return true;
  }
  std::string manifest = bytes.substr(begin, footer - begin), end = bytes.substr(footer);
  change(manifest);
  put<std::uint64_t>(end, base::offset_of(&Footer::manifest_length), manifest.size());
  put<std::uint64_t>(end, base::offset_of(&Footer::manifest_hash), codecs::xxh3_64(std::as_bytes(std::span(manifest))));
  bytes.replace(begin, bytes.npos, manifest + end);
  return true;
}

// Sets the CRC-32 of each stored member, in its local header and in the directory, whose entries are found by their
// magic numbers. That of a deflated member stays.
void seal_zip(std::string& bytes) {
  constexpr std::string_view kEntry("PK\x01\x02", 4);
  for (std::size_t entry = bytes.find(kEntry); entry != bytes.npos; entry = bytes.find(kEntry, entry + 4)) {
    if (bytes.size() - entry < 46 || at<std::uint16_t>(bytes, entry + 10) != 0) continue;
    const std::uint64_t local = at<std::uint32_t>(bytes, entry + 42), size = at<std::uint32_t>(bytes, entry + 20);
    if (bytes.size() < 30 || local > bytes.size() - 30 ||
        bytes.compare(static_cast<std::size_t>(local), 4, core::kZipMember) != 0)
      continue;
    const auto header = static_cast<std::size_t>(local);
    const std::uint64_t data =
        local + 30 + at<std::uint16_t>(bytes, header + 26) + at<std::uint16_t>(bytes, header + 28);
    if (data > bytes.size() || size > bytes.size() - data) continue;
    const std::uint32_t crc = codecs::crc32(part(bytes, data, data + size));
    put(bytes, header + 14, crc);
    put(bytes, entry + 16, crc);
  }
}

// The blocks of an HDF5 file that end with a checksum: they are found by their signatures, and end where the checksum
// of what is before it follows.
std::vector<std::pair<std::size_t, std::size_t>> sealed_blocks(const std::string& bytes) {
  constexpr std::size_t kLongest = 600;
  std::vector<std::pair<std::size_t, std::size_t>> out;
  for (const std::string_view signature :
       {hdf5::kSignature, hdf5::kHeader2, hdf5::kContinuation2, hdf5::kTree2, hdf5::kTree2Inner, hdf5::kTree2Leaf,
        hdf5::kFractal, hdf5::kFractalIndirect, hdf5::kFixedArray, hdf5::kFixedBlock, hdf5::kExtensible,
        hdf5::kExtensibleIndex, hdf5::kExtensibleBlock, hdf5::kExtensibleSuper})
    for (std::size_t begin = bytes.find(signature); begin != bytes.npos; begin = bytes.find(signature, begin + 1))
      for (std::size_t size = 8; size + 4 <= bytes.size() - begin && size < kLongest; ++size)
        if (hdf5::lookup3(std::string_view(bytes).substr(begin, size)) == at<std::uint32_t>(bytes, begin + size)) {
          out.emplace_back(begin, size);
          break;
        }
  return out;
}
// Repairs those that were not moved.
void seal_hdf5(std::string& bytes, const std::vector<std::pair<std::size_t, std::size_t>>& blocks) {
  for (const auto& [begin, size] : blocks)
    if (begin + size + 4 <= bytes.size())
      put(bytes, begin + size, hdf5::lookup3(std::string_view(bytes).substr(begin, size)));
}

}  // namespace

void change_beneath_seal(std::string_view format, std::string& bytes, const Change& change, Mutator& mutator) {
  if (const auto index = index_of(format, bytes)) return change_around(*index, bytes, change, mutator);
  if (format == "zt2" && change_zt2(bytes, change, mutator)) return;
  const bool hdf5 = format == "hdf5" || format == "keras";
  const auto blocks = hdf5 ? sealed_blocks(bytes) : std::vector<std::pair<std::size_t, std::size_t>>();
  change(bytes);
  if (hdf5) seal_hdf5(bytes, blocks);
  if (format == "stb") seal_stb(bytes);
  if (format == "embd") seal_embd(bytes);
  if (format == "slm") seal_slm(bytes);
  if (format == "slm-adapter") seal_adapter(bytes);
  if (format == "npz" || format == "keras" || format == "pytorch") seal_zip(bytes);
  if (format == "llama2c") seal_llama2c(bytes);
}

}  // namespace weighbridge::test
