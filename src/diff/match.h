// SPDX-License-Identifier: Apache-2.0
// Which tensor of one model is compared with which of the other: the selection, new names, names, contents, guesses.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/progress.h"
#include "core/work.h"
#include "weighbridge/diff.h"

namespace weighbridge::comparison {

// The tensors of both models that are compared, and the first model under its new names.
struct Selection {
  Model a, b;
  std::vector<std::uint32_t> chosen_a, chosen_b;  // ascending
};
// Throws Error{misuse} for a glob that no tensor of either model matches, for DiffOptions::naming, and as view() does
// for renamings.
Selection select(const Model& a, const Model& b, const DiffOptions&);

struct Partners {
  std::optional<std::uint32_t> a, b;
  TensorDiff::By by = TensorDiff::By::name;
  std::string tied_to{};  // only one is there: the tensor of the other model with its content
};
// [reads] In the order of a; those without a partner in a come last. Reads tensors only if Match::content or `permuted`
// asks for it, and only those that some other could equal.
std::vector<Partners> match(const Selection&, const DiffOptions&, const Context&);

}  // namespace weighbridge::comparison
