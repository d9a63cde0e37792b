// SPDX-License-Identifier: Apache-2.0
// Changes ranges of several files of one folder in place, so that a kill or a power failure leaves all of the old bytes
// or all of the new ones. Owns the names that the files have meanwhile, the log of old bytes, and undoing. Callers
// decide which bytes to write, and check them before finish().
//
// While old and new bytes are mixed, each file is called "<name>.weighbridge-applying", so that no program loads it.
// The log is the journal of the first file (io/journal.h), and is complete on the disk before a byte changes:
//
//   "weighbridge apply 1\n" | entries: u64 length, u64 its complement | sealed text (held_file.h): u64 number of the
//     entry | u8 kind | rest
//   f, the first: for each file u64 inode, u64 size, u32 length of the name, name
//   g: pieces of at most kPiece bytes: u32 file, u64 offset, u32 length | XXH3-128 of the old bytes | u32 size, u32
//      stored | the old bytes that change, by zstd: u32 number of gaps | gaps | bytes. A gap is the number of bytes
//      that stay before the next one; 255 means that 255 bytes stay, and no byte belongs to it.
//   d: all is written and checked. Only names are left to be restored.
//   u: all old bytes are back. Likewise.
//
// Nothing was written after an entry that the end of the log cuts off. All else that is wrong with a log is damage.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codecs/checksum.h"
#include "edit/held_file.h"
#include "weighbridge/edit.h"

namespace weighbridge::edit_files {

class Applying {
 public:
  // At most this many bytes and pieces at once: whole elements of every dtype, and 12 MiB.
  static constexpr std::size_t kPiece = std::size_t{3} << 18;
  static constexpr std::size_t kGroup = 16;
  struct Piece {
    std::uint32_t file = 0;
    std::uint64_t offset = 0;
    std::vector<std::byte> bytes{};  // the new ones

    std::size_t before = 0, end = 0;  // prepare() sets these: bytes that stay in front, end of those that change
    std::uint32_t size = 0;
    std::vector<std::byte> old{};  // as the log has them
    codecs::Hash128 hash{};
  };

  // Begins: publishes the log and renames the files, which are in one folder. Error misuse/in-place if a name is too
  // long; io/write, io/publish.
  explicit Applying(std::vector<std::unique_ptr<HeldFile>> files);
  ~Applying();  // undoes it, unless finish() was called; if that fails, the next run does
  Applying(const Applying&) = delete;
  Applying& operator=(const Applying&) = delete;

  const HeldFile& file(std::uint32_t i) const { return *files_[i]; }
  // Finds what changes in a piece. Safe from several threads.
  void prepare(Piece&) const;
  // Logs the old bytes of prepared pieces, at most kGroup, and writes the new ones. Each byte may be written once.
  void write(std::span<const Piece>);
  // All is written and checked: the files get their names back.
  void finish();
  std::uint64_t logged() const noexcept { return end_; }  // bytes of the log

 private:
  void append(std::string entry);

  std::vector<std::unique_ptr<HeldFile>> files_;
  io::Fd folder_;
  JournalFile journal_;
  io::Fd log_;
  std::uint64_t own_ = 0, end_ = 0, entries_ = 0;
  bool done_ = false;
};

// Undoes or finishes what a killed run left of this file and of those that changed with it; does nothing if there is
// nothing. Error io/journal: a log that cannot be used; io/applying: there is none, and the file has the name of a
// mixed one.
Edited::Left settle_applying(const std::string& path, Trust = Trust::own, const Show& show = {});
// The same for all files of a folder.
Edited::Left settle_folder(const std::string& folder, Trust = Trust::own, const Show& show = {});

}  // namespace weighbridge::edit_files
