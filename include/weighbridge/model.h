// SPDX-License-Identifier: Apache-2.0
/// \file
/// What a tensor file is once its container is forgotten. Owns Model, Tensor, Part, Tokenizer, Builder. Leaves to
/// others: open() (open.h), verify() (verify.h), plans and conversion (convert.h), budgets and progress (context.h).
///
/// - **Ownership.** Model, Tensor, Part and Attributes are immutable shared handles; a copy is one reference count, and
///   each keeps what it is of alive. Texts, shapes and pointers that they give live as long as any handle of the same
///   Model; a handle that is a temporary does not give them: `const Tensor t = open(path)["w"]; t.name()`. Bytes and
///   Array own or share what they show.
/// - **Threads.** Every const member may run concurrently. Nothing here mutates a Model; reads are positional, there is
///   no cursor.
/// - **Errors.** Members do no input/output and allocate nothing unless marked [reads]; unmarked ones throw only
///   Error{misuse}, but for Tensor::shape(), which may throw Error{unsupported}. [reads] members throw Error of kind
///   io, malformed, unsupported or misuse, and leave everything as it was. A number from a file never causes bad_alloc:
///   Limits are tested before the allocation.
/// - **Zero copy.** view() and as<T>() never copy, stored() and to_dense() always do, nothing chooses for you. Only
///   payload is ever mapped, and only by view(): headers are copied once, then parsed, so a file that changes cannot
///   change a parse. A view of a mapped file that someone truncates is SIGBUS; stored() of it is Error{io}.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weighbridge/block_type.h"
#include "weighbridge/context.h"
#include "weighbridge/dtype.h"
#include "weighbridge/error.h"
#include "weighbridge/source.h"
#include "weighbridge/value.h"

namespace weighbridge {
namespace core {
struct State;
class Draft;
class Access;
}  // namespace core

/// Sizes and offsets are u64 everywhere, never size_t: the page runs where size_t has 32 bits. Rank is at most 64.
using Shape = std::span<const std::uint64_t>;
/// A range of the file that Model::sources()[source] names.
struct Extent {
  std::uint32_t source = 0;  ///< index into Model::sources()
  std::uint64_t offset = 0;  ///< first byte
  std::uint64_t length = 0;  ///< bytes
  bool operator==(const Extent&) const = default;
};
/// Of the bytes of one element.
enum class Order : std::uint8_t { little, big };
/// How a part's bytes are stored.
enum class Encoding : std::uint8_t {
  raw,       ///< as they are
  zstd,      ///< compressed by zstd: one or more frames
  deflate,   ///< compressed by deflate, without a header of gzip or zlib
  computed,  ///< no extent holds them: only the format's reader (or a Builder's callback) can make them
  unknown    ///< in a way that this build does not know: Part::encoding_name()
};
/// Why there is no zero-copy view.
enum class NoView : std::uint8_t {
  none,         ///< there is one
  encoded,      ///< stored compressed
  computed,     ///< not stored at all
  byte_order,   ///< of another kind of machine
  strided,      ///< not row-major
  misaligned,   ///< not at a multiple of the element's size
  dtype,        ///< of another type than asked for, or of none that C++ has
  layout,       ///< not dense
  not_mappable  ///< the source cannot map
};

std::string_view name(Encoding) noexcept;  ///< "raw", "zstd", "deflate", "computed", "unknown"
std::string_view name(NoView) noexcept;    ///< "none", "encoded", "byte_order", ...

/// Row-major, native-endian, 64-byte aligned, writable by its one owner.
struct Array {
  DType dtype = DType::unknown;       ///< of the elements
  std::vector<std::uint64_t> shape;   ///< slowest dimension first
  std::shared_ptr<std::byte[]> data;  ///< `size` bytes
  std::uint64_t size = 0;             ///< bytes
};

/// Data, no behavior. EMBD and SLM hold one natively, a Hugging Face folder in files of its own, a llama2.c checkpoint
/// in a file beside it, and zt as the attribute "weighbridge.tokenizer"; the others have none, and writing them loses
/// it.
struct Tokenizer {
  /// Which algorithm the vocabulary is for.
  enum class Kind : std::uint8_t { wordpiece, byte, bpe };
  Kind kind = Kind::wordpiece;  ///< which of them this is
  /// Two neighbors that become one, the lowest rank first.
  struct Merge {
    std::uint32_t left;    ///< id
    std::uint32_t right;   ///< id
    std::uint32_t output;  ///< id of what they become
    std::uint32_t rank;    ///< order of merging
    bool operator==(const Merge&) const = default;
  };
  std::uint32_t vocab_size = 0;    ///< as declared; records may be fewer
  Texts tokens;                    ///< in file order
  std::vector<std::uint32_t> ids;  ///< of tokens; empty: 0, 1, 2, ...
  std::vector<Merge> merges;       ///< in file order
  /// "pad" "unk" "cls" "sep" "mask" "bos" "eos", in file order
  std::vector<std::pair<std::string, std::uint32_t>> special;
  bool operator==(const Tokenizer&) const = default;
};

std::string_view name(Tokenizer::Kind) noexcept;  ///< "wordpiece", "byte", "bpe"

/// What a range-for over a Model or over Tensor::parts() walks with: one handle that moves on, without a count each.
template <class Handle> class HandleIterator {
 public:
  using value_type = Handle;                                   ///< Tensor or Part
  using difference_type = std::ptrdiff_t;                      ///< of handles
  using iterator_concept = std::input_iterator_tag;            ///< one pass
  const Handle& operator*() const& noexcept { return at_; }    ///< until the next step; copy it to keep it
  Handle operator*() const&& noexcept { return at_; }          ///< a copy: the handle goes with this
  const Handle* operator->() const& noexcept { return &at_; }  ///< until the next step
  const Handle* operator->() const&& = delete;
  HandleIterator& operator++() noexcept {  ///< the next one
    ++at_.i_;
    return *this;
  }
  void operator++(int) noexcept { ++at_.i_; }                                         ///< likewise
  bool operator==(std::default_sentinel_t) const noexcept { return at_.i_ == end_; }  ///< past the last one

 private:
  friend class Tensor;
  friend class Model;
  HandleIterator(Handle at, std::uint32_t end) noexcept : at_(std::move(at)), end_(end) {}
  Handle at_;
  std::uint32_t end_;
};

/// A handle, or none. As std::optional, but that a temporary one gives no way into the handle that goes with it:
/// `if (const auto found = model.find("w")) found->name()`, or `model.find("w").value()`, which throws where there is
/// none.
template <class Handle> class Maybe : public std::optional<Handle> {
 public:
  using std::optional<Handle>::optional;
  const Handle* operator->() const& noexcept { return &**this; }                            ///< it, which must be there
  const Handle& operator*() const& noexcept { return std::optional<Handle>::operator*(); }  ///< likewise
  Handle operator*() && noexcept { return std::move(*static_cast<std::optional<Handle>&>(*this)); }  ///< likewise
  const Handle* operator->() && = delete;
};

/// One stored array of a tensor. Keeps its model alive. One made by default, or moved from, is empty: no role, no
/// elements, computed.
class Part {
 public:
  Part() noexcept = default;                              ///< of no tensor
  bool operator==(const Part&) const noexcept = default;  ///< the same part of the same model
  /// "data"; "values" "indices" "indptr" "coords"; "packed_weight" "scales" "zeros"
  std::string_view role() const& noexcept;
  DType dtype() const noexcept;                   ///< DType::unknown keeps its file name in dtype_name()
  std::string_view dtype_name() const& noexcept;  ///< as the file has it
  Shape shape() const& noexcept;         ///< in elements, after decoding; {count} where the layout does not say
  std::uint64_t count() const noexcept;  ///< elements
  std::uint64_t size() const noexcept;   ///< logical bytes: what stream() delivers in all
  /// in elements; empty: row-major. 0, negative and overlapping are legal
  std::span<const std::int64_t> strides() const& noexcept;
  Order order() const noexcept;                      ///< of the stored elements
  Encoding encoding() const noexcept;                ///< of the stored bytes
  std::string_view encoding_name() const& noexcept;  ///< as the file has it
  /// none when computed. Equal extents are aliases: tied weights, shared storages
  std::optional<Extent> extent() const noexcept;
  std::string_view digest() const& noexcept;  ///< as declared, "sha256:..."; checked by verify(), not by reading
  Attributes extra() const noexcept;          ///< unknown keys. Written back only if the stored bytes go over verbatim
  NoView why_no_view() const noexcept;  ///< none: view() succeeds. Code branches on this, not on a caught exception
  Bytes view() const;                   ///< [reads] stored bytes as mapped
  Bytes stored() const;                 ///< [reads] stored bytes, copied
  /// [reads] The logical bytes: decoded, little-endian, row-major, bool as 0/1, in order, in pieces of whole elements,
  /// at most 4 MiB each; stops early when sink returns false. The one way that verify, hash, convert and extract see
  /// payload: constant memory, no mapping, any Source.
  void stream(const Context&, const std::function<bool(std::span<const std::byte>)>& sink) const;
  /// [reads] Elements [first, first + count), counted row-major, as stream() delivers them, into caller memory of
  /// exactly their size: no more is read than the encoding forces, which is just these of raw parts, and all before
  /// them of compressed ones. Misuse: elements past the end, a buffer of another size, elements that do not start at a
  /// byte.
  void read_range(std::uint64_t first, std::uint64_t count, std::span<std::byte> out, const Context& = {}) const;

  // What a temporary handle would take along.
  std::string_view role() const&& = delete;
  std::string_view dtype_name() const&& = delete;
  Shape shape() const&& = delete;
  std::span<const std::int64_t> strides() const&& = delete;
  std::string_view encoding_name() const&& = delete;
  std::string_view digest() const&& = delete;

 private:
  friend class Tensor;
  friend class core::Access;
  friend class HandleIterator<Part>;
  Part(std::shared_ptr<const core::State> s, std::uint32_t i) noexcept : s_(std::move(s)), i_(i) {}
  std::shared_ptr<const core::State> s_;
  std::uint32_t i_ = 0;
};

/// The parts of a tensor, for a range-for. Keeps them alive.
class Parts {
 public:
  HandleIterator<Part> begin() const noexcept { return begin_; }  ///< in file order
  std::default_sentinel_t end() const noexcept { return {}; }     ///< past the last one

 private:
  friend class Tensor;
  explicit Parts(HandleIterator<Part> begin) noexcept : begin_(std::move(begin)) {}
  HandleIterator<Part> begin_;
};

/// One tensor of a Model, which it keeps alive. One made by default, or moved from, is empty: no name, no parts,
/// unsupported.
class Tensor {
 public:
  Tensor() noexcept = default;  ///< of no model
  /// unique, UTF-8. Nameless formats: sidecar name, else decimal id, else "#" + 16 hex
  std::string_view name() const& noexcept;
  std::optional<std::uint64_t> id() const noexcept;    ///< STB tensor_id, SLM name_hash: survives a renaming
  std::uint32_t index() const noexcept { return i_; }  ///< place in the file's index
  bool has_shape() const noexcept;                     ///< false: STB rank 4..8 without its shape table
  Shape shape() const&;            ///< logical, slowest dimension first; unsupported where has_shape() is false
  Layout layout() const noexcept;  ///< structural: none that this build knows
  std::string_view layout_name() const& noexcept;  ///< as in the file, also for structural
  DType dtype() const noexcept;  ///< what to_dense() gives: the part's own if dense or sparse, f32 if quantized
  /// The row of its block type (block_type.h); null where its elements are scalars, or blocks that this build does not
  /// know.
  const BlockTypeInfo* block_type() const noexcept;
  std::string_view type_name() const& noexcept;  ///< "bf16"; "q8_0", "quantized_group": the column a person reads
  /// why elements cannot be had; null if they can. Metadata works regardless
  const Finding* unsupported() const& noexcept;
  Attributes attributes() const noexcept;                        ///< that the format defines or a user gave
  const Value* attribute(std::string_view key) const& noexcept;  ///< one of them; null: there is none of this key
  Attributes extra() const noexcept;                             ///< unknown keys
  std::uint32_t part_count() const noexcept;  ///< parts come in file order; data, values or packed_weight is main()
  Parts parts() const noexcept;               ///< all of them: `for (const Part& part : tensor.parts())`
  Part part(std::uint32_t i) const&;          ///< misuse past the end
  Part part(std::uint32_t i) &&;              ///< likewise
  Maybe<Part> part(std::string_view role) const noexcept;  ///< none: no part has this role
  Part main() const&;                                      ///< misuse: a tensor without any part
  Part main() &&;                                          ///< likewise
  NoView why_no_view(DType as) const noexcept;             ///< none: as() of that type succeeds
  /// The elements where they lie, of the types that dtype_of knows. bf16, f16, bool and the others that C++ has no type
  /// for: their bytes by main().view(), or another dtype by to_dense().
  template <class T> std::span<const T> as() const& {  ///< [reads] misuse says which NoView it is
    static_assert(dtype_of<T> != DType::unknown, "no tensor has elements of this type");
    const auto b = typed(dtype_of<T>);
    return {reinterpret_cast<const T*>(b.data()), b.size() / sizeof(T)};
  }
  Array to_dense(const Context& = {}) const;  ///< [reads] decompress, swap, reorder, densify, dequantize
  Array to_dense(DType, const Context& = {})
      const;  ///< [reads] and cast: nearest even, overflow as IEEE; float to integer is misuse
  /// [reads] The dense form in pieces of whole rows where a row fits limits.memory, little-endian: to_dense() in
  /// constant memory for layouts that allow it (dense, quantized); sparse ones are held whole under limits.decoded.
  void stream_dense(DType, const Context&, const std::function<bool(std::span<const std::byte>)>& sink) const;
  /// [reads] Rows [first, first + count) of the slowest dimension, dense, into caller memory of exactly their size;
  /// reads no more than the encoding forces. Misuse: rank 0, rows past the end, a buffer of another size, a sub-byte
  /// dtype.
  void rows_into(std::uint64_t first, std::uint64_t count, DType, std::span<std::byte> out, const Context& = {}) const;

  // What a temporary handle would take along.
  std::string_view name() const&& = delete;
  Shape shape() const&& = delete;
  std::string_view layout_name() const&& = delete;
  std::string_view type_name() const&& = delete;
  const Finding* unsupported() const&& = delete;
  const Value* attribute(std::string_view key) const&& = delete;
  template <class T> std::span<const T> as() const&& = delete;

 private:
  friend class Model;
  friend class core::Access;
  friend class HandleIterator<Tensor>;
  Tensor(std::shared_ptr<const core::State> s, std::uint32_t i) noexcept : s_(std::move(s)), i_(i) {}
  std::span<const std::byte> typed(DType) const;
  // Indices of State::parts; the first two throw where there is none, the last gives core::kNone.
  std::uint32_t part_index(std::uint32_t i) const;
  std::uint32_t main_index() const;
  std::uint32_t find_part(std::string_view role) const noexcept;
  std::shared_ptr<const core::State> s_;
  std::uint32_t i_ = 0;
};

/// A checksum that a container keeps of itself.
struct Checksum {
  std::string name;   ///< of what: "file", "header"
  std::string value;  ///< as a person reads it: "0x0123456789abcdef"
  bool operator==(const Checksum&) const = default;
};

/// A tensor file, opened. A copy is one reference count. A range of its tensors, in the order of the file's index:
/// `for (const Tensor& tensor : model)`.
class Model {
 public:
  Model() noexcept = default;                      ///< no tensors, format ""
  std::string_view format() const& noexcept;       ///< "zt", "stb", ...: for people; code that branches on it is a leak
  std::string_view version() const& noexcept;      ///< of the container, as the file has it
  std::uint32_t size() const noexcept;             ///< tensors
  Tensor operator[](std::uint32_t i) const;        ///< order of the file's index; misuse past the end
  Tensor operator[](std::string_view name) const;  ///< misuse if absent; find() gives nullopt
  Maybe<Tensor> find(std::string_view name) const;               ///< O(log n)
  std::string_view name(std::uint32_t i) const&;                 ///< of tensor i; misuse past the end
  HandleIterator<Tensor> begin() const noexcept;                 ///< in the order of the file's index
  std::default_sentinel_t end() const noexcept { return {}; }    ///< past the last tensor
  Attributes attributes() const noexcept;                        ///< metadata and header fields
  const Value* attribute(std::string_view key) const& noexcept;  ///< one of them; null: there is none of this key
  Attributes extra() const noexcept;                             ///< unknown structural keys at the root
  std::shared_ptr<const Tokenizer> tokenizer() const noexcept;   ///< null: none
  /// What Extent::source indexes, and what was read beside it.
  Shared<std::shared_ptr<const Source>> sources() const noexcept;
  Shared<Checksum> checksums() const noexcept;     ///< in the container's order; empty: it keeps none
  std::string_view dtype_label() const& noexcept;  ///< the container's one word for its dtypes, or empty
  bool checked() const noexcept;                   ///< false: opened with Checks::structure, and there is more to check
  /// The names nearest to one that is absent, best first, at most `most`: for the sentence that a person reads.
  std::vector<std::string> nearest(std::string_view name, std::size_t most = 3) const;

  // What a temporary handle would take along.
  std::string_view format() const&& = delete;
  std::string_view version() const&& = delete;
  std::string_view name(std::uint32_t i) const&& = delete;
  const Value* attribute(std::string_view key) const&& = delete;
  std::string_view dtype_label() const&& = delete;

 private:
  friend class core::Access;
  std::shared_ptr<const core::State> s_;
};

/// A part to be of a tensor that Builder::object() makes.
struct PartSpec {
  std::string role;                  ///< as Part::role()
  DType dtype;                       ///< of its elements
  std::vector<std::uint64_t> shape;  ///< slowest dimension first
  Bytes bytes;                       ///< raw, little-endian, row-major
};

/// Makes a Model from memory, from other models, or from callbacks; saving any Model is one function (convert.h).
/// Merge, split, rename, subset and edit are Builders over open Models: payload is adopted by reference and streamed
/// when written.
class Builder {
 public:
  Builder();  ///< of a model without tensors
  ~Builder();
  Builder(Builder&&) noexcept;
  Builder& operator=(Builder&&) noexcept;
  /// Called once per reading of the part with the offset 0, then in order; fills at most out.size() bytes and returns
  /// how many; 0 ends. A total that disagrees with the shape is misuse when the part is read.
  using Pull = std::function<std::size_t(std::uint64_t offset, std::span<std::byte> out)>;
  Builder& attribute(std::string key, Value);  ///< metadata; misuse: a key that is there already
  Builder& tokenizer(Tokenizer);               ///< in place of an earlier one
  /// Dense: row-major, little-endian bytes.
  Builder& tensor(std::string name, DType, std::vector<std::uint64_t> shape, Bytes);
  /// Dense, its bytes made when they are read.
  Builder& tensor(std::string name, DType, std::vector<std::uint64_t> shape, Pull);
  Builder& tensor(std::string name, const Tensor& from);
  /// Any layout, in parts; `attributes` as the layout needs them. Misuse: no parts, a rank above 64.
  Builder& object(std::string name, Layout, std::vector<std::uint64_t> shape, std::vector<Value::Entry> attributes,
                  std::vector<PartSpec>);
  Model build();  ///< once; misuse: duplicate or non-UTF-8 name, size that disagrees with shape

 private:
  std::unique_ptr<core::Draft> d_;
};

}  // namespace weighbridge
