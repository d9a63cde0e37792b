// SPDX-License-Identifier: Apache-2.0
// How readers and Builder make a Model. Owns Draft, TensorDraft and PartDraft, and a few accessors of a finished Model
// that are not public. state.h, which only core includes, has the storage.
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

#include "codecs/indexed_checksum.h"
#include "weighbridge/context.h"
#include "weighbridge/model.h"
#include "weighbridge/place.h"
#include "weighbridge/scheme.h"

namespace weighbridge::core {

class Elements;

// A file in the model's folder other than weights and config.json.
struct FolderFile {
  std::string name;      // relative to the folder
  bool held = false;     // the model itself holds everything in the file, so a container without the file loses nothing
  bool weights = false;  // weights that are not among the model's tensors
};

// A file's header in memory. Copies share it, so a model and its views have one.
class HeaderMemory {
 public:
  HeaderMemory() = default;
  HeaderMemory(std::string text);  // not explicit: many formats read it as a string
  // Room for a header that is about to be read: not zero-filled, and in huge pages if possible.
  explicit HeaderMemory(std::uint64_t size);
  std::span<std::byte> bytes() noexcept { return bytes_; }
  std::string_view text() const noexcept { return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()}; }

 private:
  std::shared_ptr<void> memory_;
  std::span<std::byte> bytes_;
};

// Why a model is incomplete. Writing or running an incomplete model needs consent (LossKind::part).
struct Incomplete {
  std::string why;                    // for people: "x-00002-of-00003.gguf is missing"
  std::vector<std::string> others{};  // sorted: the names of the files that would complete it, if they are known
  bool operator==(const Incomplete&) const = default;
};

class Draft;
struct TensorSide;
struct TextRef;
struct PartSide;
// Where a part's elements are in its blob. The part's extent and encoding are those of the blob. A part has one row, or
// rank 2. Elements begin at multiples of `swap` and do not overlap. A part with strides is one row in
// Fortran order: the first dimension is the fastest.
struct Cut {
  std::uint64_t whole = 0;  // bytes of the decoded blob
  std::uint64_t first = 0;  // offset of the first element in it
  std::uint64_t step = 0;   // bytes from one element of a row to the next, at least an element
  std::uint64_t row = 0;    // bytes from the first element of a row to that of the next row; 0: it is one row
  std::uint32_t swap = 1;   // the blob's bytes are reversed in units of this many
  bool operator==(const Cut&) const = default;
};
// nullopt: the part has its stored bytes to itself.
std::optional<Cut> cut_of(const Part&) noexcept;

inline constexpr std::uint32_t kNone = UINT32_MAX;

// Sets properties of a draft's tensor that few tensors have. Valid as long as the draft.
class TensorDraft {
 public:
  TensorDraft& name(std::string_view);                  // replaces the one given when it was added
  TensorDraft& dtype(DType);                            // of the dense form, if a later part decides it
  TensorDraft& id(std::optional<std::uint64_t>);        // as Tensor::id()
  TensorDraft& layout_name(std::string_view);           // as in the file, if it is not name(layout)
  TensorDraft& type_name(std::string_view);             // for display, if it is not name(dtype)
  TensorDraft& block_type(const BlockTypeInfo*);        // of the table; null if this build does not know it
  TensorDraft& stored(StoredWeight);                    // what its values are computed from
  TensorDraft& undecoded(std::string why, Hint);        // of codes
  TensorDraft& write_as(DType);                         // the dtype in any output, instead of its own or that of a cast
  TensorDraft& attribute(std::string_view key, Value);  // after the others
  TensorDraft& attributes(std::vector<Value::Entry>);   // in place of the others
  TensorDraft& extra(std::string_view key, Value);      // an unknown key, after the others
  TensorDraft& extra(std::vector<Value::Entry>);        // in place of the others
  TensorDraft& unsupported(Finding);                    // why its elements cannot be read; keeps the first reason
  TensorDraft& unsupported(std::shared_ptr<const Finding>);  // the same, shared by tensors
  TensorDraft& without_shape();                              // as Draft::add_tensor_without_shape()

 private:
  friend class Draft;
  TensorDraft(Draft& draft, std::uint32_t at) noexcept : draft_(draft), at_(at) {}
  TensorSide& side();
  Draft& draft_;
  std::uint32_t at_;
};

// The same for a part.
class PartDraft {
 public:
  PartDraft& order(Order);                        // of its stored elements
  PartDraft& strides(std::vector<std::int64_t>);  // as Part::strides()
  PartDraft& cut(const Cut&);                     // its bytes are among others; its extent is that of all
  PartDraft& digest(std::string_view);            // as declared
  PartDraft& dtype_name(std::string_view);        // as in the file, if the dtype is unknown
  PartDraft& encoding(Encoding);                  // replaces the one given when it was added
  PartDraft& encoding_name(std::string_view);     // as in the file, if the encoding is unknown
  PartDraft& extra(std::string_view key, Value);  // an unknown key, after the others
  PartDraft& length(std::uint64_t);               // stored and logical, for a part that turns out longer
  PartDraft& pull(Builder::Pull);                 // produces its bytes, if it is computed
  // The same, in pieces of any length, whole on each call unless the sink returns false.
  PartDraft& make(std::function<void(const Context&, const std::function<bool(std::span<const std::byte>)>& sink)>);
  PartDraft& elements(std::shared_ptr<const Elements>);  // the same, in any order

 private:
  friend class Draft;
  PartDraft(Draft& draft, std::uint32_t at) noexcept : draft_(draft), at_(at) {}
  PartSide& side();
  Draft& draft_;
  std::uint32_t at_;
};

// A Model under construction by a reader or a Builder. Calls come in file order: a tensor, then its parts.
class Draft {
 public:
  Draft();
  ~Draft();
  Draft(Draft&&) noexcept;
  Draft& operator=(Draft&&) noexcept;

  // As given to open().
  Checks checks = Checks::all;
  codecs::ChecksumForm checksum_form = codecs::ChecksumForm::add;
  // Used instead of the files that the format would look for beside the file.
  std::shared_ptr<const Source> sidecar{}, tokenizer{};

  // Of the model.
  void set_format(std::string_view);
  void set_version(std::string_view);
  void set_dtype_label(std::string_view);        // the container's label for the dtypes of all tensors
  void set_checksum_form(codecs::ChecksumForm);  // in which its checksums were computed
  void set_checked(bool);                        // false if payload rules that belong to opening were skipped
  void set_tokenizer(std::optional<Tokenizer>);
  void set_attribute(std::string key, Value);              // after the others
  void set_attributes(std::vector<Value::Entry>);          // in place of the others
  void set_extra(std::string_view key, Value);             // after the others
  void set_extra(std::vector<Value::Entry>);               // in place of the others
  void add_checksum(std::string name, std::string value);  // in the container's order
  // Attributes, unknown keys and tokenizer of another model.
  void adopt_metadata(const Model& from);
  // It is only a part of a model. What was said first counts; `others` add up.
  void set_incomplete(Incomplete);
  bool is_incomplete() const noexcept;
  // The attribute with this key is derived from the name of the place, so a copy under another name has another value.
  void set_named_after_place(std::string_view key);

  // Attributes are values among the tensors of one tree: their keys are paths as the tensors' names are, so that a
  // selection of tensors applies to them.
  void set_attributes_in_tree();

  // Makes this a view of another model, without tensors and attributes, which the caller adds. Call it first. Does not
  // take over checksums, which cover the file.
  void begin_view(const Model& of);

  // Keeps the header in the model; views into the returned text become names without a copy.
  std::string_view retain_header(HeaderMemory header);
  // The model's tensors may be in any of its sources: a folder, or shards with an index.
  void set_in_several_files();
  // Where the model is read from.
  void set_place(std::shared_ptr<const Place>);
  // The other files of its folder, beneath that place.
  void set_folder_files(std::vector<FolderFile>);
  // Something other than tensors, metadata and tokenizer that no conversion carries over. Plans list it as a loss of
  // kind `file`: "graph", "12 nodes". At most 1000 are listed.
  void add_left_behind(std::string what, std::string description);
  // Sets which source is the given file; not called for a folder.
  void set_asked(std::uint32_t source);
  // Adds the sources that are not there yet.
  void add_sources(std::vector<std::shared_ptr<const Source>>);
  // Adds a source and returns its index; reuses one of the last few if it is the same.
  std::uint32_t add_source(std::shared_ptr<const Source>);
  // Reserves space; fewer may follow.
  void reserve(std::size_t tensors, std::size_t parts, std::size_t dims);

  // Adds a tensor; its parts follow by add_part. Rank is at most 64 (the caller has checked).
  std::uint32_t add_tensor(std::string_view name, Layout, DType, Shape);
  std::uint32_t add_tensor_without_shape(std::string_view name, Layout, DType);
  // Adds a part to the last tensor. `size` is its logical bytes. A shape equal to the tensor's own is shared.
  std::uint32_t add_part(std::string_view role, DType, Shape, Encoding, const Extent&, std::uint64_t size);
  // Adds a tensor of another model with all its properties, under a new name; shares its payload.
  std::uint32_t adopt(std::string_view name, const weighbridge::Tensor&);
  // Adds the tensors of another model that are marked, in its order and under their names; index_names() then merges
  // the orders of such models' names. `marked` has an element for each tensor of the model.
  void adopt_marked(const Model&, const std::vector<bool>& marked);
  // As add_tensor() and add_part() of a dense tensor whose one part, `data`, is raw and has the tensor's dtype and
  // shape.
  std::uint32_t add_dense(std::string_view name, DType, Shape, const Extent&);
  // Orders the parts of the last tensor by the bytes of their roles.
  void sort_parts();
  TensorDraft tensor(std::uint32_t i) noexcept { return {*this, i}; }
  PartDraft part(std::uint32_t i) noexcept { return {*this, i}; }  // by the index that add_part() returned
  PartDraft first_part(std::uint32_t tensor) noexcept;             // there must be one

  // The content so far.
  std::uint32_t size() const noexcept;  // tensors
  std::string_view name(std::uint32_t tensor) const noexcept;
  Shape shape(std::uint32_t tensor) const noexcept;
  DType dtype(std::uint32_t tensor) const noexcept;
  std::optional<std::uint32_t> find(std::string_view name) const noexcept;  // after index_names(), before drop()
  const std::vector<std::shared_ptr<const Source>>& sources() const noexcept;
  const std::vector<Value::Entry>& attributes() const noexcept;
  const Value* attribute(std::string_view key);         // null: none so far; valid until the next is set
  std::span<const std::string> roles() const noexcept;  // of all parts
  // Calls visit(tensor, layout, dtype, extent) for each stored part, in order.
  template <class Visit> void for_each_stored(Visit visit) const {
    for (std::uint32_t t = 0; t < size(); ++t)
      for (std::uint32_t p = 0; p < part_count(t); ++p) {
        const Stored s = stored(t, p);
        visit(t, s.layout, s.dtype, s.extent);
      }
  }

  // Sorts the index of names. Returns pairs (earlier, later) of tensors with the same name, ordered by the later one.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> index_names();
  // The same for names that were added in ascending order without duplicates: the index is the order of the file.
  void index_sorted_names();
  // Removes invalid tensors (ascending indices), so that the rest can be verified.
  void drop(const std::vector<std::uint32_t>& tensors);
  // Calls report(earlier, later) for each pair of index_names(), then drops the later ones and returns them, ascending.
  template <class Report> std::vector<std::uint32_t> drop_same_names(Report&& report) {
    std::vector<std::uint32_t> later;
    for (const auto& [first, second] : index_names()) {
      report(first, second);
      later.push_back(second);
    }
    drop(later);
    return later;
  }
  // Removes all tensors, attributes and unknown keys: if an index cannot be read to its end, none of it is reliable.
  void clear();
  // Makes the Model. index_names() must have been called, and duplicates removed with drop().
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
  void forget_runs() noexcept;
  std::uint32_t append_dims(Shape);  // index of the first in State::dims
  struct Keys;                       // orders attributes by key
  std::shared_ptr<State> state_;
  std::vector<std::uint32_t> runs_;    // tensors of adopted models; those of each model are in the order of their names
  std::vector<std::size_t> run_ends_;  // in runs_
  std::unique_ptr<Keys> keys_;         // of the first ordered_ attributes; once it is asked for
  std::size_t ordered_ = 0;
};

// Tensor indices in the order of their names' bytes.
std::span<const std::uint32_t> by_name(const Model&) noexcept;
// The text given to Draft::retain_header(), or empty.
std::string_view retained_header(const Model&) noexcept;
// Whether it was made by view(), so that tensors or names may differ from those in the sources.
bool is_view(const Model&) noexcept;
// The other files of the folder that it was read from, also for a view; empty if it is not from one.
std::span<const FolderFile> folder_files(const Model&) noexcept;
// One of them. Null if it is gone. Throws Error, as Place::open().
std::shared_ptr<const Source> open_folder_file(const Model&, std::string_view name);
// What was given to Draft::add_left_behind(), also for a view.
struct LeftBehind {
  std::string what, description;
};
std::span<const LeftBehind> left_behind(const Model&) noexcept;
// Whether its attributes are values among its tensors: Draft::set_attributes_in_tree().
bool has_values_beside(const Model&) noexcept;
// What was given to Draft::set_incomplete(), also for a view; null: nothing in its files says that it is incomplete.
const Incomplete* incomplete(const Model&) noexcept;
// Throws Error{unsupported} with this rule if it is only a part of a model.
void require_whole(const Model&, bool allow_part, std::string_view rule);
// The key given to Draft::set_named_after_place(), also for a view that did not set another value; or empty.
std::string_view named_after_place(const Model&) noexcept;
// As given to TensorDraft::write_as(); unknown if it was not.
DType write_as(const Tensor&) noexcept;
// The source of a part's stored bytes. The part must have an extent.
const Source& source_of(const Part&) noexcept;

}  // namespace weighbridge::core
