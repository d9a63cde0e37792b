// SPDX-License-Identifier: Apache-2.0
// Checksums and digests of bytes, streaming or in one call. Owns CRC-32, CRC-32C, Adler-32, SHA-256 (also of many at
// once), HMAC-SHA-256, SHA-1, XXH3 and hexadecimal text. Formats own how they write a digest (prefixes, letter case).
//
// The content never causes an exception; Sha256 and the classes of XXH3 throw std::bad_alloc if their state cannot be
// allocated. An object serves one thread at a time; the free functions are safe from any number of threads.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/endian.h"

namespace weighbridge::codecs {

enum class CrcKind : std::uint8_t {
  crc32,   // IEEE 802.3, reflected, polynomial 0x04C11DB7: "123456789" -> 0xCBF43926
  crc32c,  // Castagnoli, reflected, polynomial 0x1EDC6F41: "123456789" -> 0xE3069283
};

// The CRC of the bytes so far followed by `data`; `before` is the CRC of the bytes so far, 0 for none.
std::uint32_t crc(CrcKind, std::span<const std::byte> data, std::uint32_t before = 0) noexcept;
inline std::uint32_t crc32(std::span<const std::byte> data, std::uint32_t before = 0) noexcept {
  return crc(CrcKind::crc32, data, before);
}
inline std::uint32_t crc32c(std::span<const std::byte> data, std::uint32_t before = 0) noexcept {
  return crc(CrcKind::crc32c, data, before);
}
// Adler-32 (RFC 1950, section 8.2) of the bytes so far followed by `data`; `before` is that of the bytes so far.
std::uint32_t adler32(std::span<const std::byte> data, std::uint32_t before = 1) noexcept;
// The CRC of A followed by B from the CRC of each and B's length: chunks can be checksummed in parallel.
std::uint32_t combine(CrcKind, std::uint32_t crc_a, std::uint32_t crc_b, std::uint64_t length_b) noexcept;

// The implementations of crc(), which uses `automatic`; tests compare the others with ==. A path that this processor or
// build lacks works like `table`.
enum class CrcPath : std::uint8_t { automatic, table, blocks, clmul, wide_clmul };
bool has(CrcPath) noexcept;
std::uint32_t crc_by(CrcPath, CrcKind, std::span<const std::byte> data, std::uint32_t before = 0) noexcept;

using Digest256 = std::array<std::byte, 32>;

// Bytes as SHA-1 and SHA-256 take them, in blocks of 64, and the padding behind them (FIPS 180-4, section 5.1.1). Calls
// take(data, blocks).
class ShaBlocks {
 public:
  static constexpr std::size_t kSize = 64;

  template <class Take> void update(std::span<const std::byte> data, const Take& take) noexcept {
    const auto used = static_cast<std::size_t>(size_ % kSize);
    size_ += data.size();
    if (used > 0) {
      const std::size_t more = std::min(data.size(), kSize - used);
      std::copy_n(data.begin(), more, held_.begin() + static_cast<std::ptrdiff_t>(used));
      data = data.subspan(more);
      if (used + more < kSize) return;
      take(held_.data(), 1);
    }
    const std::size_t blocks = data.size() / kSize;
    take(data.data(), blocks);
    std::ranges::copy(data.subspan(blocks * kSize), held_.begin());
  }
  // One bit, zeros, and the length in bits as the last eight bytes of a block.
  template <class Take> void finish(const Take& take) noexcept {
    const auto used = static_cast<std::size_t>(size_ % kSize);
    std::array<std::byte, 2 * kSize> last{};
    std::copy_n(held_.begin(), used, last.begin());
    last[used] = std::byte{0x80};
    const std::size_t size = used < kSize - 8 ? kSize : 2 * kSize;
    base::store_be(last.data() + size - 8, size_ * 8);
    take(last.data(), size / kSize);
  }

 private:
  std::uint64_t size_ = 0;  // bytes so far; the last size_ % kSize of them are held
  std::array<std::byte, kSize> held_{};
};

// SHA-256 (FIPS 180-4). Call reset() after finish() before more data; it keeps the memory.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;
  void reset();
  void update(std::span<const std::byte> data);
  Digest256 finish();

 private:
  struct Free {
    void operator()(void*) const noexcept;
  };
  std::unique_ptr<void, Free> context_;
};
Digest256 sha256(std::span<const std::byte> data);

struct Hash128 {
  std::uint64_t low = 0, high = 0;
  bool operator==(const Hash128&) const = default;
};

// XXH3, 128 bits, no seed: fast and well mixed, but not secure against deliberate collisions.
class Xxh3_128 {
 public:
  Xxh3_128();
  ~Xxh3_128();
  Xxh3_128(Xxh3_128&&) noexcept;
  Xxh3_128& operator=(Xxh3_128&&) noexcept;
  void reset() noexcept;
  void update(std::span<const std::byte> data) noexcept;
  Hash128 finish() const noexcept;  // of the bytes so far; more may follow

 private:
  friend class Xxh3_64;
  struct Free {
    void operator()(void*) const noexcept;
  };
  std::unique_ptr<void, Free> state_;
};
Hash128 xxh3_128(std::span<const std::byte> data) noexcept;

// XXH3, 64 bits, no seed. This is a different function of the bytes: it is neither half of the 128 bits above.
class Xxh3_64 {
 public:
  void reset() noexcept { state_.reset(); }
  void update(std::span<const std::byte> data) noexcept { state_.update(data); }
  std::uint64_t finish() const noexcept;  // of the bytes so far; more may follow

 private:
  Xxh3_128 state_;  // which is that of both functions
};
std::uint64_t xxh3_64(std::span<const std::byte> data) noexcept;

// Lower-case hexadecimal, two digits per byte; numbers begin with the most significant.
std::string to_hex(std::span<const std::byte> bytes);
std::string to_hex(std::uint32_t value);   // 8 digits
std::string to_hex(std::uint64_t value);   // 16 digits
std::string to_hex(const Hash128& value);  // 32 digits
// Parses hexadecimal of either letter case to exactly out.size() bytes. On failure returns false and leaves `out`
// unspecified.
bool from_hex(std::string_view text, std::span<std::byte> out) noexcept;
// Whether it is that many hexadecimal digits, as to_hex() spells them: in lower case.
inline bool is_hex(std::string_view text, std::size_t digits) noexcept {
  return text.size() == digits && text.find_first_not_of("0123456789abcdef") == text.npos;
}
// Parses exactly 8 hexadecimal digits of either letter case.
std::optional<std::uint32_t> u32_from_hex(std::string_view text) noexcept;

// SHA-1 (FIPS 180-4), which some containers state for a file. It does not protect against deliberate changes.

using Digest160 = std::array<std::byte, 20>;

class Sha1 {
 public:
  void update(std::span<const std::byte> data) noexcept;
  Digest160 finish() noexcept;  // of all bytes so far; nothing may follow

 private:
  void compress(const std::byte* data, std::size_t blocks) noexcept;
  std::array<std::uint32_t, 5> state_{0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0};
  ShaBlocks blocks_;
};

// HMAC-SHA-256 (RFC 2104): shows that whoever wrote some bytes had a secret key.

Digest256 hmac_sha256(std::span<const std::byte> key, std::span<const std::byte> data);
// Compares in a time that does not depend on where the two differ.
bool same_mac(std::span<const std::byte> a, std::span<const std::byte> b) noexcept;

// SHA-256 of many messages at once, sixteen in the lanes of AVX-512 registers (or WebAssembly's, with four lanes each).
// This is about twice as fast as the SHA instructions, each of which waits for the previous one within a message. It is
// our own because OpenSSL has no public interface to its multi-buffer code and Debian ships no library with one. For
// single messages, see checksum.h.

constexpr std::size_t kShaLanes = 16;

// The implementations. `automatic` uses the lanes if there are enough messages of similar length, else class Sha256.
// Tests compare the others with ==; the last two use the lanes even for a single message. A path that this processor or
// build lacks works like `single`.
enum class ShaPath : std::uint8_t { automatic, single, portable, vectors };
bool has(ShaPath) noexcept;

// out[i] = SHA-256 of prefix + messages[i]; out is as long as messages. Throws std::bad_alloc.
void sha256_each(std::span<const std::byte> prefix, std::span<const std::span<const std::byte>> messages,
                 std::span<Digest256> out, ShaPath path = ShaPath::automatic);

// Returns the next bytes of message i: at least one, in total exactly its length. They stay valid until the next call
// for the same message. Exceptions pass through.
using NextBytes = std::function<std::span<const std::byte>(std::size_t)>;
// out[i] = SHA-256 of prefix + the lengths[i] bytes that next(i) returns piece by piece. At most kShaLanes messages are
// in progress at once; pieces of equal size are fastest. next() is not called for empty messages.
void sha256_each(std::span<const std::byte> prefix, std::span<const std::uint64_t> lengths, const NextBytes& next,
                 std::span<Digest256> out, ShaPath path = ShaPath::automatic);

}  // namespace weighbridge::codecs
