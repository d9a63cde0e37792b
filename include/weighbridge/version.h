// SPDX-License-Identifier: Apache-2.0
/// \file
/// Which build of the library this is, and which of its ways through the processor it takes.
///
/// Versions are those of Semantic Versioning. Before 1.0 a minor version may change the API and the ABI, a patch
/// version neither. Nothing here throws, and everything returned lives as long as the program.
#pragma once
#include <span>
#include <string_view>

namespace weighbridge {

std::string_view version() noexcept;  ///< "0.1.0"

/// The commit that the build was configured from, 40 hexadecimal digits; "unknown" where there was neither a git
/// checkout nor the file that `git archive` fills in. Says nothing of changes that were not committed.
std::string_view commit() noexcept;

std::string_view compiler() noexcept;  ///< "GCC 12.2.0", "clang 16.0.6"

/// One thing that has several ways through the processor, and the one taken on this processor. They differ in speed,
/// never in a bit of the result, with one exception that has to be asked for: f16 arithmetic of embeddings ("half").
struct CpuPath {
  std::string_view of;     ///< kernels, half, casts, crc, sha256, sha256-lanes, xxh3
  std::string_view taken;  ///< "avx512", "wide-clmul", ...; "none" where this processor has no such way
};
/// In the order above, each once.
std::span<const CpuPath> cpu_paths() noexcept;

}  // namespace weighbridge
