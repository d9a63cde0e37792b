// SPDX-License-Identifier: Apache-2.0
// Copies extended attributes (for Linux, xattr(7) and acl(5)).
#include "io/attributes.h"

#include <algorithm>
#include <cerrno>
#include <iterator>

#include "base/fail.h"

namespace weighbridge::io {
namespace {

constexpr const char* kAccessList = "system.posix_acl_access";
constexpr std::string_view kLabels = "security.";
constexpr std::string_view kKept[] = {kAccessList, kLabels, "user."};  // and what begins so
constexpr std::string_view kOfOldBytes[] = {"security.capability", "security.ima", "security.evm"};

bool is_kept(std::string_view name) noexcept {
  return std::ranges::find(kOfOldBytes, name) == std::end(kOfOldBytes) &&
         std::ranges::any_of(kKept, [&](std::string_view start) { return name.starts_with(start); });
}

[[noreturn]] void refuse_to_lose(const std::string& file, std::string_view rule, const std::string& name, int error) {
  const std::string what = name == kAccessList ? "access control list" : "attribute '" + name + "'";
  base::io_error_of(file, rule,
                    "its " + what + " cannot be given to the file that replaces it, which would lose it: write to " +
                        "another name, or remove the old file first",
                    error);
}

}  // namespace

bool keep_attributes(const Fd& from, const Fd& to, const std::string& file, std::string_view rule) {
  const auto names = from ? os::attribute_names(from.get()) : std::nullopt;
  if (!names && errno != ENOTSUP && errno != ENOSYS)
    base::io_error_of(file, rule, "its extended attributes cannot be listed", errno);
  bool listed = false;
  for (std::size_t at = 0; names && at < names->size();) {
    const std::string name = names->c_str() + at;
    at += name.size() + 1;
    if (!is_kept(name)) continue;
    const auto value = os::attribute(from.get(), name.c_str());
    if (!value && (errno == ENODATA || errno == ENOENT)) continue;  // it has gone meanwhile
    if (!value) refuse_to_lose(file, rule, name, errno);
    listed = listed || name == kAccessList;
    if (os::attribute(to.get(), name.c_str()) == value) continue;
    if (os::set_attribute(to.get(), name.c_str(), *value) == 0) continue;
    // Labels of a security module that does not run here, and those that only the system may set: it labels new files.
    if (name.starts_with(kLabels) && (errno == EPERM || errno == EACCES || errno == EINVAL || errno == ENOTSUP))
      continue;
    refuse_to_lose(file, rule, name, errno);
  }
  // One that it has from the default list of its folder: fchmod() would open it for those whom that one names.
  if (!listed && os::remove_attribute(to.get(), kAccessList) != 0 && errno != ENODATA && errno != ENOTSUP &&
      errno != ENOSYS)
    base::io_error_of(file, rule, "the access control list that its folder gives to new files cannot be removed",
                      errno);
  return listed;
}

}  // namespace weighbridge::io
