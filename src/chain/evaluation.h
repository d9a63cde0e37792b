// SPDX-License-Identifier: Apache-2.0
// NAME.slm.cases, to be filled in, and NAME.slm.evaluation, what the native runner made of them.
#pragma once
#include "chain/slm_manifest.h"

namespace weighbridge::chain {

const Schema& cases_schema();
const Schema& evaluation_schema();

Record make_cases_template(const Provenance&);
// The cases at `path`, for this artifact and manifest, filled in. Error{malformed} chain/stale, chain/placeholder,
// chain/case.
ReadRecord read_cases(const Provenance&, const std::string& path);
// [reads] `folder`: where the held-out text lies, beside the cases.
Record make_evaluation(const Provenance&, const ReadRecord& cases, const std::string& folder, const Context&);
// The evaluation, which says what running the cases again gives. A case that only one of the two has is
// chain/missing-case or chain/stray-case.
ReadRecord read_evaluation(const Provenance&, const ReadRecord& cases, const Evidence&, const Context&);

}  // namespace weighbridge::chain
