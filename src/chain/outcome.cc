// SPDX-License-Identifier: Apache-2.0
// Makes Outcomes and publishes records.
#include "chain/outcome.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "base/fail.h"
#include "io/fd.h"
#include "io/read.h"
#include "weighbridge/json.h"
#include "weighbridge/source.h"
#include "wire/json_writer.h"

namespace weighbridge::chain::internal {
namespace {

std::string to_json(std::string_view step, const Record& record, const Outcome& outcome) {
  wire::JsonWriter out(wire::JsonWriter::Style::shown);
  out.begin_object();
  out.member("schema", std::uint64_t{kJsonSchema});
  out.member("step", step);
  out.key("passed").boolean(outcome.passed);
  out.key("record").begin_object();
  out.key("path");
  if (outcome.path.empty())
    out.null();
  else
    out.string(printable(outcome.path));
  out.member("sha256", outcome.sha256);
  out.key("fields").raw(record.json());
  out.end_object();
  out.key("findings").begin_array();
  for (const Finding& finding : outcome.report.findings()) out.raw(weighbridge::to_json(finding));
  out.end_array();
  out.end_object();
  return out.take();
}

}  // namespace

Outcome report_on(std::string_view step, const Record& record, std::string sha256, Report report,
                  const std::string& path) {
  Outcome out;
  out.passed = report.valid();
  out.report = std::move(report);
  out.path = path;
  out.record = record.text();
  out.sha256 = std::move(sha256);
  out.json = to_json(step, record, out);
  return out;
}

Output output_of(const Evidence& at, std::string Evidence::*written, bool replace) {
  Output out{at.*written, replace};
  for (const auto member :
       {&Evidence::artifact, &Evidence::conversion, &Evidence::manifest, &Evidence::smoke, &Evidence::smoke_gate,
        &Evidence::cases, &Evidence::evaluation, &Evidence::quality_gate, &Evidence::admission})
    if (member != written) out.inputs.push_back(at.*member);
  return out;
}

void require_other_file(const Output& output) {
  for (const std::string& input : output.inputs)
    if (!input.empty() && io::same_file(output.path, input))
      base::misuse_of(output.path, "output-is-input", "the output is the input '" + input + "': give another name");
}

void check_output(const Schema& schema, const Output& output) {
  require_other_file(output);
  std::error_code unknown;
  if (!output.replace || !std::filesystem::is_regular_file(output.path, unknown)) return;  // publish() judges those
  constexpr std::uint64_t kBeginning = 2 * kMaxLine;
  const auto source = open_file(output.path);
  if (!begins_as(schema, io::head_of(*source, kBeginning)))
    base::misuse_of(output.path, "output-kind",
                    "the output is there and is no " + std::string(schema.name) +
                        ", which alone is replaced here: remove it or give another name");
}

void publish_record(const Schema& schema, const Output& output, std::string_view bytes) {
  check_output(schema, output);
  publish(output.path, bytes, output.replace);
}

Outcome conclude(std::string_view step, const Record& record, Report report, const Output& output) {
  Outcome out = report_on(step, record, record.digest(), std::move(report), output.path);
  publish_record(record.schema(), output, out.record);
  return out;
}

void object_to(Report& report, RuleName rule, std::string message, std::string_view tensor, std::string expected,
               std::string found) {
  Finding finding = finding_of(rule, std::move(message), std::move(expected), std::move(found));
  finding.tensor = tensor;
  finding.has_tensor = !tensor.empty();
  report.add(std::move(finding));
}

void require_bound(double safety_bound) {
  if (!(safety_bound > 0) || !std::isfinite(safety_bound))
    base::misuse("safety-bound", "a safety bound is a number above 0");
}

}  // namespace weighbridge::chain::internal
