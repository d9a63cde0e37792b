// SPDX-License-Identifier: Apache-2.0
// The configuration of a BERT encoder, read from shapes and metadata (order: the options, the metadata, the default).
// Owns the names of the tensors and this folder's errors; leaves the values of tensors to weights.h.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "core/reading/encoder_settings.h"
#include "runtime/embed/family.h"
#include "runtime/kernels/kernels.h"
#include "weighbridge/embed.h"
#include "weighbridge/model.h"

namespace weighbridge::bert {

struct Config {
  std::string prefix;  // prefix of every tensor name: "" or "bert."
  std::uint64_t hidden = 0, vocabulary = 0, positions = 0, layers = 0, heads = 0, intermediate = 0, max_length = 0;
  float epsilon = 1e-12F;
  kernels::Activation activation = kernels::Activation::gelu;
  std::vector<Pooling> pooling{Pooling::mean};
  bool normalize = true, lower_case = true;
  bool include_prompt = true;                 // false: the tokens of the prompt are not pooled
  std::optional<std::uint64_t> first_layer;   // of a WeightedLayerPooling
  std::string layers_path;                    // its folder
  std::vector<core::SentenceModule> modules;  // after the pooling
  std::uint64_t kept = 0;                     // numbers of a vector
};

using embed::fail;

Config read_config(const Model&, const EmbedOptions&);

// The tensor with this name (without the prefix) and shape. Throws what fail() throws, and Error{unsupported} if its
// elements cannot be decoded.
Tensor require(const Model&, const Config&, const std::string& name, std::initializer_list<std::uint64_t> shape);

}  // namespace weighbridge::bert
