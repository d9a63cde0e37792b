// SPDX-License-Identifier: Apache-2.0
#include "codecs/codec.h"

#include <xxhash.h>
#include <zlib.h>
#include <zstd.h>
#ifndef WEIGHBRIDGE_PORTABLE_CHECKSUMS
#include <openssl/crypto.h>
#endif

#define WB_TEXT_OF(x) #x
#define WB_TEXT(x) WB_TEXT_OF(x)

namespace weighbridge::codecs {

#ifdef WEIGHBRIDGE_PORTABLE_CHECKSUMS
std::string_view version_of_openssl() noexcept { return {}; }
#else
std::string_view version_of_openssl() noexcept { return OpenSSL_version(OPENSSL_VERSION_STRING); }
#endif
std::string_view version_of_zstd() noexcept { return ZSTD_versionString(); }
std::string_view version_of_zlib() noexcept { return zlibVersion(); }
std::string_view version_of_xxhash() noexcept {
  return WB_TEXT(XXH_VERSION_MAJOR) "." WB_TEXT(XXH_VERSION_MINOR) "." WB_TEXT(XXH_VERSION_RELEASE);
}

}  // namespace weighbridge::codecs
