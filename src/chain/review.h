// SPDX-License-Identifier: Apache-2.0
// A candidate judged, and a review that stands compared with one made now.
#pragma once
#include <string>

#include "chain/candidate.h"
#include "chain/record.h"

namespace weighbridge::chain {

struct Review {
  Record record;
  Report report;
};
// [reads] every value once.
Review review(const Candidate&, double bound, const Context&);

// The review record at `path`, which must be what reviewing the candidate gives now, and accept it. Error: compare()'s,
// chain/refused.
ReadRecord read_review(const std::string& path, const Candidate&, const Context&);

}  // namespace weighbridge::chain
