// SPDX-License-Identifier: Apache-2.0
// What the metadata of a model say about how its weights are quantized: config.json's quantization_config in its
// spellings, MLX's `quantization`.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace weighbridge::schemes {

struct Config {
  bool stated = false;                // there is a config that quantizes something
  std::string method;                 // lower case; empty: it names none
  std::uint64_t bits = 0, group = 0;  // of the weights; 0: not said
};

// Whether the attribute of this key can hold such a config, or the config of a part that holds one.
bool may_hold_config(std::string_view key) noexcept;
// Adds what the value of that attribute, as text, says to what is known.
void read_config(std::string_view key, std::string_view text, Config&);

}  // namespace weighbridge::schemes
