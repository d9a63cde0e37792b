// SPDX-License-Identifier: Apache-2.0
// SHA-1 (FIPS 180-4), which some containers state for a file. It does not protect against deliberate changes.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace weighbridge::codecs {

using Digest160 = std::array<std::byte, 20>;

class Sha1 {
 public:
  void update(std::span<const std::byte> data) noexcept;
  Digest160 finish() noexcept;  // of all bytes so far; nothing may follow

 private:
  void block(const std::byte* bytes) noexcept;
  std::array<std::uint32_t, 5> state_{0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0};
  std::array<std::byte, 64> held_{};
  std::size_t used_ = 0;
  std::uint64_t total_ = 0;
};
Digest160 sha1(std::span<const std::byte> data) noexcept;

}  // namespace weighbridge::codecs
