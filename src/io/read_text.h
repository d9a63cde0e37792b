// SPDX-License-Identifier: Apache-2.0
// Bytes of a source as a text in memory. The caller bounds how many.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <string>

#include "base/checked.h"
#include "weighbridge/source.h"

namespace weighbridge::io {

// [reads]
inline std::string text_of(const Source& source, std::uint64_t offset, std::uint64_t length) {
  std::string out(base::to_size(length), '\0');
  if (length > 0) source.read_at(offset, std::as_writable_bytes(std::span(out)));
  return out;
}
// [reads] The whole source.
inline std::string text_of(const Source& source) { return text_of(source, 0, source.size()); }
// [reads] At most this many bytes of its beginning.
inline std::string head_of(const Source& source, std::uint64_t most) {
  return text_of(source, 0, std::min(most, source.size()));
}

}  // namespace weighbridge::io
