// SPDX-License-Identifier: Apache-2.0
// The YAML between the first two lines "---" of a model card, as far as cards need it: scalars, flat lists and block
// texts of keys at the left margin. Everything else is skipped, by name. Source: yaml.org/spec/1.2.2.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace weighbridge::wire {

struct FrontMatter {
  struct Entry {
    std::string key;
    std::vector<std::string> values;  // one of a scalar; empty: null
  };
  std::vector<Entry> entries;        // of a key that comes twice, the last
  std::vector<std::string> skipped;  // keys, or the beginnings of lines

  // The values of a key; null: it is absent.
  const std::vector<std::string>* find(std::string_view key) const noexcept;
};

// Of a text that does not begin so, or is not UTF-8: nothing. At most kMaxKeys keys are read.
FrontMatter read_front_matter(std::string_view text);
inline constexpr std::size_t kMaxKeys = 1024;

}  // namespace weighbridge::wire
