// SPDX-License-Identifier: Apache-2.0
// Reviews a candidate, and compares an existing review with a new one.
#pragma once
#include <string>

#include "chain/candidate.h"
#include "chain/record.h"

namespace weighbridge::chain::internal {

struct Review {
  Record record;
  Report report;
};
// [reads] Reads every value once.
Review review(const Candidate&, double bound, const Context&);

// The review record at `path`. It must equal a new review of the candidate and accept it. Throws what compare() throws,
// and chain/refused.
ReadRecord read_review(const std::string& path, const Candidate&, const Context&);

}  // namespace weighbridge::chain::internal
