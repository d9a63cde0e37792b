// SPDX-License-Identifier: Apache-2.0
// The layout of a patch (docs/patching.md): what its objects and attributes are called, what they must say, and
// decoding a chunk of changes. Owns reading; encode.h owns writing.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/checked.h"
#include "codecs/checksum.h"
#include "core/model/draft.h"
#include "core/payload/elements.h"
#include "core/reading/findings.h"
#include "weighbridge/delta.h"
#include "weighbridge/model.h"

namespace weighbridge::delta {

// Attributes of the root, all texts.
inline constexpr std::string_view kVersion = "weighbridge.delta", kBase = "weighbridge.delta.base",
                                  kResult = "weighbridge.delta.result", kMetadata = "weighbridge.delta.metadata";
// Objects that are not tensors, and the prefix that no tensor may have.
inline constexpr std::string_view kReserved = "weighbridge.delta/", kNames = "weighbridge.delta/names",
                                  kNodes = "weighbridge.delta/nodes", kChanged = "weighbridge.delta/metadata";
// An attribute of kChanged is a key of metadata after one of these: it is set to the value, or goes.
inline constexpr char kSet = '+', kUnset = '-';
// Attributes of an object. One without kOp is a tensor of the result as it is.
inline constexpr std::string_view kOp = "delta.op", kCode = "code", kDtype = "dtype", kShape = "shape", kFrom = "from",
                                  kChunk = "chunk", kCounts = "counts", kGap = "gap", kFrames = "frames";
inline constexpr std::uint32_t kUsualGap = 2;
inline constexpr std::uint64_t kLeastChunk = 65536, kUsualChunk = 1048576, kMostChunk = 4194304;

enum class Op : std::uint8_t { whole, rename, sparse, dense };
enum class Code : std::uint8_t { sub, exclusive_or, set };
std::string_view name(Op) noexcept;
std::string_view name(Code) noexcept;

// How the elements of one part change. A unit is what is compared: an element, a component of a complex one, or a byte
// of dtypes below 8 bits and of blocks.
struct Form {
  Op op = Op::whole;
  Code code = Code::sub;
  DType dtype = DType::unknown;  // of the part
  std::vector<std::uint64_t> shape{};
  std::string from{};       // name in the base
  std::uint32_t width = 1;  // bytes of a unit
  std::uint32_t gap = 0;    // bytes of a gap; 0 if dense
  std::uint64_t chunk = kUsualChunk, units = 0;
  std::vector<std::uint32_t> counts{};  // sparse: changes in each chunk

  std::uint64_t chunks() const noexcept { return units / chunk + (units % chunk != 0 ? 1 : 0); }
  std::uint64_t units_in(std::uint64_t c) const noexcept { return std::min(chunk, units - c * chunk); }
  // Changes that a chunk lists.
  std::uint64_t words_in(std::uint64_t c) const noexcept {
    return op == Op::dense ? units_in(c) : counts[base::to_size(c)];
  }
  std::uint32_t planes() const noexcept { return gap + width; }
};
// Sets width and units for a part of these elements; false if it has too many.
bool measure(Form&, DType, Shape);
std::uint64_t chunk_of(DType) noexcept;  // that we write

// One object of a patch.
struct Change : Form {
  Tensor tensor{};                      // in the patch
  std::uint32_t row = 0;                // of the result's name
  std::vector<std::uint64_t> begin{};   // by chunk: offset of its planes among the decoded bytes
  std::vector<std::uint64_t> stored{};  // by chunk and one more: offset of its first frame; empty: in one stream
  std::vector<std::uint32_t> frames{};  // by chunk and plane
  std::vector<std::uint32_t> first{};   // by chunk: its first frame

  // Whether chunks are found only by decoding those before them.
  bool is_in_order() const noexcept { return op >= Op::sparse && stored.empty() && chunks() > 1; }
};

// A name that the base or the result has, and the nodes of its tensors there; zeros: it is not there.
struct Row {
  std::string name;
  codecs::Digest256 base{}, result{};
};

// The changes of a chunk, decoded: words are differences (zigzag), exclusive ors or values, by Code.
struct Words {
  std::vector<std::uint32_t> at{};  // sparse: ascending positions in the chunk
  std::vector<std::byte> words{};   // each of `width` bytes
};

// Changes of metadata, by key.
struct Metadata {
  std::vector<Value::Entry> set{};
  std::vector<std::string> unset{};
  bool empty() const noexcept { return set.empty() && unset.empty(); }
  // "keep", or "sha256:" and the digest of keys and values.
  std::string digest() const;
};
// What no patch changes: files beside the weights, which attributes of folders show.
inline bool is_beside(std::string_view key) noexcept { return key.starts_with("hf."); }

class Patch {
 public:
  // Nothing if something was reported. Checks all that the index says.
  static std::shared_ptr<const Patch> read(const Model&, const Limits&, core::Findings&);
  // The same, and throws what was reported.
  static std::shared_ptr<const Patch> require(const Model&, const Limits&);

  Model model{};
  Digest base{}, result{};
  std::vector<Row> rows{};        // by name
  std::vector<Change> changes{};  // by name
  Metadata metadata{};

  const Row* find(std::string_view name) const noexcept;
  const Change* change_of(std::string_view name) const noexcept;
  // What the patch does besides changing elements where they are: "adds the tensor 'x'"; empty if there is no such
  // thing.
  std::string other_change() const;
  // [reads] Throws Error{malformed}.
  Words decode(const Change&, std::uint64_t chunk, const Context&) const;
  // The same, and keeps what was decoded last, up to some memory for all changes.
  std::shared_ptr<const Words> decoded(const Change&, std::uint64_t chunk, const Context&) const;
  // [reads] Checks every chunk and every tensor.
  void check_data(const Context&, core::Findings&) const;
  PatchInfo info() const;

 private:
  struct Kept {
    const Change* change;
    std::uint64_t chunk;
    std::shared_ptr<const Words> words;
  };
  void read_in_order(const Change&, std::uint64_t begin, std::span<std::byte> out, const Context&) const;
  mutable std::mutex mutex_;
  mutable const Change* held_of_ = nullptr;
  mutable std::vector<std::byte> held_;
  mutable std::vector<Kept> kept_;
};

// Runs the work. An Error that names no file becomes one of the model's file.
template <class Work> decltype(auto) about(const Model& model, Work&& work) {
  try {
    return work();
  } catch (const Error& error) {
    if (model.sources().empty()) throw;
    throw error.in(model.sources()[0]->name());
  }
}
// Patches that are a chain, with their indexes checked; data are checked where they are decoded. Throws Error{misuse},
// Error{malformed}.
std::vector<std::shared_ptr<const Patch>> require_chain(std::span<const Model>, const Context&);
// Checks a patch in a model that was read; nothing for other models. For verify().
void check(const Model&, const Context&, core::Findings&);

// The content digest of the side of the rows that the member names.
Digest id_of(const std::vector<Row>& rows, codecs::Digest256 Row::*side);

// Adds a tensor like this one, with other elements.
void add_computed(core::Draft&, std::string_view name, const Tensor& like, core::ElementsPtr);
// patched() without the digests, for benchmarks only.
Model unchecked(const Model& base, const Model& patch);
// Applies the words to the units [first, first + out.size() / width) of a chunk.
void apply(const Form&, const Words&, std::uint64_t first, std::span<std::byte> out);
// The bits of an integer with the sign lowest, and back. Modulo 2^n.
template <class T> constexpr T zigzag(T difference) noexcept {
  return static_cast<T>(static_cast<T>(difference << 1) ^
                        static_cast<T>(T{0} - static_cast<T>(difference >> (sizeof(T) * 8 - 1))));
}
template <class T> constexpr T unzigzag(T word) noexcept {
  return static_cast<T>(static_cast<T>(word >> 1) ^ static_cast<T>(T{0} - static_cast<T>(word & 1)));
}
// Calls work(T()) for the unsigned integer of that width.
template <class Work> decltype(auto) with_width(std::uint32_t width, Work&& work) {
  switch (width) {
    case 1: return work(std::uint8_t{});
    case 2: return work(std::uint16_t{});
    case 4: return work(std::uint32_t{});
    default: return work(std::uint64_t{});
  }
}

}  // namespace weighbridge::delta
