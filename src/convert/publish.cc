// SPDX-License-Identifier: Apache-2.0
// The order of publishing, and the rollback.
#include "convert/publish.h"

#include <vector>

#include "io/abandon.h"
#include "io/set_aside.h"

namespace weighbridge::convert {

void publish_together(io::AtomicFile& main, std::span<const Beside> beside) {
  if (beside.empty()) return main.publish();
  const io::NamesChange publishing;
  std::vector<io::SetAside> aside;
  aside.reserve(beside.size() + 1);
  try {
    aside.emplace_back(main.path(), main.replaces());
    for (const Beside& each : beside)
      aside.emplace_back(each.file ? each.file->path() : each.path, !each.file || each.file->replaces());
    for (const Beside& each : beside)
      if (each.file) each.file->publish();
    main.publish();
  } catch (...) {
    // Restore the main file last, so that it is absent until all the others match it again.
    for (std::size_t i = aside.size(); i-- > 1;)
      aside[i].put_back(beside[i - 1].file && beside[i - 1].file->published());
    if (!aside.empty()) aside[0].put_back(main.published());
    throw;
  }
  for (io::SetAside& each : aside) each.settle();
}

}  // namespace weighbridge::convert
