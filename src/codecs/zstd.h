// SPDX-License-Identifier: Apache-2.0
// One zstd frame to bytes and back (RFC 8878). Owns reading G1: exactly one frame, exactly the demanded size, nothing
// allocated before the frame header was read. Leaves limits and the wording of findings to its callers.
//
// A decoder or encoder is kept and used for part after part: its libzstd context is reused. One thread at a time.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace weighbridge::codecs {

enum class ZstdFault : std::uint8_t {
  none,
  truncated,        // the stored bytes end before the frame does
  no_frame,         // they do not begin with a zstd frame
  skippable_frame,  // they begin with a skippable frame
  reserved_bit,     // the frame header sets a bit that the format reserves
  dictionary,       // the frame needs a dictionary
  content_size,     // the frame states a size other than the demanded one
  window,           // the window is larger than 128 MiB
  memory,           // the window, or the demanded size where that is smaller, passes the caller's memory limit
  corrupt,          // libzstd refuses the data, a wrong checksum included
  too_short,        // the frame ends before the demanded size
  too_long,         // the frame holds more than the demanded size
  trailing,         // bytes after the frame: a second frame, a skippable one, anything
  stopped,          // the sink answered false
};

// `sentence` is one lower-case sentence without a final full stop. `offset` counts stored bytes from the first one of
// the part: where the header fault lies, or how many bytes libzstd had taken. `expected` and `found` are sizes where
// the fault has them.
struct ZstdResult {
  ZstdFault fault = ZstdFault::none;
  std::uint64_t offset = 0;
  std::uint64_t expected = 0, found = 0;
  std::string sentence;
  bool ok() const noexcept { return fault == ZstdFault::none; }
};

inline constexpr std::uint64_t kZstdMaxWindow = std::uint64_t{128} << 20;

class ZstdDecoder {
 public:
  // Fills the span as far as it can and says how many bytes it filled; 0 ends the stored bytes.
  using Pull = std::function<std::size_t(std::span<std::byte>)>;
  // Takes decoded bytes in order; false stops.
  using Sink = std::function<bool(std::span<const std::byte>)>;

  ZstdDecoder();
  ~ZstdDecoder();
  ZstdDecoder(ZstdDecoder&&) noexcept;
  ZstdDecoder& operator=(ZstdDecoder&&) noexcept;

  // Decodes the one frame that `pull` gives into exactly `demanded` bytes. The memory it takes is min(window,
  // demanded), tested against `memory_limit` first, and under 1 MiB of buffers. Pieces have been handed to the sink
  // before a later fault is found: what was received counts only when the result is ok. Exceptions of pull and sink
  // pass through; std::bad_alloc is possible.
  ZstdResult decode(std::uint64_t demanded, std::uint64_t memory_limit, const Pull& pull, const Sink& sink);
  // The same, from memory into memory: out.size() is the demanded size, and nothing of its order is allocated.
  ZstdResult decode(std::span<const std::byte> stored, std::span<std::byte> out);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

inline constexpr int kZstdDefaultLevel = 3;

// An upper bound of a frame's size for `size` bytes; 0 when it passes what this machine can address.
std::uint64_t zstd_compress_bound(std::uint64_t size) noexcept;

// Makes one frame that states its content size and has no checksum. The same bytes and level give the same frame, per
// libzstd version, whatever the slicing into pushes and however many threads work elsewhere: a frame is made by one
// thread, and several parts are encoded side by side with an encoder each. (libzstd's own workers would give other
// bytes than no workers, and Debian's static libzstd is built without them.)
class ZstdEncoder {
 public:
  // Parts up to this size are compressed in one call, which is quicker; larger ones as they come, in constant memory.
  static constexpr std::uint64_t kWhole = std::uint64_t{8} << 20;
  // Takes compressed bytes in order.
  using Sink = std::function<void(std::span<const std::byte>)>;

  ZstdEncoder();
  ~ZstdEncoder();
  ZstdEncoder(ZstdEncoder&&) noexcept;
  ZstdEncoder& operator=(ZstdEncoder&&) noexcept;

  // A part of exactly `size` bytes follows; whatever went before is forgotten. `level` is libzstd's, clamped to what it
  // has.
  void begin(std::uint64_t size, int level = kZstdDefaultLevel);
  // Throws Error{misuse} when more than `size` bytes come.
  void push(std::span<const std::byte> piece, const Sink& sink);
  // Ends the frame. Throws Error{misuse} when fewer than `size` bytes came.
  void finish(const Sink& sink);

  // A whole part at once. `out` is replaced; its capacity is reused.
  void encode(std::span<const std::byte> data, std::vector<std::byte>& out, int level = kZstdDefaultLevel);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace weighbridge::codecs
