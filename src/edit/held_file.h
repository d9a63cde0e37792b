// SPDX-License-Identifier: Apache-2.0
// A file that is open to be changed in place, and the journal beside it. Owns which files are refused, the lease that
// shows that no other process has the file open, and whose journals are used. What a journal says is up to its writer:
// patched_file.h (one range), applying.h (several files).
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/fd.h"
#include "io/temporary.h"
#include "weighbridge/recover.h"
#include "weighbridge/source.h"

namespace weighbridge::edit_files {

// Which journals to use: only those with this user's mark, or any that fits the file.
enum class Trust : std::uint8_t { own, any };
// Called with what settling does, before it changes anything.
using Show = std::function<void(const std::vector<RecoveryStep>&)>;

class HeldFile {
 public:
  // Opens the file, with links resolved, for this process alone. `now`: its name, if it is not that of the path. Error
  // io/open; misuse/not-a-file, misuse/read-only, misuse/hub-cache; io/in-use: another process has it open.
  explicit HeldFile(const std::string& path, const std::string& now = {});
  HeldFile(const HeldFile&) = delete;
  HeldFile& operator=(const HeldFile&) = delete;
  virtual ~HeldFile() = default;  // a PatchedFile is held as one

  // Names of the file (hard links), all of which show a change.
  std::uint64_t names() const noexcept { return names_; }
  // Whether the OS confirmed that no other process has the file open. Otherwise only our own lock keeps other runs out.
  bool alone() const noexcept { return alone_; }
  std::uint64_t size() const noexcept { return size_; }
  std::uint64_t inode() const noexcept { return inode_; }
  unsigned mode() const noexcept { return mode_; }
  const io::Target& target() const noexcept { return target_; }  // its own name, whatever it is called now
  int folder() const noexcept { return folder_.get(); }
  // Reads through the same open file, because opening it again would wait for the lease. Valid until the next change.
  std::shared_ptr<const Source> source() const;

  // Of the open file, for calls of the system that copy between files.
  int descriptor() const noexcept { return file_.get(); }
  // Lets other processes open the file again; our lock stays. For an edit that leaves the file as it is, and replaces
  // it.
  void share() noexcept;

  std::vector<std::byte> read(std::uint64_t offset, std::uint64_t length) const;  // less at the end of the file
  void write(std::uint64_t offset, std::span<const std::byte> bytes);
  // Sets the size, and syncs.
  void sync(std::uint64_t size);

 protected:
  std::string asked_;
  io::Target target_;
  io::Fd folder_, file_;
  std::uint64_t inode_ = 0, size_ = 0, names_ = 0;
  unsigned mode_ = 0;
  bool alone_ = false;

 private:
  void lock();
};

// Text of a journal with a mark (io/state_key.h) over it and the journal's own inode, 32 bytes or zeros without a key,
// and the XXH3-128 of all before: it cannot be changed or copied.
// `skip`: how much in front of the text is not part of it.
std::string sealed(std::string text, std::uint64_t own_inode, std::size_t skip = 0);
inline constexpr std::size_t kSeal = 48;  // bytes that it adds
struct Unsealed {
  std::string_view text;
  bool marked = false;  // by this user's key
};
// nullopt: damaged. Journals of weighbridge 0.2 have no mark.
std::optional<Unsealed> unseal(std::string_view bytes, std::uint64_t own_inode, bool has_mark = true);

// A name beside the file `asked` where its journal is, or will be.
struct JournalFile {
  std::string asked, folder_path;
  int folder = -1;
  std::string name;
  bool undo = false;  // of a complete change

  std::string path() const { return io::join_path(folder_path, name); }
  std::string about() const;  // the beginning of a message
  [[noreturn]] void refuse(const std::string& why) const;
  struct Found {
    io::Fd fd;
    io::os::Status there;
  };
  // nullopt: there is none. Error io/journal if it is no regular file, or cannot be opened.
  std::optional<Found> find() const;
  // Throws Error io/journal if the journal may be another user's: anything may come with an archive, or be put into a
  // folder where others may write.
  void require_own(const io::os::Status& there, bool marked) const;
  // Gives a complete journal its name, on the disk. `text` gets the journal's inode.
  io::Fd publish(const io::Target&, unsigned mode, const std::function<std::string(std::uint64_t own)>& text) const;
  // Writes, syncs and reads back.
  void append(int fd, std::uint64_t at, std::string_view text) const;
};

}  // namespace weighbridge::edit_files
