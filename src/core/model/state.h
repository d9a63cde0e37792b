// SPDX-License-Identifier: Apache-2.0
// The storage of a Model: flat arrays, no node per tensor. Owns State, immutable once shared, and the access from
// handles to it. Only core includes this. A plain dense tensor takes about 100 bytes beside the retained header.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/model/coded.h"
#include "core/model/draft.h"
#include "schemes/table.h"
#include "weighbridge/convert.h"
#include "weighbridge/model.h"
#include "weighbridge/scheme.h"

namespace weighbridge::core {

// What a model was made of, if it is not simply the content of a file: several models, or one and its adapters.
struct Composition {
  std::vector<Model> models;              // members; their content rules apply
  std::size_t selected = 0;               // to the first `selected` ones only for the tensors taken from them
  std::vector<Item> losses{}, changes{};  // for plans
};
// Which member a tensor of such a model comes from.
struct Origin {
  std::uint32_t model = kNone, tensor = kNone;  // in Composition::models, and in that model
};

// Text in the retained header, or (top bit of offset set) in the arena, for texts that the header does not contain
// verbatim.
struct TextRef {
  static constexpr std::uint32_t kArena = 0x80000000U;
  std::uint32_t offset = 0, length = 0;
};

// Keys and values in order, and the order of the keys.
struct Entries {
  std::vector<Value::Entry> all;
  std::vector<std::uint32_t> by_key;  // indices, sorted by key; empty if a linear search of the few is as fast

  void add(std::string key, Value value) { all.emplace_back(std::move(key), std::move(value)); }
  void set(std::vector<Value::Entry> entries);
  void sort_keys();  // call it once all entries are there
  const Value* find(std::string_view key) const noexcept;
};

// The same for the vectors of another owner.
const Value* find(std::span<const Value::Entry> all, std::span<const std::uint32_t> by_key,
                  std::string_view key) noexcept;

struct PartRecord {
  std::uint64_t offset = 0, stored_length = 0;  // extent, when has_extent
  std::uint64_t size = 0;                       // logical bytes
  std::uint32_t source = 0;
  std::uint32_t dims = 0;      // first dimension in State::dims
  std::uint32_t side = kNone;  // in State::part_sides
  std::uint16_t role = 0;      // in State::roles
  std::uint8_t rank = 0;
  DType dtype = DType::unknown;
  Encoding encoding = Encoding::raw;
  Order order = Order::little;
  bool has_extent = true;
};

// Properties that few parts have.
struct PartSide {
  std::string dtype_name, encoding_name;  // as in the file, if the enumerators are `unknown`
  std::string digest;
  std::vector<std::int64_t> strides;
  std::optional<Cut> cut;
  Entries extra;
  Builder::Pull pull;  // encoding computed: this, `make`, or `elements`
  std::function<void(const Context&, const std::function<bool(std::span<const std::byte>)>& sink)> make;
  std::shared_ptr<const Elements> elements{};
};

struct TensorRecord {
  TextRef name;
  std::uint32_t dims = 0;
  std::uint32_t first_part = 0, part_count = 0;
  std::uint32_t side = kNone;  // in State::tensor_sides
  std::uint8_t rank = 0;
  bool has_shape = true;
  Layout layout = Layout::dense;
  DType dtype = DType::unknown;  // of the dense form
};

struct TensorSide {
  std::optional<std::uint64_t> id;
  std::string layout_name, type_name;         // if they differ from name(layout), name(block_type or dtype)
  const BlockTypeInfo* block_type = nullptr;  // of the table; null: scalars, or blocks of an unknown type
  DType write_as = DType::unknown;            // of any output; unknown: not decided
  Entries attributes, extra;
  std::shared_ptr<const Finding> unsupported;
  std::shared_ptr<const Coded> coded;          // null: its elements are values
  std::shared_ptr<const StoredWeight> stored;  // null: it is not computed from codes
};

// The mappings behind the spans of Tensor::as(), by part. A source may give each caller a mapping of its own, so the
// model keeps those that it has handed out.
class Mappings {
 public:
  Mappings() = default;
  Mappings(const Mappings&) {}  // not copied: a copied state may have other sources
  Mappings& operator=(const Mappings&) = delete;
  // The bytes of a part that were kept.
  std::optional<std::span<const std::byte>> find(std::uint32_t part) const;
  // Keeps the bytes, unless another thread already did. Returns the ones that are kept.
  std::span<const std::byte> keep(std::uint32_t part, Bytes) const;

 private:
  mutable std::mutex mutex_;
  mutable std::unordered_map<std::uint32_t, Bytes> all_;
};

struct State {
  std::string format, version;
  std::vector<std::shared_ptr<const Source>> sources;
  std::shared_ptr<const Place> place;    // of folder_files; null: they are empty
  std::vector<FolderFile> folder_files;  // of the folder, besides the sources that hold tensors
  std::vector<LeftBehind> left_behind;   // what no conversion carries over
  std::optional<Incomplete> incomplete;  // nullopt: nothing in its files says so
  std::string named_after_place;         // the key of an attribute; see Draft
  std::vector<schemes::Answer> answers;  // what the user says of quantization schemes
  std::uint32_t asked = kNone;           // the source that is the given file; none for a folder
  HeaderMemory header;                   // retained; names point into it
  std::string arena;                     // texts that were unescaped or generated
  std::vector<std::string> roles;
  std::vector<std::uint64_t> dims;
  std::vector<PartRecord> parts;
  std::vector<TensorRecord> tensors;
  std::deque<PartSide> part_sides;  // large: a vector that grows would hold them three times
  std::deque<TensorSide> tensor_sides;
  std::shared_ptr<const Composition> composition;  // null: the model of a file
  std::vector<Origin> origins;  // of the tensors of a composed model; shorter if its last tensors are computed
  Entries attributes, extra;
  std::optional<Tokenizer> tokenizer;
  std::vector<std::uint32_t> by_name;  // tensor indices in the order of their names' bytes
  std::vector<Checksum> checksums;     // stored in the container, as inspect shows them
  std::string dtype_label;             // a label for all tensors, if the container defines one
  std::string_view checksum_form;      // static text; empty if the container's checksums have one form
  bool checked = true;                 // false if payload rules that belong to opening were skipped
  bool in_several_files = false;       // all sources are its files; else only the first is
  bool attributes_in_tree = false;     // see Draft
  bool is_view = false;                // made by view(): tensors or names may differ from the sources
  Mappings mappings;                   // of Tensor::as()

  std::string_view text(TextRef ref) const noexcept {
    const std::string_view from = (ref.offset & TextRef::kArena) != 0 ? std::string_view(arena) : header.text();
    return from.substr(ref.offset & ~TextRef::kArena, ref.length);
  }
  std::string_view tensor_name(std::uint32_t i) const noexcept { return text(tensors[i].name); }
  std::optional<std::uint32_t> find(std::string_view name) const noexcept;  // uses by_name
};

// The place of a role in State::roles, where it is added if it is not there. Throws Error{misuse} if there are too
// many.
std::uint16_t index_of_role(std::vector<std::string>& roles, std::string_view role);

// The file that a finding about these bytes is about.
inline FileRef file_ref(const State& state, std::uint32_t source) {
  if (source == state.asked) return {};
  return {std::string(state.sources[source]->name()), source};
}

// Indices of names in the order of their bytes, equal ones in the order given. There are fewer than 2^32.
std::vector<std::uint32_t> order_of(std::span<const std::string_view> names);

// The state behind empty handles: one unsupported tensor without parts, and one part without bytes.
const State& empty_state() noexcept;

// The friend through which internals reach the state of public handles. Its results live as long as a handle.
class Access {
 public:
  static Model model(std::shared_ptr<const State>);
  static const State* state(const Model& m) noexcept { return m.s_.get(); }
  static std::shared_ptr<const State> share(const Model& m) noexcept { return m.s_; }
  static const State& state(const Tensor& t) noexcept { return t.s_ ? *t.s_ : empty_state(); }
  static const State& state(const Part& p) noexcept { return p.s_ ? *p.s_ : empty_state(); }
  static const TensorRecord& record(const Tensor& t) noexcept { return state(t).tensors[t.s_ ? t.i_ : 0]; }
  static const PartRecord& record(const Part& p) noexcept { return state(p).parts[p.s_ ? p.i_ : 0]; }
  // A vector of the state, in a handle that keeps the state alive.
  template <class T>
  static Shared<T> shared(const std::shared_ptr<const State>& of, const std::vector<T>& all) noexcept {
    return Shared<T>(std::shared_ptr<const std::vector<T>>(of, &all));
  }
  static Attributes attributes(const std::shared_ptr<const State>& of, const Entries& entries) noexcept {
    return Attributes(shared(of, entries.all), entries.by_key);
  }
};

}  // namespace weighbridge::core
