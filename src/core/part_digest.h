// SPDX-License-Identifier: Apache-2.0
// The text of a part's digest, as in both generations of zTensor: "sha256:" and 64 hexadecimal digits, or "crc32c:0x"
// and 8, in either case (readings Z2, Y2). content.h and convert compute digests.
#pragma once
#include <string>
#include <string_view>

#include "core/format.h"

namespace weighbridge::core {

struct DigestText {
  PartDigest kind = PartDigest::none;  // none: no text, an unknown algorithm, or malformed
  std::string_view digits{};           // of the text
  std::string_view problem{};          // for a known algorithm with malformed digits: what was expected
};
DigestText parse_digest(std::string_view text) noexcept;

// The kind with this name in Options::digest; none for any other.
PartDigest digest_of(std::string_view option) noexcept;
// A text of the same length as any digest of the kind, for layouts that count bytes; empty for none.
std::string placeholder(PartDigest);

}  // namespace weighbridge::core
