// SPDX-License-Identifier: Apache-2.0
// What the header of an .slm to be written says: from the model's "slm." attributes, and from its tensors where they
// tell (vocabulary, width, feed-forward width, layers). What neither tells is a blocker, by name.
#pragma once
#include <cstdint>

#include "core/format.h"
#include "formats/slm/layout.h"

namespace weighbridge::slm {

struct Hyper {
  Header header;  // sections aside
  // M8, a grouped-query source: rows of wk and wv in the source, fewer than hidden_size; 0: they have them all.
  std::uint64_t kv_rows = 0;
};

// Adds blockers, losses and changes of the attributes to `out`. Without new blockers the header keeps every rule of
// check_fields().
Hyper derive_hyper(const Model&, const Options&, core::WriteLayout& out);

}  // namespace weighbridge::slm
