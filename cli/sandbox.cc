// SPDX-License-Identifier: Apache-2.0
// Which files the words of a command line let it read and write.
#include "sandbox.h"

#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "actions.h"
#include "manifest.h"
#include "weighbridge/recover.h"

namespace weighbridge::cli {
namespace {

namespace fs = std::filesystem;

// Where the process may go: a path, and what it may do there and beneath.
class Places {
 public:
  // The file at `path`, which need not exist, and its folder: models have sidecars, shards and vocabularies beside
  // them.
  void add(std::string_view path, unsigned access) {
    if (path.empty() || path == "-") return;
    std::error_code ignored;
    const fs::path named(path);
    allow(named, access);
    if (!fs::is_directory(named, ignored) || access == os::kWrite) allow(existing_folder_of(named), access);
    if (!fs::is_symlink(fs::symlink_status(named, ignored))) return;
    const fs::path target = fs::canonical(named, ignored);
    if (!ignored && access == os::kWrite) allow(target.parent_path(), access);
  }
  void allow(const fs::path& path, unsigned access) {
    places_[path.native()] |= access;
    add_blobs(path);
  }
  os::Places take() { return std::move(places_); }

 private:
  // In the cache of the Hub, the files of a model are links: models--o--n/snapshots/0123/config.json to
  // models--o--n/blobs/89ab.
  void add_blobs(const fs::path& path) {
    std::error_code failed;
    for (fs::path at = fs::weakly_canonical(path, failed); !failed && at.has_relative_path(); at = at.parent_path()) {
      if (at.parent_path().filename() != "snapshots") continue;
      places_[at.parent_path().parent_path() / "blobs"] |= os::kRead;
      return;
    }
  }
  // Outputs may name folders that are made on the way.
  static fs::path existing_folder_of(const fs::path& path) {
    std::error_code ignored;
    fs::path folder = path.has_filename() ? path.parent_path() : path.parent_path().parent_path();
    while (!folder.empty() && !fs::is_directory(folder, ignored) && folder != folder.parent_path())
      folder = folder.parent_path();
    return folder.empty() ? fs::path(".") : folder;
  }

  os::Places places_;
};

os::Places places_of(const Arguments& arguments) {
  Places out;
  const std::string_view usage = operands_of(arguments.verb, arguments.action);
  const std::vector<std::string>& operands = arguments.operands;
  bool writes = false;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (!operand_is_file(operand_name(usage, i))) continue;
    // Actions keep records and ledgers beside the files that they are about.
    const bool written =
        arguments.action || (arguments.verb == VerbId::convert && i == 1 && !arguments.has(FlagId::output)) ||
        (i == 0 &&
         (arguments.verb == VerbId::append || (arguments.verb == VerbId::apply && arguments.has(FlagId::in_place)))) ||
        (arguments.verb == VerbId::edit &&
         (arguments.has(FlagId::in_place) || arguments.has(FlagId::undo) || arguments.has(FlagId::recover)));
    out.add(operands[i], written ? os::kWrite : os::kRead);
    // Only the folder itself: nothing beside it changes.
    const bool recovered = arguments.verb == VerbId::doctor && arguments.has(FlagId::recover);
    if (recovered) out.allow(operands[i], os::kWrite);
    writes = writes || written || recovered;
  }
  for (const Flag& flag : flags()) {
    if (flag.type != Type::file) continue;
    for (const std::string& value : arguments.values(flag.id)) {
      out.add(value, flag.writes ? os::kWrite : os::kRead);
      writes = writes || (flag.writes && flag.id != FlagId::cache);
      if (flag.id == FlagId::merge_lora) out.add(value.substr(0, value.rfind('=')), os::kRead);  // ADAPTER=SCALE
    }
  }
  // The key that marks journals. Its folder must be there to be allowed: a rule for the home would allow all of it.
  if (writes)
    if (const std::string state = state_folder(true); !state.empty()) out.allow(state, os::kKeep);
  if (arguments.has(FlagId::cache)) out.add(cache_file(arguments), os::kWrite);
  if (arguments.verb == VerbId::hash && arguments.has(FlagId::check))
    out.allow("/", os::kRead);  // the list names the files
  return out.take();
}

}  // namespace

void confine(const Arguments& arguments) {
  const Sandbox can = sandbox();
  if (can.landlock == 0 && !can.seccomp) return;
  os::confine(can.landlock > 0 ? places_of(arguments) : os::Places(), can);
}

std::string sandbox_text() {
  const Sandbox can = sandbox();
  std::string out = can.landlock > 0 ? "landlock " + std::to_string(can.landlock) : "";
  if (can.seccomp) out += out.empty() ? "seccomp" : ", seccomp";
  return out.empty() ? "none" : out;
}

}  // namespace weighbridge::cli
