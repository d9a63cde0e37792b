// SPDX-License-Identifier: Apache-2.0
// What the writers of all generations of zTensor plan in the same way: parts, the tokenizer, and the end of the file.
#pragma once
#include <memory>
#include <string_view>
#include <vector>

#include "core/writing/layout.h"
#include "core/writing/plan_items.h"

namespace weighbridge::ztensor {

class Planning : public core::PlacingPlanning {
 protected:
  using PlacingPlanning::PlacingPlanning;
  ~Planning() = default;
  // Blocks a part that the file cannot hold. `holds`: it has the part's dtype; `verbatim`: the stored bytes are copied.
  void check_part(const Tensor&, const Part&, bool holds, bool verbatim, std::string_view no_dtype);
  // Lists the changes of encoding and digest, and the losses of a part that is stored anew. `own`: where it then is.
  void name_changes(const core::Payload&, bool keeps_digest, std::string_view own);
  // Adds the attribute that holds the model's tokenizer, whose key is weighbridge's own.
  void add_tokenizer(std::vector<Value::Entry>&, const std::shared_ptr<const Tokenizer>&);
  // The tail that follows the payloads, and the size of the file; if sizes of payloads are only bounds, the largest
  // that it can become. Returns the bytes of the tail.
  template <class Index> std::uint64_t add_tail(const std::shared_ptr<Index>& index) {
    const core::PlannedPayloads planned = core::plan_payloads(out_, out_.prefix_length + out_.head.size());
    const std::uint64_t size = index->tail(planned.stored).size();
    out_.size = planned.end + size;
    out_.tail = [index](std::span<const core::Stored> made) { return index->tail(made); };
    return size;
  }
};

}  // namespace weighbridge::ztensor
