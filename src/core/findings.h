// SPDX-License-Identifier: Apache-2.0
// Where a walker reports what it finds. One walker serves open (the first error stops it) and verify (it goes on), so
// that the two cannot disagree. Owns the wording of a finding made from a rule.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "weighbridge/error.h"
#include "weighbridge/formats.h"
#include "weighbridge/model.h"
#include "weighbridge/source.h"

namespace weighbridge::core {

// Thrown by Findings in mode first_error after the error has been recorded; caught by the registry alone.
struct Stop {};

struct At {
  std::optional<std::uint64_t> offset{};
  std::optional<std::string_view> tensor{};
  Hint hint{};  // a rule "limit/..." has its own
};

class Findings {
 public:
  enum class Mode : std::uint8_t { first_error, all };
  Findings(Report& report, Mode mode) : report_(report), mode_(mode) {}
  // The same sink for the part of a walk that is about another file than the one that was asked about: its findings
  // name that file, unless they name one themselves.
  Findings in(const Source& file) const {
    Findings out = *this;
    out.file_ = file.name();
    return out;
  }

  // Records a finding of the rule's severity. Its message is the rule's sentence, then `detail` where given, then
  // expected and found where given; a rule "limit/..." is of kind limit and hints at its limit. In mode first_error an
  // error throws Stop. The texts are exact, not escaped.
  void report(const Rule&, At, std::string expected = {}, std::string found = {}, std::string_view detail = {});
  // For findings made elsewhere (content passes sort theirs first).
  void report(Finding);
  static Finding make(const Rule&, At, std::string expected = {}, std::string found = {}, std::string_view detail = {});

  // Errors so far: a walker asks whether a file-level error has made the rest meaningless.
  std::uint64_t errors() const noexcept { return report_.errors(); }
  Mode mode() const noexcept { return mode_; }

 private:
  Report& report_;
  Mode mode_;
  std::string file_{};
};

// Gives the files that findings name their places among the model's sources.
void place_files(Report&, const Model&);

}  // namespace weighbridge::core
