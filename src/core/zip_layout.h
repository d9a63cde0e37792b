// SPDX-License-Identifier: Apache-2.0
// The records of a zip archive, as APPNOTE.TXT 6.3 lays them out: what reading and writing share.
#pragma once
#include <cstdint>
#include <string_view>

namespace weighbridge::core::zip {

inline constexpr std::uint32_t kEndMagic = 0x06054B50, kEntryMagic = 0x02014B50, kLocalMagic = 0x04034B50,
                               kEnd64Magic = 0x06064B50, kLocatorMagic = 0x07064B50;
inline constexpr std::uint64_t kEndSize = 22, kLocatorSize = 20, kEnd64Size = 56, kEntrySize = 46, kLocalSize = 30;
inline constexpr std::uint32_t kFull32 = 0xFFFFFFFF, kFull16 = 0xFFFF;
inline constexpr std::uint16_t kZip64 = 1;
inline constexpr std::uint64_t kLocalZip64 = 20;  // of the extra field with both sizes in 64 bits
inline constexpr std::uint16_t kStored = 0, kDeflated = 8;
inline constexpr std::uint16_t kEncrypted = 1U << 0, kDescriptor = 1U << 3, kUtf8 = 1U << 11;

// Finds the first extra field with numbers of 64 bits. False: a field ends past the others.
bool find_zip64(std::string_view extra, std::string_view& wide, bool& found);

}  // namespace weighbridge::core::zip
