// SPDX-License-Identifier: Apache-2.0
// The two content rules of EMBD (reading E1): the checksums of the tensor data and of the file.
#include <algorithm>
#include <vector>

#include "base/checked.h"
#include "codecs/checksum.h"
#include "core/model/buffers.h"
#include "core/model/draft.h"
#include "core/model/progress.h"
#include "formats/embd/format.h"
#include "formats/embd/layout.h"
#include "formats/embd/metadata.h"
#include "io/read.h"

namespace weighbridge::embd {

void check_content(const Model& model, const Context& context, core::Findings& findings) {
  const std::string_view kept = core::retained_header(model);
  // The reader retains header and footer before the index, unless they were too broken to use.
  if (kept.size() < kHeaderSize + kFooterSize) return;
  const Header header = base::load_record<Header>(kept.data());
  const Footer footer = base::load_record<Footer>(kept.data() + kHeaderSize);
  const std::shared_ptr<const Source> held = model.sources()[0];
  const Source& source = *held;
  const std::uint64_t end = source.size() - kFooterSize;
  if ((header.flags & kChecksumEnabled) == 0 ||
      !base::fits(header.tensor_data_offset, header.tensor_data_size, end))  // opening reported it
    return;
  core::Progress progress(context, end);
  const Sums sums = sum(
      {header.tensor_data_offset, header.tensor_data_offset + header.tensor_data_size, end, io::piece_of(source, 0)},
      [&](std::uint64_t offset, std::span<std::byte> out) { source.read_at(offset, out); }, core::executor_of(context),
      progress);
  progress.finish();
  if (sums.data != footer.data_checksum)
    findings.report(rules::kDataChecksum, {.offset = end}, crc_text(footer.data_checksum), crc_text(sums.data));
  if (sums.file != footer.file_checksum)
    findings.report(rules::kFileChecksum, {.offset = end + 4}, crc_text(footer.file_checksum), crc_text(sums.file));
}

// One pass for both checksums: pieces end where the data section begins and ends, so each byte is summed once.
namespace {

constexpr std::uint64_t kPiece = std::uint64_t{8} << 20;
// Small enough to stay in a core's own cache between reading and summing.
constexpr std::uint64_t kChunk = std::uint64_t{256} << 10;

struct Piece {
  std::uint64_t begin = 0, length = 0;
  std::uint32_t crc = 0;
};

std::vector<Piece> divide(const Summed& summed) {
  std::vector<Piece> pieces;
  const std::uint64_t bounds[] = {0, summed.data_begin, summed.data_end, summed.end};
  for (std::size_t i = 0; i < 3; ++i)
    for (std::uint64_t at = bounds[i]; at < bounds[i + 1]; at += pieces.back().length)
      pieces.push_back({at, std::min(kPiece, bounds[i + 1] - at)});
  return pieces;
}

}  // namespace

Sums sum(const Summed& summed, const ReadAt& read, Executor& executor, core::Progress& progress) {
  std::vector<Piece> pieces = divide(summed);
  core::BufferPool buffers(std::max(base::to_size(kChunk), summed.piece));
  executor.for_each(pieces.size(), [&](std::uint64_t i) {
    Piece& piece = pieces[base::to_size(i)];
    const core::BufferPool::Lease lease(buffers);
    for (std::uint64_t done = 0; done < piece.length;) {
      const auto bytes = lease.span().first(
          static_cast<std::size_t>(std::min<std::uint64_t>(lease.span().size(), piece.length - done)));
      read(piece.begin + done, bytes);
      piece.crc = codecs::crc32(bytes, piece.crc);
      done += bytes.size();
      progress.add(bytes.size());
    }
  });
  Sums sums;
  for (const Piece& piece : pieces) {
    sums.file = codecs::combine(codecs::CrcKind::crc32, sums.file, piece.crc, piece.length);
    if (piece.begin >= summed.data_begin && piece.begin < summed.data_end)
      sums.data = codecs::combine(codecs::CrcKind::crc32, sums.data, piece.crc, piece.length);
  }
  return sums;
}

}  // namespace weighbridge::embd
