// SPDX-License-Identifier: Apache-2.0
// The B-trees of both versions. Each visits its entries in order, and every node once. Specification III.A.
#pragma once
#include <cstdint>
#include <functional>

#include "formats/hdf5/file.h"

namespace weighbridge::hdf5 {

// Version 1, whose keys and children alternate. Calls visit(key, child) for each child of the leaves; `key` is the one
// before it. Throws Broken.
void walk_tree(File&, std::uint64_t address, std::uint8_t type, std::uint64_t key_size, const Rule&,
               const std::function<void(Cursor key, std::uint64_t child)>& visit);

// Version 2. Calls visit(record) for each record. Throws Broken.
void walk_tree2(File&, std::uint64_t address, Record type, const Rule&,
                const std::function<void(Cursor record)>& visit);

}  // namespace weighbridge::hdf5
