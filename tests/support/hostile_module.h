// SPDX-License-Identifier: Apache-2.0
// Checks that must hold for any KHLNARY module and sidecar: a run ends within its limits and blames the module, verify
// reports at least as much as a run, and the text form gives the words back. The STB files are those of the corpus.
#pragma once
#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/khlnary/cases.h"
#include "support/hostile.h"
#include "weighbridge/khlnary.h"

namespace weighbridge::hostile {

inline const khlnary::RunOptions kRunOptions = {.max_steps = 4096, .max_stack = 64, .max_calls = 16};

// Rules that only a run can check; verify must report every other error of a run.
inline bool is_dynamic(std::string_view rule) {
  static const std::set<std::string_view> rules = {"khlnary/stack-underflow", "khlnary/stack-limit",
                                                   "khlnary/value-type", "khlnary/call-depth", "khlnary/step-limit"};
  return rules.contains(rule);
}

// Findings whose offset counts in the sidecar.
inline bool is_of_sidecar(const Finding& finding) { return !finding.file.empty(); }

inline void expect_modules_fault(const Finding& finding, std::uint64_t size) {
  expect_files_fault(finding);
  expect(!finding.rule.empty() && !finding.message.empty(), "a finding without rule or sentence");
  expect(!finding.offset || *finding.offset <= size, "a finding after the end of the file: " + finding.message);
}

// Corrects parities and versions, because otherwise hardly any module would reach its first step.
inline std::string mended_module(std::string_view module) {
  std::string out(module.substr(0, module.size() / 4 * 4));
  for (std::size_t i = 0; i + 3 < out.size(); i += 4) {
    out[i + 3] = static_cast<char>((out[i + 3] & 0x0F) | 0x20);
    unsigned ones = 0;
    for (std::size_t k = 0; k < 4; ++k)
      ones += static_cast<unsigned>(__builtin_popcount(static_cast<unsigned char>(out[i + k])));
    if (ones % 2 != 0) out[i] = static_cast<char>(out[i] ^ 1);
  }
  return out;
}

inline void expect_text(const std::shared_ptr<const Source>& source) {
  if (source->size() % 4 != 0) return;
  const auto words = khlnary::words_of(*source);
  expect(khlnary::assemble(khlnary::disassemble(words)) == words, "the text form gives other words");
}

// The findings, and the result of a run that reached its end.
struct Tried {
  Report report;
  std::string stopped;  // the rule that ended the run; empty if none
  std::optional<khlnary::Result> result;
};

inline void run(const khlnary::internal::Case& c, const Context& context, Tried& tried) {
  try {
    const auto source = c.folder().open("m.knu");
    khlnary::Result result = khlnary::run(khlnary::Module::open(source, {}, context), kRunOptions, context);
    expect(result.steps <= kRunOptions.max_steps && result.stack.size() <= kRunOptions.max_stack,
           "a run past its budget");
    expect(result.value.has_value() == !result.stack.empty(), "a result from nowhere, or none in spite of a stack");
    for (const khlnary::Loaded& loaded : result.loaded) {
      expect(loaded.tensor.id() == loaded.id, "another tensor than the one that was asked for");
      khlnary::first_values(loaded.tensor, 4, context);
    }
    tried.result = std::move(result);
  } catch (const Error& error) {
    tried.stopped = error.finding().rule;
    if (!is_of_sidecar(error.finding())) expect_modules_fault(error.finding(), c.module.size());
    if (!is_dynamic(tried.stopped)) expect(!tried.report.valid(), "verify passed what run refuses: " + tried.stopped);
  }
}

// An empty sidecar means no sidecar.
inline Tried try_module(const std::string& module, const std::string& sidecar) {
  const Context context = small_context();
  khlnary::internal::Case c;
  c.module = module;
  if (!sidecar.empty()) c.sidecar = sidecar;
  const auto source = c.folder().open("m.knu");
  expect_text(source);
  Tried tried;
  tried.report = khlnary::verify(source, {}, khlnary::kMaxAuthority, context);
  for (const Finding& finding : tried.report.findings())
    if (!is_of_sidecar(finding)) expect_modules_fault(finding, module.size());
  run(c, context, tried);
  return tried;
}

}  // namespace weighbridge::hostile
