// SPDX-License-Identifier: Apache-2.0
// The names most similar to one that is absent, for error messages.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace weighbridge::core {

// At most `most` of `count` names, best first. A name that contains the wanted one, or is contained in it, always
// counts as similar; others by edit distance.
std::vector<std::uint32_t> nearest(std::string_view wanted, std::uint32_t count, std::size_t most,
                                   const std::function<std::string_view(std::uint32_t)>& name_of);
// Of these names, the end of a sentence about one that is absent: "; the nearest is "a", "b"", or empty.
std::string near_text(std::string_view wanted, std::uint32_t count,
                      const std::function<std::string_view(std::uint32_t)>& name_of);

}  // namespace weighbridge::core
