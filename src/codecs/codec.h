// SPDX-License-Identifier: Apache-2.0
// The table of codecs, which encode and decode stored bytes. Implements reading G1 for all of them: the output has
// exactly the demanded size, and nothing is allocated before the sizes in the stored bytes are checked. Callers set
// limits and word the findings. To add a codec, add a file beside zstd_decoder.cc and a row in codec.cc. Also names the
// versions of the libraries behind them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weighbridge::codecs {

enum class DecodeFault : std::uint8_t {
  none,
  truncated,     // the stored bytes end before the compressed data does
  no_frame,      // the data does not begin with a frame of this codec
  reserved_bit,  // a frame header sets a bit that the format reserves
  dictionary,    // the data needs a dictionary
  content_size,  // a frame states more than the rest of the demanded size
  window,        // the window is larger than 128 MiB
  memory,        // the window, or the rest of the demanded size if smaller, exceeds the caller's memory limit
  corrupt,       // the decoder library refuses the data, or a checksum is wrong
  too_short,     // the data decodes to less than the demanded size
  too_long,      // the data decodes to more than the demanded size
  trailing,      // bytes after the last frame
  stopped,       // the sink returned false
};

// `sentence` is one lower-case sentence without a final full stop. `offset` counts stored bytes from the start of the
// part: the position of a header fault, or the number of bytes consumed. `expected` and `found` are sizes, for faults
// that have them.
struct DecodeResult {
  DecodeFault fault = DecodeFault::none;
  std::uint64_t offset = 0;
  std::uint64_t expected = 0, found = 0;
  std::string sentence{};
  bool ok() const noexcept { return fault == DecodeFault::none; }
};

// Reusable for many parts, so that its library's allocations are kept. For one thread at a time.
class Decoder {
 public:
  // Fills the span as far as possible and returns the number of bytes; 0 ends the stored bytes.
  using Pull = std::function<std::size_t(std::span<std::byte>)>;
  // Receives decoded bytes in order; returning false stops.
  using Sink = std::function<bool(std::span<const std::byte>)>;

  virtual ~Decoder() = default;
  // Decodes everything from `pull` to exactly `demanded` bytes. Uses less than 1 MiB of buffers, plus the codec's
  // window (or `demanded` if smaller), which is checked against `memory_limit` first. The sink may receive pieces
  // before a later fault is found: its data is valid only if the result is ok. Exceptions of pull and sink pass
  // through; std::bad_alloc is possible.
  virtual DecodeResult decode(std::uint64_t demanded, std::uint64_t memory_limit, const Pull&, const Sink&) = 0;
  // The bytes that it keeps for the next part.
  virtual std::size_t kept() const noexcept = 0;
};

// With one version of the encoder library, the same bytes and level give the same output, however the pushes are split
// and however many threads run. One part is encoded by one thread. For one thread at a time.
class Encoder {
 public:
  // Receives encoded bytes in order.
  using Sink = std::function<void(std::span<const std::byte>)>;

  virtual ~Encoder() = default;
  // Begins a part of exactly `size` bytes and drops any earlier state. `level` is clamped to the codec's range.
  virtual void begin(std::uint64_t size, int level) = 0;
  // Throws Error{misuse} after more than `size` bytes.
  virtual void push(std::span<const std::byte> piece, const Sink&) = 0;
  // Ends the output. Throws Error{misuse} after fewer than `size` bytes.
  virtual void finish(const Sink&) = 0;
};

struct Codec {
  std::string_view name;  // as in files and options
  bool frames = false;    // a part may have several frames; their contents are joined
  // Levels from least to most work; `level` is the default. All 0: no levels.
  int lowest = 0, level = 0, highest = 0;
  std::unique_ptr<Decoder> (*decoder)() = nullptr;
  std::unique_ptr<Encoder> (*encoder)() = nullptr;
  // An upper bound of the stored size of `size` bytes at any level; 0 if it exceeds the address space.
  std::uint64_t (*bound)(std::uint64_t size) noexcept = nullptr;
};

extern const Codec kRaw;   // uncompressed
extern const Codec kZstd;  // RFC 8878: one or more frames; skippable ones are ignored
// zstd in frames of at most 16 MiB, of equal content except for the last, each with a checksum, and a table of them
// at the end (codecs/zstd.h), which must be right.
extern const Codec kZstdSeekable;
extern const Codec kDeflate;  // RFC 1951 without a gzip or zlib header, as zip stores members
extern const Codec kLzf;      // of HDF5's chunks, which are read only: it has no encoder

// Those that files may name: all except kLzf.
std::span<const Codec* const> all() noexcept;
// The codec with this name; null if there is none.
const Codec* find(std::string_view name) noexcept;

// Lends this thread's decoder, which is kept between parts because it is expensive to create, unless a large window has
// made it large: what a thread keeps for its life belongs to no job and counts against no limit. A sink that decodes
// another part finds the slot empty and creates a second one.
class LentDecoder {
 public:
  // What a thread may keep of a codec: of zstd up to level 16, a window of 4 MiB and a frame that is decoded without
  // one; of the others, all.
  static constexpr std::size_t kMaxKept = std::size_t{9} << 20;
  // What this thread keeps of all codecs now.
  static std::size_t kept_here() noexcept;

  explicit LentDecoder(const Codec&);
  ~LentDecoder();
  LentDecoder(const LentDecoder&) = delete;
  LentDecoder& operator=(const LentDecoder&) = delete;
  Decoder* operator->() const noexcept { return decoder_.get(); }

 private:
  const Codec& codec_;
  std::unique_ptr<Decoder> decoder_;
};

// Encodes a whole part in one call, by default at the codec's default level. For small parts and tests.
std::vector<std::byte> encode(const Codec&, std::span<const std::byte>);
std::vector<std::byte> encode(const Codec&, std::span<const std::byte>, int level);
// Decodes a whole part in memory to out.size() bytes.
DecodeResult decode(const Codec&, std::span<const std::byte> stored, std::span<std::byte> out);

// The versions of the libraries that only the codecs use, as they are loaded.

std::string_view version_of_openssl() noexcept;  // empty in a build with portable checksums
std::string_view version_of_zstd() noexcept;
std::string_view version_of_zlib() noexcept;
std::string_view version_of_xxhash() noexcept;  // of the header

}  // namespace weighbridge::codecs
