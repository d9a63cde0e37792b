// SPDX-License-Identifier: Apache-2.0
// What a config says of one layer: the settings of the whole, then those of every pattern that names the layer.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/model/pattern.h"
#include "schemes/recognize.h"

namespace weighbridge::recipes {

class LayersOfConfig {
 public:
  explicit LayersOfConfig(schemes::Config);
  const schemes::Config& config() const noexcept { return config_; }

  struct Said {
    schemes::Settings settings{};
    bool excluded = false;
    bool known = true;  // false: there are too many patterns, or one that cannot be read, to say what it is
  };
  // Names of modules, "model.layers.0.mlp.up_proj". Settings of a class of modules come last, since only the config's
  // order says which of them apply.
  Said of(std::string_view layer);
  // The widths that the config gives to some weights.
  const std::vector<std::uint64_t>& widths() const noexcept { return widths_; }

 private:
  schemes::Config config_;
  std::unordered_map<std::string, std::vector<std::size_t>> names_;  // without "model." and the like
  std::vector<std::pair<core::Pattern, std::size_t>> patterns_;
  std::vector<std::size_t> globs_, types_;
  std::vector<std::uint64_t> widths_;
  bool known_ = true;
  std::uint64_t left_;  // characters that patterns may still be compared with
};

}  // namespace weighbridge::recipes
