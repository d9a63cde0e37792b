// SPDX-License-Identifier: Apache-2.0
// Findings made from rules.
#include "core/findings.h"

#include <utility>

namespace weighbridge::core {

Finding Findings::make(const Rule& rule, At at, std::string expected, std::string found, std::string_view detail) {
  Finding f;
  f.rule = rule.id;
  f.severity = rule.severity;
  constexpr std::string_view kLimit = "limit/";
  if (rule.id.starts_with(kLimit)) {
    f.kind = Kind::limit;
    f.hint = {Hint::What::limit, std::string(rule.id.substr(kLimit.size())), {}};
  } else {
    f.kind = rule.severity == Severity::unsupported ? Kind::unsupported : Kind::malformed;
  }
  f.offset = at.offset;
  if (at.hint.what != Hint::What::none) f.hint = std::move(at.hint);
  if (at.tensor) {
    f.tensor = *at.tensor;
    f.has_tensor = true;
  }
  f.message = rule.sentence;
  if (!detail.empty()) f.message.append(": ").append(detail);
  if (!expected.empty() && !found.empty())
    f.message.append(" (expected ").append(expected).append(", found ").append(found).append(")");
  else if (!expected.empty())
    f.message.append(" (expected ").append(expected).append(")");
  else if (!found.empty())
    f.message.append(" (found ").append(found).append(")");
  f.expected = std::move(expected);
  f.found = std::move(found);
  return f;
}

void Findings::report(const Rule& rule, At at, std::string expected, std::string found, std::string_view detail) {
  // The report keeps no more findings, so only count: a hostile header can have millions of errors.
  if (report_.full() && (rule.severity != Severity::error || !report_.valid())) {
    Finding counted;
    counted.severity = rule.severity;
    report_.add(std::move(counted));
    return;
  }
  report(make(rule, at, std::move(expected), std::move(found), detail));
}

void Findings::report_absent(const Rule& rule, At at, std::string_view detail) {
  if (mode_ == Mode::all) return report(rule, std::move(at), {}, {}, detail);
  Finding finding = make(rule, std::move(at), {}, {}, detail);
  finding.severity = Severity::warning;
  report(std::move(finding));
}

void Findings::report(Finding finding) {
  if (finding.file.empty()) finding.file.name = file_;
  const bool error = finding.severity == Severity::error;
  report_.add(std::move(finding));
  if (error && mode_ == Mode::first_error) throw Stop{};
}

void place_files(Report& report, const Model& model) {
  report.amend([&](Finding& finding) {
    if (finding.file.empty() || finding.file.source) return;
    const auto sources = model.sources();
    for (std::uint32_t i = 0; i < sources.size() && !finding.file.source; ++i)
      if (sources[i]->name() == finding.file.name) finding.file.source = i;
  });
}

}  // namespace weighbridge::core
