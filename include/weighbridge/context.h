// SPDX-License-Identifier: Apache-2.0
/// \file
/// What a caller grants a job: budgets, threads, and a hook that watches and may stop it.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>

namespace weighbridge {

/// Budgets. A file that passes one gets a finding "limit/..." that names the limit; no allocation is made first.
struct Limits {
  std::uint64_t memory = std::uint64_t{256} << 20;  ///< working memory of one job, beside the file's own header
  std::uint64_t header = std::uint64_t{1} << 30;    ///< bytes of a header, manifest or index
  std::uint64_t tensors = 16'000'000;               ///< tensors in one file
  std::uint64_t decoded = std::uint64_t{64} << 30;  ///< bytes of one part or tensor once decoded or made dense
  std::uint32_t depth = 64;                         ///< nesting of JSON and CBOR
};

/// How much opening checks. A specification may make payload part of "valid" (SLM: file checksum, finite values).
enum class Checks : std::uint8_t {
  all,       ///< what the specification calls valid, payload included
  structure  ///< payload is put off, and the Model says so: Model::checked()
};

/// Runs work side by side. One executor may serve many jobs at once.
class Executor {
 public:
  virtual ~Executor() = default;
  /// How many bodies truly run at once, the caller's thread included; at least 1.
  virtual unsigned concurrency() const noexcept = 0;
  /// Calls body(0) ... body(count - 1), each once, on at most concurrency() threads, the caller's among them; indices
  /// are handed out in ascending order. Returns when all are done. When a body throws, no new index is handed out and
  /// the exception of the lowest index that threw is rethrown.
  virtual void for_each(std::uint64_t count, const std::function<void(std::uint64_t)>& body) = 0;
};

/// In the caller's thread, in order.
std::shared_ptr<Executor> inline_executor();
/// A pool of `threads` threads, the caller's included; 0 means one for each processor this process may use. Of fewer
/// where the system gives no more.
std::shared_ptr<Executor> thread_executor(unsigned threads = 0);

/// What every job takes from its caller; a default one will do.
struct Context {
  Limits limits{};                       ///< budgets
  std::shared_ptr<Executor> executor{};  ///< null: inline
  /// Told now and then, from any thread but never from two at once: how many bytes of the job's `total` are done (total
  /// 0: not known yet, which is also how a job asks between two counts). Returning false stops the job within 16 MiB
  /// that it reads, which then throws Cancelled and leaves everything as it was.
  std::function<bool(std::uint64_t done, std::uint64_t total)> progress{};
};

}  // namespace weighbridge
