// SPDX-License-Identifier: Apache-2.0
// Writes patches: encodes the changes of a tensor as planes in frames, keeps them in a temporary file, and makes the
// model of the patch. What the changes are is up to the callers: make.cc, fold.cc.
#pragma once
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/draft.h"
#include "core/model/progress.h"
#include "delta/patch.h"
#include "io/atomic_file.h"

namespace weighbridge::delta {

// Above this share of changed elements, all elements as dense planes are smaller than positions.
constexpr bool is_dense(std::uint64_t changed, std::uint64_t units) noexcept {
  return changed > units / 20 * 9 + units % 20 * 9 / 20;
}

// Bytes beside the output, until it is written.
class Scratch {
 public:
  explicit Scratch(const std::string& beside);
  std::uint64_t size() const noexcept { return size_; }
  void append(std::span<const std::byte>);
  void cut(std::uint64_t size) noexcept { size_ = size; }
  // What was written; it keeps the file.
  std::shared_ptr<const Source> source() const;

 private:
  std::shared_ptr<io::AtomicFile> file_;
  std::uint64_t size_ = 0;
};

// The changes of one chunk, and how many of its units differ, whatever `words` holds.
struct Made {
  Words words{};  // the first `count`: the vectors may be longer, so that nobody fills them with zeros
  std::size_t count = 0;
  std::uint64_t changed = 0;
  std::vector<std::byte> bytes[2]{};           // of base and result, for make()
  bool hash = false;                           // whether the leaves are wanted
  std::vector<codecs::Digest256> leaves[2]{};  // of base and result
};
// Makes the changes of a chunk: of all units if `dense`. Called from several threads, each with a Made of its own,
// whose memory it reuses.
using MakeWords = std::function<void(std::uint64_t chunk, bool dense, Made& out, const Context&)>;

// One tensor to encode. The form has all but op, gap and counts, which follow from the changes.
struct Job {
  std::string name{};
  Form form{};
  MakeWords make{};
  // Gets the leaves of each chunk once, in order. Null: nobody wants them.
  std::function<void(const std::vector<codecs::Digest256>& base, const std::vector<codecs::Digest256>& result)>
      hashed{};
  // Called when all is encoded. Returns whether the tensor gets an object.
  std::function<bool(std::uint64_t changed)> done{};
};

// Chunks: threads share the tensors that have at most as many, and the chunks of larger ones.
inline constexpr std::uint64_t kSmall = 4;

class Writer {
 public:
  Writer(const PatchOptions&, const Context&, std::uint64_t total);
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  // A tensor as it is, or under another name.
  void add_whole(std::string name, const Tensor&);
  void add_rename(std::string name, std::string from);
  void add(Job);
  // Encodes the jobs that wait.
  void flush();
  // For what jobs read.
  core::Progress& progress() noexcept { return progress_; }
  // Rows by name.
  Model finish(const std::vector<Row>&, const Metadata&);

 private:
  struct Coded {
    Form form{};
    std::vector<std::uint32_t> frames{};
    std::vector<std::byte> held{};  // of small tensors
    std::uint64_t offset = 0, length = 0, decoded = 0;
    std::uint64_t changed = 0, hashed = 0;  // chunks whose leaves were passed on
    bool left_out = false;
  };
  struct Piece;
  struct Room;
  void encode(const Job&, Executor&, Coded&, Scratch* to);
  bool encode_as(const Job&, Executor&, bool probe, Coded&, Scratch* to);
  void encode_chunk(const Job&, const Form&, std::uint64_t chunk, bool probe, Room&, Piece&);

  const PatchOptions& options_;
  const Context& context_;
  core::Progress progress_;
  Scratch scratch_;
  std::vector<Job> waiting_{};  // small ones
  struct Object {
    std::string name;
    Tensor whole{};
    Coded coded{};
  };
  std::vector<Object> objects_{};
  std::mutex mutex_;
  std::vector<std::unique_ptr<Room>> rooms_;  // without {}, which would need the whole Room
};

// The part in any order: a compressed one is decoded first, into memory if it is small, else beside the scratch.
core::ElementsPtr in_any_order(const Part&, const std::string& scratch, const Context&);
// make_patch(). Without digests, for benchmarks only: the patch has no nodes, so that nobody can read it.
Model make(const Model& base, const Model& result, const PatchOptions&, const Context&, bool digests);
// The chunk's elements from random access to a part, and its bytes.
void read_chunk(const core::Elements&, const Form&, std::uint64_t chunk, std::vector<std::byte>& out, const Context&);

}  // namespace weighbridge::delta
