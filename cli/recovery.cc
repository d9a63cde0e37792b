// SPDX-License-Identifier: Apache-2.0
// Steps of undoing, as text.
#include "recovery.h"

#include "texts.h"

namespace weighbridge::cli {
namespace {

constexpr std::size_t kMaxSteps = 2000;

}  // namespace

void print_steps(Output& out, const std::string& folder, const std::vector<RecoveryStep>& steps) {
  using Way = RecoveryStep::Way;
  const auto path = [&](const std::string& name) { return shown(folder.empty() ? name : folder + "/" + name); };
  for (std::size_t i = 0; i < steps.size() && i < kMaxSteps; ++i) {
    const RecoveryStep& step = steps[i];
    out.text("  " + std::string(name(step.way)) + " ");
    if (step.way == Way::write)
      out.text(grouped(step.length) + " old bytes at byte " + std::to_string(step.offset) + " of " + path(step.from));
    else
      out.text(path(step.from) +
               (step.to.empty() ? "" : (step.way == Way::exchange ? " and " : " to ") + path(step.to)));
    out.text("\n");
  }
  if (steps.size() > kMaxSteps) out.text("  and " + grouped(steps.size() - kMaxSteps) + " more steps\n");
}

}  // namespace weighbridge::cli
