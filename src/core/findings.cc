// SPDX-License-Identifier: Apache-2.0
// Findings made from rules.
#include "core/findings.h"

namespace weighbridge::core {

std::string Said::text() const {
  if (form_ == Form::text) return before_.empty() ? text_ : std::string(before_);
  std::string out(before_);
  out += form_ == Form::number ? std::to_string(number_) : std::to_string(static_cast<std::int64_t>(number_));
  return out.append(after_);
}

Finding Findings::make(const Rule& rule, At at, Said expected, Said found, Said detail) {
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
  f.expected = expected.text();
  f.found = found.text();
  if (!detail.empty()) f.message.append(": ").append(detail.text());
  if (!f.expected.empty() && !f.found.empty())
    f.message.append(" (expected ").append(f.expected).append(", found ").append(f.found).append(")");
  else if (!f.expected.empty())
    f.message.append(" (expected ").append(f.expected).append(")");
  else if (!f.found.empty())
    f.message.append(" (found ").append(f.found).append(")");
  return f;
}

void Findings::report(const Rule& rule, At at, Said expected, Said found, Said detail) {
  // The report keeps no more findings, so only count: a hostile header can have millions of errors.
  if (report_.full() && (rule.severity != Severity::error || !report_.valid())) {
    Finding counted;
    counted.severity = rule.severity;
    report_.add(std::move(counted));
    return;
  }
  report(make(rule, at, std::move(expected), std::move(found), std::move(detail)));
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
