// SPDX-License-Identifier: Apache-2.0
// Converts stored bytes to logical ones. Owns the size of a piece, and decodes one encoded part.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "codecs/codec.h"
#include "core/model/draft.h"
#include "weighbridge/model.h"

namespace weighbridge::core {

// Except for the last, pieces are a multiple of 192 bytes: a whole number of elements of every dtype, including 6-bit
// ones.
inline constexpr std::uint64_t kPiece = std::uint64_t{192} * 21845;  // just under 4 MiB

// Collects pieces of any length into chunks of one length, and a shorter one at the end.
class Chunks {
 public:
  // The sink returns whether to continue.
  Chunks(std::size_t length, std::function<bool(std::span<const std::byte>)> sink)
      : length_(length), sink_(std::move(sink)) {}
  bool add(std::span<const std::byte>);
  // Passes on the last chunk, unless the sink has stopped.
  void finish();

 private:
  const std::size_t length_;
  std::function<bool(std::span<const std::byte>)> sink_;
  std::vector<std::byte> held_{};
  bool going_ = true;
};

// Copies the bytes from `begin` on of a stream to `out`. `to_end`: nothing follows them, so the stream is read to its
// end, where a decoder finds out whether all of it was right.
class Excerpt {
 public:
  Excerpt(std::uint64_t begin, std::span<std::byte> out, bool to_end) : begin_(begin), out_(out), to_end_(to_end) {}
  // Takes the next piece. Returns whether it wants more.
  bool add(std::span<const std::byte>);
  bool is_full() const noexcept { return out_.empty(); }

 private:
  std::uint64_t begin_;
  std::span<std::byte> out_;  // what is not filled yet
  const bool to_end_;
};

// Decodes a part to exactly its logical size, in stored form (neither byte-swapped nor normalized). Throws
// Error{malformed} with rule "part/<codec>" if the stored bytes do not decode to that size, Error{io}.
void decode_part(const Part&, const Context&, const std::function<bool(std::span<const std::byte>)>& sink);

// Maps the model's encodings to rows of the table of codecs.

// Null for computed and unknown.
const codecs::Codec* codec_of(Encoding) noexcept;
// Encoding::unknown if no codec has this name.
Encoding encoding_named(std::string_view) noexcept;
// Whether a codec other than raw must decode the stored bytes.
bool is_coded(Encoding) noexcept;

// Parts whose elements lie between those of other parts: a container that stores a whole sparse tensor as one blob has
// all of its parts there.

// The bytes to which the part's stored bytes decode: of the blob, or the part itself.
std::uint64_t decoded_size(const Part&) noexcept;
// Offset of the part's element in the blob.
std::uint64_t place_in(const Cut&, const Part&, std::uint64_t element) noexcept;
// How many bytes Part::stream() reads or decodes. Each row needs a pass over the blob, unless the part is small.
std::uint64_t cut_work(const Cut&, const Part&) noexcept;

// [reads] Delivers the part's elements in order, in pieces of any length, little-endian; bools may be any byte.
void stream_cut(const Part&, const Cut&, const Context&, const std::function<bool(std::span<const std::byte>)>& sink);

// Delivers strided elements of a file in row-major order.

// Delivers the elements [first, first + count) of a raw strided part in row-major order, reading no others, in pieces
// of whole elements of at most `piece` bytes, in stored byte order. The range lies in the shape. Offsets outside [0,
// extent.length) are Error{malformed}. Element width is a whole number of bytes. Returns false if the sink stopped it.
bool stream_strided(const Source&, Extent, Shape, std::span<const std::int64_t> strides, std::uint32_t width,
                    std::uint64_t first, std::uint64_t count, std::uint64_t piece,
                    const std::function<bool(std::span<std::byte>)>& sink);

// What it costs to read one element of such a part, in bytes: neighbors that are far apart are read one by one.
std::uint64_t strided_cost(Shape, std::span<const std::int64_t> strides, std::uint32_t width) noexcept;

// Reads logical bytes of a part at any offset, for parts whose stored bytes are nearly the logical ones. Several
// threads can share a large part, and one read can serve many small ones. Other parts go through Part::stream().

// Whether the part is raw, row-major, of a known dtype and has an extent: logical byte i comes from byte i of the
// extent, or from the same element.
bool is_direct(const Part&) noexcept;
// [reads] out = the logical bytes [offset, offset + out.size()). The part is direct, the range lies within size(), and
// each end is a multiple of 8 or the part's end.
void read_direct(const Part&, std::uint64_t offset, std::span<std::byte> out);

struct PartRead {
  Part part;                 // direct
  std::span<std::byte> out;  // size() bytes
};
// [reads] Reads whole parts with one call per source; Source::read() combines neighbors.
void read_direct(std::span<const PartRead> reads);

}  // namespace weighbridge::core
