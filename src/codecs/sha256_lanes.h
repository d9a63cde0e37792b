// SPDX-License-Identifier: Apache-2.0
// SHA-256 of many messages at once, sixteen in the lanes of AVX-512 registers (or WebAssembly's, with four lanes each).
// This is about twice as fast as the SHA instructions, each of which waits for the previous one within a message. It is
// our own because OpenSSL has no public interface to its multi-buffer code and Debian ships no library with one. For
// single messages, see checksum.h.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "codecs/checksum.h"

namespace weighbridge::codecs {

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
