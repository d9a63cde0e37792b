// SPDX-License-Identifier: Apache-2.0
// One pass for both checksums: pieces end where the data section begins and ends, so each byte is summed once.
#include "formats/embd/format.h"

#include <algorithm>
#include <vector>

#include "base/checked.h"
#include "codecs/checksum.h"
#include "core/buffers.h"

namespace weighbridge::embd {
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
  core::BufferPool buffers(base::to_size(kChunk));
  executor.for_each(pieces.size(), [&](std::uint64_t i) {
    Piece& piece = pieces[base::to_size(i)];
    const core::BufferPool::Lease lease(buffers);
    for (std::uint64_t done = 0; done < piece.length;) {
      const auto bytes = lease.span().first(static_cast<std::size_t>(std::min(kChunk, piece.length - done)));
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
