// SPDX-License-Identifier: Apache-2.0
// How readers and Builder make a Model. Owns Draft and its two annotators, and the few questions to a finished Model
// that the public headers leave out; leaves how a model is kept to state.h, which only core includes.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weighbridge/model.h"

namespace weighbridge::core {

class Draft;
struct TensorSide;
struct TextRef;
struct PartSide;

inline constexpr std::uint32_t kNone = UINT32_MAX;

// Says of a tensor of a draft what few tensors have. Valid as long as the draft.
class TensorDraft {
 public:
  TensorDraft& name(std::string_view);                  // another one than it was added with
  TensorDraft& dtype(DType);                            // of the dense form, where a later part decides
  TensorDraft& id(std::optional<std::uint64_t>);        // as Tensor::id()
  TensorDraft& layout_name(std::string_view);           // as in the file, where it is not name(layout)
  TensorDraft& type_name(std::string_view);             // what people read, where it is not name(dtype)
  TensorDraft& block_type(const BlockTypeInfo*);        // of the table; null: none that this build knows
  TensorDraft& attribute(std::string_view key, Value);  // behind the others
  TensorDraft& attributes(std::vector<Value::Entry>);   // in place of the others
  TensorDraft& extra(std::string_view key, Value);      // an unknown key, behind the others
  TensorDraft& extra(std::vector<Value::Entry>);        // in place of the others
  TensorDraft& unsupported(Finding);                    // why its elements cannot be had; the first reason stays
  TensorDraft& without_shape();                         // as Draft::add_tensor_without_shape()

 private:
  friend class Draft;
  TensorDraft(Draft& draft, std::uint32_t at) noexcept : draft_(draft), at_(at) {}
  TensorSide& side();
  Draft& draft_;
  std::uint32_t at_;
};

// Likewise of a part.
class PartDraft {
 public:
  PartDraft& order(Order);                        // of its stored elements
  PartDraft& strides(std::vector<std::int64_t>);  // as Part::strides()
  PartDraft& digest(std::string_view);            // as declared
  PartDraft& dtype_name(std::string_view);        // as in the file, where the dtype is unknown
  PartDraft& encoding(Encoding);                  // another one than it was added with
  PartDraft& encoding_name(std::string_view);     // as in the file, where the encoding is unknown
  PartDraft& extra(std::string_view key, Value);  // an unknown key, behind the others
  PartDraft& length(std::uint64_t);               // stored and logical, of a part that turns out longer
  PartDraft& pull(Builder::Pull);                 // makes its bytes, where it is computed

 private:
  friend class Draft;
  PartDraft(Draft& draft, std::uint32_t at) noexcept : draft_(draft), at_(at) {}
  PartSide& side();
  Draft& draft_;
  std::uint32_t at_;
};

// One reader's or one Builder's work in progress. Calls come in file order: a tensor, then its parts.
class Draft {
 public:
  Draft();
  ~Draft();
  Draft(Draft&&) noexcept;
  Draft& operator=(Draft&&) noexcept;

  // What the caller of open() asked for.
  Checks checks = Checks::all;
  // Read instead of the neighbors that the format would look for.
  std::shared_ptr<const Source> sidecar{}, tokenizer{};

  // Of the model.
  void set_format(std::string_view);
  void set_version(std::string_view);
  void set_dtype_label(std::string_view);  // the container's one word for the dtypes of all tensors
  void set_checked(bool);                  // false: payload rules that belong to opening were put off
  void set_tokenizer(std::optional<Tokenizer>);
  void set_attribute(std::string key, Value);              // behind the others
  void set_attributes(std::vector<Value::Entry>);          // in place of the others
  void set_extra(std::string_view key, Value);             // behind the others
  void set_extra(std::vector<Value::Entry>);               // in place of the others
  void add_checksum(std::string name, std::string value);  // in the container's order
  // Attributes, unknown keys and tokenizer of another model.
  void adopt_metadata(const Model& from);

  // Makes this a view of another model: all but tensors and attributes, which its maker adds, in any choice. Called
  // before anything is added. The checksums that the container keeps are of the file, not of the view.
  void begin_view(const Model& of);

  // Keeps the header for good; views into the returned text become names without a copy.
  std::string_view retain_header(std::string header);
  // Which source is the file that was asked about; none is where it was a folder.
  void set_asked(std::uint32_t source);
  // Where it is in the model's sources; one that is among the last few already is not added again.
  std::uint32_t add_source(std::shared_ptr<const Source>);
  // Room for that many; no promise that they come.
  void reserve(std::size_t tensors, std::size_t parts, std::size_t dims);

  // Adds a tensor; its parts follow by add_part. Rank is at most 64 (the caller has checked).
  std::uint32_t add_tensor(std::string_view name, Layout, DType, Shape);
  std::uint32_t add_tensor_without_shape(std::string_view name, Layout, DType);
  // Adds a part to the last tensor. `size` is its logical bytes. A shape equal to the tensor's own is shared.
  std::uint32_t add_part(std::string_view role, DType, Shape, Encoding, const Extent&, std::uint64_t size);
  // Adds a tensor of another model under a name of its own, with all that belongs to it; its payload stays where it is.
  std::uint32_t adopt(std::string_view name, const weighbridge::Tensor&);
  TensorDraft tensor(std::uint32_t i) noexcept { return {*this, i}; }
  PartDraft part(std::uint32_t i) noexcept { return {*this, i}; }  // by the number that add_part() gave
  PartDraft first_part(std::uint32_t tensor) noexcept;             // which must be there

  // What stands in it so far.
  std::uint32_t size() const noexcept;  // tensors
  std::string_view name(std::uint32_t tensor) const noexcept;
  Shape shape(std::uint32_t tensor) const noexcept;
  DType dtype(std::uint32_t tensor) const noexcept;
  std::optional<std::uint32_t> find(std::string_view name) const noexcept;  // after index_names(), before drop()
  const std::vector<std::shared_ptr<const Source>>& sources() const noexcept;
  const std::vector<Value::Entry>& attributes() const noexcept;
  std::span<const std::string> roles() const noexcept;  // that any part has had
  // Calls visit(tensor, layout, dtype, extent) for each stored part, in order.
  template <class Visit> void for_each_stored(Visit visit) const {
    for (std::uint32_t t = 0; t < size(); ++t)
      for (std::uint32_t p = 0; p < part_count(t); ++p) {
        const Stored s = stored(t, p);
        visit(t, s.layout, s.dtype, s.extent);
      }
  }

  // Sorts the index. Returns pairs (earlier, later) of tensors that share a name, later ascending; empty when all is
  // well.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> index_names();
  // Likewise for names that came ascending and different: the index is the order of the file.
  void index_sorted_names();
  // Removes tensors (ascending indices) that turned out broken, so that the rest can be verified.
  void drop(const std::vector<std::uint32_t>& tensors);
  // Removes all tensors, attributes and unknown keys: an index that cannot be read to its end names nothing for
  // certain.
  void clear();
  // Freezes. index_names() was called and found nothing, or the duplicates were removed with drop().
  Model finish();

 private:
  friend class TensorDraft;
  friend class PartDraft;
  struct Stored {
    Layout layout;
    DType dtype;
    Extent extent;
  };
  std::uint32_t part_count(std::uint32_t tensor) const noexcept;
  Stored stored(std::uint32_t tensor, std::uint32_t part) const noexcept;
  TextRef refer(std::string_view text);  // by reference within header or arena, else copied to the arena
  std::uint32_t append_dims(Shape);      // where they start in State::dims
  std::shared_ptr<State> state_;
};

// Tensor indices in the order of their names' bytes.
std::span<const std::uint32_t> by_name(const Model&) noexcept;
// What the reader gave to Draft::retain_header(); empty where it gave nothing.
std::string_view retained_header(const Model&) noexcept;
// Made by view(): what the sources hold is not all of it, or under other names.
bool is_view(const Model&) noexcept;
// Where the stored bytes of a part lie. The part has an extent.
const Source& source_of(const Part&) noexcept;

}  // namespace weighbridge::core
