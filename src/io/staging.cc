// SPDX-License-Identifier: Apache-2.0
// Creates and removes temporary folders.
#include "io/staging.h"

#include <cerrno>

#include "base/fail.h"

namespace weighbridge::io {

Staging::Staging(const std::string& folder, const std::string& name, bool made)
    : path_(folder), where_(open_folder(folder)) {
  remove_stale(where_.get(), name, os::Kind::folder);
  const NamesChange creating;
  temporary_ = create_temporary_folder(where_.get(), {folder, name}, made ? 0777 : 0700);
  lock_.emplace(std::move(temporary_.fd));  // conversions into this folder use the same lock
  on_abandon_.emplace([this] { remove_folder(where_.get(), temporary_.name); });
}

Staging::~Staging() {
  const NamesChange removing;
  on_abandon_.reset();
  remove_folder(where_.get(), temporary_.name);
}

void publish_together(const std::string& folder, const std::vector<Journal::Change>& changes) {
  Journal journal(folder, changes);
  journal.set_aside();
  for (std::size_t i = changes.size(); i-- > 0;) {
    if (changes[i].fresh.empty() || journal.move(i) == 0) continue;
    const int error = errno;
    const std::string path = join_path(folder, changes[i].name);
    if (error == EEXIST) base::misuse_of(path, "output-exists", "the file exists", base::option_hint("overwrite"));
    base::io_error_of(path, "publish", "cannot be published", error);
  }
  journal.commit();
}

}  // namespace weighbridge::io
