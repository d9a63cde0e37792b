// SPDX-License-Identifier: Apache-2.0
/// \file
/// The build of the library, the libraries inside it, and the CPU paths that it uses.
///
/// Versions are those of Semantic Versioning. Before 1.0, a minor version may change the API and the ABI; a patch
/// version changes neither. Nothing here throws, and everything returned lives as long as the program.
#pragma once
#include <span>
#include <string_view>

namespace weighbridge {

std::string_view version() noexcept;  ///< "0.2.0"

/// The commit that the build was configured from, 40 hexadecimal digits; "unknown" without a git checkout or the file
/// that `git archive` fills in. Does not reflect uncommitted changes.
std::string_view commit() noexcept;

std::string_view compiler() noexcept;  ///< "GCC 12.2.0", "clang 16.0.6"

/// Another project's library that this build contains or calls.
struct Library {
  std::string_view name;     ///< "OpenSSL", "zstd", "zlib", "fmt", ...
  std::string_view version;  ///< "3.0.19": of the library that is loaded, or of the headers where it is only headers
};
/// Each once, in a fixed order.
std::span<const Library> libraries() noexcept;

/// A component with several CPU paths, and the one used on this processor. The paths differ in speed, not in results,
/// except for the optional f16 arithmetic of embeddings ("half").
struct CpuPath {
  std::string_view of;     ///< kernels, half, casts, crc, sha256, sha256-lanes, xxh3
  std::string_view taken;  ///< "avx512", "wide-clmul", ...; "none" if this processor has no such path
};
/// In the order above, each once.
std::span<const CpuPath> cpu_paths() noexcept;

}  // namespace weighbridge
