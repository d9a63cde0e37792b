// SPDX-License-Identifier: Apache-2.0
#include "core/format.h"

#include <algorithm>

namespace weighbridge::core {

bool Glance::lists(std::string_view file) const { return std::ranges::binary_search(listing, file); }

std::vector<const WriteLayout*> files_of(const WriteLayout& layout) {
  if (!layout.folder) return {&layout};
  std::vector<const WriteLayout*> out;
  for (const OutFile& file : layout.folder->payloads) out.push_back(&file.layout);
  return out;
}

}  // namespace weighbridge::core
