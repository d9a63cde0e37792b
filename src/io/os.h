// SPDX-License-Identifier: Apache-2.0
// The floor: all that the library asks of the operating system about files. Only os_*.cc include the system's headers:
// os_posix.cc has the calls of POSIX, and one source for each system has the rest. Nothing here throws for what the
// system refuses, waits, or decides: which links may be followed, in which order names change and what an error means
// is up to the callers.
//
// A call that fails returns -1, false or something empty, with errno. Interrupted calls are repeated, except closing.
// A name is looked up beneath a folder that is open; kHere is the working directory, and an absolute path ignores it.
//
// What other systems will answer:
//   macOS: os_posix.cc serves it. rename_unless_taken() and exchange() are renamex_np(RENAME_EXCL, RENAME_SWAP);
//     allocate() is F_PREALLOCATE; sync() must be F_FULLFSYNC, since fsync() leaves the bytes in the drive's cache;
//     open_beneath() is refused (ENOSYS), and callers then walk; clone() is not offered for ranges; O_PATH is missing,
//     so enter_folder() needs O_SEARCH; there is no lease.
//   Windows: a Handle holds a HANDLE, so Fd closes it by CloseHandle. Names beneath a folder need NtCreateFile with a
//     root directory; inode and device are FILE_ID_INFO; replacing by rename needs FILE_RENAME_POSIX_SEMANTICS;
//     exchange() is refused (ENOSYS), and callers set the old file aside; lock() is LockFileEx on a byte far behind the
//     end, which a folder does not have: callers would lock a file in it; sync() of a folder succeeds and does nothing.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weighbridge::io {

// Owns a handle of the system and closes it. -1 means none.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) noexcept : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    Fd(std::move(other)).swap(*this);
    return *this;
  }
  ~Fd();
  int get() const noexcept { return fd_; }
  // The handle, which the caller closes.
  int release() noexcept { return std::exchange(fd_, -1); }
  explicit operator bool() const noexcept { return fd_ >= 0; }
  void swap(Fd& other) noexcept { std::swap(fd_, other.fd_); }

 private:
  int fd_ = -1;
};

namespace os {

using Handle = int;
inline constexpr Handle kHere = -100;

enum class Kind : std::uint8_t { file, folder, link, fifo, socket, character_device, block_device, other };
struct Time {
  std::int64_t seconds = 0;
  std::int64_t nanoseconds = 0;
  bool operator==(const Time&) const = default;
};
// What the system knows of a file. Device and inode are its identity.
struct Status {
  Kind kind = Kind::other;
  unsigned mode = 0;  // permission bits of POSIX, with set-user-id, set-group-id and the sticky bit
  std::uint64_t device = 0, inode = 0, size = 0, links = 0;
  std::uint32_t owner = 0;
  Time modified{}, changed{};
  bool is_same_file(const Status& other) const noexcept { return device == other.device && inode == other.inode; }
};

enum class Last : bool { itself, followed };  // what the last component of a path means if it is a link

// ---- opening; what is opened is closed by exec ----

// For reading. A FIFO is opened at once, without a writer. A lease of another process is EWOULDBLOCK.
Fd open_to_read(Handle folder, const char* name, Last = Last::itself) noexcept;
// For reading and writing.
Fd open_to_change(Handle folder, const char* name) noexcept;
// A new file, for reading and writing; EEXIST if the name is taken. `mode` less the umask.
Fd create(Handle folder, const char* name, unsigned mode) noexcept;
// A folder, to list, lock and sync it. ENOTDIR if it is something else.
Fd open_folder(Handle folder, const char* name, Last = Last::itself) noexcept;
// A folder, only to look up names in it: its reader needs no permission to list it.
Fd enter_folder(Handle folder, const char* name, Last = Last::itself) noexcept;
// The file at a relative path, as open_to_read(). Follows links that stay beneath the folder; EXDEV if one leads out.
// ENOSYS, and EPERM in some sandboxes, if the system cannot do that in one call.
Fd open_beneath(Handle folder, const char* path) noexcept;
Fd duplicate(Handle) noexcept;

// ---- what is there ----

std::optional<Status> status(Handle) noexcept;
std::optional<Status> status(Handle folder, const char* name, Last = Last::itself) noexcept;
// A link, and the text in it: of one link, even if another takes its name meanwhile. EINVAL if it is no link.
struct Link {
  Status status{};
  std::string text{};
};
std::optional<Link> link_at(Handle folder, const char* name);
// The names in a folder, without "." and "..", in no order.
std::optional<std::vector<std::string>> list(Handle folder);
// Whether this process may add and remove names in the folder. 0, or -1 with errno.
int may_write_into(Handle folder) noexcept;

// ---- names ----

int make_folder(Handle folder, const char* name, unsigned mode) noexcept;
int remove(Handle folder, const char* name) noexcept;         // a file or a link
int remove_folder(Handle folder, const char* name) noexcept;  // an empty one
// Renames, and replaces `to` if it exists.
int rename_over(Handle from_folder, const char* from, Handle to_folder, const char* to) noexcept;
// Renames a file or a folder in one step; EEXIST if `to` exists. ENOSYS or EINVAL if the system or the filesystem
// cannot: io::rename_new() then does it in another way.
int rename_unless_taken(Handle from_folder, const char* from, Handle to_folder, const char* to) noexcept;
// Swaps two names in one step.
int exchange(Handle folder, const char* name, Handle other_folder, const char* other_name) noexcept;
// A second name for a file (a hard link).
int add_name(Handle from_folder, const char* from, Handle to_folder, const char* to) noexcept;

// ---- bytes ----

// At most as many bytes as fit; returns how many.
std::int64_t read_at(Handle, std::uint64_t offset, std::span<std::byte> out) noexcept;
std::int64_t read(Handle, std::span<std::byte> out) noexcept;  // from where the last one ended
std::int64_t write_at(Handle, std::uint64_t offset, std::span<const std::byte> data) noexcept;
// Reads neighboring bytes into several buffers with one call; at most kMaxBuffers of them.
inline constexpr std::size_t kMaxBuffers = 1024;
std::int64_t read_at(Handle, std::uint64_t offset, std::span<const std::span<std::byte>> out) noexcept;
// Bytes of the file in memory, for as long as the pointer lives. Null if the system cannot map them.
std::shared_ptr<const std::byte> map(Handle, std::uint64_t offset, std::uint64_t length);
void will_need(Handle, std::uint64_t offset, std::uint64_t length) noexcept;  // a hint to read ahead
// Where the next byte of data, or the next hole, is at or after `offset`; ENXIO if there is none. A filesystem without
// holes has data up to its end.
std::int64_t next_data(Handle, std::uint64_t offset) noexcept;
std::int64_t next_hole(Handle, std::uint64_t offset) noexcept;
inline constexpr std::uint64_t kMaxBytes = INT64_MAX;  // of a file
int set_size(Handle, std::uint64_t size) noexcept;
// Reserves space on the disk, and writes nothing: ENOSYS or EOPNOTSUPP if the filesystem would have to.
int allocate(Handle, std::uint64_t size) noexcept;
void start_writing(Handle, std::uint64_t offset, std::uint64_t length) noexcept;  // a hint to write to the disk
// Returns when the bytes of a file, or the names in a folder, are on the disk.
int sync(Handle) noexcept;
// Lets files share the blocks of a range.
int clone_range(Handle from, std::uint64_t at, std::uint64_t length, Handle to, std::uint64_t to_at) noexcept;
// Copies at most `length` bytes inside the system; returns how many.
std::int64_t copy_range(Handle from, std::uint64_t at, std::uint64_t length, Handle to, std::uint64_t to_at) noexcept;

// ---- who may use a file ----

std::uint32_t user() noexcept;
int set_mode(Handle, unsigned mode) noexcept;
// The extended attributes of a file. ENOTSUP if there are none here, ENODATA if it lacks one.
std::optional<std::string> attribute_names(Handle);  // each followed by a NUL
std::optional<std::string> attribute(Handle, const char* name);
int set_attribute(Handle, const char* name, std::string_view value) noexcept;
int remove_attribute(Handle, const char* name) noexcept;

// Whether other processes can use these files, so that locks mean something and files outlive the process. Not in
// WebAssembly, whose disk is in memory.
bool is_shared() noexcept;
// Takes the only lock of a file or folder, which ends with the handle's last duplicate. EWOULDBLOCK if somebody has it.
int lock(Handle) noexcept;
// Keeps other processes from opening the file; EAGAIN or EBUSY if one has it open, ENOSYS if the system has no leases.
// A process that waits to open it raises a signal that is ignored.
int take_lease(Handle) noexcept;
void end_lease(Handle) noexcept;

// ---- the process ----

// Fills at most 256 bytes with random numbers.
bool random_bytes(std::span<std::byte> out) noexcept;
// How many files it may have open; SIZE_MAX if it is not known.
std::size_t max_open_files() noexcept;

}  // namespace os
}  // namespace weighbridge::io
