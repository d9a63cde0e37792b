// SPDX-License-Identifier: Apache-2.0
// Copies extended attributes by the calls of Linux (xattr(7), acl(5)). Links are not followed.
#include "io/attributes.h"

#ifdef __linux__
#include <sys/xattr.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "base/fail.h"
#endif

namespace weighbridge::io {

#ifdef __linux__
namespace {

constexpr std::size_t kMostAttributeBytes = std::size_t{64} << 10;  // the kernel's limit of a list and of a value
constexpr const char* kAccessList = "system.posix_acl_access";
constexpr std::string_view kKept[] = {kAccessList, "security.", "user."};  // and what begins so
constexpr std::string_view kOfOldBytes[] = {"security.capability", "security.ima", "security.evm"};

bool is_kept(std::string_view name) noexcept {
  return std::ranges::find(kOfOldBytes, name) == std::end(kOfOldBytes) &&
         std::ranges::any_of(kKept, [&](std::string_view start) { return name.starts_with(start); });
}

// The result of a call that fills a buffer and returns its length, or -1; empty, with errno, if it failed.
template <typename Call> std::optional<std::string> filled(Call&& call) {
  std::string out(kMostAttributeBytes, '\0');
  const ssize_t length = call(out.data(), out.size());
  if (length < 0) return std::nullopt;
  out.resize(static_cast<std::size_t>(length));
  return out;
}
std::optional<std::string> value_at(const std::string& path, const char* name) {
  return filled([&](char* to, std::size_t room) { return ::lgetxattr(path.c_str(), name, to, room); });
}

[[noreturn]] void refuse_to_lose(const std::string& file, std::string_view rule, const std::string& name, int error) {
  const std::string what = name == kAccessList ? "access control list" : "attribute '" + name + "'";
  base::io_error_of(file, rule,
                    "its " + what + " cannot be given to the file that replaces it, which would lose it: write to " +
                        "another name, or remove the old file first",
                    error);
}

}  // namespace

bool keep_attributes(const std::string& from, const std::string& to, const std::string& file, std::string_view rule) {
  const auto names = filled([&](char* out, std::size_t room) { return ::llistxattr(from.c_str(), out, room); });
  if (!names && errno != ENOTSUP && errno != ENOSYS && errno != ENOENT)
    base::io_error_of(file, rule, "its extended attributes cannot be listed", errno);
  bool listed = false;
  for (std::size_t at = 0; names && at < names->size();) {
    const std::string name = names->c_str() + at;
    at += name.size() + 1;
    if (!is_kept(name)) continue;
    const auto value = value_at(from, name.c_str());
    if (!value && (errno == ENODATA || errno == ENOENT)) continue;  // it has gone meanwhile
    if (!value) refuse_to_lose(file, rule, name, errno);
    listed = listed || name == kAccessList;
    // A label that is the folder's may be the one that only the system may set.
    if (value_at(to, name.c_str()) == value) continue;
    if (::lsetxattr(to.c_str(), name.c_str(), value->data(), value->size(), 0) != 0)
      refuse_to_lose(file, rule, name, errno);
  }
  // One that it has from the default list of its folder: fchmod() would open it for those whom that one names.
  if (!listed) ::lremovexattr(to.c_str(), kAccessList);
  return listed;
}
#else
bool keep_attributes(const std::string&, const std::string&, const std::string&, std::string_view) { return false; }
#endif

}  // namespace weighbridge::io
