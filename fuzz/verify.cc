// SPDX-License-Identifier: Apache-2.0
// Fuzz target: verify and open agree. The first error of open must be the first of verify, a file that verify calls
// valid must open and be readable to its last byte, and a second verify must report the same.
#include "weighbridge/verify.h"

#include "harness.h"
#include "weighbridge/open.h"

namespace weighbridge::fuzz {
namespace {

// Every part of a file that passed can be streamed, within the budget that one input has.
void expect_readable(const Model& model, const Context& context) {
  std::uint64_t left = std::uint64_t{32} << 20;
  for (std::uint32_t i = 0; i < model.size(); ++i) {
    const Tensor tensor = model[i];
    if (tensor.unsupported() != nullptr) continue;
    for (std::uint32_t k = 0; k < tensor.part_count(); ++k) {
      const Part part = tensor.part(k);
      if (part.size() > left) return;
      left -= part.size();
      std::uint64_t total = 0;
      part.stream(context, [&](std::span<const std::byte> piece) {
        total += piece.size();
        return true;
      });
      expect(total == part.size(), "a verified part streams another number of bytes than it says");
    }
  }
}

// Breaks on a file with a finding about a tensor of a certain name, which no seed has.
void planted_bug(const Report& report) {
  for (const Finding& finding : report.findings())
    if (has_forbidden_sign(finding.tensor)) fail("planted bug: a finding about a tensor of a forbidden name");
}

}  // namespace
}  // namespace weighbridge::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weighbridge;
  static const std::vector<std::string> doors = fuzz::doors();
  const Context context = fuzz::small_context();
  std::string seen = "none";
  for (const std::string& door : doors) {
    if (door == seen) continue;  // already opened as this format, by its content
    const OpenOptions options{.format = door};
    const Verdict verdict = verify(fuzz::source_of(data, size), context, options);
    if (door.empty()) seen = verdict.format;
    fuzz::expect_report(verdict.report, size);
    Report opened;
    const auto model = open(fuzz::source_of(data, size), opened, context, options);
    fuzz::expect_agreement(opened, model.has_value(), verdict.report);
    if (verdict.report.valid()) fuzz::expect_readable(*model, context);
    const Verdict again = verify(fuzz::source_of(data, size), context, options);
    fuzz::expect(again.report.findings() == verdict.report.findings(), "a second verify says something else");
    if (fuzz::is_planted()) fuzz::planted_bug(verdict.report);
  }
  return 0;
}
