// SPDX-License-Identifier: Apache-2.0
// Where verify --manifest remembers what it has read, by the XDG Base Directory Specification.
#include <fmt/format.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "manifest.h"
#include "os.h"

namespace weighbridge::cli {
namespace {

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

// Tells the models of one user apart; what is remembered names device and inode, so a collision costs a second reading.
std::string name_for(std::string_view path) {
  std::uint64_t hash = 14695981039346656037u;  // FNV-1a
  for (const char c : path) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return fmt::format("{:016x}.json", hash);
}

}  // namespace

std::string state_file(const Arguments& arguments) {
  if (arguments.has(FlagId::state)) return std::string(arguments.value(FlagId::state));
  namespace fs = std::filesystem;
  std::string cache = environment("XDG_CACHE_HOME");
  if (!cache.starts_with('/')) {  // the specification ignores relative ones
    const std::string home = environment("HOME");
    if (!home.starts_with('/')) return {};
    cache = home + "/.cache";
  }
  std::error_code error;
  const fs::path path = fs::canonical(arguments.operands.front(), error);
  if (error) return {};
  fs::path there = fs::path(cache) / "weighbridge";
  const fs::path out = there / name_for(path.native());
  while (!fs::exists(there, error) && there != there.parent_path()) there = there.parent_path();
  // A container without a writable home is not a reason for a warning at each check.
  return os::may_write(there.native()) ? out.string() : std::string();
}

}  // namespace weighbridge::cli
