// SPDX-License-Identifier: Apache-2.0
// Findings made from rules.
#include "core/reading/findings.h"

#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "core/model/words.h"
#include "core/reading/rules.h"
#include "io/read.h"

namespace weighbridge::core {

void Piece::append_to(std::string& out) const {
  const std::string_view text(static_cast<const char*>(data_), form_ <= Form::quote ? base::to_size(size_) : 0);
  switch (form_) {
    case Form::text: out += text; break;
    case Form::excerpt: out += excerpt(text, maximum_); break;
    case Form::quote: out += quoted(excerpt(text, maximum_)); break;
    case Form::number: out += std::to_string(size_); break;
    case Form::negative: out += std::to_string(static_cast<std::int64_t>(size_)); break;
    case Form::bytes: out += bytes_text(size_); break;
    case Form::shape: out += shape_text({static_cast<const std::uint64_t*>(data_), base::to_size(size_)}); break;
  }
}

std::string Said::text() const {
  std::string out = text_;
  if (!owned_)
    for (const Piece& piece : pieces_) piece.append_to(out);
  return out;
}

Finding Findings::make(const Rule& rule, At at, const Said& expected, const Said& found, const Said& detail) {
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
  if (const std::string more = detail.text(); !more.empty()) f.message.append(": ").append(more);
  if (!f.expected.empty() && !f.found.empty())
    f.message.append(" (expected ").append(f.expected).append(", found ").append(f.found).append(")");
  else if (!f.expected.empty())
    f.message.append(" (expected ").append(f.expected).append(")");
  else if (!f.found.empty())
    f.message.append(" (found ").append(f.found).append(")");
  return f;
}

void Findings::report(const Rule& rule, At at, const Said& expected, const Said& found, const Said& detail) {
  // The report keeps no more findings, so only count: a hostile header can have millions of errors.
  if (report_.full() && (rule.severity != Severity::error || !report_.valid())) {
    Finding counted;
    counted.severity = rule.severity;
    report_.add(std::move(counted));
    return;
  }
  report(make(rule, std::move(at), expected, found, detail));
}

void Findings::report_absent(const Rule& rule, At at, std::string_view detail) {
  if (mode_ == Mode::all) return report(rule, std::move(at), {}, {}, detail);
  Finding finding = make(rule, std::move(at), {}, {}, detail);
  finding.severity = Severity::warning;
  report(std::move(finding));
}

std::shared_ptr<const Finding> Findings::report_missing(const Rule& rule, At at, const Said& expected,
                                                        const Said& found, const Said& detail) {
  if (!list_incomplete_) {
    report(rule, std::move(at), expected, found, detail);
    return nullptr;
  }
  auto finding = std::make_shared<Finding>(make(rule, std::move(at), expected, found, detail));
  name_file(*finding);
  report_.add(*finding);
  finding->file.source.reset();  // a number of NamedFiles
  return finding;
}

void Findings::name_file(Finding& finding) const {
  if (!finding.file.empty()) return;
  finding.file.name = file_;
  if (of_ && files_ != nullptr) finding.file.source = files_->number_of(of_);
}

void Findings::report(Finding finding) {
  name_file(finding);
  const bool error = finding.severity == Severity::error;
  report_.add(std::move(finding));
  if (error && mode_ == Mode::first_error) throw Stop{};
}

bool is_same(const Source& a, const Source& b) noexcept {
  return &a == &b || (!a.path().empty() && a.path() == b.path());
}

SourceIndex::SourceIndex(std::span<const std::shared_ptr<const Source>> sources) {
  for (std::uint32_t i = 0; i < sources.size(); ++i) {
    if (!sources[i]) continue;
    by_object_.emplace(sources[i].get(), i);
    if (!sources[i]->path().empty()) by_path_.emplace(sources[i]->path(), i);
  }
}

std::optional<std::uint32_t> SourceIndex::find(const Source& source) const {
  if (const auto object = by_object_.find(&source); object != by_object_.end()) return object->second;
  const auto path = source.path().empty() ? by_path_.end() : by_path_.find(source.path());
  return path == by_path_.end() ? std::nullopt : std::optional(path->second);
}

std::uint32_t NamedFiles::number_of(const std::shared_ptr<const Source>& file) {
  const auto at = std::ranges::find(files_, file);
  const auto number = static_cast<std::uint32_t>(at - files_.begin());
  if (at == files_.end()) files_.push_back(file);
  return number | kNumber;
}

void NamedFiles::place(Report& report, std::span<const std::shared_ptr<const Source>> sources) const {
  const SourceIndex index(sources);
  report.amend([&](Finding& finding) {
    std::optional<std::uint32_t>& source = finding.file.source;
    if (source && (*source & kNumber) != 0) source = index.find(*files_[*source & ~kNumber]);
  });
}

void report_second_beginning(Findings& findings, const Source& file, std::uint64_t extra) {
  constexpr std::uint64_t kHead = 64, kPadding = 4096;  // that a writer may leave at the end of its data
  const std::string head = io::head_of(file, kHead);
  if (extra < kHead || extra >= file.size() - kHead || head.find_first_not_of(head[0]) == head.npos) return;
  const std::uint64_t from = extra - std::min(extra - 1, kPadding);
  const std::size_t at = io::text_of(file, from, extra - from + kHead).find(head);
  if (at != head.npos) findings.report(rules::kFileBeginsAgain, {.offset = from + at});
}

}  // namespace weighbridge::core
