// SPDX-License-Identifier: Apache-2.0
// How stored bytes become others and back: the table of codecs, one row each. Owns reading G1 for all of them: exactly
// the demanded size, nothing allocated before what the stored bytes say of themselves was read. Leaves limits and the
// wording of findings to its callers. A new codec is a file beside zstd.cc and a row in codec.cc.
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
  no_frame,      // what begins is no frame of this codec
  reserved_bit,  // a frame header sets a bit that the format reserves
  dictionary,    // the data needs a dictionary
  content_size,  // a frame states more than the demanded size leaves
  window,        // the window is larger than 128 MiB
  memory,        // the window, or what is still demanded where that is smaller, passes the caller's memory limit
  corrupt,       // the library that decodes refuses the data, a wrong checksum included
  too_short,     // everything decodes to less than the demanded size
  too_long,      // the data holds more than the demanded size
  trailing,      // bytes after the last frame
  stopped,       // the sink returned false
};

// `sentence` is one lower-case sentence without a final full stop. `offset` counts stored bytes from the first one of
// the part: where the header fault lies, or how many bytes had been taken. `expected` and `found` are sizes where the
// fault has them.
struct DecodeResult {
  DecodeFault fault = DecodeFault::none;
  std::uint64_t offset = 0;
  std::uint64_t expected = 0, found = 0;
  std::string sentence{};
  bool ok() const noexcept { return fault == DecodeFault::none; }
};

// A decoder is kept and used for part after part: what its library allocated is reused. One thread at a time.
class Decoder {
 public:
  // Fills the span as far as it can and says how many bytes it filled; 0 ends the stored bytes.
  using Pull = std::function<std::size_t(std::span<std::byte>)>;
  // Takes decoded bytes in order; false stops.
  using Sink = std::function<bool(std::span<const std::byte>)>;

  virtual ~Decoder() = default;
  // Decodes all that `pull` gives into exactly `demanded` bytes. The memory it takes is the codec's window, or
  // `demanded` where that is smaller, tested against `memory_limit` first, and under 1 MiB of buffers. Pieces have been
  // handed to the sink before a later fault is found: what was received counts only when the result is ok. Exceptions
  // of pull and sink pass through; std::bad_alloc is possible.
  virtual DecodeResult decode(std::uint64_t demanded, std::uint64_t memory_limit, const Pull&, const Sink&) = 0;
};

// The same bytes and level give the same output, per version of the library that encodes, whatever the slicing into
// pushes and however many threads work elsewhere: one part is encoded by one thread. One thread at a time.
class Encoder {
 public:
  // Takes encoded bytes in order.
  using Sink = std::function<void(std::span<const std::byte>)>;

  virtual ~Encoder() = default;
  // A part of exactly `size` bytes follows; whatever went before is forgotten. `level` is clamped to the codec's range.
  virtual void begin(std::uint64_t size, int level) = 0;
  // Throws Error{misuse} when more than `size` bytes come.
  virtual void push(std::span<const std::byte> piece, const Sink&) = 0;
  // Ends the output. Throws Error{misuse} when fewer than `size` bytes came.
  virtual void finish(const Sink&) = 0;
};

struct Codec {
  std::string_view name;  // as files and options spell it
  bool frames = false;    // several may follow each other; what they hold counts together
  // Levels from least to most work; `level` is what writers take unless told otherwise. All 0: there are none.
  int lowest = 0, level = 0, highest = 0;
  std::unique_ptr<Decoder> (*decoder)() = nullptr;
  std::unique_ptr<Encoder> (*encoder)() = nullptr;
  // At least the stored size of `size` bytes at any level; 0 when it passes what this machine can address.
  std::uint64_t (*bound)(std::uint64_t size) noexcept = nullptr;
};

extern const Codec kRaw;      // bytes as they are
extern const Codec kZstd;     // RFC 8878: one or more frames, skippable ones passed over
extern const Codec kDeflate;  // RFC 1951, without a header of gzip or zlib: as zip stores members

std::span<const Codec* const> all() noexcept;
// Null: there is no codec of this name.
const Codec* find(std::string_view name) noexcept;

// A decoder of this thread's own, kept between parts since it is dear to make: the one place where decoders are kept.
// A sink that decodes another part finds the slot empty and makes a second one.
class LentDecoder {
 public:
  explicit LentDecoder(const Codec&);
  ~LentDecoder();
  LentDecoder(const LentDecoder&) = delete;
  LentDecoder& operator=(const LentDecoder&) = delete;
  Decoder* operator->() const noexcept { return decoder_.get(); }

 private:
  const Codec& codec_;
  std::unique_ptr<Decoder> decoder_;
};

// A whole part at once, at the codec's own level unless one is given: for small parts and tests.
std::vector<std::byte> encode(const Codec&, std::span<const std::byte>);
std::vector<std::byte> encode(const Codec&, std::span<const std::byte>, int level);
// A whole part from memory into out.size() bytes.
DecodeResult decode(const Codec&, std::span<const std::byte> stored, std::span<std::byte> out);

}  // namespace weighbridge::codecs
