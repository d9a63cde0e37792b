// SPDX-License-Identifier: Apache-2.0
// NAME.slm.admission: structure, provenance, smoke and evaluation of one artifact in one record.
#pragma once
#include "chain/gate.h"

namespace weighbridge::chain::internal {

const Schema& admission_schema();

struct Admitted {
  QualityEvidence evidence;
  ReadRecord record;
};
// [reads] The record with all its evidence, recomputed and found equal.
Admitted read_admission(const Evidence&, const Context&);

}  // namespace weighbridge::chain::internal
