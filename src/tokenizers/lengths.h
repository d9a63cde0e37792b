// SPDX-License-Identifier: Apache-2.0
// How many ids of a text a model with places for them reads where the caller does not say (weighbridge/embed.h).
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>

namespace weighbridge::tokenizers {

// `said`: the metadata's "max_seq_length"; `places`: rows of the position embeddings. Room for [CLS] and [SEP] at
// least.
inline std::uint64_t usual_length(std::optional<std::uint64_t> said, std::uint64_t places) {
  constexpr std::uint64_t kUsual = 256;
  return std::max<std::uint64_t>(2, std::min(said.value_or(kUsual), places));
}

}  // namespace weighbridge::tokenizers
