// SPDX-License-Identifier: Apache-2.0
// Chunks of pairs: bytes first, numbers from the first difference on. Chunks that were found equal before that are read
// once more, for their share of the sums.
#include "diff/steps.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/checked.h"
#include "core/model/buffers.h"
#include "core/payload/content.h"

namespace weighbridge::comparison {
namespace {

constexpr std::uint64_t kRead = std::uint64_t{512} << 10;  // bytes of the wider side, which stay in the cache
constexpr std::uint64_t kChunk = 8;                        // reads

class Job {
 public:
  Job(std::span<Pair> pairs, codecs::Tolerance tolerance, const Context& context, core::Progress& progress)
      : pairs_(pairs), tolerance_(tolerance), context_(context), progress_(progress), work_(pairs.size()) {}

  void run() {
    std::vector<Task> streams, chunks;
    for (std::size_t i = 0; i < pairs_.size(); ++i) divide(i, streams, chunks);
    // Work that one thread must do alone begins first, the longest before the others.
    std::ranges::stable_sort(streams, std::greater{},
                             [this](const Task& task) { return bytes_to_compare(pairs_[task.pair]); });
    streams.insert(streams.end(), chunks.begin(), chunks.end());
    Executor& executor = core::executor_of(context_);
    executor.for_each(streams.size(), [&](std::uint64_t i) {
      const Task& task = streams[base::to_size(i)];
      task.streams ? stream(pairs_[task.pair]) : chunk(task, false);
    });
    std::vector<Task> again;
    for (const Task& task : chunks) {
      const Work& work = *work_[task.pair];
      if (work.changed && !work.chunks[base::to_size(task.chunk)].counted) again.push_back(task);
    }
    executor.for_each(again.size(), [&](std::uint64_t i) { chunk(again[base::to_size(i)], true); });
    for (std::size_t i = 0; i < pairs_.size(); ++i)
      if (work_[i]) collect(*work_[i], pairs_[i]);
  }

 private:
  struct Chunk {
    codecs::PairDifferences values{};
    bool counted = false;
  };
  struct Work {
    std::uint64_t read = 0;  // elements of one read
    std::vector<Chunk> chunks;
    std::atomic<bool> changed{false}, differs{false};
  };
  struct Task {
    std::size_t pair = 0;
    std::uint64_t chunk = 0;
    bool streams = false;
  };

  void divide(std::size_t i, std::vector<Task>& streams, std::vector<Task>& chunks) {
    Pair& pair = pairs_[i];
    if (!pair.in_order || pair.a.count == 0) return;
    // Blocks of one form are compared as they are stored first.
    if (!pair.a.stream.direct || !pair.b.stream.direct || same_form(pair.a.tensor, pair.b.tensor)) {
      streams.push_back({i, 0, true});
      return;
    }
    work_[i] = std::make_unique<Work>();
    Work& work = *work_[i];
    work.read = kRead * 8 / std::max({info(pair.a.dtype).bits, info(pair.b.dtype).bits, std::uint32_t{8}});
    const std::uint64_t step = work.read * kChunk, count = (pair.a.count - 1) / step + 1;
    work.chunks.resize(base::to_size(count));
    for (std::uint64_t chunk = 0; chunk < count; ++chunk) chunks.push_back({i, chunk, false});
  }

  void stream(Pair& pair) {
    const Context inner = progress_.inner();
    std::uint64_t counted = 0;
    const auto did = [&](std::uint64_t bytes) {
      counted += bytes;
      progress_.add(bytes);
    };
    const bool one_form = same_form(pair.a.tensor, pair.b.tensor);
    if (one_form && same_parts(pair.a.tensor, pair.b.tensor, inner)) {
      pair.found.values.pairs = pair.a.count;
    } else {
      pair.found = compare(pair.a, pair.b, tolerance_, inner, did);
      if (one_form) pair.found.same_bits = false;
    }
    progress_.add(bytes_to_compare(pair) - std::min(counted, bytes_to_compare(pair)));
  }

  // The elements of a chunk. Stops where all bytes are equal, unless the tensor is known to have changed.
  void chunk(const Task& task, bool again) {
    const Pair& pair = pairs_[task.pair];
    Work& work = *work_[task.pair];
    Chunk& out = work.chunks[base::to_size(task.chunk)];
    const core::BufferPool::Lease x(buffers_), y(buffers_);
    const std::uint64_t first = task.chunk * work.read * kChunk;
    const std::uint64_t end = std::min(pair.a.count, first + work.read * kChunk);
    const bool comparable = pair.a.dtype == pair.b.dtype;
    bool counts = again || !comparable || work.changed;
    codecs::PairAccumulator sums(pair.a.dtype, pair.b.dtype, tolerance_, first);
    const Context inner = progress_.inner();
    const auto load = [&](const Elements& of, std::span<std::byte> room, std::uint64_t at, std::uint64_t n) {
      const auto bytes = room.first(base::to_size(*packed_size(of.dtype, n)));
      of.stream.direct->read(at, n, bytes, inner);
      return bytes;
    };
    std::uint64_t counted_to = first;  // a chunk that begins again is counted once
    for (std::uint64_t at = first; at < end;) {
      const std::uint64_t n = std::min(work.read, end - at);
      const auto one = load(pair.a, x.span(), at, n);
      if (again) {  // the bytes were found equal
        sums.equal(one, n);
        at += n;
        progress_.add(0);
        continue;
      }
      const auto other = load(pair.b, y.span(), at, n);
      const bool equal = comparable && std::memcmp(one.data(), other.data(), one.size()) == 0;
      if (!equal && !counts) {
        counts = true;
        if (at > first) {  // the sums begin at the chunk's first element
          work.changed = true;
          at = first;
          continue;
        }
      }
      if (!equal) work.differs = true;
      if (counts) {
        equal ? sums.equal(one, n) : sums.update(one, other, n);
        if (sums.result().changed > 0) work.changed = true;
      }
      at += n;
      progress_.add(at > counted_to ? one.size() + other.size() : 0);
      counted_to = std::max(counted_to, at);
    }
    if (!counts) return;
    out.values = sums.result();
    out.counted = true;
  }

  static void collect(const Work& work, Pair& pair) {
    for (const Chunk& chunk : work.chunks) pair.found.values.add(chunk.values);
    pair.found.values.pairs = pair.a.count * (info(pair.a.dtype).kind == DTypeKind::complex ? 2 : 1);
    pair.found.same_bits = !work.differs;
  }

  const std::span<Pair> pairs_;
  const codecs::Tolerance tolerance_;
  const Context& context_;
  core::Progress& progress_;
  core::BufferPool buffers_{base::to_size(kRead)};
  std::vector<std::unique_ptr<Work>> work_;
};

}  // namespace

bool same_form(const Tensor& a, const Tensor& b) {
  const bool sparse = core::is_sparse(a) && a.layout() == b.layout() && a.dtype() == b.dtype();
  const bool blocks = a.block_type() && a.block_type() == b.block_type();
  if (!(sparse || blocks) || a.part_count() != b.part_count() || !std::ranges::equal(a.shape(), b.shape()))
    return false;
  for (const std::string_view parameter : blocks ? a.block_type()->parameters : std::span<const std::string_view>()) {
    const Value *one = a.attribute(parameter), *other = b.attribute(parameter);
    if ((one == nullptr) != (other == nullptr) || (one && one->to_text() != other->to_text())) return false;
  }
  for (const Part& part : a.parts()) {
    const auto other = b.part(part.role());
    if (!other || other->dtype() != part.dtype() || other->size() != part.size()) return false;
  }
  return true;
}

bool same_parts(const Tensor& a, const Tensor& b, const Context& context) {
  for (const Part& part : a.parts())
    if (!same_bytes(stream_of(part), stream_of(*b.part(part.role())), context)) return false;
  return true;
}

std::uint64_t bytes_to_compare(const Pair& pair) { return pair.a.stream.size + pair.b.stream.size; }

void compare_pairs(std::span<Pair> pairs, codecs::Tolerance tolerance, const Context& context,
                   core::Progress& progress) {
  Job(pairs, tolerance, context, progress).run();
}

}  // namespace weighbridge::comparison
