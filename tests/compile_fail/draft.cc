// SPDX-License-Identifier: Apache-2.0
// The representation of a model is private to core: a reader can only use the draft's functions.
#include "core/model/draft.h"

namespace core = weighbridge::core;
using weighbridge::DType;

void read(core::Draft& draft) {
  draft.set_format("some");
  const std::uint64_t shape[] = {2};
  const auto tensor = draft.add_tensor("w", weighbridge::Layout::dense, DType::u8, shape);
  draft.tensor(tensor).id(7).type_name("t");
  const auto part = draft.add_part("data", DType::u8, shape, weighbridge::Encoding::raw, {0, 0, 2}, 2);
  draft.part(part).order(weighbridge::Order::big).digest("sha256:00");
#ifdef PLANTED_STATE
  (void)draft.state_;
#endif
#ifdef PLANTED_TENSOR_SIDE
  (void)draft.tensor(tensor).side();
#endif
#ifdef PLANTED_PART_SIDE
  (void)draft.part(part).side();
#endif
}
