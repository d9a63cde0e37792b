// SPDX-License-Identifier: Apache-2.0
/// \file
/// What a caller gives a job: limits, threads, and a progress hook that can stop it.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

namespace weighbridge {

/// Limits of a job. Exceeding one is a finding "limit/..." that names the limit, before any allocation.
struct Limits {
  std::uint64_t memory = std::uint64_t{256} << 20;  ///< working memory of one job, without the file's own header
  std::uint64_t header = std::uint64_t{1} << 30;    ///< bytes of a header, manifest or index
  std::uint64_t tensors = 16'000'000;               ///< tensors in one file
  std::uint64_t decoded = std::uint64_t{64} << 30;  ///< bytes of one part or tensor after decoding or densifying
  /// Bytes that one job may read, hash or make, where parts share or repeat them; 0: 16 times the tensor data, and at
  /// least 256 MiB.
  std::uint64_t work = 0;
  /// Bytes of an output, where parts share or repeat them; 0: 16 times the tensor data, and at least 256 MiB.
  std::uint64_t output = 0;
  std::uint32_t depth = 64;  ///< nesting of JSON and CBOR
};

/// How much opening checks. Some specifications make payload part of "valid" (SLM: file checksum, finite values).
enum class Checks : std::uint8_t {
  all,       ///< all that the specification requires, payload included
  structure  ///< skips checks that read payload; Model::checked() is then false
};

/// Runs work in parallel. One executor may serve many jobs at once.
class Executor {
 public:
  virtual ~Executor() = default;
  /// How many bodies run at once, the caller's thread included; at least 1.
  virtual unsigned concurrency() const noexcept = 0;
  /// Calls body(0) ... body(count - 1), each once, on at most concurrency() threads, including the caller's. Indices
  /// start in ascending order. Returns when all are done. When a body throws, no further index starts, and the
  /// exception of the lowest index that threw is rethrown.
  virtual void for_each(std::uint64_t count, const std::function<void(std::uint64_t)>& body) = 0;
};

/// Runs bodies in the caller's thread, in order.
std::shared_ptr<Executor> inline_executor();
/// A pool of `threads` threads, including the caller's; 0 means one for each processor that this process may use. The
/// pool is smaller if the system cannot start so many.
std::shared_ptr<Executor> thread_executor(unsigned threads = 0);

/// What every job takes from its caller. The default is fine.
struct Context {
  Limits limits{};                       ///< budgets
  std::shared_ptr<Executor> executor{};  ///< null: inline
  /// Progress hook: bytes done, and the job's total (0 while it is unknown, and between two counts). Called from any
  /// thread, one call at a time. If it returns false, the job stops within 16 MiB of reading, throws Cancelled and
  /// leaves everything as it was. Once the work is done, a job calls it a last time with `done` equal to `total`, and
  /// returns its result whatever the hook returns. Only a job that publishes files can still be stopped by that call:
  /// they are written, and not yet published.
  std::function<bool(std::uint64_t done, std::uint64_t total)> progress{};
};

/// A step of a job that ran, and how long it took.
struct TimedStep {
  std::string_view what;  ///< "structure", "tensor data", "writing", ...
  double seconds = 0;     ///< of the clock
};

}  // namespace weighbridge
