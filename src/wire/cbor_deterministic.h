// SPDX-License-Identifier: Apache-2.0
// Deterministic CBOR (RFC 8949, section 4.2.1) without tags: the form that zTensor 2 requires of its manifest. Checks
// it and makes it. Reading it is the work of CborReader.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weighbridge::wire {

struct DeterministicFault {
  enum class Kind : std::uint8_t {
    malformed,          // not one well-formed item of definite lengths, or one with a tag, undefined or another simple
    not_deterministic,  // a number that is wider than needed, or keys of a map that are not sorted
    duplicate_key,
    too_deep
  };
  Kind kind;
  std::size_t offset;         // in the bytes
  std::string_view sentence;  // lower case, no full stop; static
};

// The first fault of the bytes, which must be one item; nullopt if they are deterministic. `max_depth`: maximum number
// of open arrays and maps. Time is linear; memory is that of the depth.
std::optional<DeterministicFault> check_deterministic(std::string_view bytes, std::uint32_t max_depth);

// The item in this form: shortest numbers, one NaN, sorted keys. nullopt if it has a tag, undefined, another simple
// value, a key twice, or too many levels.
std::optional<std::string> make_deterministic(std::string_view item, std::uint32_t max_depth);

}  // namespace weighbridge::wire
