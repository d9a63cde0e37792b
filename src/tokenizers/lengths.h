// SPDX-License-Identifier: Apache-2.0
// The default limit on the ids of a text, for a model with position embeddings (weighbridge/embed.h).
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>

namespace weighbridge::tokenizers {

// `said`: the metadata's "max_seq_length"; `places`: rows of the position embeddings. The result always has room for
// [CLS] and [SEP].
inline std::uint64_t usual_length(std::optional<std::uint64_t> said, std::uint64_t places) {
  constexpr std::uint64_t kUsual = 256;
  return std::max<std::uint64_t>(2, std::min(said.value_or(kUsual), places));
}

}  // namespace weighbridge::tokenizers
