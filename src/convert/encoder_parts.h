// SPDX-License-Identifier: Apache-2.0
// A sentence encoder as the runtime and other containers take it: with the tensors of the modules that a folder of
// sentence-transformers keeps in files of their own, and with today's names of norms. Views: tensors stay where they
// are.
#pragma once
#include <string>
#include <vector>

#include "weighbridge/context.h"
#include "weighbridge/convert.h"
#include "weighbridge/model.h"

namespace weighbridge::convert {

struct WithModules {
  Model model;
  std::vector<std::string> files{};  // of the folder whose tensors the model has now
  std::vector<Item> changes{};
};
// The tensors of the modules under the names of their folders, "2_Dense.linear.weight". The model itself if its
// attribute sentence_modules has none, or if it has their tensors. A file that is missing is left to who needs its
// tensors. [reads] Throws what open() throws.
WithModules with_modules(const Model&, const Context&);

struct Renamed {
  Model model;
  std::vector<Item> changes{};
};
// LayerNorm.gamma and LayerNorm.beta, the names that TensorFlow's checkpoints had, become LayerNorm.weight and
// LayerNorm.bias, as transformers reads them. Other tensors called gamma keep their names. The model itself if it is no
// BERT, or if a tensor has the new name already.
Renamed with_norm_names(const Model&);

// Settings of the folder that a program which has only the tensors and the usual metadata would not follow, as blockers
// of a conversion to such a container.
std::vector<Item> refused_settings(const Model&);

}  // namespace weighbridge::convert
