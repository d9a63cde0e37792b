// SPDX-License-Identifier: Apache-2.0
// The pass over the payload: parts become runs (each is read once, for all aliases), runs become tasks for one thread,
// and the executor runs the longest serial tasks first. Processes that verify one file together divide its runs.
#include "core/payload/content.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <queue>
#include <string>
#include <tuple>
#include <utility>

#include "base/checked.h"
#include "codecs/checksum.h"
#include "core/model/buffers.h"
#include "core/model/state.h"
#include "core/payload/extents.h"
#include "core/payload/payload.h"
#include "core/payload/work.h"
#include "core/reading/rules.h"
#include "io/read.h"

namespace weighbridge::core {
namespace {

// A chunk is hashed while it is in cache, so it should fit a core's own cache. Disks prefer larger reads, but the
// kernel reads ahead anyway.
constexpr std::uint64_t kChunk = std::uint64_t{256} << 10;
// Any thread checks pieces of this size of long raw parts with a CRC.
constexpr std::uint64_t kCrcPiece = std::uint64_t{8} << 20;
// Parts up to this size are read together with their neighbors, up to kGather at once, including the gaps between them.
constexpr std::uint64_t kSmall = std::uint64_t{64} << 10;
constexpr std::uint64_t kGather = std::uint64_t{1} << 20;
constexpr std::uint64_t kHole = std::uint64_t{4} << 10;
// Long parts whose SHA-256 is computed in lanes are read in turn, this much of each.
constexpr std::uint64_t kTurn = kGather / codecs::kShaLanes;

// One range to read: the jobs jobs_[first] ... jobs_[first + count - 1] in sorted order share its bytes.
struct Run {
  Range range{};
  std::uint64_t size = 0;  // after decoding, the largest that a job needs
  std::uint32_t first = 0, count = 0;
  bool sha256 = false, crc32c = false, boolean = false;
  bool xxh3 = false, decoded_sha256 = false;  // of the decoded bytes
  const codecs::Codec* codec = nullptr;       // set if the run must be decoded; null if no rule needs the decoded bytes
};

// The results of reading a run.
struct Outcome {
  std::array<std::byte, 32> sha256{}, decoded_sha256{};
  std::uint64_t xxh3 = 0;
  std::uint32_t crc32c = 0;
  std::optional<std::uint64_t> bad_bool{};  // the first decoded byte above 1
  std::uint8_t bad_byte = 0;
  std::optional<std::uint64_t> held{};  // the decoded size, if the codec could decode all of it
  std::string broken{};                 // why the codec cannot decode it
  std::uint64_t broken_at = 0;          // stored bytes from the part's first one
  bool over_memory = false;             // the caller's limit stopped decoding, not an invalid frame
};

// Consecutive pieces of one long run: the thread that finishes last combines their CRCs.
struct Split {
  std::size_t run = 0;
  std::vector<Outcome> pieces;
  std::atomic<std::uint32_t> left{0};
};

struct Task {
  std::uint64_t weight = 0;          // stored bytes
  std::size_t first = 0, count = 0;  // runs, or indices in Pass::in_lanes_; with a split, one piece of the run
  Split* split = nullptr;
  std::uint32_t piece = 0;
  bool in_lanes = false;  // several long runs in lanes
};

std::optional<std::uint64_t> first_non_bool(std::span<const std::byte> bytes) noexcept {
  std::byte all{0};
  for (const std::byte b : bytes) all |= b;  // vectorized; the search runs only for the chunk that has one
  if (all <= std::byte{1}) return std::nullopt;
  const auto at = std::find_if(bytes.begin(), bytes.end(), [](std::byte b) { return b > std::byte{1}; });
  return static_cast<std::uint64_t>(at - bytes.begin());
}

std::string lower_hex(std::string_view digits) {
  std::string out(digits);
  for (char& c : out)
    if (c >= 'A' && c <= 'F') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

class Pass {
 public:
  Pass(std::span<const PartJob> jobs, const Context& context, Progress& progress, std::vector<Finding>& out,
       const Share& share)
      : jobs_(jobs),
        context_(context),
        progress_(progress),
        out_(out),
        share_(share),
        gap_(largest_gap(jobs)),
        buffers_(base::to_size(gather_)) {}

  void run() {
    if (jobs_.empty()) return;
    sources_ = &Access::state(jobs_.front().part).sources;
    make_runs();
    if (!is_bounded()) return;
    keep_share();
    make_tasks();
    executor_of(context_).for_each(tasks_.size(), [this](std::uint64_t i) { work(tasks_[base::to_size(i)]); });
  }

 private:
  void make_runs() {
    std::vector<Range> ranges;
    ranges.reserve(jobs_.size());
    for (std::uint32_t i = 0; i < jobs_.size(); ++i) {
      const PartRecord& part = Access::record(jobs_[i].part);
      ranges.push_back({part.source, part.offset, part.stored_length, i});
    }
    const Extents extents(std::move(ranges));
    order_.reserve(jobs_.size());
    const auto says = [this](std::uint32_t job) {
      const PartRecord& part = Access::record(jobs_[job].part);
      return part.encoding;
    };
    const std::span<const Range> sorted = extents.sorted();
    for (std::size_t i = 0; i < sorted.size();) {
      const std::size_t first = order_.size();
      const Range& range = sorted[i];
      for (; i < sorted.size() && sorted[i].same_bytes(range); ++i) order_.push_back(sorted[i].item);
      // Jobs that disagree on the size share one decoding, to the largest one.
      const auto group = std::span(order_).subspan(first);
      std::ranges::stable_sort(group, {}, says);
      for (std::size_t k = first; k < order_.size(); ++k)
        if (k == first || says(order_[k]) != says(order_[k - 1]))
          begin_run(range, static_cast<std::uint32_t>(k));
        else
          join_run(order_[k]);
    }
  }

  // Whether the bytes to read are in proportion to the bytes that exist; reports it if not.
  bool is_bounded() {
    Work work;
    for (const Run& run : runs_) work.add(jobs_[order_[run.first]].part, run.codec ? run.size : run.range.length);
    auto excess = work.excess(context_.limits);
    if (!excess) return true;
    if (share_.index == 0) out_.push_back(*std::move(excess));
    return false;
  }

  void begin_run(const Range& range, std::uint32_t first) {
    Run& run = runs_.emplace_back();
    run.range = range;
    run.first = first;
    join_run(order_[first]);
  }
  void join_run(std::uint32_t index) {
    const PartJob& job = jobs_[index];
    Run& run = runs_.back();
    ++run.count;
    run.size = std::max(run.size, decoded_size(job.part));
    const Encoding encoding = Access::record(job.part).encoding;
    const bool of_decoded = job.digest == PartDigest::xxh3 || job.digest == PartDigest::decoded_sha256;
    run.sha256 |= job.digest == PartDigest::sha256 || (job.digest == PartDigest::decoded_sha256 && !is_coded(encoding));
    run.decoded_sha256 |= job.digest == PartDigest::decoded_sha256 && is_coded(encoding);
    run.xxh3 |= job.digest == PartDigest::xxh3;
    run.crc32c |= job.digest == PartDigest::crc32c;
    run.boolean |= job.bool_rule != nullptr;
    if (is_coded(encoding) && (job.encoding_rule || job.bool_rule || of_decoded)) run.codec = codec_of(encoding);
  }

  // Keeps only the runs of this share. Assigns groups of runs that fit one read, longest first, to the share with the
  // fewest bytes so far. The result depends neither on threads nor on the processor, in which other processes may
  // differ.
  void keep_share() {
    const auto [index, of] = share_;
    if (of == 1) return;
    std::vector<Task> reads;
    for (std::size_t i = 0; i < runs_.size(); i += reads.back().count) reads.push_back(one_read(i));
    std::ranges::stable_sort(reads, std::ranges::greater{}, &Task::weight);
    using Load = std::pair<std::uint64_t, std::uint32_t>;  // bytes, share
    std::priority_queue<Load, std::vector<Load>, std::greater<>> loads;
    for (std::uint32_t share = 0; share < of; ++share) loads.emplace(0, share);
    std::vector<char> kept(runs_.size());
    std::uint64_t others = 0;
    for (const Task& read : reads) {
      const auto [bytes, share] = loads.top();
      loads.pop();
      loads.emplace(bytes + read.weight, share);
      if (share == index)
        std::fill_n(kept.begin() + static_cast<std::ptrdiff_t>(read.first), read.count, char{1});
      else
        others += read.weight;
    }
    std::vector<Run> own;
    for (std::size_t i = 0; i < runs_.size(); ++i)
      if (kept[i] != 0) own.push_back(runs_[i]);
    runs_ = std::move(own);
    progress_.add(others);
  }

  // A long run, or a short one with the neighbors that fit one read: runs are sorted by source and offset.
  Task one_read(std::size_t i) const {
    const Run& run = runs_[i];
    Task task{run.range.length, i, 1, nullptr, 0};
    std::uint64_t end = run.range.offset + run.range.length;
    if (run.range.length > small_) return task;
    for (++i; i < runs_.size(); ++i, ++task.count) {
      const Run& next = runs_[i];
      if (next.range.source != run.range.source || next.range.length > small_ || next.range.offset > end + hole_) break;
      const std::uint64_t new_end = std::max(end, next.range.offset + next.range.length);
      if (new_end - run.range.offset > gather_) break;
      task.weight += next.range.length;
      end = new_end;
    }
    return task;
  }

  void make_tasks() {
    for (std::size_t i = 0; i < runs_.size();) {
      const Task task = one_read(i);
      if (runs_[i].range.length > small_)
        add_long(i);
      else
        tasks_.push_back(task);
      i += task.count;
    }
    put_in_lanes();
    // The longest first, so that a serial one does not start when all others are done; equal ones in file order.
    std::stable_sort(tasks_.begin(), tasks_.end(), [](const Task& a, const Task& b) { return a.weight > b.weight; });
  }

  void add_long(std::size_t i) {
    const Run& run = runs_[i];
    if (run.sha256 && !run.xxh3 && !run.codec && gap_ <= kTurn && codecs::has(codecs::ShaPath::vectors)) {
      in_lanes_.push_back(i);
      return;
    }
    if (run.sha256 || run.xxh3 || run.codec || run.range.length <= 2 * kCrcPiece) {
      tasks_.push_back({run.range.length, i, 1, nullptr, 0});
      return;
    }
    const auto pieces = static_cast<std::uint32_t>((run.range.length + kCrcPiece - 1) / kCrcPiece);
    Split& split = *splits_.emplace_back(std::make_unique<Split>());
    split.run = i;
    split.pieces.resize(pieces);
    split.left = pieces;
    for (std::uint32_t p = 0; p < pieces; ++p) tasks_.push_back({kCrcPiece, i, 1, &split, p});
  }

  // Long runs of similar length share a task, if enough tasks remain for all threads. Small groups would gain nothing.
  void put_in_lanes() {
    std::stable_sort(in_lanes_.begin(), in_lanes_.end(),
                     [this](std::size_t a, std::size_t b) { return runs_[a].range.length > runs_[b].range.length; });
    std::uint64_t total = 0;
    for (const std::size_t i : in_lanes_) total += runs_[i].range.length;
    const std::uint64_t share = total / executor_of(context_).concurrency();
    for (std::size_t i = 0; i < in_lanes_.size();) {
      const std::uint64_t longest = runs_[in_lanes_[i]].range.length;
      Task task{longest, i, 1, nullptr, 0, true};
      for (++i; i < in_lanes_.size() && task.count < codecs::kShaLanes; ++i, ++task.count) {
        const std::uint64_t length = runs_[in_lanes_[i]].range.length;
        if (task.weight + length > share || length < longest / 2) break;
        task.weight += length;
      }
      if (task.count >= codecs::kShaLanes / 2) {
        tasks_.push_back(task);
      } else {
        for (std::size_t k = task.first; k < i; ++k)
          tasks_.push_back({runs_[in_lanes_[k]].range.length, in_lanes_[k], 1, nullptr, 0});
      }
    }
  }

  void work(const Task& task) {
    if (task.split) {
      check_piece(*task.split, task.piece);
    } else if (task.in_lanes) {
      check_in_lanes(task);
    } else if (runs_[task.first].range.length > small_) {
      judge(runs_[task.first], check_long(runs_[task.first]));
    } else {
      check_small(task);
    }
  }

  // Reads [offset, offset + length) of the run's source chunk by chunk.
  template <class Use> void read(const Run& run, std::uint64_t offset, std::uint64_t length, Use use) {
    const BufferPool::Lease buffer(buffers_);
    for (std::uint64_t done = 0; done < length;) {
      const auto chunk = buffer.span().first(static_cast<std::size_t>(std::min(chunk_, length - done)));
      (*sources_)[run.range.source]->read_at(offset + done, chunk);
      use(done, std::span<const std::byte>(chunk));
      done += chunk.size();
      progress_.add(chunk.size());
    }
  }

  static void note_bool(Outcome& outcome, std::uint64_t base, std::span<const std::byte> bytes) {
    if (outcome.bad_bool) return;
    if (const auto at = first_non_bool(bytes)) {
      outcome.bad_bool = base + *at;
      outcome.bad_byte = std::to_integer<std::uint8_t>(bytes[base::to_size(*at)]);
    }
  }

  void check_piece(Split& split, std::uint32_t index) {
    const Run& run = runs_[split.run];
    const std::uint64_t begin = index * kCrcPiece;
    Outcome& outcome = split.pieces[index];
    read(run, run.range.offset + begin, std::min(kCrcPiece, run.range.length - begin),
         [&](std::uint64_t done, std::span<const std::byte> chunk) {
           if (run.crc32c) outcome.crc32c = codecs::crc32c(chunk, outcome.crc32c);
           if (run.boolean) note_bool(outcome, begin + done, chunk);
         });
    if (split.left.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    Outcome whole = split.pieces.front();
    for (std::uint32_t p = 1; p < split.pieces.size(); ++p) {
      const std::uint64_t length = std::min(kCrcPiece, run.range.length - p * kCrcPiece);
      whole.crc32c = codecs::combine(codecs::CrcKind::crc32c, whole.crc32c, split.pieces[p].crc32c, length);
      if (!whole.bad_bool) {
        whole.bad_bool = split.pieces[p].bad_bool;
        whole.bad_byte = split.pieces[p].bad_byte;
      }
    }
    judge(run, whole);
  }

  void check_in_lanes(const Task& task) {
    struct Turn {
      const Run* run = nullptr;
      std::uint64_t done = 0;
      std::span<std::byte> room{};
      Outcome outcome{};
    };
    const BufferPool::Lease buffer(buffers_);
    std::array<Turn, codecs::kShaLanes> turns;
    std::array<std::uint64_t, codecs::kShaLanes> lengths{};
    std::array<codecs::Digest256, codecs::kShaLanes> digests;
    for (std::size_t i = 0; i < task.count; ++i) {
      turns[i].run = &runs_[in_lanes_[task.first + i]];
      turns[i].room = buffer.span().subspan(i * kTurn, kTurn);
      lengths[i] = turns[i].run->range.length;
    }
    const auto next = [&](std::size_t i) -> std::span<const std::byte> {
      Turn& turn = turns[i];
      const Run& run = *turn.run;
      const auto chunk = turn.room.first(static_cast<std::size_t>(std::min(kTurn, run.range.length - turn.done)));
      (*sources_)[run.range.source]->read_at(run.range.offset + turn.done, chunk);
      if (run.crc32c) turn.outcome.crc32c = codecs::crc32c(chunk, turn.outcome.crc32c);
      if (run.boolean) note_bool(turn.outcome, turn.done, chunk);
      turn.done += chunk.size();
      progress_.add(chunk.size());
      return chunk;
    };
    codecs::sha256_each({}, std::span(lengths).first(task.count), next, std::span(digests).first(task.count));
    for (std::size_t i = 0; i < task.count; ++i) {
      turns[i].outcome.sha256 = digests[i];
      judge(*turns[i].run, turns[i].outcome);
    }
  }

  Outcome check_long(const Run& run) {
    Outcome outcome;
    std::optional<codecs::Sha256> sha;
    if (run.sha256) sha.emplace();
    std::optional<codecs::Xxh3_64> xxh3;
    if (run.xxh3 && !run.codec) xxh3.emplace();
    const auto hash = [&](std::span<const std::byte> chunk) {
      if (sha) sha->update(chunk);
      if (xxh3) xxh3->update(chunk);
      if (run.crc32c) outcome.crc32c = codecs::crc32c(chunk, outcome.crc32c);
    };
    if (run.codec) {
      io::StoredBytes stored(*(*sources_)[run.range.source], run.range.offset, run.range.length);
      std::uint64_t taken = 0;
      decode(run, outcome, [&](std::span<std::byte> room) {
        const std::size_t n = stored(room.first(std::min(room.size(), base::to_size(kChunk))));
        hash(room.first(n));
        taken += n;
        progress_.add(n);
        return n;
      });
      // A digest also covers the bytes after an invalid frame.
      if (sha || run.crc32c)
        read(run, run.range.offset + taken, run.range.length - taken,
             [&](std::uint64_t, std::span<const std::byte> chunk) { hash(chunk); });
      else
        progress_.add(run.range.length - taken);
    } else {
      read(run, run.range.offset, run.range.length, [&](std::uint64_t done, std::span<const std::byte> chunk) {
        hash(chunk);
        if (run.boolean) note_bool(outcome, done, chunk);
      });
    }
    if (sha) outcome.sha256 = sha->finish();
    if (xxh3) outcome.xxh3 = xxh3->finish();
    return outcome;
  }

  template <class Pull> void decode(const Run& run, Outcome& outcome, Pull pull) {
    const std::uint64_t limit = context_.limits.decoded;
    if (run.size > limit) return;  // reported when the file was opened
    const codecs::LentDecoder decoder(*run.codec);
    std::uint64_t decoded = 0;
    std::optional<codecs::Sha256> sha;
    if (run.decoded_sha256) sha.emplace();
    std::optional<codecs::Xxh3_64> xxh3;
    if (run.xxh3) xxh3.emplace();
    const auto result = decoder->decode(run.size, context_.limits.memory, pull, [&](std::span<const std::byte> piece) {
      if (run.boolean) note_bool(outcome, decoded, piece);
      if (sha) sha->update(piece);
      if (xxh3) xxh3->update(piece);
      decoded += piece.size();
      return true;
    });
    if (sha) outcome.decoded_sha256 = sha->finish();
    if (xxh3) outcome.xxh3 = xxh3->finish();
    outcome.broken_at = result.offset;
    if (result.ok() || result.fault == codecs::DecodeFault::too_short) {
      outcome.held = decoded;
    } else {
      outcome.broken = result.sentence;
      outcome.over_memory = result.fault == codecs::DecodeFault::memory;
    }
  }

  void check_small(const Task& task) {
    const Run& first = runs_[task.first];
    std::uint64_t end = first.range.offset;
    for (std::size_t i = 0; i < task.count; ++i)
      end = std::max(end, runs_[task.first + i].range.offset + runs_[task.first + i].range.length);
    const BufferPool::Lease buffer(buffers_);
    const auto all = buffer.span().first(base::to_size(end - first.range.offset));
    if (!all.empty()) (*sources_)[first.range.source]->read_at(first.range.offset, all);
    const auto bytes_of = [&](const Run& run) {
      return std::span<const std::byte>(all).subspan(base::to_size(run.range.offset - first.range.offset),
                                                     base::to_size(run.range.length));
    };
    std::vector<std::span<const std::byte>> messages;
    for (std::size_t i = 0; i < task.count; ++i)
      if (runs_[task.first + i].sha256) messages.push_back(bytes_of(runs_[task.first + i]));
    std::vector<codecs::Digest256> digests(messages.size());
    codecs::sha256_each({}, messages, digests);
    auto digest = digests.begin();
    for (std::size_t i = 0; i < task.count; ++i) {
      const Run& run = runs_[task.first + i];
      const auto chunk = bytes_of(run);
      Outcome outcome;
      if (run.crc32c) outcome.crc32c = codecs::crc32c(chunk);
      if (run.sha256) outcome.sha256 = *digest++;
      if (run.xxh3 && !run.codec) outcome.xxh3 = codecs::xxh3_64(chunk);
      if (run.codec) {
        std::size_t taken = 0;
        decode(run, outcome, [&](std::span<std::byte> room) {
          const std::size_t n = std::min(room.size(), chunk.size() - taken);
          std::copy_n(chunk.begin() + static_cast<std::ptrdiff_t>(taken), n, room.begin());
          taken += n;
          return n;
        });
      } else if (run.boolean) {
        note_bool(outcome, 0, chunk);
      }
      judge(run, outcome);
    }
    progress_.add(task.weight);
  }

  void judge(const Run& run, const Outcome& outcome) {
    for (std::uint32_t i = 0; i < run.count; ++i) judge(jobs_[order_[run.first + i]], outcome);
  }

  void judge(const PartJob& job, const Outcome& outcome) {
    const std::uint64_t offset = Access::record(job.part).offset;
    const At at{offset, job.tensor.name()};
    const std::uint64_t size = decoded_size(job.part);
    const bool coded = is_coded(job.part.encoding());
    // Bytes that do not decode to the part's size have no digest; the rule about the encoding reports them.
    const bool has_digest = job.digest < PartDigest::crc32 || !coded || (outcome.held && *outcome.held == size);
    if (job.digest != PartDigest::none && has_digest) {
      const std::string expected = lower_hex(job.expected);
      const std::string found = job.digest == PartDigest::sha256 || (job.digest == PartDigest::decoded_sha256 && !coded)
                                    ? codecs::to_hex(outcome.sha256)
                                : job.digest == PartDigest::decoded_sha256 ? codecs::to_hex(outcome.decoded_sha256)
                                : job.digest == PartDigest::xxh3           ? codecs::to_hex(outcome.xxh3)
                                                                           : codecs::to_hex(outcome.crc32c);
      if (expected != found) add(job, Findings::make(*job.digest_rule, at, expected, found, part_text(job)));
    }
    std::string broken = outcome.broken;
    if (outcome.held && *outcome.held != size)
      broken = "the " + std::string(name(job.part.encoding())) + " frame holds " + std::to_string(*outcome.held) +
               " bytes, its tensor needs " + std::to_string(size);
    if (job.encoding_rule && !broken.empty()) {
      const At fault{base::checked_add(offset, outcome.broken_at), job.tensor.name()};
      add(job, Findings::make(outcome.over_memory ? rules::kLimitMemory : *job.encoding_rule, fault, {}, {},
                              {part_text(job), ", ", broken}));
    }
    if (job.bool_rule && outcome.bad_bool && *outcome.bad_bool < size) {
      const bool raw = job.part.encoding() == Encoding::raw;
      const At byte{raw ? offset + *outcome.bad_bool : offset, job.tensor.name()};
      add(job, Findings::make(*job.bool_rule, byte, "0 or 1", outcome.bad_byte,
                              {part_text(job), ", element ", *outcome.bad_bool}));
    }
  }

  void add(const PartJob& job, Finding finding) {
    finding.file = file_ref(Access::state(job.part), Access::record(job.part).source);
    const std::lock_guard lock(mutex_);
    out_.push_back(std::move(finding));
  }

  static std::uint64_t largest_gap(std::span<const PartJob> jobs) {
    std::size_t gap = 0;
    if (!jobs.empty())
      for (const auto& source : Access::state(jobs.front().part).sources) gap = io::piece_of(*source, gap);
    return gap;
  }

  static std::string part_text(const PartJob& job) { return "component \"" + std::string(job.part.role()) + "\""; }

  std::span<const PartJob> jobs_;
  const Context& context_;
  Progress& progress_;
  std::vector<Finding>& out_;
  const Share share_;
  // One read has at least the source's gap, where so many bytes are needed.
  const std::uint64_t gap_, chunk_ = std::max(kChunk, gap_), small_ = std::max(kSmall, gap_),
                            hole_ = std::max(kHole, gap_), gather_ = std::max(kGather, 2 * gap_);
  BufferPool buffers_;
  const std::vector<std::shared_ptr<const Source>>* sources_ = nullptr;
  std::vector<std::uint32_t> order_;  // jobs, sorted by extent
  std::vector<Run> runs_;
  std::vector<std::size_t> in_lanes_;  // long raw runs with a SHA-256, the longest first
  std::vector<Task> tasks_;
  std::vector<std::unique_ptr<Split>> splits_;
  std::mutex mutex_;  // of out_
};

}  // namespace

std::uint64_t stored_bytes(std::span<const PartJob> jobs) noexcept {
  std::uint64_t total = 0;
  for (const PartJob& job : jobs) total += Access::record(job.part).stored_length;
  return total;
}

void check_parts(std::span<const PartJob> jobs, const Context& context, Progress& progress, std::vector<Finding>& out,
                 const Share& share) {
  Pass(jobs, context, progress, out, share).run();
}

void check_parts(std::span<const PartJob> jobs, const Context& context, std::vector<Finding>& out) {
  Progress progress(context, stored_bytes(jobs));
  check_parts(jobs, context, progress, out);
  progress.finish();
}

void sort_findings(std::vector<Finding>& findings) {
  const auto key = [](const Finding& f) {
    return std::tuple(std::string_view(f.file.name), f.offset.has_value(), f.offset.value_or(0),
                      std::string_view(f.rule), std::string_view(f.tensor), std::string_view(f.message));
  };
  std::stable_sort(findings.begin(), findings.end(),
                   [&](const Finding& a, const Finding& b) { return key(a) < key(b); });
}

void report_sorted(std::vector<Finding> found, Findings& findings) {
  sort_findings(found);
  for (Finding& finding : found) findings.report(std::move(finding));
}

}  // namespace weighbridge::core
