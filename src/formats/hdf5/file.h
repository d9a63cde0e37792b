// SPDX-License-Identifier: Apache-2.0
// The one gate for the structures of an HDF5 file. Checks addresses, verifies blocks, and bounds the total of bytes
// read, so that structures that refer to each other many times cannot make a small file costly. Owns File, Cursor, and
// Broken, the exception of parsers.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "base/checked.h"
#include "base/endian.h"
#include "core/reading/budget.h"
#include "formats/hdf5/layout.h"
#include "formats/hdf5/rules.h"
#include "weighbridge/context.h"
#include "weighbridge/source.h"

namespace weighbridge::hdf5 {

// What is wrong with an object; its parsers throw it. The walk catches it for each object, reports it and continues
// with the next one.
struct Broken {
  Broken(const Rule& of, std::uint64_t at, const core::Said& wanted = {}, const core::Said& there = {},
         bool ends = false)
      : rule(of), offset(at), expected(wanted.keep()), found(there.keep()), whole(ends) {}

  const Rule& rule;
  std::uint64_t offset;  // in the source
  core::Said expected, found;
  bool whole;  // a limit of the whole file: the walk ends
};

// Reads numbers from a block in memory. Throws Broken at its end.
class File;
class Cursor {
 public:
  Cursor(const File& file, std::string_view bytes, std::uint64_t at, const Rule& rule)
      : file_(&file), bytes_(bytes), at_(at), rule_(&rule) {}

  std::size_t left() const noexcept { return bytes_.size() - place_; }
  std::size_t place() const noexcept { return place_; }
  std::uint64_t offset() const noexcept { return at_ + place_; }  // in the source
  std::string_view take(std::uint64_t n) {
    if (n > left()) fail();
    const std::string_view out = bytes_.substr(place_, static_cast<std::size_t>(n));
    place_ += out.size();
    return out;
  }
  void skip(std::uint64_t n) { take(n); }
  template <class Record> Record record() {
    return base::load_record<Record>(take(base::record_size<Record>()).data());
  }
  std::uint8_t u8() { return static_cast<std::uint8_t>(take(1)[0]); }
  std::uint16_t u16() { return base::load_le<std::uint16_t>(take(2).data()); }
  std::uint32_t u32() { return base::load_le<std::uint32_t>(take(4).data()); }
  std::uint64_t u64() { return base::load_le<std::uint64_t>(take(8).data()); }
  std::uint64_t number(std::size_t bytes);  // up to 8
  std::uint64_t length();
  std::uint64_t extent();   // a length; kUndefined: no limit
  std::uint64_t address();  // kUndefined if there is none
  Cursor sub(std::uint64_t n) {
    const std::uint64_t at = offset();
    return Cursor(*file_, take(n), at, *rule_);
  }
  const Rule& rule() const noexcept { return *rule_; }
  // The same cursor, reporting by another rule.
  Cursor by(const Rule& rule) const {
    Cursor out = *this;
    out.rule_ = &rule;
    return out;
  }
  [[noreturn]] void fail(const core::Said& expected = {}, const core::Said& found = {}) const;

 private:
  const File* file_;
  std::string_view bytes_;
  std::uint64_t at_;
  std::size_t place_ = 0;
  const Rule* rule_;
};

class File {
 public:
  // The HDF5 file is [begin, end) of the source: all of it, or a member of an archive.
  File(const Source& source, const Limits& limits, const Rules& rules, std::uint64_t begin, std::uint64_t end);

  // Facts of the superblock, set once it has been read.
  std::uint8_t offset_size = 8, length_size = 8;
  std::uint64_t base = 0;  // in the source: addresses count from here

  const Rules& rules;
  const Limits& limits;
  const core::Findings* findings = nullptr;  // to which the structures are reported; set by the walk
  const Source& source() const noexcept { return source_; }
  std::uint64_t begin() const noexcept { return begin_; }
  std::uint64_t end() const noexcept { return end_; }
  void set_end(std::uint64_t end) noexcept { end_ = end; }

  // The offset of an address in the source. Throws Broken unless `length` bytes exist there.
  std::uint64_t place(std::uint64_t address, std::uint64_t length) const;
  bool holds(std::uint64_t address, std::uint64_t length) const noexcept {
    return base::fits(address, length, end_ - base);
  }
  // Reads bytes of structures. Counts them, and throws Broken if the total is too large. `what` names the structure, if
  // it is one.
  std::string read(std::uint64_t address, std::uint64_t length, std::string_view what = {});
  // A block with a signature; with `checksum`, its last four bytes are one. Throws Broken.
  std::string block(std::uint64_t address, std::uint64_t length, std::string_view signature, bool checksum);
  // The checksum of a block: its last four bytes.
  void verify(std::string_view block, std::uint64_t address) const;
  // Counts memory that is kept for as long as the walk, or the model.
  void keep(std::uint64_t bytes);
  // An object of a global heap.
  std::string_view global_object(std::uint64_t collection, std::uint32_t index);

 private:
  struct Collection {
    std::string bytes;
    std::map<std::uint32_t, std::string_view> objects;
  };
  const Collection& collection(std::uint64_t address);

  const Source& source_;
  std::uint64_t begin_, end_;
  core::Budget read_, kept_;
  std::uint64_t cached_ = 0;
  std::map<std::uint64_t, Collection> collections_;
  std::string window_;  // the bytes last read, and where they are
  std::uint64_t window_at_ = 0;
};

// The blocks visited so far in one walk over linked blocks.
class Visited {
 public:
  // Throws Broken if the block was visited before.
  void add(const File& file, std::uint64_t address) {
    if (!all_.insert(address).second) throw Broken{file.rules.kCycle, file.base + address};
  }

 private:
  std::set<std::uint64_t> all_;
};

// Bob Jenkins' lookup3 over bytes, as HDF5 uses it for structures.
std::uint32_t lookup3(std::string_view bytes) noexcept;
// Fletcher-32 as HDF5 computes it over chunks.
std::uint32_t fletcher32(std::string_view bytes) noexcept;

// How many bytes HDF5 uses for numbers up to `limit`.
unsigned encoded_size(std::uint64_t limit) noexcept;

// The superblock, from which all of a file is found. Specification II.

struct Superblock {
  std::uint8_t version = 0;
  std::uint64_t root = kUndefined;  // address of the root group's object header
};

// Sets the file's base, end and widths. Throws Broken.
Superblock read_superblock(File&, core::Findings&);
// Whether a superblock begins among the first bytes of a file.
bool has_superblock(std::span<const std::byte> head) noexcept;

}  // namespace weighbridge::hdf5
