// SPDX-License-Identifier: Apache-2.0
// Finds, creates and checks the state folder and its key. Nothing here is an error: without a key, nothing is marked.
#include "io/state_key.h"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <string>

#include "codecs/checksum.h"
#include "io/fd.h"
#include "io/temporary.h"
#include "weighbridge/error.h"
#include "weighbridge/recover.h"

namespace weighbridge {

std::string io::user_folder(const char* variable, const char* below_home) {
  const auto absolute = [](const char* name) {
    const char* const value = std::getenv(name);
    return value != nullptr && *value == '/' ? std::string(value) : std::string();
  };
  std::string base = absolute(variable);
  if (base.empty()) {
    base = absolute("HOME");
    if (base.empty()) return {};
    base = join_path(base, below_home);
  }
  return join_path(base, "weighbridge");
}

namespace {

std::string state_path() {
  return io::os::is_shared() ? io::user_folder("XDG_STATE_HOME", ".local/state") : std::string();
}

// Creates a folder and those above it, but only below a folder of this user: with `sudo`, the home may be another's.
bool make_below_own(const std::string& path) {
  if (const auto there = io::os::status(io::os::kHere, path.c_str(), io::os::Last::followed))
    return there->kind == io::os::Kind::folder && there->owner == io::os::user();
  const std::string above = io::split_path(path).folder;
  return above != path && make_below_own(above) &&
         (io::os::make_folder(io::os::kHere, path.c_str(), 0700) == 0 || errno == EEXIST);
}

// The folder, if it is this user's alone.
io::Fd open_state(const std::string& path) {
  io::Fd fd = path.empty() ? io::Fd() : io::os::open_folder(io::os::kHere, path.c_str());
  const auto there = fd ? io::os::status(fd.get()) : std::nullopt;
  const bool own = there && there->owner == io::os::user() && (there->mode & 077) == 0;
  return own ? std::move(fd) : io::Fd();
}

}  // namespace

std::string state_folder(bool make) {
  std::string path = state_path();
  if (path.empty() || (make && !make_below_own(path)) || !open_state(path)) return {};
  return path;
}

namespace io {
namespace {

constexpr const char* kKeyFile = "journal-key";
using Key = std::array<std::byte, 32>;

std::optional<Key> read_key(int folder) {
  const Fd fd = os::open_to_read(folder, kKeyFile);
  const auto there = fd ? os::status(fd.get()) : std::nullopt;
  Key key{};
  if (!there || there->kind != os::Kind::file || there->owner != os::user() || (there->mode & 077) != 0 ||
      there->size != key.size())
    return std::nullopt;
  // An unreadable key counts as none; it is no reason to refuse a run.
  return os::read(fd.get(), key) == static_cast<std::int64_t>(key.size()) ? std::optional(key) : std::nullopt;
}

// Writes a key to the disk before a journal is marked with it. If two runs do so at once, the first one's key stays.
// Error{io}.
void make_key(int folder, const std::string& path) {
  Key key{};
  if (!os::random_bytes(key)) return;
  remove_stale(folder, kKeyFile);
  const Temporary made = create_temporary(folder, {path, kKeyFile}, 0600);
  const auto remove = [&] { os::remove(folder, made.name.c_str()); };
  try {
    pwrite_full(made.fd.get(), 0, key, kKeyFile);
  } catch (const Error&) {
    remove();
    throw;
  }
  if (os::sync(made.fd.get()) == 0 && rename_new(folder, made.name.c_str(), folder, kKeyFile) == 0)
    io::sync_folder(folder);
  else
    remove();
}

std::optional<Key> key_of_user(Missing missing) {
  const std::string path = state_folder(missing == Missing::make);
  const Fd folder = open_state(path);
  if (!folder) return std::nullopt;
  auto key = read_key(folder.get());
  if (key || missing != Missing::make) return key;
  make_key(folder.get(), path);
  return read_key(folder.get());
}

}  // namespace

std::optional<codecs::Digest256> mark_of(std::string_view text, Missing missing) try {
  const auto key = key_of_user(missing);
  if (!key) return std::nullopt;
  return codecs::hmac_sha256(*key, std::as_bytes(std::span(text)));
} catch (const Error&) {
  return std::nullopt;  // the key cannot be made
}

bool is_marked(std::string_view text, std::span<const std::byte> mark) {
  const auto right = mark_of(text, Missing::ignore);
  return right && codecs::same_mac(*right, mark);
}

std::string why_unmarked() {
  return state_folder().empty() ? "this user has no state folder, whose key would mark the user's own journals"
                                : "it is not marked with this user's key, so it may be somebody else's";
}

}  // namespace io
}  // namespace weighbridge
