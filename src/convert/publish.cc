// SPDX-License-Identifier: Apache-2.0
// The order of publishing.
#include "convert/publish.h"

#include <utility>
#include <vector>

#include "base/fail.h"
#include "io/fd.h"
#include "io/journal.h"

namespace weighbridge::convert {
namespace {

// The path relative to the folder; both may be spelled in different ways.
std::string name_beneath(const std::string& folder, const std::string& path) {
  const std::string start = io::join_path(folder, "");
  if (path.starts_with(start) && (!start.empty() || path.front() != '/')) return path.substr(start.size());
  io::SplitPath split = io::split_path(path);
  if (!io::same_file(split.folder, folder))
    base::misuse_of(path, "output-kind",
                    "the file belongs beside the output, which a symbolic link puts into another folder ('" + folder +
                        "'): give the path there");
  return std::move(split.name);
}

}  // namespace

void publish_together(io::AtomicFile& main, std::span<const Beside> beside) {
  if (beside.empty()) return main.publish();
  const std::string folder = io::split_path(main.path()).folder;
  std::vector<io::Journal::Change> changes;
  const auto add = [&](const io::AtomicFile& file) {
    changes.push_back(
        {name_beneath(folder, file.path()), name_beneath(folder, file.temporary_path()), file.replaces()});
  };
  add(main);
  for (const Beside& each : beside) {
    if (each.file)
      add(*each.file);
    else
      changes.push_back({name_beneath(folder, each.path)});
  }
  io::Journal journal(folder, std::move(changes));
  journal.set_aside();
  for (const Beside& each : beside)
    if (each.file) each.file->publish();
  main.publish();
  journal.commit();
}

}  // namespace weighbridge::convert
