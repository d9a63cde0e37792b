// SPDX-License-Identifier: Apache-2.0
// The models that JavaScript holds by number.
#pragma once
#include "answers.h"
#include "weighbridge/model.h"

namespace weighbridge::web {

Table<Model>& models();
Tensor tensor_of(int model, int tensor);

}  // namespace weighbridge::web
