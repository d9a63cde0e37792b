// SPDX-License-Identifier: Apache-2.0
// Finds the tensors of a model that are codes, and the tensors that complete them. Looks only at names, dtypes and
// shapes, and the config.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "schemes/table.h"

namespace weighbridge::schemes {

// What the metadata of a model say about how its weights are quantized: config.json's quantization_config in its
// spellings, MLX's `quantization`.

// Of some weights. Empty, 0: not said.
struct Settings {
  std::uint64_t bits = 0, group = 0;
  std::vector<std::uint64_t> block{};  // rows and columns of a block of FP8
  std::string format{};                // GPTQ's checkpoint_format, or compressed-tensors'
  std::string version{};               // AWQ's layout, or compressed-tensors' release
  std::string mode{};                  // MLX
  std::string algorithm{};             // ModelOpt
  std::string packing{};               // AutoRound
  std::string strategy{}, sparsity{};  // compressed-tensors
  std::string odd{};                   // the key of a size that is not positive
  std::optional<bool> symmetric{};
};
// Takes what `from` says in place of what was said.
void take_settings(Settings& to, const Settings& from);

// Of the layers that a pattern names, or that are excluded.
struct LayerSettings {
  // `type`: a class of modules, which tensors do not show.
  enum class By : std::uint8_t { name, regex, glob, type } by = By::name;
  std::string pattern{};
  bool excluded = false;
  Settings settings{};
};

struct Config {
  bool stated = false;         // there is a config that quantizes something
  std::string method{};        // lower case; empty: it names none
  std::string dtype{};         // of the model, as the config writes it
  std::string other_format{};  // a checkpoint_format of GPTQ that quantize_config.json says, and config.json another
  Settings all{};  // of the layers without settings of their own; of compressed-tensors, those of the first group
  std::vector<LayerSettings> layers{};
};

// Whether the attribute of this key can hold such a config, or the config of a part that holds one.
bool may_hold_config(std::string_view key) noexcept;
// Adds what the value of that attribute, as text, says to what is known.
void read_config(std::string_view key, std::string_view text, Config&);

// A scheme that the model uses.
struct Named {
  std::string_view id;  // Scheme::id
  std::string name;     // for people: "FP8 with scales (compressed-tensors)"
};

// A tensor that belongs to a scheme.
struct Found {
  static constexpr std::uint32_t kNone = UINT32_MAX;
  std::uint32_t position = 0;        // in the listing
  std::uint32_t scheme = 0;          // in Recognized::schemes
  bool codes = false;                // false: it completes codes
  std::uint64_t parameters = 0;      // the numbers that the codes stand for; an estimate if a tensor says the shape
  std::uint32_t says_shape = kNone;  // the position of that tensor
};

struct Recognized {
  std::vector<Named> schemes;
  std::vector<Found> tensors;  // each once
};

// The tensors in the order of their names' bytes. Names and shapes that `at` returned stay valid.
struct Listing {
  std::uint32_t size = 0;
  std::function<Entry(std::uint32_t position)> at;
};
Recognized recognize(const Listing&, const Config&);

}  // namespace weighbridge::schemes
