// SPDX-License-Identifier: Apache-2.0
// Which build this is. Owns the words for what was chosen; the choosing stands beside each kernel. The build defines
// WEIGHBRIDGE_VERSION and WEIGHBRIDGE_COMMIT for this file alone, so that a new commit compiles nothing else anew.
#include "weighbridge/version.h"

#include <fmt/core.h>

#include <array>
#include <string>
#include <vector>

#include "base/os.h"
#include "codecs/checksum.h"
#include "codecs/codec.h"
#include "codecs/kernels.h"
#include "codecs/sha256_portable.h"
#include "codecs/xxh3_kernel.h"
#include "runtime/kernels/half.h"
#include "runtime/kernels/kernels.h"

#define WB_TEXT_OF(x) #x
#define WB_TEXT(x) WB_TEXT_OF(x)

namespace weighbridge {
namespace {

std::string_view crc_path() noexcept {
  if (codecs::has(codecs::CrcPath::wide_clmul)) return "wide-clmul";
  return codecs::has(codecs::CrcPath::clmul) ? "clmul" : "table";
}

// OpenSSL chooses among its own.
#ifdef WEIGHBRIDGE_PORTABLE_CHECKSUMS
std::string_view sha256_path() noexcept { return codecs::sha256_hardware() != nullptr ? "instructions" : "portable"; }
#else
std::string_view sha256_path() noexcept { return "openssl"; }
#endif

#if defined(__wasm__)
constexpr std::string_view kShaVectors = "simd128";
#else
constexpr std::string_view kShaVectors = "avx512";
#endif

}  // namespace

std::string_view version() noexcept { return WEIGHBRIDGE_VERSION; }
std::string_view commit() noexcept { return WEIGHBRIDGE_COMMIT; }

std::string_view compiler() noexcept {
#if defined(__clang__)
  return "clang " WB_TEXT(__clang_major__) "." WB_TEXT(__clang_minor__) "." WB_TEXT(__clang_patchlevel__);
#elif defined(__GNUC__)
  return "GCC " WB_TEXT(__GNUC__) "." WB_TEXT(__GNUC_MINOR__) "." WB_TEXT(__GNUC_PATCHLEVEL__);
#else
  return "unknown";
#endif
}

std::span<const Library> libraries() noexcept {
  static const std::string fmt = std::to_string(FMT_VERSION / 10000) + "." + std::to_string(FMT_VERSION / 100 % 100) +
                                 "." + std::to_string(FMT_VERSION % 100);
  static const std::vector<Library> all = [] {
    std::vector<Library> out;
    if (const std::string_view openssl = codecs::version_of_openssl(); !openssl.empty())
      out.push_back({"OpenSSL", openssl});
    out.push_back({"zstd", codecs::version_of_zstd()});
    out.push_back({"zlib", codecs::version_of_zlib()});
    out.push_back({"xxHash", codecs::version_of_xxhash()});
    out.push_back({"fmt", fmt});
    out.push_back({"fast_float", WEIGHBRIDGE_FAST_FLOAT_VERSION});
#ifdef _GLIBCXX_RELEASE
    out.push_back({"libstdc++", WB_TEXT(_GLIBCXX_RELEASE)});
#endif
    if (const std::string_view glibc = base::glibc_version(); !glibc.empty()) out.push_back({"glibc", glibc});
    return out;
  }();
  return all;
}

std::span<const CpuPath> cpu_paths() noexcept {
  static const std::array<CpuPath, 7> paths{{
      {"kernels", kernels::kernels().name},
      {"half", kernels::half_kernels() != nullptr ? "avx512fp16" : "none"},
      {"casts", codecs::kernels().name},
      {"crc", crc_path()},
      {"sha256", sha256_path()},
      {"sha256-lanes", codecs::has(codecs::ShaPath::vectors) ? kShaVectors : "none"},
      {"xxh3", codecs::xxh3_kernel().name},
  }};
  return paths;
}

}  // namespace weighbridge
