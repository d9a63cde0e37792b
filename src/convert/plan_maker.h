// SPDX-License-Identifier: Apache-2.0
// The only friend of Plan: lets convert fill a plan and read it back.
#pragma once
#include <memory>

#include "convert/rep.h"
#include "weighbridge/convert.h"

namespace weighbridge::convert {

// A model whose content is checked before it is copied must be copied as it was checked: it reads through sources that
// remember what they read.
Model as_checked(const Model&);

class PlanMaker {
 public:
  static Plan make(std::shared_ptr<PlanRep>, const Model& from, const Options&);
  static const PlanRep* rep(const Plan& plan) noexcept { return plan.rep_.get(); }
};

}  // namespace weighbridge::convert
