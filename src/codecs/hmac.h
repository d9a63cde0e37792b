// SPDX-License-Identifier: Apache-2.0
// HMAC-SHA-256 (RFC 2104): shows that whoever wrote some bytes had a secret key.
#pragma once
#include <cstddef>
#include <span>

#include "codecs/checksum.h"

namespace weighbridge::codecs {

Digest256 hmac_sha256(std::span<const std::byte> key, std::span<const std::byte> data);
// Compares in a time that does not depend on where the two differ.
bool same_mac(std::span<const std::byte> a, std::span<const std::byte> b) noexcept;

}  // namespace weighbridge::codecs
