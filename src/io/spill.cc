// SPDX-License-Identifier: Apache-2.0
// A file without a name, or a temporary that is removed at once.
#include "io/spill.h"

#include <cerrno>

#include "base/fail.h"
#include "io/temporary.h"

namespace weighbridge::io {

Spill::Spill(const std::string& beside) {
  const Target target = resolve_target(beside);
  name_ = "a temporary in " + target.folder;
  const Fd folder = open_folder(target.folder);
  fd_ = os::create_unnamed(folder.get());
  if (fd_) return;
  if (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT && errno != EINVAL)
    base::io_error_of(target.folder, "create", "no file can be created in the folder", errno);
  // Created under a temporary's name, so that the next run removes it if this one is killed here.
  Temporary temporary = create_temporary(folder.get(), target, 0600);
  if (os::remove(folder.get(), temporary.name.c_str()) != 0)
    base::io_error_of(target.folder, "create", "a temporary in the folder cannot be unlinked", errno);
  fd_ = std::move(temporary.fd);
}

void Spill::write_at(std::uint64_t offset, std::span<const std::byte> data) {
  pwrite_full(fd_.get(), offset, data, name_);
}

void Spill::read_at(std::uint64_t offset, std::span<std::byte> out) const {
  if (pread_full(fd_.get(), offset, out, name_) < out.size())
    base::io_error_of(name_, "short-read", "what was written cannot be read back");
}

}  // namespace weighbridge::io
