// SPDX-License-Identifier: Apache-2.0
// The names nearest to one that is absent, for the sentence that a person reads.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace weighbridge::core {

// Of `count` names, at most `most`, best first. A name that contains the wanted one, or is contained in it, is near
// whatever its length; others by edit distance.
std::vector<std::uint32_t> nearest(std::string_view wanted, std::uint32_t count, std::size_t most,
                                   const std::function<std::string_view(std::uint32_t)>& name_of);

}  // namespace weighbridge::core
