// SPDX-License-Identifier: Apache-2.0
// The bytes of a journal of several changed names: fields, each ended by a NUL. Owns their limits, and who wrote them.
//
//   "weighbridge journal 3" | mark |
//   for each change: name, fresh, aside, inode, old inode, size, time, block, old size, old block | "end"
//
// The mark is 64 hexadecimal digits (state_key.h) over the inodes of folder and journal and everything after the mark:
// a journal cannot be changed, copied, or moved to another folder. It is empty if the run had no key. Inode, size, time
// (of the last change, in nanoseconds) and block (a hash of the first bytes) are the new file's; the others are those
// of the old one: after a power failure, a filesystem may give an inode to another file. Version 2 has neither blocks
// nor the old size, and version 1, of weighbridge 0.2, has neither mark, size nor time.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/state_key.h"

namespace weighbridge::io {

struct JournalEntry {
  std::string name, new_path;
  std::string aside;        // directly in the folder; empty if the name was free
  std::uint64_t inode = 0;  // of the new file
  std::uint64_t old_inode = 0;
  std::optional<std::uint64_t> size{}, time{}, old_size{};  // empty: not known, and not compared
  std::string block{}, old_block{};                         // likewise; block_hash() of the files
  bool replace = true;                                      // not in the file
};

// How many bytes at the beginning of a file are hashed (all, if it has less), and their hash: 16 hexadecimal digits.
inline constexpr std::size_t kHashedBytes = 4096;
std::string block_hash(std::span<const std::byte> first);

struct JournalText {
  // More files than any output has. A journal may come with an unpacked archive, so its size is bounded too.
  static constexpr std::size_t kMaxEntries = std::size_t{1} << 17, kMaxBytes = std::size_t{32} << 20;

  std::vector<JournalEntry> entries;  // empty if the journal was never completed, in which case nothing was renamed
  bool marked = false;                // by this user's key
};

// `folder` and `journal` are their inodes.
std::string spell_journal(std::uint64_t folder, std::uint64_t journal, const std::vector<JournalEntry>& entries);
// Null if it is not a journal: another syntax, or names that no run would list: outside the folder, a new file without
// the name of a temporary, an old file without the name of an old file, or a name twice.
std::optional<JournalText> parse_journal(std::uint64_t folder, std::uint64_t journal, std::string_view text);

// Whether a folder entry has the name of an old file that a journal sets aside.
bool is_old(std::string_view entry) noexcept;
// The names for a new journal, and for the old file of `name`, which may be beneath a folder.
std::string journal_name();
std::string aside_name(const std::string& name);
// The name for an entry's new file if the folder that it came from is gone.
std::string spare_name(const JournalEntry&);
// Whether a relative path has the name of a temporary, or is in a temporary folder.
bool is_in_temporary(std::string_view path) noexcept;

}  // namespace weighbridge::io
