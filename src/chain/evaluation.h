// SPDX-License-Identifier: Apache-2.0
// NAME.slm.cases, which people fill in, and NAME.slm.evaluation, the results of the native runner.
#pragma once
#include "chain/slm_manifest.h"

namespace weighbridge::chain::internal {

const Schema& cases_schema();
const Schema& evaluation_schema();

Record make_cases_template(const Provenance&);
// The filled-in cases at `path`, for this artifact and manifest. Throws Error{malformed} chain/stale,
// chain/placeholder, chain/case.
ReadRecord read_cases(const Provenance&, const std::string& path);
// [reads] `folder` holds the cases and the held-out text.
Record make_evaluation(const Provenance&, const ReadRecord& cases, const std::string& folder, const Context&);
// The evaluation; running the cases again must give the same. Throws chain/missing-case or chain/stray-case if only one
// of the two has a case.
ReadRecord read_evaluation(const Provenance&, const ReadRecord& cases, const Evidence&, const Context&);

}  // namespace weighbridge::chain::internal
