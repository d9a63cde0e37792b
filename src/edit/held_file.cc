// SPDX-License-Identifier: Apache-2.0
// Opening a file to change it, and what can be said of a journal without knowing what it holds.
#include "edit/held_file.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>
#include <thread>

#include "base/checked.h"
#include "base/endian.h"
#include "base/fail.h"
#include "codecs/checksum.h"
#include "io/file_source.h"
#include "io/journal.h"
#include "io/state_key.h"

namespace weighbridge::edit_files {
namespace {

constexpr std::size_t kHash = 16, kMark = 32;
static_assert(kHash + kMark == kSeal);

// Stores that name files by the digests of their bytes: blobs/HASH of the Hub, blobs/sha256-HASH of ollama,
// blobs/sha256/HASH of OCI.
bool is_blob(const io::Target& target) {
  const auto folder = io::split_path(target.folder);
  const std::string_view name = target.name, ollama = "sha256-";
  if (folder.name == "sha256" && io::split_path(folder.folder).name == "blobs") return codecs::is_hex(name, 64);
  return folder.name == "blobs" && (codecs::is_hex(name, 40) || codecs::is_hex(name, 64) ||
                                    (name.starts_with(ollama) && codecs::is_hex(name.substr(ollama.size()), 64)));
}

std::string marked_text(std::uint64_t own, std::string_view before) {
  return "weighbridge edit\n" + std::to_string(own) + "\n" + std::string(before);
}

}  // namespace

HeldFile::HeldFile(const std::string& path, const std::string& now) : asked_(path) {
  target_ = io::resolve_target(path);
  folder_ = io::open_folder(target_.folder);
  const std::string& name = now.empty() ? target_.name : now;
  if (is_blob(target_))
    base::misuse_of(asked_, "hub-cache",
                    "the file is a blob of a store (a cache of the Hugging Face Hub, ollama, OCI), where its name is "
                    "the digest of its bytes: write a new file instead");
  const auto require_file = [&](const std::optional<io::os::Status>& there) {
    if (there && there->kind != io::os::Kind::file)
      base::misuse_of(
          asked_, "not-a-file",
          std::string("this is ") + io::file_kind(there->kind) + ", and only a regular file can be changed in place");
  };
  file_ = io::os::open_to_change(folder_.get(), name.c_str());
  if (!file_) {
    const int error = errno;
    require_file(io::os::status(folder_.get(), name.c_str()));
    if (error == EWOULDBLOCK)
      base::io_error_of(asked_, "in-use", "another process is changing the file: try again when it has finished");
    base::io_error_of(asked_, "open", "cannot be opened to change it", error);
  }
  const auto opened = io::os::status(file_.get());
  if (!opened) base::io_error_of(asked_, "open", "cannot be opened to change it", errno);
  require_file(opened);
  if ((opened->mode & 0222) == 0)
    base::misuse_of(asked_, "read-only",
                    "the file is read-only, so it is not changed in place: make it writable, or write a new file");
  inode_ = opened->inode;
  size_ = opened->size;
  names_ = opened->links;
  mode_ = opened->mode & 0666;
  lock();
}

// A lock keeps other runs of ours away. A lease is given only if no other process has the file open, and keeps them
// from opening it while it is held.
void HeldFile::lock() {
  if (io::os::lock(file_.get()) != 0 && errno == EWOULDBLOCK)  // else there are no locks on this filesystem
    base::io_error_of(asked_, "in-use", "another run is changing the file: try again when it has finished");
  // Another run that our lock has refused still has the file open for a moment: without patience, both would be
  // refused.
  constexpr int kTries = 20;
  int fault = 0;
  for (int left = kTries; left > 0; --left) {
    fault = io::os::take_lease(file_.get()) == 0 ? 0 : errno;
    if (fault != EAGAIN && fault != EBUSY) break;
    if (left > 1) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  if (fault == 0)
    alone_ = true;
  else if (fault == EAGAIN || fault == EBUSY)
    base::io_error_of(
        asked_, "in-use",
        "the file is open in another process, or elsewhere in this one, which would read a mix of old and new "
        "bytes: close it there, or write a new file");
}

void HeldFile::share() noexcept {
  if (alone_) io::os::end_lease(file_.get());
}

std::shared_ptr<const Source> HeldFile::source() const { return io::source_over(file_, asked_); }

std::vector<std::byte> HeldFile::read(std::uint64_t offset, std::uint64_t length) const {
  std::vector<std::byte> out(base::to_size(length));
  out.resize(io::pread_full(file_.get(), offset, out, asked_));
  return out;
}

void HeldFile::write(std::uint64_t offset, std::span<const std::byte> bytes) {
  io::pwrite_full(file_.get(), offset, bytes, asked_);
}

void HeldFile::sync(std::uint64_t size) {
  const auto now = io::os::status(file_.get());
  if (!now || (now->size != size && io::os::set_size(file_.get(), size) != 0))
    base::io_error_of(asked_, "write", "its size cannot be set", errno);
  if (io::os::sync(file_.get()) != 0) base::io_error_of(asked_, "write", "cannot be written to the disk", errno);
  size_ = size;
}

std::string sealed(std::string text, std::uint64_t own_inode, std::size_t skip) {
  const auto part = [&] { return std::string_view(text).substr(skip); };
  const auto mark = io::mark_of(marked_text(own_inode, part()), io::Missing::make).value_or(codecs::Digest256{});
  text.append(reinterpret_cast<const char*>(mark.data()), mark.size());
  const codecs::Hash128 all = codecs::xxh3_128(std::as_bytes(std::span(part())));
  for (const std::uint64_t half : {all.low, all.high}) base::append_le(text, half);
  return text;
}

std::optional<Unsealed> unseal(std::string_view bytes, std::uint64_t own_inode, bool has_mark) {
  const std::size_t after = kHash + (has_mark ? kMark : 0);
  if (bytes.size() < after) return std::nullopt;
  const auto all = std::as_bytes(std::span(bytes));
  const char* const hash = bytes.data() + bytes.size() - kHash;
  if (codecs::xxh3_128(all.first(bytes.size() - kHash)) !=
      codecs::Hash128{base::load_le<std::uint64_t>(hash), base::load_le<std::uint64_t>(hash + 8)})
    return std::nullopt;
  const std::string_view text = bytes.substr(0, bytes.size() - after);
  return Unsealed{text, has_mark && io::is_marked(marked_text(own_inode, text), all.subspan(text.size(), kMark))};
}

void JournalFile::refuse(const std::string& why) const { base::io_error_of(asked, "journal", about() + why); }

std::string JournalFile::about() const {
  return undo ? "the last edit cannot be undone: its journal is '" + path() + "', and "
              : "a journal of a change that was killed is beside this file ('" + path() + "'), and ";
}

std::optional<JournalFile::Found> JournalFile::find() const {
  io::Fd fd = io::os::open_to_read(folder, name.c_str());
  if (!fd) {
    if (errno == ENOENT) return std::nullopt;
    refuse(errno == ELOOP ? "it is a symbolic link: remove it if the file is sound"
                          : std::string("it cannot be opened: ") + std::strerror(errno));
  }
  const auto there = io::os::status(fd.get());
  if (!there || there->kind != io::os::Kind::file) refuse("it is not a regular file: remove it if the file is sound");
  return Found{std::move(fd), *there};
}

void JournalFile::require_own(const io::os::Status& there, bool marked) const {
  const std::string why = there.owner != io::os::user() ? "it belongs to another user"
                          : (there.mode & 022) != 0     ? "others can write to it"
                          : there.links != 1            ? "it has another name (a hard link)"
                          : !marked                     ? io::why_unmarked()
                                                        : std::string();
  if (!why.empty())
    io::refuse_journal(asked, "io/journal",
                       about() + why + ": trust it if you know where it comes from, or remove it if the file is sound",
                       undo ? "undo" : "recover");
}

void JournalFile::append(int fd, std::uint64_t at, std::string_view text) const {
  const auto bytes = std::as_bytes(std::span(text));
  io::pwrite_full(fd, at, bytes, asked);
  if (io::os::sync(fd) != 0) base::io_error_of(asked, "write", "its journal cannot be written", errno);
  std::vector<std::byte> back(std::min<std::size_t>(bytes.size(), std::size_t{1} << 20));
  for (std::size_t i = 0; i < bytes.size(); i += back.size()) {
    const auto piece = bytes.subspan(i, std::min(back.size(), bytes.size() - i));
    if (io::pread_full(fd, at + i, std::span(back).first(piece.size()), asked) != piece.size() ||
        std::memcmp(back.data(), piece.data(), piece.size()) != 0)
      base::io_error_of(asked, "read-back", "its journal does not read back as it was written; nothing was changed");
  }
}

io::Fd JournalFile::publish(const io::Target& target, unsigned mode,
                            const std::function<std::string(std::uint64_t own)>& text) const {
  io::Temporary made = io::create_temporary(folder, target, mode & 0600);
  const auto own = io::os::status(made.fd.get());
  try {
    append(made.fd.get(), 0, text(own ? own->inode : 0));
    if (io::rename_new(folder, made.name.c_str(), folder, name.c_str()) != 0)
      base::io_error_of(asked, "publish", "its journal cannot be renamed", errno);
  } catch (...) {
    io::os::remove(folder, made.name.c_str());
    throw;
  }
  if (io::sync_folder(folder) != 0) {
    const int error = errno;
    io::os::remove(folder, name.c_str());
    base::io_error_of(asked, "publish", "its folder cannot be written to the disk", error);
  }
  return std::move(made.fd);
}

}  // namespace weighbridge::edit_files
