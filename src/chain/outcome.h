// SPDX-License-Identifier: Apache-2.0
// From what a step found to what its caller gets: the one way an Outcome is made.
#pragma once
#include <string>
#include <string_view>

#include "chain/record.h"
#include "weighbridge/chain.h"

namespace weighbridge::chain {

// Publishes the record at `path` (empty: nowhere) and tells of it. `step` is the verb.
Outcome conclude(std::string_view step, const Record&, Report report, const std::string& path, bool replace);
// For a record that stands already.
Outcome report_on(std::string_view step, const Record&, std::string sha256, Report report, const std::string& path);
// An error of rule "chain/<rule>": what makes a step say no.
void object_to(Report&, std::string_view rule, std::string message, std::string_view tensor = {},
               std::string expected = {}, std::string found = {});

// Misuse unless it is finite and above 0.
void require_bound(double safety_bound);

}  // namespace weighbridge::chain
