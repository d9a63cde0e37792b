// SPDX-License-Identifier: Apache-2.0
// The steps of a change of several files. The process may die after any of them.
#include "edit/applying.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <optional>
#include <utility>

#include "base/checked.h"
#include "base/endian.h"
#include "base/fail.h"
#include "codecs/codec.h"
#include "io/abandon.h"
#include "io/journal.h"

namespace weighbridge::edit_files {
namespace {

using Left = Edited::Left;

constexpr std::string_view kMagic = "weighbridge apply 1\n";
constexpr std::uint64_t kMaxEntry = std::uint64_t{64} << 20;
constexpr std::size_t kLengths = 16;  // of an entry, and its complement
constexpr std::uint8_t kFar = 255;    // a gap without a byte

std::string applying_name(const std::string& name) { return name + std::string(io::kApplying); }

// Takes numbers and bytes from the front. Whether there were enough is asked afterwards.
struct Taker {
  std::string_view left;
  bool short_of = false;
  std::string_view bytes(std::size_t n) {
    short_of = short_of || n > left.size();
    const std::string_view out = left.substr(0, short_of ? 0 : n);
    left.remove_prefix(out.size());
    return out;
  }
  template <class T> T number() {
    const std::string_view from = bytes(sizeof(T));
    return short_of ? T{} : base::load_le<T>(from.data());
  }
};

struct Logged {
  std::uint64_t inode = 0, size = 0;
  std::string name{};
};

// A range whose old bytes are in the log.
struct OldRange {
  std::uint32_t file = 0, length = 0;
  std::uint64_t offset = 0;
  codecs::Hash128 hash{};
  std::vector<std::byte> old{};  // decoded: gaps and bytes
};

// Puts the old bytes into the range as it is now. False if they do not fit.
bool restore(const OldRange& range, std::span<std::byte> now) {
  Taker in{{reinterpret_cast<const char*>(range.old.data()), range.old.size()}};
  const std::string_view gaps = in.bytes(in.number<std::uint32_t>());
  std::size_t at = 0, used = 0;
  for (const char each : gaps) {
    const auto gap = static_cast<std::uint8_t>(each);
    at += gap;
    if (gap == kFar) continue;
    if (at >= now.size() || used >= in.left.size()) return false;
    now[at++] = static_cast<std::byte>(in.left[used++]);
  }
  return !in.short_of && used == in.left.size() && now.size() == range.length && codecs::xxh3_128(now) == range.hash;
}

// A log as it was found.
class Log {
 public:
  explicit Log(JournalFile journal) : journal_(std::move(journal)), found_(journal_.find()) {}

  bool is_there() const {
    std::string begin(kMagic.size(), '\0');
    return found_ &&
           io::os::read_at(found_->fd.get(), 0, std::as_writable_bytes(std::span(begin))) ==
               static_cast<std::int64_t>(begin.size()) &&
           begin == kMagic;
  }

  // Reads the log: `use` gets each range of it.
  void read(const std::function<void(OldRange&)>& use) {
    std::string text;
    const std::uint64_t size = found_->there.size;
    state = 0;
    for (end = kMagic.size(), entries = 0; size - end >= kLengths; ++entries) {
      char lengths[kLengths];
      take(end, std::as_writable_bytes(std::span(lengths)));
      const auto length = base::load_le<std::uint64_t>(lengths);
      if (length > kMaxEntry || base::load_le<std::uint64_t>(lengths + 8) != ~length) damaged();
      if (length > size - end - kLengths) break;
      text.resize(base::to_size(length));
      take(end + kLengths, std::as_writable_bytes(std::span(text)));
      const auto entry = unseal(text, found_->there.inode);
      Taker in{entry ? entry->text : std::string_view()};
      if (in.number<std::uint64_t>() != entries || in.left.empty()) damaged();
      marked = marked && entry->marked;
      end += kLengths + length;
      const char kind = in.bytes(1)[0];
      if (kind == 'f') {
        files.clear();
        while (!in.left.empty()) {
          Logged file{.inode = in.number<std::uint64_t>(), .size = in.number<std::uint64_t>()};
          file.name = in.bytes(in.number<std::uint32_t>());
          if (in.short_of || file.name.empty() || file.name.find('/') != std::string::npos ||
              file.name.size() > io::kMaxName)
            damaged();
          files.push_back(std::move(file));
        }
      } else if (kind == 'g') {
        while (!in.left.empty()) take_range(in, use);
      }
      state = kind;
    }
    if (files.empty()) damaged();
  }

  [[noreturn]] void damaged() const {
    journal_.refuse("it is damaged: verify the files, and remove the journal if they are sound");
  }
  const JournalFile& journal() const noexcept { return journal_; }
  const io::os::Status& there() const noexcept { return found_->there; }

  std::vector<Logged> files{};
  char state = 0;      // the kind of the last entry
  bool marked = true;  // every entry is, by this user's key
  std::uint64_t end = 0, entries = 0;

 private:
  void take(std::uint64_t at, std::span<std::byte> out) const {
    if (io::pread_full(found_->fd.get(), at, out, journal_.path()) != out.size()) damaged();
  }
  void take_range(Taker& in, const std::function<void(OldRange&)>& use) {
    OldRange range;
    range.file = in.number<std::uint32_t>();
    range.offset = in.number<std::uint64_t>();
    range.length = in.number<std::uint32_t>();
    range.hash.low = in.number<std::uint64_t>();
    range.hash.high = in.number<std::uint64_t>();
    const auto size = in.number<std::uint32_t>();
    const auto stored = std::as_bytes(std::span(in.bytes(in.number<std::uint32_t>())));
    if (in.short_of || range.file >= files.size() || range.length > Applying::kPiece || size < 4 ||
        size > 4 + 2 * range.length || !base::fits(range.offset, range.length, files[range.file].size))
      damaged();
    range.old.resize(size);
    if (!codecs::decode(codecs::kZstd, stored, range.old).ok()) damaged();
    if (use) use(range);
  }

  JournalFile journal_;
  std::optional<JournalFile::Found> found_;
};

JournalFile journal_at(const io::Target& target, int folder, const std::string& name, const std::string& asked) {
  return {asked, target.folder, folder, name};
}

void rename_back(int folder, const std::string& name, const std::string& asked) {
  if (io::rename_new(folder, applying_name(name).c_str(), folder, name.c_str()) == 0 || errno == ENOENT) return;
  base::io_error_of(asked, "publish", "'" + applying_name(name) + "' cannot get back its name '" + name + "'", errno);
}

// Syncs the names, and then removes the log.
void drop_log(const JournalFile& journal) {
  if (io::sync_folder(journal.folder) != 0 || io::os::remove(journal.folder, journal.name.c_str()) != 0)
    base::io_error_of(journal.asked, "publish", "its journal cannot be removed", errno);
  io::sync_folder(journal.folder);
}

// The beginning of an entry, to which its kind's data are appended.
std::string begun(std::uint64_t number, char kind) {
  std::string out(kLengths, '\0');
  base::append_le(out, number);
  return out += kind;
}
std::string ended(std::string entry, std::uint64_t own) {
  const std::uint64_t length = entry.size() - kLengths + kSeal;
  base::store_le<std::uint64_t>(entry.data(), length);
  base::store_le<std::uint64_t>(entry.data() + 8, ~length);
  return sealed(std::move(entry), own, kLengths);
}

using Held = std::vector<std::unique_ptr<HeldFile>>;

// `held`: the files of the log, if this process has them open.
Left settle(Log& log, Trust trust, const Show& show, Held held = {}) {
  const JournalFile& journal = log.journal();
  std::vector<std::uint64_t> changed;  // bytes of ranges, by file
  log.read([&](const OldRange& range) {
    changed.resize(log.files.size());
    changed[range.file] += range.length;
  });
  changed.resize(log.files.size());
  if (trust == Trust::own) journal.require_own(log.there(), log.marked);
  const bool undo = log.state == 'f' || log.state == 'g';
  held.resize(log.files.size());
  std::vector<RecoveryStep> steps;
  for (std::size_t i = 0; i < log.files.size(); ++i) {
    const Logged& file = log.files[i];
    std::string now;
    for (const std::string& name : {file.name, applying_name(file.name)})
      if (const auto there = io::os::status(journal.folder, name.c_str()); there && there->inode == file.inode)
        now = name;
    if (now.empty() && undo && changed[i] > 0)
      journal.refuse("its file '" + file.name + "' is gone, or another one has its name");
    if (now.empty()) continue;
    if (!held[i]) held[i] = std::make_unique<HeldFile>(io::join_path(journal.folder_path, file.name), now);
    if (undo && changed[i] > 0 && held[i]->size() != file.size)
      journal.refuse("something else has changed the size of '" + file.name + "' since");
    if (undo && changed[i] > 0) steps.push_back({.way = RecoveryStep::Way::write, .from = now, .length = changed[i]});
    if (now != file.name) steps.push_back({.way = RecoveryStep::Way::rename, .from = now, .to = file.name});
  }
  steps.push_back({.way = RecoveryStep::Way::remove, .from = journal.name});
  const auto still = io::os::status(journal.folder, journal.name.c_str());
  if (!still || still->inode != log.there().inode) return Left::undone;  // by another run
  // First all is looked at: what somebody else has changed stays as it is.
  const auto each_range = [&](const std::function<void(const OldRange&, std::span<const std::byte>)>& use) {
    log.read([&](OldRange& range) {
      auto now = held[range.file]->read(range.offset, range.length);
      if (!restore(range, now))
        journal.refuse("something else has changed '" + log.files[range.file].name +
                       "' since: remove the journal if the file is sound");
      if (use) use(range, now);
    });
  };
  if (undo) each_range({});
  if (show) show(steps);
  const io::NamesChange settling;
  if (undo) {
    each_range(
        [&](const OldRange& range, std::span<const std::byte> old) { held[range.file]->write(range.offset, old); });
    for (std::size_t i = 0; i < held.size(); ++i)
      if (changed[i] > 0) held[i]->sync(held[i]->size());
    const io::Fd fd = io::os::open_to_change(journal.folder, journal.name.c_str());
    if (!fd || io::os::set_size(fd.get(), log.end) != 0)
      base::io_error_of(journal.asked, "write", "its journal cannot be written", errno);
    journal.append(fd.get(), log.end, ended(begun(log.entries, 'u'), log.there().inode));
  }
  for (std::size_t i = 0; i < held.size(); ++i)
    if (held[i]) rename_back(journal.folder, log.files[i].name, journal.asked);
  drop_log(journal);
  return log.state == 'd' ? Left::finished : Left::undone;
}

bool is_edit_journal(std::string_view name) {
  return name.starts_with('.') && name.ends_with(".weighbridge-edit.journal");
}

}  // namespace

Applying::Applying(std::vector<std::unique_ptr<HeldFile>> files)
    : files_(std::move(files)), folder_(io::open_folder(files_.front()->target().folder)) {
  const HeldFile& first = *files_.front();
  const io::Target& target = first.target();
  journal_ = journal_at(target, folder_.get(), io::edit_file_name(target.name, io::EditFile::journal), target.path());
  std::string rest;
  for (const auto& file : files_) {
    const std::string& name = file->target().name;
    if (name.size() + io::kApplying.size() > io::kMaxName)
      base::misuse_of(file->target().path(), "in-place", "its name is too long to be changed in place");
    if (io::os::status(journal_.folder, applying_name(name).c_str()))
      base::io_error_of(
          file->target().path(), "applying",
          "'" + applying_name(name) + "' exists, which a run that was killed may have left: move it away");
    base::append_le(rest, file->inode());
    base::append_le(rest, file->size());
    base::append_le(rest, static_cast<std::uint32_t>(name.size()));
    rest += name;
  }
  const io::NamesChange changing;
  log_ = journal_.publish(target, first.mode(), [&](std::uint64_t own) {
    own_ = own;
    std::string text = std::string(kMagic) + ended(begun(entries_++, 'f') + rest, own);
    end_ = text.size();
    return text;
  });
  try {
    for (const auto& file : files_) {
      const std::string& name = file->target().name;
      if (io::rename_new(journal_.folder, name.c_str(), journal_.folder, applying_name(name).c_str()) != 0)
        base::io_error_of(file->target().path(), "publish", "it cannot be renamed", errno);
    }
    if (io::sync_folder(journal_.folder) != 0)
      base::io_error_of(target.path(), "publish", "its folder cannot be written to the disk", errno);
  } catch (...) {
    try {
      for (const auto& file : files_) rename_back(journal_.folder, file->target().name, journal_.asked);
      drop_log(journal_);
    } catch (...) {  // the log stays, and the next run undoes it
    }
    throw;
  }
}

Applying::~Applying() {
  if (done_) return;
  try {
    const io::NamesChange undoing;
    // Without an entry that was not complete.
    if (io::os::set_size(log_.get(), end_) != 0) return;
    Log log(journal_);
    settle(log, Trust::any, {}, std::move(files_));
  } catch (...) {  // the next run undoes it
  }
}

void Applying::prepare(Piece& piece) const {
  const auto old = files_[piece.file]->read(piece.offset, piece.bytes.size());
  if (old.size() != piece.bytes.size())
    base::io_error_of(files_[piece.file]->target().path(), "short-read", "the file shrank while it was read");
  piece.hash = codecs::xxh3_128(old);
  std::string gaps, bytes;
  std::size_t last = 0;
  piece.before = old.size();
  piece.end = 0;
  for (std::size_t i = 0; i < old.size(); ++i) {
    if (old[i] == piece.bytes[i]) continue;
    piece.before = std::min(piece.before, i);
    piece.end = i + 1;
    for (; i - last >= kFar; last += kFar) gaps += static_cast<char>(kFar);
    gaps += static_cast<char>(i - last);
    bytes += static_cast<char>(old[i]);
    last = i + 1;
  }
  piece.old.clear();
  if (piece.end == 0) return;
  std::string all;
  base::append_le(all, static_cast<std::uint32_t>(gaps.size()));
  all += gaps;
  all += bytes;
  piece.size = static_cast<std::uint32_t>(all.size());
  piece.old = codecs::encode(codecs::kZstd, std::as_bytes(std::span(all)), 1);
}

void Applying::append(std::string entry) {
  entry = ended(std::move(entry), own_);
  journal_.append(log_.get(), end_, entry);
  end_ += entry.size();
  ++entries_;
}

void Applying::write(std::span<const Piece> pieces) {
  std::string entry = begun(entries_, 'g');
  const std::size_t none = entry.size();
  for (const Piece& piece : pieces) {
    if (piece.end == 0) continue;
    base::append_le(entry, piece.file);
    base::append_le(entry, piece.offset);
    base::append_le(entry, static_cast<std::uint32_t>(piece.bytes.size()));
    base::append_le(entry, piece.hash.low);
    base::append_le(entry, piece.hash.high);
    base::append_le(entry, piece.size);
    base::append_le(entry, static_cast<std::uint32_t>(piece.old.size()));
    entry.append(reinterpret_cast<const char*>(piece.old.data()), piece.old.size());
  }
  if (entry.size() == none) return;
  append(std::move(entry));
  std::vector<bool> touched(files_.size());
  for (const Piece& piece : pieces) {
    if (piece.end == 0) continue;
    files_[piece.file]->write(piece.offset + piece.before,
                              std::span(piece.bytes).subspan(piece.before, piece.end - piece.before));
    touched[piece.file] = true;
  }
  for (std::size_t i = 0; i < files_.size(); ++i)
    if (touched[i]) files_[i]->sync(files_[i]->size());
}

void Applying::finish() {
  const io::NamesChange changing;
  append(begun(entries_, 'd'));
  done_ = true;  // from here on, the next run finishes it
  for (const auto& file : files_) rename_back(journal_.folder, file->target().name, file->target().path());
  drop_log(journal_);
}

Left settle_applying(const std::string& path, Trust trust, const Show& show) {
  const io::Target target = io::resolve_target(path);
  const io::Fd folder = io::os::open_folder(io::os::kHere, target.folder.c_str(), io::os::Last::followed);
  if (!folder) return Left::nothing;  // opening the file says why
  const auto log_at = [&](const std::string& name) { return Log(journal_at(target, folder.get(), name, path)); };
  if (Log log = log_at(io::edit_file_name(target.name, io::EditFile::journal)); log.is_there())
    return settle(log, trust, show);
  // It may have changed with another file, whose journal it then is.
  const auto exists = [&](const std::string& name) { return io::os::status(folder.get(), name.c_str()).has_value(); };
  if (exists(target.name) || !exists(applying_name(target.name))) return Left::nothing;
  for (const std::string& name : io::os::list(folder.get()).value_or(std::vector<std::string>())) {
    if (!is_edit_journal(name)) continue;
    Log log = log_at(name);
    if (!log.is_there()) continue;
    log.read({});
    if (std::ranges::find(log.files, target.name, &Logged::name) != log.files.end()) return settle(log, trust, show);
  }
  base::io_error_of(path, "applying",
                    "a patch was being applied to this file when the run was killed, and the journal of that run is "
                    "gone: '" +
                        applying_name(target.name) + "' may be neither the old nor the new file");
}

Left settle_folder(const std::string& path, Trust trust, const Show& show) {
  const io::Fd folder = io::open_folder(path);
  Left out = Left::nothing;
  for (const std::string& name : io::os::list(folder.get()).value_or(std::vector<std::string>())) {
    if (!is_edit_journal(name)) continue;
    Log log(journal_at({path, {}}, folder.get(), name, io::join_path(path, name)));
    if (log.is_there()) out = settle(log, trust, show);
  }
  return out;
}

}  // namespace weighbridge::edit_files
