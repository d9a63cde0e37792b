// SPDX-License-Identifier: Apache-2.0
// The versions of the libraries that only the codecs use, as they are loaded.
#pragma once
#include <string_view>

namespace weighbridge::codecs {

std::string_view version_of_openssl() noexcept;  // empty in a build with portable checksums
std::string_view version_of_zstd() noexcept;
std::string_view version_of_zlib() noexcept;
std::string_view version_of_xxhash() noexcept;  // of the header

}  // namespace weighbridge::codecs
