// SPDX-License-Identifier: Apache-2.0
// The text of a part's digest, as both generations of zTensor spell it: "sha256:" and 64 hexadecimal digits, or
// "crc32c:0x" and 8, the digits in either case (readings Z2, Y2). Computing one is left to content.h and convert.
#pragma once
#include <string>
#include <string_view>

#include "core/format.h"

namespace weighbridge::core {

struct DigestText {
  PartDigest kind = PartDigest::none;  // none: no text, an algorithm that this build does not know, or malformed
  std::string_view digits{};           // of the text
  std::string_view problem{};          // a known algorithm with malformed digits: what is expected instead
};
DigestText parse_digest(std::string_view text) noexcept;

// By the name that Options::digest has for it; none for any other.
PartDigest digest_of(std::string_view option) noexcept;
// A text as long as any digest of the kind, for a layout that counts bytes; empty for none.
std::string placeholder(PartDigest);

}  // namespace weighbridge::core
