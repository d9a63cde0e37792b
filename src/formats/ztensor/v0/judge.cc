// SPDX-License-Identifier: Apache-2.0
// The rules of one tensor's map, in the order in which they are reported.
#include "formats/ztensor/v0/judge.h"

#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "codecs/checksum.h"
#include "core/payload/content.h"
#include "core/payload/payload.h"
#include "formats/ztensor/v0/format.h"

namespace weighbridge::ztensor0 {

core::DigestText parse_checksum(std::string_view text) noexcept {
  constexpr std::string_view kCrc = "crc32c:";
  if (text.starts_with(kCrc) && codecs::u32_from_hex(text.substr(kCrc.size())))
    return {.kind = core::PartDigest::crc32c, .digits = text.substr(kCrc.size())};
  return core::parse_digest(text);
}

bool Judge::reject(const Rule& rule, Entry& e, const core::Said& detail, const core::Said& expected,
                   const core::Said& found) {
  return CborJudge::reject(rule, e, e.at, detail, expected, found);
}

void Judge::judge(Entry& e) {
  if (e.broken) return;  // after a field that could not be read, further errors would mislead
  if (!e.has_name || !e.has_offset || !e.has_size || !e.has_dtype || !e.has_shape || !e.has_encoding)
    return require(rules::kMissing, e, nullptr,
                   {{e.has_name, kName},
                    {e.has_offset, kOffset},
                    {e.has_size, kSize},
                    {e.has_dtype, kDtype},
                    {e.has_shape, kShape},
                    {e.has_encoding, kEncoding}});
  unsupported_.reset();
  const DType dtype = lookup(e.dtype);
  if (dtype == DType::unknown) mark_unsupported(rules::kUnknownDtype, e, e.at, e.dtype);
  if (e.encoding != kRaw && e.encoding != kZstd) mark_unsupported(rules::kUnknownEncoding, e, e.at, e.encoding);
  check_texts(e);
  check_extent({rules::kOffsetRule, rules::kRange, kAlignment, end_}, e, nullptr, e.offset, e.size);
  const Size size = check_size(e, dtype);
  if (e.broken) return;
  if (e.layout != kDense && !unsupported_)
    add_sparse(e, dtype);
  else
    add(e, dtype, size);
}

DType Judge::lookup(std::string_view dtype) noexcept {
  if (dtype == last_name_ && !dtype.empty()) return last_dtype_;  // neighboring tensors mostly share a dtype
  const DType known = dtype_of(dtype);
  if (known != DType::unknown) {
    last_name_ = name_of(known);
    last_dtype_ = known;
  }
  return known;
}

void Judge::check_texts(Entry& e) {
  if (e.has_endianness && e.endianness != kLittle && e.endianness != kBig)
    reject(rules::kEndiannessRule, e, {}, {}, e.endianness);
  if (!e.has_checksum) return;
  const core::DigestText digest = parse_checksum(e.checksum);
  if (digest.kind != core::PartDigest::none) return;
  findings_.report(digest.problem.empty() ? rules::kChecksumUnknown : rules::kChecksumSpelling,
                   {.offset = e.at, .tensor = e.name}, digest.problem, e.checksum);
}

Judge::Size Judge::check_size(Entry& e, DType dtype) {
  const auto elements = base::element_count(e.shape());
  const auto demanded = elements ? packed_size(dtype, *elements) : std::nullopt;
  if (!elements || (dtype != DType::unknown && !demanded)) {
    reject(rules::kShapeOverflow, e);
    return {};
  }
  const bool dense = e.layout == kDense && dtype != DType::unknown;
  if (!dense || (e.encoding != kRaw && e.encoding != kZstd)) return {e.size, false};
  if (e.encoding == kRaw && e.size != *demanded) {
    reject(rules::kSizeRule, e, {}, {*demanded, " bytes"}, e.size);
  } else if (e.encoding == kZstd) {
    within_limit(e, nullptr, *demanded);
  }
  return {*demanded, true};
}

// A part whose elements cannot be read is a run of bytes with its stored length.
void Judge::add(Entry& e, DType dtype, Size size) {
  const bool dense = e.layout == kDense;
  const std::uint32_t tensor = draft_.add_tensor(e.name, dense ? Layout::dense : Layout::structural, dtype, e.shape());
  const Encoding encoding = e.encoding == kRaw                  ? Encoding::raw
                            : e.encoding == kZstd && size.known ? Encoding::zstd
                                                                : Encoding::unknown;
  const std::uint64_t bytes[] = {size.bytes};
  const std::uint32_t part =
      draft_.add_part("data", size.known ? dtype : DType::unknown, size.known ? e.shape() : Shape(bytes), encoding,
                      {0, e.offset, e.size}, size.bytes);
  if (encoding == Encoding::raw && size.known && e.endianness == kBig && info(dtype).swap_bytes > 1)
    draft_.part(part).order(Order::big);
  if (e.has_checksum) draft_.part(part).digest(e.checksum);
  if (!e.attributes.empty()) draft_.tensor(tensor).attributes(std::move(e.attributes));
  if (size.known) return;
  auto side = draft_.part(part).dtype_name(dtype == DType::unknown ? e.dtype : name(dtype));
  if (encoding == Encoding::unknown) side.encoding_name(e.encoding);
  // Readers that support the tensor may need it.
  if (e.has_endianness) side.extra(std::string(kEndianness), Value::text(std::string(e.endianness)));
  if (!dense) draft_.tensor(tensor).layout_name(e.layout);
  if (dtype == DType::unknown) draft_.tensor(tensor).type_name(e.dtype);
  report_unsupported(draft_.tensor(tensor));
}

std::optional<std::uint64_t> Judge::blob_size(Entry& e) {
  if (e.encoding == kRaw) return e.size;
  core::Probed probed = probe_.size_of(e.offset, e.size);
  if (!probed.size) {
    e.broken = true;
    findings_.report(probed.limit ? *probed.limit : rules::kZstdRule,
                     {.offset = probed.offset.value_or(e.at), .tensor = e.name}, std::move(probed.expected), {},
                     {"the data", probed.why});
  }
  return probed.size;
}

// Z1: a COO blob has for each entry its indices and its value; a CSR blob has the row bounds, the column indices and
// the values.
void Judge::add_sparse(Entry& e, DType dtype) {
  constexpr std::uint64_t kIndex = 8;
  const bool csr = e.layout == kSparseCsr;
  if (csr ? e.rank != 2 : e.rank == 0) {
    reject(rules::kSparseRank, e, e.layout, csr ? "2" : "at least 1", e.rank);
    return;
  }
  const auto whole = blob_size(e);
  if (!whole) return;
  const std::uint64_t width = info(dtype).bits / 8, entry = kIndex * (csr ? 1 : e.rank) + width;
  const auto rows = base::checked_add(csr ? e.dims[0] : 0, csr ? 1 : 0);
  const auto bounds = rows ? base::checked_mul(*rows, kIndex) : std::nullopt;
  if (!bounds || *bounds > *whole || (*whole - *bounds) % entry != 0) {
    reject(rules::kSparseSize, e, {},
           {(csr && bounds ? std::to_string(*bounds) + " and " : std::string()), "a multiple of ", entry, " bytes"},
           *whole);
    return;
  }
  const std::uint64_t count = (*whole - *bounds) / entry;
  // The packages write big-endian data by reversing all bytes, those of the indices too, in units of the dtype's size.
  const bool big = e.encoding == kRaw && e.endianness == kBig;
  const std::uint32_t swap = big ? std::max(info(dtype).swap_bytes, 1U) : 1;
  const Encoding encoding = e.encoding == kRaw ? Encoding::raw : Encoding::zstd;
  const auto part = [&](std::string_view role, DType type, Shape shape, std::uint64_t first, std::uint64_t step,
                        std::uint64_t row) {
    const std::uint64_t size = *base::element_count(shape) * (info(type).bits / 8);
    const std::uint32_t at = draft_.add_part(role, type, shape, encoding, {0, e.offset, e.size}, size);
    draft_.part(at).cut({.whole = *whole, .first = first, .step = step, .row = row, .swap = swap});
    return at;
  };
  const std::uint32_t tensor =
      draft_.add_tensor(e.name, csr ? Layout::sparse_csr : Layout::sparse_coo, dtype, e.shape());
  const std::uint64_t counts[] = {count}, row_bounds[] = {rows.value_or(0)}, places[] = {e.rank, count};
  std::uint32_t values = 0;
  if (csr) {
    values = part(core::kValues, dtype, counts, *bounds + kIndex * count, width, 0);
    part(core::kIndices, DType::u64, counts, *bounds, kIndex, 0);
    part(core::kIndptr, DType::u64, row_bounds, 0, kIndex, 0);
  } else {
    values = part(core::kValues, dtype, counts, kIndex * e.rank, entry, 0);
    part(core::kCoords, DType::u64, places, 0, entry, kIndex);
  }
  if (e.has_checksum) draft_.part(values).digest(e.checksum);  // of the whole blob
  if (!e.attributes.empty()) draft_.tensor(tensor).attributes(std::move(e.attributes));
}

}  // namespace weighbridge::ztensor0
