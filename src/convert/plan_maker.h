// SPDX-License-Identifier: Apache-2.0
// The only friend of Plan: lets convert fill a plan and read it back.
#pragma once
#include <memory>

#include "convert/rep.h"
#include "weighbridge/convert.h"

namespace weighbridge::convert {

class PlanMaker {
 public:
  static Plan make(std::shared_ptr<PlanRep>, const Model& from, const Options&);
  static const PlanRep* rep(const Plan& plan) noexcept { return plan.rep_.get(); }
};

}  // namespace weighbridge::convert
