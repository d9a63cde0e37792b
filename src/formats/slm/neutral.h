// SPDX-License-Identifier: Apache-2.0
// Hyperparameters in the field's own words, as Hugging Face's configurations spell them: "num_hidden_layers", and
// behind "hf." where a folder was read. Owns which of them the header takes, which must have one value for an .slm to
// mean the same model, and which no run needs.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/format.h"
#include "weighbridge/model.h"

namespace weighbridge::slm {

struct Stated {
  std::string key;  // of the attribute
  const Value* value = nullptr;
};

// The attribute that tells a field of the header: "slm.<field>", else the neutral key, else that behind "hf.". One that
// is JSON's null tells nothing.
std::optional<Stated> find_stated(const Model&, std::string_view field);

// What rope_parameters and rope_scaling can hold that an .slm can say as well.
struct Rotation {
  bool plain = false;             // no scaling of any kind
  std::optional<double> theta{};  // rope_theta inside
};
Rotation parse_rotation(std::string_view json);

// The attributes that are not among `used`: blockers where they make it another model, changes where no run needs them,
// losses where nobody here knows.
void judge_others(const Model&, const std::vector<std::string>& used, core::WriteLayout& out);

}  // namespace weighbridge::slm
