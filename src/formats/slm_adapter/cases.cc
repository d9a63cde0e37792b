// SPDX-License-Identifier: Apache-2.0
// The corpus of adapter packages: for each rule the smallest file that breaks it, and valid files of every kind. The
// files are built by hand, not by the writer, so that reader and writer cannot share a mistake. Checksums are
// recomputed after each change, except in the cases about checksums.
#include <bit>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "base/endian.h"
#include "codecs/indexed_checksum.h"
#include "formats/slm_adapter/format.h"
#include "support/corpus_case.h"

namespace weighbridge::slm_adapter {
namespace {

// One entry, at 128; data at 256.
constexpr std::uint64_t kEntryAt = 128, kDataAt = 256;

void u32(std::string& to, std::uint64_t at, std::uint32_t value) { base::store_le(to.data() + at, value); }
void u64(std::string& to, std::uint64_t at, std::uint64_t value) { base::store_le(to.data() + at, value); }
void f32(std::string& to, std::uint64_t at, float value) { u32(to, at, std::bit_cast<std::uint32_t>(value)); }

void reseal(std::string& file, std::uint64_t data = kDataAt) {
  u64(file, kPayloadChecksumAt, codecs::indexed_checksum(std::as_bytes(std::span(file).subspan(data))));
  u64(file, kHeadChecksumAt, 0);
  u64(file, kHeadChecksumAt, codecs::indexed_checksum(std::as_bytes(std::span(file).first(data))));
}

std::string start(std::string_view magic, std::uint32_t entries, std::uint64_t data, std::uint64_t size) {
  std::string out(static_cast<std::size_t>(size), '\0');
  std::memcpy(out.data(), magic.data(), 4);
  u32(out, 4, 1);
  u32(out, 8, 128);
  u32(out, 12, entries);
  u32(out, 20, 12);
  u64(out, 24, 4824);
  u64(out, 32, 0x1111);
  u64(out, 40, 0x2222);
  u64(out, 48, 0x3333);
  u64(out, 56, 128);
  u64(out, 64, data);
  u64(out, 72, size);
  return out;
}

void entry(std::string& out, std::uint64_t at, std::uint64_t hash, std::vector<std::uint32_t> dims, std::uint64_t count,
           std::vector<std::uint64_t> places) {
  u64(out, at, hash);
  u32(out, at + 8, static_cast<std::uint32_t>(dims.size()));
  for (std::size_t d = 0; d < dims.size(); ++d) u32(out, at + 16 + 4 * d, dims[d]);
  u64(out, at + 32, count);
  for (std::size_t i = 0; i < places.size(); ++i) u64(out, at + 40 + 8 * i, places[i]);
}

// A dense delta of shape [2, 2]: 1, 2, 3, 4.
std::string dense() {
  std::string out = start("ADP1", 1, kDataAt, 320);
  entry(out, kEntryAt, 0xaaaa, {2, 2}, 4, {256, 16});
  for (std::uint32_t i = 0; i < 4; ++i) f32(out, kDataAt + 4 * i, static_cast<float>(i + 1));
  reseal(out);
  return out;
}
// A sparse delta: elements 1 and 3 of shape [2, 2].
std::string sparse() {
  std::string out = start("ASP1", 1, kDataAt, 384);
  entry(out, kEntryAt, 0xaaaa, {2, 2}, 2, {256, 16, 320, 8});
  u64(out, 256, 1);
  u64(out, 264, 3);
  f32(out, 320, 0.5F);
  f32(out, 324, -0.5F);
  reseal(out);
  return out;
}
// A low-rank delta of shape [3, 2] and inner rank 1.
std::string low_rank() {
  std::string out = start("ALR1", 1, kDataAt, 384);
  entry(out, kEntryAt, 0xaaaa, {3, 2}, 1, {256, 12, 320, 8});
  for (std::uint32_t i = 0; i < 3; ++i) f32(out, 256 + 4 * i, 1.0F);
  f32(out, 320, 2.0F);
  f32(out, 324, 3.0F);
  reseal(out);
  return out;
}
// Two dense entries of one element each: data at 320, payloads at 320 and 384.
std::string two(std::uint64_t first, std::uint64_t second) {
  std::string out = start("ADP1", 2, 320, 448);
  entry(out, kEntryAt, first, {1}, 1, {320, 4});
  entry(out, kEntryAt + kEntrySize, second, {1}, 1, {384, 4});
  reseal(out, 320);
  return out;
}

class Corpus : public core::CorpusCases {
 public:
  Corpus() : CorpusCases("slm-adapter") {}
  // Adds `bytes` with a change and correct checksums.
  template <class Change> void changed(std::string rule, std::string bytes, Change change, std::string suffix = {}) {
    change(bytes);
    reseal(bytes);
    add(rule + suffix, rule, std::move(bytes));
  }
};

void add_header(Corpus& c) {
  c.add("too-short", "too-short", dense().substr(0, 127));
  c.changed("magic", dense(), [](std::string& f) { f[0] = 'X'; });
  c.changed("version", dense(), [](std::string& f) { u32(f, 4, 2); });
  c.changed("header-length", dense(), [](std::string& f) { u32(f, 8, 192); });
  {
    std::string none = start("ADP1", 0, 128, 128);
    reseal(none, 128);
    c.add("no-entries", "no-entries", none);
  }
  c.changed("directory-offset", dense(), [](std::string& f) { u64(f, 56, 192); });
  c.changed("file-size", dense(), [](std::string& f) { u64(f, 72, 384); });
  {
    std::string uneven = dense() + std::string(8, '\0');
    u64(uneven, 72, uneven.size());
    reseal(uneven);
    c.add("uneven-end", "uneven-end", uneven);
  }
  c.changed("directory-range", dense(), [](std::string& f) { u32(f, 12, 0x7fffffff); });
  c.changed("data-offset", dense(), [](std::string& f) { u64(f, 64, 320); });
  {
    std::string wrong = dense();
    wrong[32] ^= 1;
    c.add("head-checksum", "head-checksum", wrong);
  }
  c.changed("reserved", dense(), [](std::string& f) { f[100] = 1; });
}

void add_entries(Corpus& c) {
  const auto at = [](std::uint64_t field) { return kEntryAt + field; };
  c.changed("rank", dense(), [&](std::string& f) { u32(f, at(8), 0); });
  c.changed(
      "rank", dense(), [&](std::string& f) { u32(f, at(8), 5); }, "-five");
  c.changed("zero-dimension", dense(), [&](std::string& f) { u32(f, at(16), 0); });
  c.changed("past-rank", dense(), [&](std::string& f) { u32(f, at(24), 1); });
  c.changed("size-overflow", dense(), [&](std::string& f) {
    u32(f, at(8), 4);
    for (std::uint64_t d = 0; d < 4; ++d) u32(f, at(16 + 4 * d), 0xffffffff);
  });
  c.changed("count", dense(), [&](std::string& f) { u64(f, at(32), 3); });
  c.changed(
      "count", sparse(), [&](std::string& f) { u64(f, at(32), 5); }, "-sparse");
  c.changed(
      "count", low_rank(), [&](std::string& f) { u64(f, at(32), 3); }, "-low-rank");
  c.changed(
      "count", low_rank(), [&](std::string& f) { u64(f, at(32), 0); }, "-inner-rank-zero");
  c.changed("payload-length", dense(), [&](std::string& f) { u64(f, at(48), 12); });
  c.changed(
      "payload-length", dense(), [&](std::string& f) { u64(f, at(64), 4); }, "-second");
  c.changed("payload-alignment", dense(), [&](std::string& f) { u64(f, at(40), 260); });
  c.changed("payload-range", dense(), [&](std::string& f) { u64(f, at(40), 320); });
  c.changed(
      "payload-range", dense(), [&](std::string& f) { u64(f, at(40), 128); }, "-before-data");
  c.changed(
      "payload-range", dense(), [&](std::string& f) { u64(f, at(56), 256); }, "-second");
  c.add("duplicate", "duplicate", two(0xaaaa, 0xaaaa));
  c.changed("entry-reserved", dense(), [&](std::string& f) { u32(f, at(12), 7); });
  {
    // The first takes 256 bytes from 320, the second starts inside.
    std::string f = start("ADP1", 2, 320, 576);
    entry(f, kEntryAt, 0xaaaa, {64}, 64, {320, 256});
    entry(f, kEntryAt + kEntrySize, 0xbbbb, {1}, 1, {384, 4});
    reseal(f, 320);
    c.add("overlap", "overlap", f);
  }
}

void add_payload(Corpus& c) {
  {
    std::string f = dense();
    f[kDataAt] ^= 1;
    c.add("payload-checksum", "payload-checksum", f);
  }
  c.changed("padding", dense(), [](std::string& f) { f[300] = 1; });
  c.changed(
      "padding", dense(), [](std::string& f) { f[kHeaderSize + kEntrySize + 3] = 1; }, "-after-directory");
  c.changed("not-finite", dense(), [](std::string& f) { f32(f, 260, std::numeric_limits<float>::quiet_NaN()); });
  c.changed(
      "not-finite", low_rank(), [](std::string& f) { f32(f, 324, std::numeric_limits<float>::infinity()); },
      "-infinity");
  c.changed("index-order", sparse(), [](std::string& f) { u64(f, 264, 1); });
  c.changed("index-range", sparse(), [](std::string& f) { u64(f, 264, 4); });
}

}  // namespace

std::vector<core::CorpusCase> cases() {
  Corpus c;
  c.add("valid-dense", "", dense());
  c.add("valid-sparse", "", sparse());
  c.add("valid-low-rank", "", low_rank());
  c.add("valid-two", "", two(0xaaaa, 0xbbbb));
  {
    // Both entries refer to the same four bytes.
    std::string f = two(0xaaaa, 0xbbbb);
    u64(f, kEntryAt + kEntrySize + 40, 320);
    reseal(f, 320);
    c.add("valid-shared", "", f);
  }
  add_header(c);
  add_entries(c);
  add_payload(c);
  return c.take();
}

}  // namespace weighbridge::slm_adapter
