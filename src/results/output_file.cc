// SPDX-License-Identifier: Apache-2.0
// OutputFile: io's atomic file with a cursor and a buffer. Refuses to write over a file that is being read.
#include "weighbridge/output.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/fail.h"
#include "codecs/checksum.h"
#include "io/abandon.h"
#include "io/publication.h"

namespace weighbridge {
namespace {

constexpr std::size_t kBuffer = 1 << 20;

// Data written in one go, to be compared once the file is complete.
struct Piece {
  std::uint64_t offset;
  std::size_t length;
  std::uint32_t crc;
};

}  // namespace

struct OutputFile::Rep {
  Rep(const std::string& path, bool replace, std::span<const std::shared_ptr<const Source>> read)
      : file(path, {.replace = replace}), inputs(read.begin(), read.end()) {}

  void flush() {
    if (buffer.empty()) return;
    file.write_at(offset, buffer);
    file.hint_written(offset, buffer.size());
    pieces.push_back({offset, buffer.size(), codecs::crc32c(buffer)});
    offset += buffer.size();
    buffer.clear();
  }
  // Reads the piece from the file; it must be what was written.
  std::span<std::byte> read(const Source& from, const Piece& piece) {
    if (!base::fits(piece.offset, piece.length, from.size())) file.refuse_read_back();
    again.resize(piece.length);
    from.read_at(piece.offset, again);
    if (codecs::crc32c(again) != piece.crc) file.refuse_read_back();
    return again;
  }
  void read_back() {
    const std::shared_ptr<const Source> from = file.reopen();
    if (from->size() != offset) file.refuse_read_back();
    for (const Piece& piece : pieces) read(*from, piece);
  }
  void replace(std::uint64_t at, std::span<const std::byte> bytes) {
    const std::shared_ptr<const Source> from = file.reopen();
    for (Piece& piece : pieces) {
      const std::uint64_t begin = std::max(at, piece.offset),
                          end = std::min(at + bytes.size(), piece.offset + piece.length);
      if (begin >= end) continue;
      const std::span<std::byte> now = read(*from, piece);
      std::memcpy(now.data() + base::to_size(begin - piece.offset), bytes.data() + base::to_size(begin - at),
                  base::to_size(end - begin));
      piece.crc = codecs::crc32c(now);
    }
    file.write_at(at, bytes);
  }

  io::AtomicFile file;
  std::vector<std::shared_ptr<const Source>> inputs;
  std::uint64_t offset = 0;         // of the buffer's first byte
  std::vector<std::byte> buffer{};  // not yet written
  std::vector<std::byte> again{};   // a piece read back
  std::vector<Piece> pieces{};
};

void OutputFile::check(const std::string& path, bool replace) { io::AtomicFile::check(path, replace); }

OutputFile::OutputFile(const std::string& path, bool replace, std::span<const std::shared_ptr<const Source>> inputs) {
  if (io::find_file(path, inputs)) base::misuse_of(path, "output-is-input", "this is the file that is being read");
  rep_ = std::make_unique<Rep>(path, replace, inputs);
}

OutputFile::~OutputFile() = default;
OutputFile::OutputFile(OutputFile&&) noexcept = default;
OutputFile& OutputFile::operator=(OutputFile&&) noexcept = default;

void OutputFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const std::size_t room = std::min(bytes.size(), kBuffer - rep_->buffer.size());
    rep_->buffer.insert(rep_->buffer.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(room));
    bytes = bytes.subspan(room);
    if (rep_->buffer.size() == kBuffer) rep_->flush();
  }
}

void OutputFile::rewrite(std::uint64_t offset, std::span<const std::byte> bytes) {
  rep_->flush();
  if (!base::fits(offset, bytes.size(), rep_->offset))
    base::misuse("rewrite", "only bytes that were written can change");
  rep_->replace(offset, bytes);
}

void OutputFile::publish() {
  rep_->flush();
  rep_->file.sync(rep_->offset);
  rep_->read_back();
  io::Publication publication(rep_->file);
  for (const auto& input : rep_->inputs) input->check_unchanged();
  publication.publish();
}

void abandon_outputs() noexcept { io::abandon_all(); }

}  // namespace weighbridge
