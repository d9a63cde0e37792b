// SPDX-License-Identifier: Apache-2.0
// Turns the result of a step into the Outcome for its caller. Nothing else makes an Outcome.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "chain/record.h"
#include "weighbridge/chain.h"

namespace weighbridge::chain::internal {

// The path of a record, and the files that the step read to make it.
struct Output {
  std::string path;
  bool replace = false;
  std::vector<std::string> inputs{};
};
// The output for the evidence `written`. All other evidence of the artifact counts as input, read or not.
Output output_of(const Evidence&, std::string Evidence::*written, bool replace);

// Throws misuse/output-is-input if the output is one of the inputs, under any name.
void require_other_file(const Output&);
// Also throws misuse/output-kind if `replace` would replace anything but a record of this kind. Steps that write more
// than their record call it before they begin; others when they publish.
void check_output(const Schema&, const Output&);
void publish_record(const Schema&, const Output&, std::string_view bytes);

// Publishes the record and reports on it. `step` is the name of the action.
Outcome conclude(std::string_view step, const Record&, Report report, const Output&);
// Reports on a record that exists already.
Outcome report_on(std::string_view step, const Record&, std::string sha256, Report report, const std::string& path);
// Reports an error with this rule, which makes the step refuse.
void object_to(Report&, RuleName rule, std::string message, std::string_view tensor = {}, std::string expected = {},
               std::string found = {});

// Throws a usage error unless it is finite and above 0.
void require_bound(double safety_bound);

}  // namespace weighbridge::chain::internal
