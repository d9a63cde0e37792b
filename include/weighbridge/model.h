// SPDX-License-Identifier: Apache-2.0
// weighbridge/model.h: what a tensor file is once its container is forgotten. Owns Model, Tensor, Part, Tokenizer,
// Builder. Leaves to others: open() (open.h), verify() (verify.h), plans and conversion (convert.h), budgets and
// progress (context.h).
//
// OWNERSHIP  Model is an immutable shared handle; a copy is one reference count. Tensor and Part are small views into
// it,
//            like string_view: they must not outlive every copy of their Model, hence the deleted && overloads. Bytes
//            and Array own or share what they show and outlive anything.
// THREADS    Every const member may run concurrently. Nothing here mutates a Model; reads are positional, there is no
// cursor. ERRORS     Members do no input/output and allocate nothing unless marked [reads]; unmarked ones throw only
// Error{misuse}.
//            [reads] members throw Error of kind io, malformed, unsupported or misuse, and leave everything as it was.
//            A number from a file never causes bad_alloc: Limits are tested before the allocation.
// ZERO COPY  view() and as<T>() never copy, stored() and to_dense() always do, nothing chooses for you. Only payload is
// ever
//            mapped, and only by view(): headers are copied once, then parsed, so a file that changes cannot change a
//            parse. A view of a mapped file that someone truncates is SIGBUS; stored() of it is Error{io}.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weighbridge/context.h"
#include "weighbridge/dtype.h"
#include "weighbridge/error.h"
#include "weighbridge/source.h"
#include "weighbridge/value.h"

namespace weighbridge {
namespace core {
struct State;
struct Draft;
class Access;
}  // namespace core

// Sizes and offsets are u64 everywhere, never size_t: the page runs where size_t has 32 bits. Rank is at most 64.
using Shape = std::span<const std::uint64_t>;
// A range of the file that Model::sources()[source] names.
struct Extent {
  std::uint32_t source = 0;
  std::uint64_t offset = 0, length = 0;
  bool operator==(const Extent&) const = default;
};
enum class Order : std::uint8_t { little, big };
// computed: no extent holds the bytes, only the format's reader (or a Builder's callback) can make them.
enum class Encoding : std::uint8_t { raw, zstd, computed, unknown };
enum class Layout : std::uint8_t {
  dense,
  sparse_csr,
  sparse_coo,
  quantized_group,
  quantized_row,
  quantized_block,
  structural
};
// Why there is no zero-copy view; none: there is one.
enum class NoView : std::uint8_t {
  none,
  encoded,
  computed,
  byte_order,
  strided,
  misaligned,
  dtype,
  layout,
  not_mappable
};

std::string_view name(
    Layout) noexcept;  // "dense", "sparse_csr", ...; "structural" for layouts this build does not know
std::string_view name(Encoding) noexcept;  // "raw", "zstd", "computed", "unknown"
std::string_view name(NoView) noexcept;

// Row-major, native-endian, 64-byte aligned, writable by its one owner.
struct Array {
  DType dtype = DType::unknown;
  std::vector<std::uint64_t> shape;
  std::shared_ptr<std::byte[]> data;
  std::uint64_t size = 0;  // bytes
};

// Data, no behaviour. EMBD and SLM hold one natively; zt carries it as the attribute "weighbridge.tokenizer"; for the
// others it is a loss unless the caller names a side file.
struct Tokenizer {
  enum class Kind : std::uint8_t { wordpiece, byte, bpe } kind = Kind::wordpiece;
  struct Merge {
    std::uint32_t left, right, output, rank;
    bool operator==(const Merge&) const = default;
  };
  std::uint32_t vocab_size = 0;    // as declared; records may be fewer
  Texts tokens;                    // in file order
  std::vector<std::uint32_t> ids;  // of tokens; empty: 0, 1, 2, ...
  std::vector<Merge> merges;       // in file order
  std::vector<std::pair<std::string, std::uint32_t>>
      special;  // "pad" "unk" "cls" "sep" "mask" "bos" "eos", in file order
  bool operator==(const Tokenizer&) const = default;
};

std::string_view name(Tokenizer::Kind) noexcept;  // "wordpiece", "byte", "bpe"

// One stored array of a tensor.
class Part {
 public:
  std::string_view role()
      const noexcept;            // "data"; "values" "indices" "indptr" "coords"; "packed_weight" "scales" "zeros"
  DType dtype() const noexcept;  // DType::unknown keeps its file name in dtype_name()
  std::string_view dtype_name() const noexcept;
  Shape shape() const noexcept;          // in elements, after decoding; {count} where the layout does not say
  std::uint64_t count() const noexcept;  // elements
  std::uint64_t size() const noexcept;   // logical bytes: what stream() delivers in all
  std::span<const std::int64_t> strides()
      const noexcept;            // in elements; empty: row-major. 0, negative and overlapping are legal
  Order order() const noexcept;  // of the stored elements
  Encoding encoding() const noexcept;
  std::string_view encoding_name() const noexcept;
  std::optional<Extent> extent()
      const noexcept;  // none when computed. Equal extents are aliases: tied weights, shared storages
  std::string_view digest() const noexcept;  // as declared, "sha256:..."; checked by verify(), not by reading
  const Attributes extra() const noexcept;   // unknown keys. Written back only if the stored bytes go over verbatim
  NoView why_no_view() const noexcept;       // none: view() succeeds. Code branches on this, not on a caught exception
  Bytes view() const;                        // [reads] stored bytes as mapped
  Bytes stored() const;                      // [reads] stored bytes, copied
  // [reads] The logical bytes: decoded, little-endian, row-major, bool as 0/1, in order, in pieces of whole elements,
  // at most 4 MiB each; stops early when sink returns false. The one way that verify, hash, convert and extract see
  // payload: constant memory, no mapping, any Source.
  void stream(const Context&, const std::function<bool(std::span<const std::byte>)>& sink) const;

 private:
  friend class Tensor;
  friend class core::Access;
  const core::State* s_ = nullptr;
  std::uint32_t i_ = 0;
};

class Tensor {
 public:
  std::string_view name()
      const noexcept;  // unique, UTF-8. Nameless formats: sidecar name, else decimal id, else "#" + 16 hex
  std::optional<std::uint64_t> id() const noexcept;    // STB tensor_id, SLM name_hash: survives a renaming
  std::uint32_t index() const noexcept { return i_; }  // place in the file's index
  bool has_shape() const noexcept;  // false: STB rank 4..8 without its shape table; shape() then throws unsupported
  Shape shape() const;              // logical, slowest dimension first
  Layout layout() const noexcept;
  std::string_view layout_name() const noexcept;  // as in the file, also for structural
  DType dtype() const noexcept;  // what to_dense() gives: the part's own if dense or sparse, f32 if quantised
  std::string_view type_name() const noexcept;  // "bf16"; "q8_0", "quantized_group": the column a person reads
  const Finding* unsupported()
      const noexcept;  // why elements cannot be had; null if they can. Metadata works regardless
  const Attributes attributes() const noexcept;
  const Attributes extra() const noexcept;
  std::uint32_t part_count() const noexcept;  // parts come in file order; data, values or packed_weight is main()
  Part part(std::uint32_t i) const;
  std::optional<Part> part(std::string_view role) const noexcept;
  Part main() const;  // misuse: a tensor without any part
  NoView why_no_view(DType as) const noexcept;
  template <class T>
  std::span<const T> as() const {  // [reads] lives as long as the Model; misuse says which NoView it is
    static_assert(dtype_of<T> != DType::unknown, "no tensor has elements of this type");
    const auto b = typed(dtype_of<T>);
    return {reinterpret_cast<const T*>(b.data()), b.size() / sizeof(T)};
  }
  Array to_dense(const Context& = {}) const;  // [reads] decompress, swap, reorder, densify, dequantise
  Array to_dense(DType, const Context& = {})
      const;  // [reads] and cast: nearest even, overflow as IEEE; float to integer is misuse
  // [reads] The dense form in pieces of whole rows where a row fits limits.memory, little-endian: to_dense() in
  // constant memory for layouts that allow it (dense, quantised); sparse ones are held whole under limits.decoded.
  void stream_dense(DType, const Context&, const std::function<bool(std::span<const std::byte>)>& sink) const;
  // [reads] Rows [first, first + count) of the slowest dimension, dense, into caller memory of exactly their size;
  // reads no more than the encoding forces. Misuse: rank 0, rows past the end, a buffer of another size, a sub-byte
  // dtype.
  void rows_into(std::uint64_t first, std::uint64_t count, DType, std::span<std::byte> out, const Context& = {}) const;

 private:
  friend class Model;
  friend class core::Access;
  std::span<const std::byte> typed(DType) const;
  const core::State* s_ = nullptr;
  std::uint32_t i_ = 0;
};

// A checksum that a container keeps of itself: "file", "0x0123456789abcdef".
struct Checksum {
  std::string name, value;
  bool operator==(const Checksum&) const = default;
};

class Model {
 public:
  Model() noexcept = default;                // no tensors, format ""
  std::string_view format() const noexcept;  // "zt", "stb", ...: for people; code that branches on it is a leak
  std::string_view version() const noexcept;
  std::uint32_t size() const noexcept;
  Tensor operator[](std::uint32_t i) const&;                 // order of the file's index; misuse past the end
  Tensor operator[](std::string_view name) const&;           // misuse if absent; find() answers nullopt
  std::optional<Tensor> find(std::string_view name) const&;  // O(log n)
  template <class K> Tensor operator[](K&&) const&& = delete;
  Attributes attributes() const& noexcept;
  Attributes extra() const& noexcept;                                        // unknown structural keys at the root
  const Tokenizer* tokenizer() const& noexcept;                              // null: none
  std::span<const std::shared_ptr<const Source>> sources() const& noexcept;  // what Extent::source indexes
  std::span<const Checksum> checksums() const& noexcept;  // in the container's order; empty: it keeps none
  std::string_view dtype_label() const& noexcept;         // the container's one word for its dtypes, or empty
  bool checked() const noexcept;  // false: opened with Checks::structure, and there is more to check
  // The names nearest to one that is absent, best first, at most `most`: for the sentence that a person reads.
  std::vector<std::string> nearest(std::string_view name, std::size_t most = 3) const;

 private:
  friend class core::Access;
  std::shared_ptr<const core::State> s_;
};

struct PartSpec {
  std::string role;
  DType dtype;
  std::vector<std::uint64_t> shape;
  Bytes bytes;
};

// Makes a Model from memory, from other models, or from callbacks; saving any Model is one function (convert.h). Merge,
// split, rename, subset and edit are Builders over open Models: payload is adopted by reference and streamed when
// written.
class Builder {
 public:
  Builder();
  ~Builder();
  Builder(Builder&&) noexcept;
  Builder& operator=(Builder&&) noexcept;
  // Called once per reading of the part with the offset 0, then in order; fills at most out.size() bytes and returns
  // how many; 0 ends. A total that disagrees with the shape is misuse when the part is read.
  using Pull = std::function<std::size_t(std::uint64_t offset, std::span<std::byte> out)>;
  Builder& attribute(std::string key, Value);
  Builder& tokenizer(Tokenizer);
  Builder& tensor(std::string name, DType, std::vector<std::uint64_t> shape, Bytes);
  Builder& tensor(std::string name, DType, std::vector<std::uint64_t> shape, Pull);
  Builder& tensor(std::string name, const Model& from, Tensor);  // keeps `from` alive
  Builder& object(std::string name, Layout, std::vector<std::uint64_t> shape, std::vector<Value::Entry> attributes,
                  std::vector<PartSpec>);
  Model build();  // once; misuse: duplicate or non-UTF-8 name, size that disagrees with shape

 private:
  std::unique_ptr<core::Draft> d_;
};

}  // namespace weighbridge
