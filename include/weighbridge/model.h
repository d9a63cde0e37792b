// SPDX-License-Identifier: Apache-2.0
/// \file
/// The object model that every container maps to: Model, Tensor, Part, Tokenizer, and Builder, which makes models.
/// open() is in open.h, verify() in verify.h, plans and conversion in convert.h, budgets and progress in context.h.
///
/// - **Ownership.** Model, Tensor, Part and Attributes are immutable shared handles; copying one costs a reference
///   count, and each keeps its Model alive. The texts, shapes and pointers that they return live as long as any handle
///   of the same Model. A temporary handle does not return them: write `const Tensor t = open(path)["w"]; t.name()`.
///   Bytes and Array own or share their data.
/// - **Threads.** Every const member may run concurrently. Nothing here changes a Model. Reads are positional; there is
///   no cursor.
/// - **Errors.** Members do no input/output and allocate nothing unless marked [reads]; unmarked ones throw only
///   Error{misuse}, except Tensor::shape(), which may also throw Error{unsupported}. [reads] members throw Error of
///   kind io, malformed, unsupported, misuse or limit, and change nothing when they throw. A number from a file never
///   causes bad_alloc: Limits are checked before the allocation. Elements that are repeated or not stored (strides of
///   0, the zeros of a sparse tensor) count as work (Limits::work), so a small file gives no endless stream.
/// - **Zero copy.** view() and as<T>() never copy; stored() and to_dense() always do. Only payload is mapped, and only
///   by view() and as<T>(): headers are copied once and then parsed, so a file that changes cannot change a parse.
///   Access to a view of a file that has been truncated raises SIGBUS; stored() throws Error{io} instead.
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

/// Sizes and offsets are u64 everywhere, never size_t, which has 32 bits in WebAssembly. Rank is at most 64.
using Shape = std::span<const std::uint64_t>;
/// A range of the file that Model::sources()[source] names.
struct Extent {
  std::uint32_t source = 0;  ///< index into Model::sources()
  std::uint64_t offset = 0;  ///< first byte
  std::uint64_t length = 0;  ///< bytes
  bool operator==(const Extent&) const = default;
};
/// The byte order of an element.
enum class Order : std::uint8_t { little, big };
/// How a part's bytes are stored.
enum class Encoding : std::uint8_t {
  raw,           ///< uncompressed
  zstd,          ///< compressed by zstd: one or more frames
  deflate,       ///< compressed by deflate, without a gzip or zlib header
  computed,      ///< not in the file as a range: the format's reader (or a Builder's callback) produces them
  unknown,       ///< one that this build does not support: see Part::encoding_name()
  zstd_seekable  ///< compressed by zstd in frames of equal content, with a table of them at the end
};
/// Why there is no zero-copy view.
enum class NoView : std::uint8_t {
  none,         ///< there is one
  encoded,      ///< stored compressed
  computed,     ///< not stored as bytes
  byte_order,   ///< not the byte order of this machine
  strided,      ///< not row-major
  misaligned,   ///< offset not a multiple of the element's size
  dtype,        ///< not the requested type, or a type that C++ lacks
  layout,       ///< not dense
  not_mappable  ///< the source cannot map memory
};

std::string_view name(Encoding) noexcept;  ///< "raw", "zstd", "zstd-seekable", ..., "unknown"
std::string_view name(NoView) noexcept;    ///< "none", "encoded", "byte_order", ...

/// A dense array in memory: row-major, native-endian, 64-byte aligned, writable by its owner.
struct Array {
  DType dtype = DType::unknown;       ///< of the elements
  std::vector<std::uint64_t> shape;   ///< slowest dimension first
  std::shared_ptr<std::byte[]> data;  ///< `size` bytes
  std::uint64_t size = 0;             ///< bytes
};

/// A vocabulary; plain data. EMBD and SLM store one in the file, Hugging Face folders in files of their own, a llama2.c
/// checkpoint in a file beside it, and zt as the attribute "weighbridge.tokenizer". The other formats have none, and
/// writing them loses it.
struct Tokenizer {
  /// The tokenization algorithm.
  enum class Kind : std::uint8_t { wordpiece, byte, bpe };
  Kind kind = Kind::wordpiece;  ///< the algorithm
  /// A merge of two neighboring tokens into one; the lowest rank is applied first.
  struct Merge {
    std::uint32_t left;    ///< id
    std::uint32_t right;   ///< id
    std::uint32_t output;  ///< id of the merged token
    std::uint32_t rank;    ///< order of merging
    bool operator==(const Merge&) const = default;
  };
  std::uint32_t vocab_size = 0;    ///< as declared; there may be fewer tokens
  Texts tokens;                    ///< in file order
  std::vector<std::uint32_t> ids;  ///< one for each of `tokens`; empty: 0, 1, 2, ...
  std::vector<Merge> merges;       ///< in file order
  /// "pad" "unk" "cls" "sep" "mask" "bos" "eos", in file order
  std::vector<std::pair<std::string, std::uint32_t>> special;
  bool operator==(const Tokenizer&) const = default;
};

std::string_view name(Tokenizer::Kind) noexcept;  ///< "wordpiece", "byte", "bpe"

/// The iterator of a range-for over a Model or Tensor::parts(): one handle that advances, so that a step touches no
/// reference count.
template <class Handle> class HandleIterator {
 public:
  using value_type = Handle;                                   ///< Tensor or Part
  using difference_type = std::ptrdiff_t;                      ///< of handles
  using iterator_concept = std::input_iterator_tag;            ///< one pass
  const Handle& operator*() const& noexcept { return at_; }    ///< until the next step; copy it to keep it
  Handle operator*() const&& noexcept { return at_; }          ///< a copy, since the iterator is a temporary
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

/// A handle or nothing. Like std::optional, but a temporary gives no access to the handle inside it. Use `if (const
/// auto found = model.find("w")) found->name()`, or `model.find("w").value()`, which throws if there is none.
template <class Handle> class Maybe : public std::optional<Handle> {
 public:
  using std::optional<Handle>::optional;
  const Handle* operator->() const& noexcept { return &**this; }  ///< the handle, which must be present
  const Handle& operator*() const& noexcept { return std::optional<Handle>::operator*(); }           ///< likewise
  Handle operator*() && noexcept { return std::move(*static_cast<std::optional<Handle>&>(*this)); }  ///< likewise
  const Handle* operator->() && = delete;
};

/// One stored array of a tensor. Keeps its model alive. A Part that is default-constructed or moved from is empty: no
/// role, no elements, encoding `computed`.
class Part {
 public:
  Part() noexcept = default;                              ///< of no tensor
  bool operator==(const Part&) const noexcept = default;  ///< the same part of the same model
  /// "data"; "values" "indices" "indptr" "coords"; "packed_weight" "scales" "zeros"
  std::string_view role() const& noexcept;
  DType dtype() const noexcept;                   ///< if unknown, dtype_name() has the file's name for it
  std::string_view dtype_name() const& noexcept;  ///< as the file has it
  Shape shape() const& noexcept;         ///< in elements, after decoding; {count} if the layout does not define it
  std::uint64_t count() const noexcept;  ///< elements
  std::uint64_t size() const noexcept;   ///< logical bytes: the total that stream() delivers
  /// in elements; empty: row-major. 0, negative and overlapping are legal
  std::span<const std::int64_t> strides() const& noexcept;
  Order order() const noexcept;                      ///< of the stored elements
  Encoding encoding() const noexcept;                ///< of the stored bytes
  std::string_view encoding_name() const& noexcept;  ///< as the file has it
  /// nullopt if computed. Parts with equal extents share their bytes (tied weights, shared storage)
  std::optional<Extent> extent() const noexcept;
  std::string_view digest() const& noexcept;  ///< as declared, "sha256:..."; verify() checks it, reading does not
  Attributes extra() const noexcept;    ///< unknown keys; written back only if the stored bytes are copied verbatim
  NoView why_no_view() const noexcept;  ///< `none` if view() succeeds; test this instead of catching
  Bytes view() const;                   ///< [reads] the stored bytes, mapped
  Bytes stored() const;                 ///< [reads] a copy of the stored bytes
  /// [reads] The logical bytes: decoded, little-endian, row-major, bool as 0/1, in order, in pieces of whole elements
  /// of at most 4 MiB. Stops early when sink returns false. Needs constant memory and no mapping, and works with any
  /// Source; verify, hash, convert and extract use it.
  void stream(const Context&, const std::function<bool(std::span<const std::byte>)>& sink) const;
  /// [reads] Elements [first, first + count), row-major, as stream() delivers them, into `out`, which has exactly their
  /// size. Of a raw part, reads only these; of seekable zstd, the frames that hold them; of others, everything up to
  /// them. Error{misuse}: elements past the end, a buffer of another size, elements that do not start at a byte
  /// boundary.
  void read_range(std::uint64_t first, std::uint64_t count, std::span<std::byte> out, const Context& = {}) const;

  // Deleted: the handle is a temporary, and what they return would dangle.
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

/// The parts of a tensor, for a range-for. Keeps the model alive.
class Parts {
 public:
  HandleIterator<Part> begin() const noexcept { return begin_; }  ///< in file order
  std::default_sentinel_t end() const noexcept { return {}; }     ///< past the last one

 private:
  friend class Tensor;
  explicit Parts(HandleIterator<Part> begin) noexcept : begin_(std::move(begin)) {}
  HandleIterator<Part> begin_;
};

/// One tensor of a Model, which it keeps alive. A Tensor that is default-constructed or moved from is empty: no name,
/// no parts, unsupported.
class Tensor {
 public:
  Tensor() noexcept = default;  ///< of no model
  /// unique, UTF-8. In formats without names: the sidecar's name, else the id in decimal, else "#" and 16 hex digits
  std::string_view name() const& noexcept;
  std::optional<std::uint64_t> id() const noexcept;    ///< STB tensor_id, SLM name_hash; renaming keeps it
  std::uint32_t index() const noexcept { return i_; }  ///< position in the file's index
  bool has_shape() const noexcept;                     ///< false for STB rank 4..8 without its shape table
  Shape shape() const&;            ///< logical, slowest dimension first; Error{unsupported} if !has_shape()
  Layout layout() const noexcept;  ///< `structural` if this build does not know it
  std::string_view layout_name() const& noexcept;  ///< as in the file, also if `structural`
  DType dtype() const noexcept;  ///< of to_dense(): the part's own if dense or sparse, f32 if quantized
  /// The row of its block type (block_type.h); null if its elements are scalars, or blocks that this build does not
  /// know.
  const BlockTypeInfo* block_type() const noexcept;
  std::string_view type_name() const& noexcept;  ///< for display: "bf16", "q8_0", "quantized_group"
  /// why the elements cannot be read; null if they can. The metadata can be read in either case
  const Finding* unsupported() const& noexcept;
  Attributes attributes() const noexcept;                        ///< defined by the format or set by a user
  const Value* attribute(std::string_view key) const& noexcept;  ///< one of them; null: there is none of this key
  Attributes extra() const noexcept;                             ///< unknown keys
  std::uint32_t part_count() const noexcept;  ///< parts are in file order; main() is data, values or packed_weight
  Parts parts() const noexcept;               ///< `for (const Part& part : tensor.parts())`
  Part part(std::uint32_t i) const&;          ///< Error{misuse} past the end
  Part part(std::uint32_t i) &&;              ///< likewise
  Maybe<Part> part(std::string_view role) const noexcept;  ///< nothing if no part has this role
  Part main() const&;                                      ///< Error{misuse} if there are no parts
  Part main() &&;                                          ///< likewise
  NoView why_no_view(DType as) const noexcept;             ///< `none` if as() of that type succeeds
  /// The elements in place, for the types that dtype_of knows. The span lives as long as any handle of the Model, which
  /// keeps the mapping. For bf16, f16, bool and other dtypes without a C++ type, use main().view() for the bytes, or
  /// to_dense() for another dtype.
  template <class T> std::span<const T> as() const& {  ///< [reads] Error{misuse} names the NoView
    static_assert(dtype_of<T> != DType::unknown, "no tensor has elements of this type");
    const auto b = typed(dtype_of<T>);
    return {reinterpret_cast<const T*>(b.data()), b.size() / sizeof(T)};
  }
  Array to_dense(const Context& = {}) const;  ///< [reads] decompress, swap, reorder, densify, dequantize
  Array to_dense(DType, const Context& = {})
      const;  ///< [reads] and cast: round to nearest even, overflow as in IEEE 754; float to integer is Error{misuse}
  /// [reads] The dense form, little-endian, in pieces of whole rows if a row fits limits.memory. Needs constant memory
  /// for dense and quantized layouts; a sparse tensor is held whole, within limits.decoded.
  void stream_dense(DType, const Context&, const std::function<bool(std::span<const std::byte>)>& sink) const;
  /// [reads] Rows [first, first + count) of the slowest dimension, dense, into `out`, which must have exactly their
  /// size. Reads no more than the encoding requires. Error{misuse}: rank 0, rows past the end, a buffer of another
  /// size, a sub-byte dtype.
  void rows_into(std::uint64_t first, std::uint64_t count, DType, std::span<std::byte> out, const Context& = {}) const;

  // Deleted: the handle is a temporary, and what they return would dangle.
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
  // Indices into State::parts. If there is none, the first two throw and the last returns core::kNone.
  std::uint32_t part_index(std::uint32_t i) const;
  std::uint32_t main_index() const;
  std::uint32_t find_part(std::string_view role) const noexcept;
  std::shared_ptr<const core::State> s_;
  std::uint32_t i_ = 0;
};

/// A checksum that a container stores of itself.
struct Checksum {
  std::string name;   ///< what it covers: "file", "header"
  std::string value;  ///< for display: "0x0123456789abcdef"
  bool operator==(const Checksum&) const = default;
};

/// An open tensor file, and a range of its tensors in the order of the file's index: `for (const Tensor& tensor :
/// model)`. Copying one costs a reference count.
class Model {
 public:
  Model() noexcept = default;                       ///< no tensors, format ""
  std::string_view format() const& noexcept;        ///< "zt", "stb", ...; for display, do not branch on it
  std::string_view version() const& noexcept;       ///< the container's version, as the file has it
  std::uint32_t size() const noexcept;              ///< tensors
  Tensor operator[](std::uint32_t i) const;         ///< in the order of the file's index; Error{misuse} past the end
  Tensor operator[](std::string_view name) const;   ///< Error{misuse} if absent
  Maybe<Tensor> find(std::string_view name) const;  ///< O(log n)
  std::string_view name(std::uint32_t i) const&;    ///< of tensor i; Error{misuse} past the end
  HandleIterator<Tensor> begin() const noexcept;    ///< in the order of the file's index
  std::default_sentinel_t end() const noexcept { return {}; }    ///< past the last tensor
  Attributes attributes() const noexcept;                        ///< metadata and header fields
  const Value* attribute(std::string_view key) const& noexcept;  ///< one of them; null: there is none of this key
  Attributes extra() const noexcept;                             ///< unknown structural keys at the root
  std::shared_ptr<const Tokenizer> tokenizer() const noexcept;   ///< null: none
  /// The files that Extent::source indexes, then other files that were read.
  Shared<std::shared_ptr<const Source>> sources() const noexcept;
  /// Bytes of its file, or of all its files if it lies in several: a folder, or shards with their index. Sidecars and
  /// tokenizer files are not counted. 0 for a model from a Builder.
  std::uint64_t file_size() const noexcept;
  Shared<Checksum> checksums() const noexcept;  ///< in the container's order; empty if it stores none
  /// The checksum variant in use, one of checksum_forms() (open.h); empty if the container has only one.
  std::string_view checksum_form() const noexcept;
  std::string_view dtype_label() const& noexcept;  ///< the container's label for its dtypes ("mixed"), or empty
  bool checked() const noexcept;                   ///< false if opened with Checks::structure and checks remain
  /// At most `maximum` names similar to one that is absent, best first, for error messages.
  std::vector<std::string> nearest(std::string_view name, std::size_t maximum = 3) const;

  // Deleted: the handle is a temporary, and what they return would dangle.
  std::string_view format() const&& = delete;
  std::string_view version() const&& = delete;
  std::string_view name(std::uint32_t i) const&& = delete;
  const Value* attribute(std::string_view key) const&& = delete;
  std::string_view dtype_label() const&& = delete;

 private:
  friend class core::Access;
  std::shared_ptr<const core::State> s_;
};

/// A part of a tensor that Builder::object() makes.
struct PartSpec {
  std::string role;                  ///< as Part::role()
  DType dtype;                       ///< of its elements
  std::vector<std::uint64_t> shape;  ///< slowest dimension first
  Bytes bytes;                       ///< raw, little-endian, row-major
};

/// Makes a Model from memory, from callbacks, or from tensors of other models, whose payload it shares and does not
/// copy. save() (convert.h) writes any Model.
class Builder {
 public:
  Builder();  ///< an empty model
  ~Builder();
  Builder(Builder&&) noexcept;
  Builder& operator=(Builder&&) noexcept;
  /// Produces a part's bytes in order; each reading starts again at offset 0. Fills at most out.size() bytes and
  /// returns how many; 0 ends. If the total disagrees with the shape, reading the part throws Error{misuse}.
  using Pull = std::function<std::size_t(std::uint64_t offset, std::span<std::byte> out)>;
  Builder& attribute(std::string key, Value);  ///< metadata; Error{misuse} if the key exists
  Builder& tokenizer(Tokenizer);               ///< replaces an earlier one
  /// Dense: row-major, little-endian bytes.
  Builder& tensor(std::string name, DType, std::vector<std::uint64_t> shape, Bytes);
  /// Dense; the bytes are produced when they are read.
  Builder& tensor(std::string name, DType, std::vector<std::uint64_t> shape, Pull);
  /// A tensor of another model, with its layout, parts and attributes. Shares the payload.
  Builder& tensor(std::string name, const Tensor& from);
  /// Any layout, in parts, with the attributes that the layout needs. Error{misuse}: no parts, a rank above 64.
  Builder& object(std::string name, Layout, std::vector<std::uint64_t> shape, std::vector<Value::Entry> attributes,
                  std::vector<PartSpec>);
  Model build();  ///< call once; Error{misuse}: duplicate or non-UTF-8 name, size that disagrees with the shape

 private:
  std::unique_ptr<core::Draft> d_;
};

}  // namespace weighbridge
