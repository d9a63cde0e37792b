// SPDX-License-Identifier: Apache-2.0
// The members of a group: of old ones from a symbol table, of new ones from link messages in its header or in a
// fractal heap. Specification III.B, III.C, IV.A.2.c, g and r.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/hdf5/object_header.h"

namespace weighbridge::hdf5 {

struct Link {
  std::string name{};
  enum class Kind : std::uint8_t { hard, soft, external, other } kind = Kind::hard;
  std::uint64_t address = 0;             // hard: of the object header
  std::string target{};                  // soft and external: what it refers to, for messages
  std::optional<std::uint64_t> order{};  // of creation, if the group tracks it
  std::uint64_t at = 0;                  // in the source
};

// Whether an object with this header is a group.
bool is_group(const ObjectHeader&) noexcept;
// In the order of creation if all have one, otherwise sorted by the bytes of their names. Throws Broken.
std::vector<Link> read_links(File&, const ObjectHeader&);

}  // namespace weighbridge::hdf5
