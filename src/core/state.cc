// SPDX-License-Identifier: Apache-2.0
// Draft: how flat arrays are filled, and the sorted index of names.
#include "core/state.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "base/endian.h"
#include "base/fail.h"

namespace weighbridge::core {

namespace {
constexpr std::uint32_t kArenaBit = 0x80000000U;

std::uint32_t narrow(std::size_t value, const char* what) {
  if (value >= kArenaBit) base::misuse("too-large", std::string("a model cannot hold more than 2^31 bytes of ") + what);
  return static_cast<std::uint32_t>(value);
}

// Eight bytes of a name as a number that sorts as the bytes do: nearly all names are told apart by it.
struct NameKey {
  std::uint64_t key = 0;
  std::uint32_t index = 0;
};
std::uint64_t prefix_key(std::string_view text) noexcept {
  if (text.size() >= 8) return base::load_be<std::uint64_t>(text.data());
  std::uint64_t key = 0;
  for (std::size_t i = 0; i < text.size(); ++i)
    key |= std::uint64_t{static_cast<unsigned char>(text[i])} << (56 - 8 * i);
  return key;
}

// Least significant byte first, stable; bytes that all keys share cost one count. Names compare only where keys are
// equal.
void sort_by_key(std::vector<NameKey>& items) {
  std::vector<NameKey> other(items.size());
  for (unsigned shift = 0; shift < 64; shift += 8) {
    std::array<std::size_t, 257> starts{};
    for (const NameKey& item : items) ++starts[(item.key >> shift & 0xFF) + 1];
    if (std::ranges::find(starts, items.size()) != starts.end()) continue;
    for (std::size_t i = 1; i < starts.size(); ++i) starts[i] += starts[i - 1];
    for (const NameKey& item : items) other[starts[item.key >> shift & 0xFF]++] = item;
    items.swap(other);
  }
}
}  // namespace

std::string_view Draft::retain_header(std::string header) {
  narrow(header.size(), "header");
  state.header = std::move(header);
  return state.header;
}

std::uint32_t Draft::add_source(std::shared_ptr<const Source> source) {
  for (std::size_t i = state.sources.size(); i-- > 0;) {
    if (state.sources[i] == source) return static_cast<std::uint32_t>(i);
    if (state.sources.size() - i >= 4) break;  // many small in-memory sources: a full search would be quadratic
  }
  state.sources.push_back(std::move(source));
  return narrow(state.sources.size() - 1, "sources");
}

TextRef Draft::refer(std::string_view text) {
  const char* const begin = state.header.data();
  const auto address = reinterpret_cast<std::uintptr_t>(text.data());
  const auto start = reinterpret_cast<std::uintptr_t>(begin);
  if (address >= start && address - start <= state.header.size() &&
      text.size() <= state.header.size() - (address - start)) {
    return {static_cast<std::uint32_t>(address - start), static_cast<std::uint32_t>(text.size())};
  }
  const std::uint32_t offset = narrow(state.arena.size(), "names");
  narrow(state.arena.size() + text.size(), "names");
  state.arena.append(text);
  return {offset | kArenaBit, static_cast<std::uint32_t>(text.size())};
}

// Records are filled where they stand, and dimensions move one by one: a record assembled elsewhere and copied in wider
// loads than it was stored by waits until every store before it has reached the cache, which costs as much as parsing.
std::uint32_t Draft::append_dims(Shape shape) {
  const std::uint32_t first = narrow(state.dims.size(), "dimensions");
  for (const std::uint64_t dim : shape) state.dims.push_back(dim);
  return first;
}

std::uint32_t Draft::add_tensor(std::string_view name, Layout layout, DType dtype, Shape shape) {
  const TextRef text = refer(name);
  const std::uint32_t dims = append_dims(shape);
  const std::uint32_t first_part = narrow(state.parts.size(), "parts");
  const std::uint32_t index = narrow(state.tensors.size(), "tensors");
  TensorRecord& record = state.tensors.emplace_back();
  record.name = text;
  record.dims = dims;
  record.rank = static_cast<std::uint8_t>(shape.size());
  record.layout = layout;
  record.dtype = dtype;
  record.first_part = first_part;
  return index;
}

std::uint32_t Draft::add_tensor_without_shape(std::string_view name, Layout layout, DType dtype) {
  const std::uint32_t i = add_tensor(name, layout, dtype, {});
  state.tensors[i].has_shape = false;
  return i;
}

std::uint32_t Draft::add_part(std::string_view role, DType dtype, Shape shape, Encoding encoding, const Extent& extent,
                              std::uint64_t size) {
  TensorRecord& tensor = state.tensors.back();
  const auto known = std::find(state.roles.begin(), state.roles.end(), role);
  const std::size_t role_index = static_cast<std::size_t>(known - state.roles.begin());
  if (known == state.roles.end()) {
    // Roles are few in real files; a hostile one pays for its own search, bounded by this count.
    if (state.roles.size() >= UINT16_MAX)
      base::misuse("too-many-roles", "a model cannot hold more than 65,535 different roles");
    state.roles.emplace_back(role);
  }
  bool own_shape = tensor.has_shape && shape.size() == tensor.rank;
  for (std::size_t i = 0; own_shape && i < shape.size(); ++i) own_shape = shape[i] == state.dims[tensor.dims + i];
  const std::uint32_t dims = own_shape ? tensor.dims : append_dims(shape);
  const std::uint32_t index = narrow(state.parts.size(), "parts");
  PartRecord& part = state.parts.emplace_back();
  part.role = static_cast<std::uint16_t>(role_index);
  part.dims = dims;
  part.rank = static_cast<std::uint8_t>(shape.size());
  part.dtype = dtype;
  part.encoding = encoding;
  part.source = extent.source;
  part.offset = extent.offset;
  part.stored_length = extent.length;
  part.size = size;
  part.has_extent = encoding != Encoding::computed;
  ++tensor.part_count;
  return index;
}

void Draft::begin_view(const State& of) {
  state.format = of.format;
  state.version = of.version;
  state.sources = of.sources;
  state.header = of.header;  // content rules of some formats ask it
  state.extra = of.extra;
  state.tokenizer = of.tokenizer;
  state.keep = of.keep;
  state.dtype_label = of.dtype_label;
  state.checked = of.checked;
  state.is_view = true;
}

std::uint32_t Draft::adopt(std::string_view name, const State& from, const TensorRecord& record) {
  const Shape shape(from.dims.data() + record.dims, record.rank);
  const std::uint32_t t = add_tensor(name, record.layout, record.dtype, shape);
  state.tensors[t].has_shape = record.has_shape;
  if (record.side != kNone) {
    const TensorSide& side = from.tensor_sides[record.side];
    TensorSide& mine = tensor_side(t);
    mine.id = side.id;
    mine.layout_name = side.layout_name;
    mine.type_name = side.type_name;
    mine.block_type = side.block_type;
    mine.attributes = side.attributes;
    mine.extra = side.extra;
    if (side.unsupported) {
      mine.unsupported = std::make_unique<Finding>(*side.unsupported);
      FileRef& file = mine.unsupported->file;
      if (file.empty() && from.asked != kNone)
        file = {std::string(from.sources[from.asked]->name()), add_source(from.sources[from.asked])};
    }
  }
  for (std::uint32_t i = 0; i < record.part_count; ++i) {
    const PartRecord& part = from.parts[record.first_part + i];
    // In a view each source has the place that it had.
    const bool placed = part.has_extent && part.source < state.sources.size() &&
                        state.sources[part.source] == from.sources[part.source];
    const std::uint32_t source = placed ? part.source : part.has_extent ? add_source(from.sources[part.source]) : 0;
    const Extent extent{source, part.offset, part.stored_length};
    const std::uint32_t p = add_part(from.roles[part.role], part.dtype, {from.dims.data() + part.dims, part.rank},
                                     part.encoding, extent, part.size);
    state.parts[p].order = part.order;
    if (part.side != kNone) part_side(p) = from.part_sides[part.side];
  }
  return t;
}

PartSide& Draft::part_side(std::uint32_t part) {
  PartRecord& record = state.parts[part];
  if (record.side == kNone) {
    record.side = static_cast<std::uint32_t>(state.part_sides.size());
    state.part_sides.emplace_back();
  }
  return state.part_sides[record.side];
}

TensorSide& Draft::tensor_side(std::uint32_t tensor) {
  TensorRecord& record = state.tensors[tensor];
  if (record.side == kNone) {
    record.side = static_cast<std::uint32_t>(state.tensor_sides.size());
    state.tensor_sides.emplace_back();
  }
  return state.tensor_sides[record.side];
}

void Draft::mark_unsupported(std::uint32_t tensor, Finding finding) {
  TensorSide& side = tensor_side(tensor);
  if (!side.unsupported) side.unsupported = std::make_unique<Finding>(std::move(finding));
}

std::vector<std::pair<std::uint32_t, std::uint32_t>> Draft::index_names() {
  // Sorting (key, index) pairs touches the names themselves only where eight bytes do not decide.
  using Item = NameKey;
  const std::size_t n = state.tensors.size();
  // A prefix that all names share decides nothing: the key starts behind it.
  std::size_t shared = n == 0 ? 0 : state.tensor_name(0).size();
  for (std::uint32_t i = 1; i < n && shared > 0; ++i) {
    const std::string_view a = state.tensor_name(0), b = state.tensor_name(i);
    std::size_t same = 0;
    const std::size_t most = std::min(shared, b.size());
    while (same < most && a[same] == b[same]) ++same;
    shared = same;
  }
  std::vector<Item> items(n);
  for (std::uint32_t i = 0; i < n; ++i) items[i] = {prefix_key(state.tensor_name(i).substr(shared)), i};
  const auto less = [&](const Item& a, const Item& b) {
    if (a.key != b.key) return a.key < b.key;
    const int order = state.tensor_name(a.index).compare(state.tensor_name(b.index));
    return order != 0 ? order < 0 : a.index < b.index;
  };
  if (!std::is_sorted(items.begin(), items.end(), less)) {
    sort_by_key(items);
    for (std::size_t first = 0, last = 0; first < n; first = last) {
      while (last < n && items[last].key == items[first].key) ++last;
      if (last - first > 1) std::sort(items.data() + first, items.data() + last, less);
    }
  }
  state.by_name.resize(n);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> duplicates;
  for (std::size_t i = 0; i < n; ++i) {
    state.by_name[i] = items[i].index;
    if (i > 0 && items[i].key == items[i - 1].key &&
        state.tensor_name(items[i].index) == state.tensor_name(items[i - 1].index)) {
      duplicates.emplace_back(items[i - 1].index, items[i].index);
    }
  }
  std::sort(duplicates.begin(), duplicates.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return duplicates;
}

void Draft::drop(const std::vector<std::uint32_t>& tensors) {
  if (tensors.empty()) return;
  std::size_t next = 0, kept = 0;
  for (std::uint32_t i = 0; i < state.tensors.size(); ++i) {
    if (next < tensors.size() && tensors[next] == i) {
      while (next < tensors.size() && tensors[next] == i) ++next;
      continue;
    }
    state.tensors[kept++] = state.tensors[i];  // parts of dropped tensors stay behind, unreferenced
  }
  state.tensors.resize(kept);
  index_names();
}

Model Draft::finish() {
  if (state.by_name.size() != state.tensors.size()) index_names();
  return Access::model(std::make_shared<State>(std::move(state)));
}

Model Access::model(std::shared_ptr<const State> state) {
  Model m;
  m.s_ = std::move(state);
  return m;
}

const State& empty_state() noexcept {
  static const State empty = [] {
    State s;
    s.roles = {""};
    s.dims = {0};
    PartRecord& part = s.parts.emplace_back();
    part.rank = 1;
    part.encoding = Encoding::computed;
    part.has_extent = false;
    part.side = 0;
    s.part_sides.emplace_back().pull = [](std::uint64_t, std::span<std::byte>) { return std::size_t{0}; };
    TensorRecord& tensor = s.tensors.emplace_back();
    tensor.rank = 1;
    tensor.layout = Layout::structural;
    tensor.side = 0;
    Finding why;
    why.kind = Kind::unsupported;
    why.rule = "unsupported/no-tensor";
    why.message = "this handle is of no model: it was made by default, or moved from";
    s.tensor_sides.emplace_back().unsupported = std::make_unique<Finding>(std::move(why));
    return s;
  }();
  return empty;
}

}  // namespace weighbridge::core
