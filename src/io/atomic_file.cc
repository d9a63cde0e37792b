// SPDX-License-Identifier: Apache-2.0
// The steps of publishing a file. The process may die after any of them.
#include "io/atomic_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "base/checked.h"
#include "base/fail.h"
#include "io/attributes.h"
#include "io/file_source.h"
#include "io/journal.h"
#include "io/publication.h"
#include "io/read.h"

namespace weighbridge::io {
namespace {

constexpr std::uint64_t kHintBytes = std::uint64_t{32} << 20;
// The target, if it exists; throws if it is not a regular file. Looks through links before they are resolved by hand,
// because only the kernel can follow /dev/stdout.
std::optional<os::Status> file_at(const std::string& target, os::Last last) {
  auto there = os::status(os::kHere, target.c_str(), last);
  // Whatever else keeps us from looking (a link in /tmp that the kernel does not follow) is not an absent file.
  if (!there && errno != ENOENT && errno != ENOTDIR) base::io_error_of(target, "create", "cannot be written", errno);
  if (there && there->kind != os::Kind::file)
    base::misuse_of(
        target, "output-kind",
        std::string("cannot be written: it is ") + file_kind(there->kind) + ", and only a regular file can be written");
  return there;
}

[[noreturn]] void refuse_existing_file(const std::string& target) {
  base::misuse_of(target, "output-exists", "the file exists", base::option_hint("overwrite"));
}

}  // namespace

AtomicFile::AtomicFile(const std::string& target, AtomicFileOptions options) : options_(options), asked_(target) {
  require_path(target);
  const auto look = [&] { return file_at(target, options_.beneath.empty() ? os::Last::followed : os::Last::itself); };
  auto existing = look();
  if (options_.beneath.empty()) {
    target_ = resolve_target(target);
  } else {
    SplitPath split = split_path(target);
    target_ = {std::move(split.folder), std::move(split.name)};
  }
  // In a temporary folder of this run there is nothing that another one left.
  const bool swept = options_.swept || is_temporary(split_path(target_.folder).name);
  if (!swept) {
    const Recovered left = recover(target_.folder);
    left.require_free(target_.folder, target_.name);
    existing = look();  // another run may have had the old file aside for a moment
  }
  if (existing && !options_.replace) refuse_existing();
  folder_ = options_.beneath.empty() ? open_folder(target_.folder) : open_folder_beneath(options_.beneath, target);
  if (!swept) remove_stale(folder_.get(), target_.name);
  if (existing) kept_mode_ = existing->mode & 0777;
  // A file that replaces a private one must be private while it is written.
  {
    const NamesChange creating;
    temporary_ = create_temporary(folder_.get(), target_, existing ? 0600 : 0666);
    on_abandon_.emplace([this] { discard(); });
  }
  try {
    // The list's mask, which the mode sets, keeps the file private until then.
    if (existing &&
        keep_attributes(os::open_to_read(folder_.get(), target_.name.c_str()), temporary_.fd, asked_, "create") &&
        os::set_mode(temporary_.fd.get(), 0600) != 0)
      base::io_error_of(asked_, "create", "the mode cannot be set", errno);
    reserve(options_.expected_size);
  } catch (...) {
    discard();
    throw;
  }
}

void AtomicFile::check(const std::string& target, bool replace) {
  require_path(target);
  const bool exists = file_at(target, os::Last::followed).has_value();
  const Target resolved = resolve_target(target);
  if (exists && !replace) refuse_existing_file(target);
  const Fd folder = open_folder(resolved.folder);
  if (os::may_write_into(folder.get()) != 0) base::io_error_of(target, "create", "cannot be written", errno);
}

AtomicFile::~AtomicFile() {
  const NamesChange removing;
  on_abandon_.reset();
  discard();  // also if it was published: a journal that was undone gave it back
}

void AtomicFile::discard() noexcept { os::remove(folder_.get(), temporary_.name.c_str()); }

void AtomicFile::refuse_existing() const { refuse_existing_file(asked_); }

void AtomicFile::reserve(std::uint64_t size) {
  if (size == 0) return;
  const std::string what = "there is no room for " + std::to_string(size) + " bytes";
  if (size > os::kMaxBytes) base::io_error_of(asked_, "write", what, EFBIG);
  if (os::allocate(temporary_.fd.get(), size) != 0 && !not_offered(errno))
    base::io_error_of(asked_, "write", what, errno);
}

void AtomicFile::write_at(std::uint64_t offset, std::span<const std::byte> data) {
  synced_.store(false, std::memory_order_relaxed);
  if (offset > os::kMaxBytes || data.size() > os::kMaxBytes - offset)
    base::io_error_of(asked_, "write", "cannot be written", EFBIG);
  pwrite_full(temporary_.fd.get(), offset, data, asked_);
}

void AtomicFile::hint_written(std::uint64_t offset, std::uint64_t length) noexcept {
  if (length == 0 || offset > os::kMaxBytes || length > os::kMaxBytes - offset) return;
  std::uint64_t begin = 0, end = 0;
  {
    const std::lock_guard lock(hint_mutex_);
    if (hint_begin_ == hint_end_) hint_begin_ = offset;
    hint_begin_ = std::min(hint_begin_, offset);
    hint_end_ = std::max(hint_end_, offset + length);
    if (hint_end_ - hint_begin_ < kHintBytes) return;
    begin = hint_begin_;
    end = hint_end_;
    hint_begin_ = hint_end_;
  }
  // Best effort: sync() reports errors.
  os::start_writing(temporary_.fd.get(), begin, end - begin);
}

void AtomicFile::sync(std::uint64_t size) {
  const auto now = os::status(temporary_.fd.get());
  if (!now) base::io_error_of(asked_, "write", "cannot be written", errno);
  if (size > os::kMaxBytes) base::io_error_of(asked_, "write", "cannot be written", EFBIG);
  if (now->size != size && os::set_size(temporary_.fd.get(), size) != 0)
    base::io_error_of(asked_, "write", "the size cannot be set", errno);
  // No retry after a failure: the kernel may have dropped the pages, and a second fsync would report success.
  if (os::sync(temporary_.fd.get()) != 0) base::io_error_of(asked_, "write", "cannot be written to the disk", errno);
  synced_.store(true, std::memory_order_relaxed);
}

std::shared_ptr<const Source> AtomicFile::reopen() const {
  const std::string path = temporary_path();
  Fd fd = os::open_to_read(folder_.get(), temporary_.name.c_str());
  if (!fd) base::io_error_of(path, "open", "cannot be opened to read it back", errno);
  return source_from_fd(std::move(fd), path);
}

void AtomicFile::read_back(std::span<const std::byte> expected) const {
  const std::shared_ptr<const Source> file = reopen();
  std::vector<std::byte> again(expected.size());
  if (file->size() == again.size()) file->read_at(0, again);
  if (file->size() != again.size() || !std::ranges::equal(again, expected)) refuse_read_back();
}

void AtomicFile::read_back(const Source& written, std::uint64_t at, const Source& original, std::uint64_t from,
                           std::uint64_t length, const std::function<void(std::uint64_t)>& did) const {
  std::vector<std::byte> found;
  read_pieces(original, from, from + length, [&](std::uint64_t offset, std::span<const std::byte> expected) {
    found.resize(expected.size());
    written.read_at(at + (offset - from), found);
    if (std::memcmp(expected.data(), found.data(), found.size()) != 0) refuse_read_back();
    if (did) did(found.size());
    return true;
  });
}

void AtomicFile::write_whole(std::span<const std::byte> bytes) {
  write_at(0, bytes);
  sync(bytes.size());
  read_back(bytes);
}

void AtomicFile::refuse_read_back() const {
  base::io_error_of(asked_, "read-back", "the file does not read back as it was written; nothing was published");
}

void AtomicFile::publish() { Publication(*this).publish(); }

void AtomicFile::take_name() {
  if (!synced_.load(std::memory_order_relaxed)) throw std::logic_error("publish() needs a sync() before it");
  if (kept_mode_ && os::set_mode(temporary_.fd.get(), *kept_mode_) != 0)
    base::io_error_of(asked_, "publish", "the mode cannot be set", errno);
  const NamesChange publishing;
  const char* const from = temporary_.name.c_str();
  const char* const to = target_.name.c_str();
  if (options_.replace) {
    if (os::rename_over(folder_.get(), from, folder_.get(), to) != 0)
      base::io_error_of(asked_, "publish", "cannot be replaced", errno);
  } else if (rename_new(folder_.get(), from, folder_.get(), to) != 0) {
    if (errno == EEXIST) refuse_existing();
    base::io_error_of(asked_, "publish", "cannot be published", errno);
  }
  synced_.store(false, std::memory_order_relaxed);
  if (sync_folder(folder_.get()) != 0)
    base::io_error_of(asked_, "publish", "its folder cannot be written to the disk", errno);
}

}  // namespace weighbridge::io
