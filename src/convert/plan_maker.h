// SPDX-License-Identifier: Apache-2.0
// The one friend of Plan: how convert fills it, and gets back what it put in.
#pragma once
#include <memory>

#include "convert/rep.h"
#include "weighbridge/convert.h"

namespace weighbridge {

class PlanMaker {
 public:
  static Plan make(std::shared_ptr<convert::PlanRep>, const Model& from, const Options&);
  static const convert::PlanRep* rep(const Plan& plan) noexcept { return plan.rep_.get(); }
};

}  // namespace weighbridge
