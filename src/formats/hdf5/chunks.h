// SPDX-License-Identifier: Apache-2.0
// Chunked storage: where the chunks of a dataset are, and their bytes as one stream in row-major order. Specification
// IV.A.2.i, IV.A.2.l, III.A.1 and Appendix C.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "formats/hdf5/file.h"
#include "weighbridge/context.h"

namespace weighbridge::hdf5 {

struct Filter {
  std::uint16_t id = 0;
  std::uint32_t element = 0;  // shuffle: bytes of an element
};

struct Chunk {
  std::uint64_t index = 0;  // in the grid of the shape, row-major
  std::uint64_t at = 0;     // in the source
  std::uint64_t stored = 0;
  std::uint32_t skipped = 0;  // filters that were not applied, as bits
};

struct Chunked {
  std::vector<std::uint64_t> shape{}, chunk{}, grid{};  // of the same rank, at least 1; the grid in chunks
  std::uint64_t element = 0;                            // bytes
  std::uint64_t bytes = 0;                              // of a whole chunk
  std::vector<Filter> filters{};
  bool partial_unfiltered = false;  // chunks that extend beyond the shape are stored without filters
  std::string fill{};               // an element; empty: zeros
  std::vector<Chunk> chunks{};      // ascending by index
  const Rule* deflate = nullptr;    // of the format
  const Rule* lzf = nullptr;
  const Rule* fletcher = nullptr;

  std::uint64_t row() const noexcept;        // bytes of one index of the first dimension
  std::uint64_t chunk_row() const noexcept;  // the same of a chunk
  // Bytes of memory that streaming needs if it may use `memory`; more than `memory` if it cannot do with that.
  std::uint64_t needed(std::uint64_t memory) const noexcept;
  // Bytes that streaming decodes and delivers.
  std::uint64_t work(std::uint64_t memory) const noexcept;
};

// How the index of chunks is stored, from the layout message.
struct ChunkIndex {
  Index kind = Index::tree;
  std::uint64_t address = kUndefined;
  std::uint64_t single_size = 0;  // of the only chunk, if it is filtered
  std::uint32_t single_skipped = 0;
};

// The filters of a dataset. Sets `unknown` to the first one that cannot be undone. Throws Broken.
std::vector<Filter> read_filters(Cursor, std::string& unknown);
// Fills in `chunks`. `maximum` has the largest extents of the dataset. Throws Broken.
void read_chunks(File&, const ChunkIndex&, std::span<const std::uint64_t> maximum, Chunked&);

// [reads] Passes all elements to the sink, in pieces. Throws Error by the rules of the format.
void stream_chunks(const Source&, const Chunked&, const Context&,
                   const std::function<bool(std::span<const std::byte>)>& sink);

}  // namespace weighbridge::hdf5
