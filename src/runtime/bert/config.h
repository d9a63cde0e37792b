// SPDX-License-Identifier: Apache-2.0
// What a BERT encoder is made of, read from a model's shapes and metadata (reading order: the options, the metadata,
// the default). Owns the names of the tensors and the errors of this folder; leaves their values to weights.h.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "runtime/kernels/kernels.h"
#include "weighbridge/embed.h"
#include "weighbridge/model.h"

namespace weighbridge::bert {

struct Config {
  std::string prefix;  // before every tensor's name: "" or "bert."
  std::uint64_t hidden = 0, vocabulary = 0, positions = 0, layers = 0, heads = 0, intermediate = 0, max_length = 0;
  float epsilon = 1e-12F;
  kernels::Activation activation = kernels::Activation::gelu;
  Pooling pooling = Pooling::mean;
  bool normalize = true, lower_case = true;
};

// Throws Error{malformed} of rule "embed/<rule>" about a tensor, or about no tensor where `tensor` is empty.
[[noreturn]] void fail(std::string_view rule, std::string_view tensor, std::string message);

Config read_config(const Model&, const EmbedOptions&);

// The tensor of that name (without the prefix), which has that shape. Throws what fail() throws, Error{unsupported}
// where its elements cannot be had.
Tensor require(const Model&, const Config&, const std::string& name, std::initializer_list<std::uint64_t> shape);

}  // namespace weighbridge::bert
