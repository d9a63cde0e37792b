// SPDX-License-Identifier: Apache-2.0
// Writes payloads window by window. Where all sizes are known in advance, a window holds all remaining payloads: their
// offsets are known, so threads take segments of large payloads and batches of small ones in any order. Payloads to be
// encoded are encoded in parallel into memory, one budget's worth per window, and then placed. A payload that is too
// large for that is encoded directly into the file by one thread.
#include "convert/write.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <stdexcept>

#include "base/checked.h"
#include "base/fail.h"
#include "core/model/buffers.h"
#include "core/payload/part_digest.h"
#include "core/payload/payload.h"
#include "core/writing/layout.h"

namespace weighbridge::convert {
namespace {

using core::Digester, core::Payload;

// From this size on, threads take turns at hashing a payload with SHA-256: a single thread would still be hashing when
// all other work is done.
constexpr std::uint64_t kSharedDigest = std::uint64_t{64} << 20;

class Writer {
 public:
  Writer(const core::WriteLayout& layout, int level, io::AtomicFile& file, const Context& context,
         core::Progress& progress)
      : layout_(layout),
        payloads_(layout.payloads),
        level_(level),
        file_(file),
        quiet_(progress.inner()),  // inner streams must not use the executor
        progress_(progress),
        executor_(core::executor_of(context)),
        budget_(context.limits.memory / 2) {}

  Record run() {
    prepare();
    copy_prefix();
    file_.write_at(layout_.prefix_length, std::as_bytes(std::span(layout_.head)));
    cursor_ = layout_.prefix_length + layout_.head.size();
    for (std::size_t i = 0; i < payloads_.size();) {
      if (encodes_alone(payloads_[i])) {
        encode_alone(i++);
      } else {
        i = write_window(i);
      }
    }
    for (std::size_t i = 0; i < payloads_.size(); ++i) write_lead(i);
    record_.tail_offset = cursor_;
    if (layout_.tail) record_.tail = layout_.tail(record_.stored);
    file_.write_at(cursor_, std::as_bytes(std::span(record_.tail)));
    record_.size = cursor_ + record_.tail.size();
    if (layout_.size_exact && record_.size != layout_.size)
      throw std::logic_error("a layout promised " + std::to_string(layout_.size) + " bytes and made " +
                             std::to_string(record_.size));
    if (layout_.finalize) finalize();
    return std::move(record_);
  }

 private:
  struct Task {
    enum class Kind : std::uint8_t { batch, segment, whole, turn } kind;
    std::size_t first, last;   // payloads; last is first + 1 except for a batch
    std::uint64_t offset = 0;  // segment, turn: within the payload
    std::size_t shared = 0;    // turn: index into turns_
  };
  struct KeptEncoder {
    const codecs::Codec* codec = nullptr;
    std::unique_ptr<codecs::Encoder> encoder{};
  };
  // Segments of one payload, hashed in order, each by the thread that read it. Tasks are handed out in ascending order,
  // so a thread only ever waits for a lower segment that another thread already has.
  struct Turns {
    explicit Turns(core::PartDigest kind) : digest(kind) {}
    Digester digest;
    std::mutex mutex;
    std::condition_variable changed;
    std::uint64_t next = 0;
    bool failed = false;
  };

  void prepare() {
    record_.stored.resize(payloads_.size());
    record_.casts.resize(payloads_.size());
    record_.first_hash.reserve(payloads_.size() + 1);
    std::size_t total = 0;
    for (const Payload& p : payloads_) {
      record_.first_hash.push_back(total);
      total = base::to_size(total + segments(hashed_bytes(p)));
    }
    record_.first_hash.push_back(total);
    record_.hashes.resize(total);
  }

  void write_lead(std::size_t i) {
    const std::uint64_t size = payloads_[i].preamble_size;
    if (size == 0) return;
    const std::string preamble = layout_.make_preamble(i, record_.stored[i]);
    if (preamble.size() != size)
      throw std::logic_error("a layout promised " + std::to_string(size) + " bytes before a payload and made " +
                             std::to_string(preamble.size()));
    file_.write_at(record_.stored[i].offset - size, std::as_bytes(std::span(preamble)));
  }

  // Runs WriteLayout::finalize, and remembers its changes to head and tail for read-back.
  void finalize() {
    const std::shared_ptr<const Source> written = file_.reopen();
    std::string head = layout_.head;
    core::WrittenFile whole;
    whole.size = record_.size;
    whole.read = [&](std::uint64_t offset, std::span<std::byte> out) { written->read_at(offset, out); };
    whole.write = [&](std::uint64_t offset, std::span<const std::byte> bytes) {
      const bool in_head = offset >= layout_.prefix_length;
      const std::uint64_t start = in_head && base::fits(offset - layout_.prefix_length, bytes.size(), head.size())
                                      ? layout_.prefix_length
                                      : record_.tail_offset;
      std::string& text = start == record_.tail_offset ? record_.tail : head;
      if (offset < start || !base::fits(offset - start, bytes.size(), text.size()))
        throw std::logic_error("a seal may change head and tail only");
      std::memcpy(text.data() + (offset - start), bytes.data(), bytes.size());
      file_.write_at(offset, bytes);
    };
    layout_.finalize(whole);
    record_.sealed_head = std::move(head);
  }

  void copy_prefix() {
    record_.prefix_hashes.resize(base::to_size(segments(layout_.prefix_length)));
    executor_.for_each(record_.prefix_hashes.size(), [this](std::uint64_t i) {
      const core::BufferPool::Lease lease(buffers_);
      const std::uint64_t offset = i * kSegment;
      const auto bytes =
          lease.span().first(static_cast<std::size_t>(std::min(kSegment, layout_.prefix_length - offset)));
      layout_.prefix_source->read_at(offset, bytes);
      record_.prefix_hashes[base::to_size(i)] = codecs::xxh3_128(bytes);
      put(offset, bytes);
      progress_.add(bytes.size());
    });
  }

  void put(std::uint64_t offset, std::span<const std::byte> bytes) {
    file_.write_at(offset, bytes);
    file_.hint_written(offset, bytes.size());
  }

  std::uint64_t align(const Payload& p) const {
    const auto aligned = base::align_up(cursor_, p.alignment);
    const auto begin = aligned ? base::checked_add(*aligned, p.preamble_size) : std::nullopt;
    if (!begin) base::io_error("write", "the output would be larger than a file can be");
    return *begin;
  }

  void place(std::size_t i, std::uint64_t length) {
    record_.stored[i].offset = align(payloads_[i]);
    record_.stored[i].length = length;
    cursor_ = record_.stored[i].offset + length;
  }

  // If two payloads do not fit the budget, encoding in parallel gains nothing. The bytes are the same either way.
  bool encodes_alone(const Payload& p) const {
    return needs_encoding(p) && p.stored_size > (executor_.concurrency() == 1 ? kSegment : budget_ / 2);
  }

  // Writes payloads from `first` on; returns the first one not written.
  std::size_t write_window(std::size_t first) {
    std::vector<std::size_t> to_encode;
    std::size_t last = first;
    for (std::uint64_t held = 0; last < payloads_.size(); ++last) {
      const Payload& p = payloads_[last];
      if (!needs_encoding(p)) continue;
      if (encodes_alone(p) || held + p.stored_size > budget_) break;
      held += p.stored_size;
      to_encode.push_back(last);
    }
    encoded_.clear();
    encoded_.resize(to_encode.empty() ? 0 : last - first);
    window_ = first;
    executor_.for_each(to_encode.size(), [&](std::uint64_t i) { encode(to_encode[base::to_size(i)]); });
    for (std::size_t i = first; i < last; ++i)
      place(i, needs_encoding(payloads_[i]) ? encoded_[i - first].size() : payloads_[i].stored_size);
    const std::vector<Task> tasks = divide(first, last);
    executor_.for_each(tasks.size(), [&](std::uint64_t i) { perform(tasks[base::to_size(i)]); });
    for (const auto& [payload, crcs] : crcs_) join(payload, crcs);
    crcs_.clear();
    for (std::size_t i = 0; i < turns_.size(); ++i) record_.stored[turned_[i]].digest = turns_[i]->digest.finish();
    turns_.clear();
    turned_.clear();
    return last;
  }

  // An encoder for this thread, started for the payload; returned to the pool when the pointer dies. The pool lives
  // only as long as the job, because at high levels an encoder takes hundreds of megabytes.
  std::shared_ptr<codecs::Encoder> take_encoder(const Payload& p) {
    const codecs::Codec* const codec = core::codec_of(p.encoding);
    std::unique_ptr<codecs::Encoder> encoder;
    {
      const std::lock_guard lock(encoders_mutex_);
      const auto kept = std::ranges::find(encoders_, codec, &KeptEncoder::codec);
      if (kept != encoders_.end()) {
        encoder = std::move(kept->encoder);
        encoders_.erase(kept);
      }
    }
    if (!encoder) encoder = codec->encoder();
    encoder->begin(p.logical_size + p.stream_prefix.size(), level_ == 0 ? codec->level : level_);
    return {encoder.release(), [this, codec](codecs::Encoder* done) {
              const std::lock_guard giving(encoders_mutex_);
              encoders_.push_back({codec, std::unique_ptr<codecs::Encoder>(done)});
            }};
  }

  void encode(std::size_t i) {
    std::vector<std::byte>& out = encoded_[i - window_];
    out.reserve(base::to_size(payloads_[i].stored_size));
    encode(i, [&](std::span<const std::byte> piece) { out.insert(out.end(), piece.begin(), piece.end()); });
  }

  void encode_alone(std::size_t i) {
    const std::uint64_t begin = align(payloads_[i]);
    std::uint64_t at = begin;
    encode(i, [&](std::span<const std::byte> piece) {
      put(at, piece);
      at += piece.size();
    });
    place(i, at - begin);
  }

  // Passes the encoded bytes to `take`.
  template <class Take> void encode(std::size_t i, Take take) {
    const Payload& p = payloads_[i];
    SegmentHasher hasher(p.logical_size, record_.hashes_of(i));
    Digester digest(p.digest);
    const auto encoder = take_encoder(p);
    const Sink keep = [&](std::span<const std::byte> piece) {
      if (!digest.of_decoded()) digest.update(piece);
      take(piece);
    };
    encoder->push(std::as_bytes(std::span(p.stream_prefix)), keep);
    stream(
        p, quiet_,
        [&](std::span<const std::byte> piece) {
          hasher.update(piece);
          if (digest.of_decoded()) digest.update(piece);
          encoder->push(piece, keep);
          progress_.add(piece.size());
        },
        &record_.casts[i]);
    encoder->finish(keep);
    record_.stored[i].digest = digest.finish();
  }

  std::vector<Task> divide(std::size_t first, std::size_t last) {
    std::vector<Task> tasks;
    for (std::size_t i = first; i < last; ++i) {
      const core::Stored& to = record_.stored[i];
      const Payload& p = payloads_[i];
      if (to.length <= kSmall || needs_encoding(p)) {
        const bool joins = !tasks.empty() && tasks.back().kind == Task::Kind::batch && to.length <= kSmall &&
                           to.offset + to.length - record_.stored[tasks.back().first].offset <= kSegment;
        if (joins) {
          tasks.back().last = i + 1;
        } else {
          tasks.push_back({to.length <= kSmall ? Task::Kind::batch : Task::Kind::whole, i, i + 1});
        }
      } else if (!has_ranges(p) || (Digester::is_serial(p.digest) && !shares_digest(p))) {
        tasks.push_back({Task::Kind::whole, i, i + 1});
      } else {
        divide_payload(i, tasks);
      }
    }
    return tasks;
  }

  bool shares_digest(const Payload& p) const { return p.stored_size >= kSharedDigest && executor_.concurrency() > 1; }

  void divide_payload(std::size_t i, std::vector<Task>& tasks) {
    const Payload& p = payloads_[i];
    const bool turn = Digester::is_serial(p.digest);
    if (turn) {
      turns_.push_back(std::make_unique<Turns>(p.digest));
      turned_.push_back(i);
    } else if (Digester::is_crc(p.digest)) {
      crcs_.emplace_back(i, std::vector<std::uint32_t>(base::to_size(segments(p.stored_size))));
    }
    const std::size_t shared = turn ? turns_.size() - 1 : crcs_.size() - 1;
    for (std::uint64_t offset = 0; offset < p.stored_size; offset += kSegment)
      tasks.push_back({turn ? Task::Kind::turn : Task::Kind::segment, i, i + 1, offset, shared});
  }

  void perform(const Task& task) {
    switch (task.kind) {
      case Task::Kind::batch: batch(task.first, task.last); break;
      case Task::Kind::whole: whole(task.first); break;
      case Task::Kind::segment: segment(task); break;
      case Task::Kind::turn: try { segment(task);
        } catch (...) {
          Turns& turns = *turns_[task.shared];
          const std::lock_guard lock(turns.mutex);
          turns.failed = true;
          turns.changed.notify_all();
          throw;
        }
        break;
    }
  }

  void segment(const Task& task) {
    const core::BufferPool::Lease lease(buffers_);
    const Payload& p = payloads_[task.first];
    const auto bytes = lease.span().first(static_cast<std::size_t>(std::min(kSegment, p.stored_size - task.offset)));
    codecs::CastTally tally;
    read_range(p, quiet_, task.offset, bytes, &tally);
    {
      const std::lock_guard lock(casts_mutex_);
      record_.casts[task.first].add(tally);
    }
    record_.hashes_of(task.first)[base::to_size(task.offset / kSegment)] = codecs::xxh3_128(bytes);
    put(record_.stored[task.first].offset + task.offset, bytes);
    if (task.kind == Task::Kind::turn) {
      Turns& turns = *turns_[task.shared];
      std::unique_lock lock(turns.mutex);
      turns.changed.wait(lock, [&] { return turns.next == task.offset || turns.failed; });
      if (turns.failed) return;  // the thread that failed reports the error
      lock.unlock();             // no other thread hashes before `next` moves
      turns.digest.update(bytes);
      lock.lock();
      turns.next = task.offset + bytes.size();
      turns.changed.notify_all();
    } else if (Digester::is_crc(p.digest)) {
      crcs_[task.shared].second[base::to_size(task.offset / kSegment)] =
          codecs::crc(Digester::crc_kind(p.digest), bytes);
    }
    progress_.add(bytes.size());
  }

  void join(std::size_t i, const std::vector<std::uint32_t>& crcs) {
    std::uint32_t all = 0;
    std::uint64_t left = payloads_[i].stored_size;
    for (const std::uint32_t crc : crcs) {
      const std::uint64_t length = std::min(kSegment, left);
      all = codecs::combine(Digester::crc_kind(payloads_[i].digest), all, crc, length);
      left -= length;
    }
    record_.stored[i].digest = Digester::spell(payloads_[i].digest, all);
  }

  // Writes one payload on one thread, in pieces.
  void whole(std::size_t i) {
    const Payload& p = payloads_[i];
    if (needs_encoding(p)) {
      put(record_.stored[i].offset, encoded_[i - window_]);
      return;
    }
    std::uint64_t at = record_.stored[i].offset;
    SegmentHasher hasher(hashed_bytes(p), record_.hashes_of(i));
    Digester digest(p.digest);
    stream(
        p, quiet_,
        [&](std::span<const std::byte> piece) {
          hasher.update(piece);
          digest.update(piece);
          put(at, piece);
          at += piece.size();
          progress_.add(piece.size());
        },
        &record_.casts[i]);
    record_.stored[i].digest = digest.finish();
  }

  // Writes consecutive small payloads, with their padding, in one write.
  void batch(std::size_t first, std::size_t last) {
    const core::BufferPool::Lease lease(buffers_);
    const std::uint64_t begin = record_.stored[first].offset;
    const std::uint64_t end = record_.stored[last - 1].offset + record_.stored[last - 1].length;
    const auto all = lease.span().first(base::to_size(end - begin));
    std::vector<core::PartRead> reads;
    std::uint64_t filled = begin, done = 0;
    for (std::size_t i = first; i < last; ++i) {
      const core::Stored& to = record_.stored[i];
      std::memset(all.data() + (filled - begin), 0, base::to_size(to.offset - filled));
      filled = to.offset + to.length;
      const auto out = all.subspan(base::to_size(to.offset - begin), base::to_size(to.length));
      if (payloads_[i].form == Payload::Form::logical && !needs_encoding(payloads_[i]) &&
          core::is_direct(payloads_[i].tensor.part(payloads_[i].part))) {
        reads.push_back({payloads_[i].tensor.part(payloads_[i].part), out});
      } else {
        fill(i, out);
      }
    }
    core::read_direct(reads);
    for (std::size_t i = first; i < last; ++i) {
      if (needs_encoding(payloads_[i])) continue;  // was hashed while it was encoded
      const auto bytes =
          all.subspan(base::to_size(record_.stored[i].offset - begin), base::to_size(record_.stored[i].length));
      if (!bytes.empty()) record_.hashes_of(i)[0] = codecs::xxh3_128(bytes);
      Digester digest(payloads_[i].digest);
      digest.update(bytes);
      record_.stored[i].digest = digest.finish();
      done += bytes.size();
    }
    if (!all.empty()) put(begin, all);
    progress_.add(done);
  }

  void fill(std::size_t i, std::span<std::byte> out) {
    const Payload& p = payloads_[i];
    if (needs_encoding(p)) {
      std::ranges::copy(encoded_[i - window_], out.begin());
    } else if (has_ranges(p)) {
      read_range(p, quiet_, 0, out, &record_.casts[i]);
    } else {
      std::size_t at = 0;
      stream(
          p, quiet_,
          [&](std::span<const std::byte> piece) {
            std::ranges::copy(piece, out.begin() + static_cast<std::ptrdiff_t>(at));
            at += piece.size();
          },
          &record_.casts[i]);
    }
  }

  const core::WriteLayout& layout_;
  const std::vector<Payload>& payloads_;
  const int level_;  // 0: the codec's default
  io::AtomicFile& file_;
  Context quiet_;
  core::Progress& progress_;
  Executor& executor_;
  const std::uint64_t budget_;  // of encoded payloads held at once
  core::BufferPool buffers_{base::to_size(kSegment)};
  Record record_;
  std::mutex casts_mutex_;  // of Record::casts where threads divide a payload
  std::uint64_t cursor_ = 0;
  std::size_t window_ = 0;                       // index of the first payload of the window
  std::vector<std::vector<std::byte>> encoded_;  // one per payload of the window
  std::mutex encoders_mutex_;
  std::vector<KeptEncoder> encoders_;  // idle ones
  std::vector<std::unique_ptr<Turns>> turns_;
  std::vector<std::size_t> turned_;                                       // the payload of each Turns
  std::vector<std::pair<std::size_t, std::vector<std::uint32_t>>> crcs_;  // payload, CRC of each segment
};

}  // namespace

Record write(const core::WriteLayout& layout, int level, io::AtomicFile& file, const Context& context,
             core::Progress& progress) {
  return Writer(layout, level, file, context, progress).run();
}

}  // namespace weighbridge::convert
