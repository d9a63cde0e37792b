// SPDX-License-Identifier: Apache-2.0
// A small program that uses the installed libraries: the error for a missing file, and the paths of evidence.
#include <cstddef>
#include <iostream>
#include <span>
#include <string>

#include "weighbridge/chain.h"
#include "weighbridge/open.h"

int main() {
  weighbridge::Report report;
  const std::string page = "<html>not found</html>";
  const auto source = weighbridge::memory_source({std::as_bytes(std::span(page)), nullptr});
  const auto model = weighbridge::open(source, report);
  if (model || report.findings().empty()) return 1;
  if (weighbridge::chain::evidence_beside("a.slm").conversion != "a.slm.conversion") return 1;
  std::cout << "ok\n";
}
