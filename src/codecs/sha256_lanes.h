// SPDX-License-Identifier: Apache-2.0
// SHA-256 of many messages at once, sixteen in step in the lanes of AVX-512 registers (of WebAssembly's, where four fit
// one): about twice what one core does with the SHA instructions, which wait for one another within a message. Ours
// because OpenSSL has no public interface to its multi-buffer code and Debian ships no library with one. Leaves single
// messages to checksum.h.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "codecs/checksum.h"

namespace weighbridge::codecs {

constexpr std::size_t kShaLanes = 16;

// How messages are hashed. `automatic` takes the lanes where there are enough messages of like length, else class
// Sha256; the others are for tests, which compare them with ==, and the last two use the lanes even for a single
// message. A path that this processor or this build lacks answers as `single` does.
enum class ShaPath : std::uint8_t { automatic, single, portable, vectors };
bool has(ShaPath) noexcept;

// out[i] = SHA-256 of prefix + messages[i]; out is as long as messages. Throws std::bad_alloc.
void sha256_each(std::span<const std::byte> prefix, std::span<const std::span<const std::byte>> messages,
                 std::span<Digest256> out, ShaPath path = ShaPath::automatic);

// The following bytes of message i: at least one, together exactly as many as its length. They stay as they are until
// the next call for the same message. May throw; the exception is passed on.
using NextBytes = std::function<std::span<const std::byte>(std::size_t)>;
// out[i] = SHA-256 of prefix + the lengths[i] bytes that next(i) gives piece by piece. At most kShaLanes messages are
// under way at once, and pieces of equal size go quickest. An empty message is not asked for.
void sha256_each(std::span<const std::byte> prefix, std::span<const std::uint64_t> lengths, const NextBytes& next,
                 std::span<Digest256> out, ShaPath path = ShaPath::automatic);

}  // namespace weighbridge::codecs
