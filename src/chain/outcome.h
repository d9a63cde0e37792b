// SPDX-License-Identifier: Apache-2.0
// From what a step found to what its caller gets: the one way an Outcome is made.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "chain/record.h"
#include "weighbridge/chain.h"

namespace weighbridge::chain {

// Where a record goes, and the files that the step read on its way there.
struct Output {
  std::string path;
  bool replace = false;
  std::vector<std::string> inputs{};
};
// Where the evidence `written` goes: all other evidence of the artifact is input, read or not.
Output output_of(const Evidence&, std::string Evidence::*written, bool replace);

// Misuse/output-is-input where the output is one of the inputs, under whatever name.
void require_other_file(const Output&);
// And misuse/output-kind where `replace` would replace what is no record of this kind. Steps that write more than their
// record ask before they begin; all others when they publish.
void check_output(const Schema&, const Output&);
void publish_record(const Schema&, const Output&, std::string_view bytes);

// Publishes the record and tells of it. `step` is the verb.
Outcome conclude(std::string_view step, const Record&, Report report, const Output&);
// For a record that stands already.
Outcome report_on(std::string_view step, const Record&, std::string sha256, Report report, const std::string& path);
// An error of the rule: what makes a step say no.
void object_to(Report&, RuleName rule, std::string message, std::string_view tensor = {}, std::string expected = {},
               std::string found = {});

// Misuse unless it is finite and above 0.
void require_bound(double safety_bound);

}  // namespace weighbridge::chain
