// SPDX-License-Identifier: Apache-2.0
// Derives the header of an .slm to write from the model's "slm." attributes and from its tensors (vocabulary, width,
// feed-forward width, layers). A value that neither provides is a blocker that names it.
#pragma once
#include <cstdint>

#include "core/format.h"
#include "formats/slm/layout.h"

namespace weighbridge::slm {

struct Hyper {
  Header header;  // without the offsets of sections
  // M8, for a grouped-query source: rows of wk and wv, fewer than hidden_size. 0 if they have hidden_size rows.
  std::uint64_t kv_rows = 0;
};

// Adds the blockers, losses and changes of attributes to `out`. If it adds no blocker, the header passes
// check_fields().
Hyper derive_hyper(const Model&, const Options&, core::WriteLayout& out);

}  // namespace weighbridge::slm
