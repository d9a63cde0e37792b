// SPDX-License-Identifier: Apache-2.0
// Names of kinds and severities, and the counting of Report.
#include "weighbridge/error.h"

#include <algorithm>
#include <utility>

#include "base/fail.h"

namespace weighbridge {

std::string_view name(Kind kind) noexcept {
  switch (kind) {
    case Kind::malformed: return "malformed";
    case Kind::unsupported: return "unsupported";
    case Kind::misuse: return "misuse";
    case Kind::io: return "io";
    case Kind::limit: return "limit";
  }
  return "malformed";
}

std::string_view name(Severity severity) noexcept {
  switch (severity) {
    case Severity::error: return "error";
    case Severity::warning: return "warning";
    case Severity::unsupported: return "unsupported";
  }
  return "error";
}

std::string_view name(Hint::What what) noexcept {
  switch (what) {
    case Hint::What::none: return "none";
    case Hint::What::limit: return "limit";
    case Hint::What::option: return "option";
    case Hint::What::size: return "size";
    case Hint::What::file: return "file";
  }
  return "none";
}

Error::Error(Finding finding) {
  std::string text = finding.file.empty() ? finding.message : finding.file.name + ": " + finding.message;
  held_ = std::make_shared<const Held>(Held{std::move(finding), std::move(text)});
}

Error Error::in(std::string_view file) const {
  if (!finding().file.empty()) return *this;
  Finding named = finding();
  named.file.name = file;
  return Error(std::move(named));
}

namespace {

// A doubt decides about a file without being an error, so a full report has one finding of each such rule, in place of
// the last that it kept.
void keep_in_full(std::vector<Finding>& kept, const Finding& finding) {
  if (!base::is_not_known_safe(finding.rule) || std::ranges::find(kept, finding.rule, &Finding::rule) != kept.end())
    return;
  const auto other = std::find_if_not(kept.rbegin(), kept.rend(),
                                      [](const Finding& each) { return base::is_not_known_safe(each.rule); });
  if (other != kept.rend()) *other = finding;
}

std::size_t text_of(const Finding& finding) noexcept {
  return finding.message.size() + finding.expected.size() + finding.found.size() + finding.tensor.size();
}

}  // namespace

bool is_about_code(std::string_view rule) noexcept {
  constexpr std::string_view kSuffixes[] = {
      "unknown-global", "unread-pickle", "dangerous-global", "dangerous-value", "also-pickle",
      "pickle-beside",  "remote-code",   "program",          "lambda",          "code",
      "escape"};
  const std::string_view what = rule.substr(std::min(rule.find('/') + 1, rule.size()));
  return std::ranges::find(kSuffixes, what) != std::end(kSuffixes) || rule == "hf/pickle";
}

std::uint64_t Report::about_code() const noexcept {
  return static_cast<std::uint64_t>(
      std::ranges::count_if(findings_, [](const Finding& each) { return is_about_code(each.rule); }));
}

void Report::add(Finding finding) {
  ++total_;
  if (finding.severity == Severity::error) {
    ++errors_;
    // Kept separately: it may come after kMaxFindings warnings.
    if (!first_error_) first_error_ = finding;
  }
  if (finding.severity == Severity::warning) ++warnings_;
  if (full()) return keep_in_full(findings_, finding);
  text_ += text_of(finding);
  findings_.push_back(std::move(finding));
}

bool Report::full() const noexcept { return findings_.size() >= kMaxFindings || text_ > kMaxText; }

void Report::append(const Report& other) {
  // `other` may have counted more findings than it kept.
  total_ += other.total_;
  errors_ += other.errors_;
  warnings_ += other.warnings_;
  if (!first_error_) first_error_ = other.first_error_;
  for (const Finding& finding : other.findings_) {
    if (full()) {
      keep_in_full(findings_, finding);
      continue;
    }
    text_ += text_of(finding);
    findings_.push_back(finding);
  }
}

}  // namespace weighbridge
