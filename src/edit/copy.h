// SPDX-License-Identifier: Apache-2.0
// Copies bytes between files in the kernel, and shares them where the filesystem can (reflinks).
#pragma once
#include <cstdint>
#include <functional>
#include <string>

namespace weighbridge::edit_files {

// Blocks of filesystems that share ranges. Both ends of a shared range are multiples of it.
inline constexpr std::uint64_t kBlock = 4096;

struct Range {
  std::uint64_t from = 0, to = 0, length = 0;
};
// Copies the range; holes stay holes. Where both files can share whole blocks, it does. Returns
// the bytes that are shared. Calls `go_on` with the bytes that are done since the last call. Error io/write of `path`,
// io/short-read.
std::uint64_t copy_range(int from, int to, const Range&, const std::string& path,
                         const std::function<void(std::uint64_t)>& go_on);

}  // namespace weighbridge::edit_files
