// SPDX-License-Identifier: Apache-2.0
// What an adapter changes in a model: which tensor each pair of factors belongs to, by the naming of the program that
// wrote the adapter, and how the factors are scaled. Owns Change. lora.cc computes the sums.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "formats/slm_adapter/layout.h"
#include "weighbridge/context.h"
#include "weighbridge/lora.h"
#include "weighbridge/model.h"

namespace weighbridge::convert {

// A factor of a change. It has two or more dimensions; all but the first count as one.
struct Factor {
  Tensor tensor{};
  std::string role{};    // the part that is the factor; empty if the whole tensor is
  bool by_rank = false;  // stored with the inner rank as the first dimension
};

// One change of a tensor.
struct Change {
  std::uint32_t target = 0;  // in the base
  Factor left{}, right{};    // [rows, rank], [rank, columns]
  std::uint64_t rows = 0, columns = 0;
  std::uint64_t first_row = 0;  // of the target, that changes
  std::uint64_t rank = 0;       // 0: left.tensor replaces the target
  double scale = 1;
  bool rounds = false;  // rounds the change, and then the sum, to f32: reading M13
};

// The changes of one adapter, in the order of its tensors. Reads the scales. Throws Error{misuse} "misuse/lora-...".
std::vector<Change> changes_of(const Model& base, const Lora&, const Context&);

// The identity of its base model that an adapter package stores (reading M13).

// [reads] The identity of the .slm file that `base` was opened from: header, directory and tokenizer section. Throws a
// usage error if the file is no .slm.
slm_adapter::Identity identity_of(const Model& base);
// Throws Error{misuse} unless the package was made for the model with this identity.
void require_identity(const slm_adapter::Identity& base, const Model& package);

}  // namespace weighbridge::convert
