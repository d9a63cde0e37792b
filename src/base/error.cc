// SPDX-License-Identifier: Apache-2.0
// Names of kinds and severities, and the counting of Report.
#include "weighbridge/error.h"

#include <utility>

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

void Report::add(Finding finding) {
  ++total_;
  if (finding.severity == Severity::error) {
    ++errors_;
    // Kept separately: it may come after kMaxFindings warnings.
    if (!first_error_) first_error_ = finding;
  }
  if (finding.severity == Severity::warning) ++warnings_;
  if (findings_.size() < kMaxFindings) findings_.push_back(std::move(finding));
}

void Report::append(const Report& other) {
  // `other` may have counted more findings than it kept.
  total_ += other.total_;
  errors_ += other.errors_;
  warnings_ += other.warnings_;
  if (!first_error_) first_error_ = other.first_error_;
  const std::size_t room = kMaxFindings - findings_.size();
  const std::size_t taken = other.findings_.size() < room ? other.findings_.size() : room;
  findings_.reserve(findings_.size() + taken);
  for (std::size_t i = 0; i < taken; ++i) findings_.push_back(other.findings_[i]);
}

}  // namespace weighbridge
