// SPDX-License-Identifier: Apache-2.0
// The elements of a chunked dataset in order: tiles of whole rows are filled from the chunks that reach into them. A
// tile is as high as a row of chunks, or as several low ones, so that each chunk is decoded once; if that is more than
// a quarter of the memory, a row of chunks takes several tiles, at most kMaxPasses if decoding is needed.
#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "base/fail.h"
#include "codecs/checksum.h"
#include "codecs/codec.h"
#include "core/payload/asking_source.h"
#include "core/reading/findings.h"
#include "formats/hdf5/chunks.h"

namespace weighbridge::hdf5 {
namespace {

// A tile is made dense in memory at once. A chunk that spans several tiles is decoded for each, at most kMaxPasses
// times.
constexpr std::uint64_t kTile = std::uint64_t{1} << 20, kMaxPasses = 16;

std::uint64_t times(std::uint64_t a, std::uint64_t b) noexcept { return base::checked_mul(a, b).value_or(UINT64_MAX); }
std::uint64_t plus(std::uint64_t a, std::uint64_t b) noexcept { return base::checked_add(a, b).value_or(UINT64_MAX); }

std::uint64_t product_after_first(const std::vector<std::uint64_t>& extents, std::uint64_t element) noexcept {
  for (std::size_t i = 1; i < extents.size(); ++i) element = times(element, extents[i]);
  return element;
}

[[noreturn]] void fail(const Rule& rule, const Chunk& chunk, const core::Said& expected, const core::Said& found,
                       const core::Said& detail = {}) {
  throw Error(core::Findings::make(rule, {.offset = chunk.at}, expected, found, detail));
}

class Decoder {
 public:
  Decoder(const Source& source, const Chunked& of, const Context& context)
      : source_(source), of_(of), context_(context) {}

  // Undoes the filters of a chunk. The result is valid until the next call.
  const std::string& decode(const Chunk& chunk, bool partial) {
    if (last_ && *last_ == chunk.index) return bytes_;
    last_.reset();
    core::check_cancelled(context_);
    bytes_.resize(base::to_size(chunk.stored));
    source_.read_at(chunk.at, std::as_writable_bytes(std::span(bytes_)));
    if (!partial || !of_.partial_unfiltered)
      for (std::size_t i = of_.filters.size(); i-- > 0;)
        if ((chunk.skipped >> i & 1U) == 0) undo(i, chunk);
    if (bytes_.size() != of_.bytes) fail(*of_.deflate, chunk, core::Said(of_.bytes, " bytes"), bytes_.size());
    last_ = chunk.index;
    return bytes_;
  }

 private:
  void undo(std::size_t i, const Chunk& chunk) {
    switch (of_.filters[i].id) {
      case kFletcher32: return check(chunk);
      case kDeflate: return inflate(i, chunk);
      case kLzf: return decompress(i, chunk, codecs::kLzf, bytes_, *of_.lzf);
      default: return unshuffle(of_.filters[i].element);
    }
  }

  void check(const Chunk& chunk) {
    if (bytes_.size() < 4) fail(*of_.fletcher, chunk, "4 bytes or more", bytes_.size());
    const std::string_view data = std::string_view(bytes_).substr(0, bytes_.size() - 4);
    const auto stated = base::load_le<std::uint32_t>(bytes_.data() + data.size());
    const std::uint32_t found = fletcher32(data);
    // An old writer on little-endian machines swapped the bytes of each half, and HDF5 accepts that.
    const std::uint32_t swapped = ((found & 0x00FF00FFU) << 8U) | (found >> 8U & 0x00FF00FFU);
    if (found != stated && swapped != stated) fail(*of_.fletcher, chunk, stated, found);
    bytes_.resize(data.size());
  }

  // RFC 1950 around the data of RFC 1951.
  void inflate(std::size_t i, const Chunk& chunk) {
    constexpr std::size_t kHead = 2, kTail = 4;
    const auto byte = [&](std::size_t at) { return static_cast<unsigned>(static_cast<unsigned char>(bytes_[at])); };
    if (bytes_.size() < kHead + kTail || (byte(0) & 15U) != 8 || (byte(0) * 256 + byte(1)) % 31 != 0 ||
        (byte(1) & 32U) != 0)
      fail(*of_.deflate, chunk, {}, {}, "it does not begin with a header of zlib");
    const auto stated = base::load_be<std::uint32_t>(bytes_.data() + bytes_.size() - kTail);
    decompress(i, chunk, codecs::kDeflate, std::string_view(bytes_).substr(kHead, bytes_.size() - kHead - kTail),
               *of_.deflate);
    if (codecs::adler32(std::as_bytes(std::span(bytes_))) != stated)
      fail(*of_.deflate, chunk, {}, {}, "its Adler-32 checksum is wrong");
  }

  // `data` is in bytes_, which then has what it decodes to.
  void decompress(std::size_t i, const Chunk& chunk, const codecs::Codec& codec, std::string_view data,
                  const Rule& rule) {
    std::uint64_t size = of_.bytes;  // with the checksum, if it was added first
    for (std::size_t k = 0; k < i; ++k)
      if (of_.filters[k].id == kFletcher32 && (chunk.skipped >> k & 1U) == 0) size += 4;
    other_.resize(base::to_size(size));
    std::size_t made = 0;
    const codecs::LentDecoder decoder(codec);
    const codecs::DecodeResult result = decoder->decode(
        size, context_.limits.memory,
        [&](std::span<std::byte> room) {
          const std::size_t n = std::min(room.size(), data.size());
          std::memcpy(room.data(), data.data(), n);
          data.remove_prefix(n);
          return n;
        },
        [&](std::span<const std::byte> piece) {
          std::memcpy(other_.data() + made, piece.data(), piece.size());
          made += piece.size();
          return true;
        });
    if (!result.ok()) fail(rule, chunk, {}, {}, result.sentence);
    bytes_.swap(other_);
  }

  // The first bytes of all elements, then the second ones and so on; an incomplete element stays at the end.
  void unshuffle(std::size_t element) {
    const std::size_t count = bytes_.size() / element;
    if (element == 1 || count <= 1) return;
    other_.resize(bytes_.size());
    for (std::size_t b = 0; b < element; ++b) {
      const char* const from = bytes_.data() + b * count;
      for (std::size_t i = 0; i < count; ++i) other_[i * element + b] = from[i];
    }
    std::memcpy(other_.data() + count * element, bytes_.data() + count * element, bytes_.size() - count * element);
    bytes_.swap(other_);
  }

  const Source& source_;
  const Chunked& of_;
  const Context& context_;
  std::string bytes_, other_;
  std::optional<std::uint64_t> last_;
};

class Stream {
 public:
  Stream(const Source& source, const Chunked& of, const Context& context)
      : source_(source, context), of_(of), decoder_(source_, of, context) {}

  void run(std::uint64_t memory, const std::function<bool(std::span<const std::byte>)>& sink) {
    const std::uint64_t row = of_.row(), high = of_.chunk[0];
    std::uint64_t tile = high;  // rows
    if (times(high, std::max(row, of_.chunk_row())) > memory)
      tile = std::max<std::uint64_t>(1, memory / std::max(row, of_.chunk_row()));
    else if (times(high, row) < kTile)
      tile = std::max<std::uint64_t>(1, kTile / (high * row)) * high;
    tile = std::min(tile, of_.shape[0]);
    for (std::uint64_t first = 0; first < of_.shape[0];) {
      // A tile within a row of chunks ends with it.
      std::uint64_t rows = std::min(tile, of_.shape[0] - first);
      if (tile < high) rows = std::min(rows, high - first % high);
      tile_.resize(base::to_size(rows * row));
      clear();
      fill_from_chunks(first, rows);
      if (!sink(std::as_bytes(std::span(tile_)))) return;
      first += rows;
    }
  }

 private:
  void clear() {
    if (of_.fill.find_first_not_of('\0') == std::string::npos) {
      std::ranges::fill(tile_, '\0');
      return;
    }
    std::memcpy(tile_.data(), of_.fill.data(), of_.fill.size());
    for (std::size_t done = of_.fill.size(); done < tile_.size();) {
      const std::size_t n = std::min(done, tile_.size() - done);
      std::memcpy(tile_.data() + done, tile_.data(), n);
      done += n;
    }
  }

  void fill_from_chunks(std::uint64_t first, std::uint64_t rows) {
    std::uint64_t across = 1;  // chunks that share an index in the first dimension
    for (std::size_t i = 1; i < of_.grid.size(); ++i) across *= of_.grid[i];
    const std::uint64_t begin = first / of_.chunk[0] * across, end = ((first + rows - 1) / of_.chunk[0] + 1) * across;
    for (auto at = std::ranges::lower_bound(of_.chunks, begin, {}, &Chunk::index);
         at != of_.chunks.end() && at->index < end; ++at)
      copy(*at, first, rows);
  }

  // Copies the rows [first, first + rows) of the dataset that a chunk contains.
  void copy(const Chunk& chunk, std::uint64_t first, std::uint64_t rows) {
    const std::size_t rank = of_.shape.size();
    std::vector<std::uint64_t> begin(rank), count(rank);  // of the chunk in the dataset, and of what lies in the shape
    bool partial = false;
    std::uint64_t rest = chunk.index;
    for (std::size_t i = rank; i-- > 0;) {
      begin[i] = rest % of_.grid[i] * of_.chunk[i];
      rest /= of_.grid[i];
      count[i] = std::min(of_.chunk[i], of_.shape[i] - begin[i]);
      partial = partial || count[i] < of_.chunk[i];
    }
    const std::uint64_t from = std::max(first, begin[0]), to = std::min(first + rows, begin[0] + count[0]);
    if (from >= to) return;
    const std::uint64_t line = of_.chunk_row();
    const char* bytes = nullptr;  // of the chunk's row `from`
    if (of_.filters.empty()) {
      plain_.resize(base::to_size((to - from) * line));
      source_.read_at(chunk.at + (from - begin[0]) * line, std::as_writable_bytes(std::span(plain_)));
      bytes = plain_.data();
    } else {
      bytes = decoder_.decode(chunk, partial).data() + (from - begin[0]) * line;
    }
    const std::size_t last = rank - 1;
    const std::uint64_t run = rank == 1 ? (to - from) * of_.element : count[last] * of_.element;
    std::vector<std::uint64_t> at(rank, 0);  // within what is copied; the last dimension is a run
    const auto rows_here = to - from;
    for (;;) {
      std::uint64_t in_chunk = 0, in_tile = 0;
      for (std::size_t i = 0; i < rank; ++i) {
        in_chunk = in_chunk * of_.chunk[i] + at[i];
        in_tile = in_tile * of_.shape[i] + (i == 0 ? from - first : begin[i]) + at[i];
      }
      std::memcpy(tile_.data() + in_tile * of_.element, bytes + in_chunk * of_.element, base::to_size(run));
      std::size_t i = last;
      while (i > 0 && ++at[i - 1] == (i == 1 ? rows_here : count[i - 1])) at[--i] = 0;
      if (i == 0) return;
    }
  }

  const core::AskingSource source_;
  const Chunked& of_;
  Decoder decoder_;
  std::string tile_, plain_;
};

}  // namespace

std::uint64_t Chunked::row() const noexcept { return product_after_first(shape, element); }
std::uint64_t Chunked::chunk_row() const noexcept { return product_after_first(chunk, element); }

std::uint64_t Chunked::needed(std::uint64_t memory) const noexcept {
  const std::uint64_t line = std::max(row(), chunk_row()), maximum = memory / 4;
  std::uint64_t out = line;
  if (!filters.empty()) {
    std::uint64_t stored = 0;
    for (const Chunk& each : chunks) stored = std::max(stored, each.stored);
    out = std::max({out, bytes, stored});
    // With less memory, a row of chunks would need too many passes.
    if (chunks.size() > 1 && times(chunk[0], line) / kMaxPasses > maximum) out = times(chunk[0], line) / kMaxPasses;
  }
  return times(out, 4);
}

std::uint64_t Chunked::work(std::uint64_t memory) const noexcept {
  const std::uint64_t high = times(chunk[0], std::max(row(), chunk_row())),
                      maximum = std::max<std::uint64_t>(memory / 4, 1);
  const std::uint64_t passes = filters.empty() ? 1 : std::min(kMaxPasses + 1, high / maximum + 1);
  return plus(times(row(), shape[0]), times(times(chunks.size(), bytes), passes));
}

void stream_chunks(const Source& source, const Chunked& of, const Context& context,
                   const std::function<bool(std::span<const std::byte>)>& sink) {
  if (const std::uint64_t needed = of.needed(context.limits.memory); needed > context.limits.memory)
    base::over_limit("memory", "decoding chunks needs " + std::to_string(needed) + " bytes of memory", needed);
  Stream(source, of, context).run(context.limits.memory / 4, sink);
}

}  // namespace weighbridge::hdf5
