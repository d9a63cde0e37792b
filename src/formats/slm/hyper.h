// SPDX-License-Identifier: Apache-2.0
// Derives the header of an .slm to write from the model's "slm." attributes and from its tensors (vocabulary, width,
// feed-forward width, layers). A value that neither provides becomes a blocker, by name.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/reading/format.h"
#include "core/writing/layout.h"
#include "formats/slm/layout.h"
#include "weighbridge/model.h"

namespace weighbridge::slm_format {

struct Hyper {
  Header header = kNewHeader;  // without the offsets of sections
  // M8, for a grouped-query source: rows of wk and wv, fewer than hidden_size. 0 if they have hidden_size rows.
  std::uint64_t kv_rows = 0;
};

// Adds the blockers, losses and changes of attributes to `out`. If it adds no blocker, the header passes
// check_fields().
Hyper derive_hyper(const Model&, const Options&, core::WriteLayout& out);

// Hyperparameters under the keys of Hugging Face's configurations: "num_hidden_layers", with the prefix "hf." if they
// come from a folder. Decides which of them the header takes, which must have a certain value for an .slm to be the
// same model, and which do not affect a run.

struct Stated {
  std::string key;  // the attribute's
  const Value* value = nullptr;
};

// The attribute for a field of the header: "slm.<field>", else the neutral key, else the neutral key with "hf.". JSON's
// null counts as absent.
std::optional<Stated> find_stated(const Model&, std::string_view field);

// The parts of rope_parameters and rope_scaling that an .slm can express.
struct Rotation {
  bool plain = false;             // no scaling of any kind
  std::optional<double> theta{};  // rope_theta inside
};
Rotation parse_rotation(std::string_view json);

// Records each attribute that is not in `used`: as a blocker if it makes a different model, as a change if no run needs
// it, and as a loss if its meaning is unknown.
void check_others(const Model&, const std::vector<std::string>& used, core::WriteLayout& out);

}  // namespace weighbridge::slm_format
