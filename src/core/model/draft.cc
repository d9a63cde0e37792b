// SPDX-License-Identifier: Apache-2.0
// Draft: fills the flat arrays of a State. All of its functions share them, so they are in one file. name_index.cc
// sorts the names.
#include "core/model/state.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <unordered_set>

#include "base/checked.h"
#include "base/fail.h"
#include "base/os.h"

namespace weighbridge::core {

namespace {
[[noreturn, gnu::cold, gnu::noinline]] void too_large(const char* what) {
  base::misuse("too-large", std::string("a model cannot hold more than 2^31 bytes of ") + what);
}

std::uint32_t narrow(std::size_t value, const char* what) {
  if (value >= TextRef::kArena) [[unlikely]]
    too_large(what);
  return static_cast<std::uint32_t>(value);
}

std::uint16_t add_role(std::vector<std::string>& roles, std::string_view role) {
  // Real files have few roles. In a hostile file, this bounds the linear search.
  if (roles.size() >= UINT16_MAX)
    base::misuse("too-many-roles", "a model cannot hold more than 65,535 different roles");
  roles.emplace_back(role);
  return static_cast<std::uint16_t>(roles.size() - 1);
}
// Inline, so that a role known at compile time is compared without a call.
[[gnu::always_inline]] inline std::uint16_t find_or_add(std::vector<std::string>& roles, std::string_view role) {
  for (std::size_t i = 0; i < roles.size(); ++i)
    if (std::string_view(roles[i]) == role) return static_cast<std::uint16_t>(i);
  return add_role(roles, role);
}
}  // namespace

std::uint16_t index_of_role(std::vector<std::string>& roles, std::string_view role) { return find_or_add(roles, role); }

struct Draft::Keys {
  struct Order {
    using is_transparent = void;
    const std::vector<Value::Entry>* all;
    std::string_view key(std::uint32_t i) const noexcept { return (*all)[i].first; }
    bool operator()(std::uint32_t a, std::uint32_t b) const noexcept { return key(a) < key(b); }
    bool operator()(std::uint32_t a, std::string_view b) const noexcept { return key(a) < b; }
    bool operator()(std::string_view a, std::uint32_t b) const noexcept { return a < key(b); }
  };
  std::set<std::uint32_t, Order> order;
};

Draft::Draft() : state_(std::make_shared<State>()) {}
Draft::~Draft() = default;
Draft::Draft(Draft&&) noexcept = default;
Draft& Draft::operator=(Draft&&) noexcept = default;

void Draft::set_format(std::string_view format) { state_->format = format; }
void Draft::set_version(std::string_view version) { state_->version = version; }
void Draft::set_dtype_label(std::string_view label) { state_->dtype_label = label; }
void Draft::set_checked(bool checked) { state_->checked = checked; }
void Draft::set_checksum_form(codecs::ChecksumForm form) {
  state_->checksum_form = codecs::kChecksumForms[static_cast<std::size_t>(form)].name;
}
void Draft::set_tokenizer(std::optional<Tokenizer> made) { state_->tokenizer = std::move(made); }
void Draft::set_attribute(std::string key, Value value) { state_->attributes.add(std::move(key), std::move(value)); }
void Draft::set_attributes(std::vector<Value::Entry> all) {
  state_->attributes.set(std::move(all));
  keys_.reset();
}
void Draft::set_extra(std::string_view key, Value value) { state_->extra.add(std::string(key), std::move(value)); }
void Draft::set_extra(std::vector<Value::Entry> all) { state_->extra.set(std::move(all)); }
void Draft::add_checksum(std::string name, std::string value) {
  state_->checksums.push_back({std::move(name), std::move(value)});
}
void Draft::adopt_metadata(const Model& from) {
  const State* const state = Access::state(from);
  if (state == nullptr) return;
  state_->attributes = state->attributes;
  keys_.reset();
  state_->extra = state->extra;
  state_->tokenizer = state->tokenizer;
}
void Draft::set_incomplete(Incomplete incomplete) {
  std::optional<Incomplete>& kept = state_->incomplete;
  if (!kept) {
    kept = std::move(incomplete);
    return;
  }
  kept->others.insert(kept->others.end(), std::make_move_iterator(incomplete.others.begin()),
                      std::make_move_iterator(incomplete.others.end()));
  std::ranges::sort(kept->others);
  const auto repeated = std::ranges::unique(kept->others);
  kept->others.erase(repeated.begin(), repeated.end());
}
bool Draft::is_incomplete() const noexcept { return state_->incomplete.has_value(); }
void Draft::set_named_after_place(std::string_view key) { state_->named_after_place = key; }
void Draft::begin_view(const Model& model) {
  const State& of = *Access::state(model);
  state_->format = of.format;
  state_->version = of.version;
  state_->sources = of.sources;
  state_->place = of.place;
  state_->folder_files = of.folder_files;
  state_->left_behind = of.left_behind;
  state_->incomplete = of.incomplete;
  state_->named_after_place = of.named_after_place;
  state_->answers = of.answers;
  state_->header = of.header;  // content rules of some formats read it
  state_->extra = of.extra;
  state_->tokenizer = of.tokenizer;
  state_->dtype_label = of.dtype_label;
  state_->checksum_form = of.checksum_form;
  state_->checked = of.checked;
  state_->in_several_files = of.in_several_files;
  state_->attributes_in_tree = of.attributes_in_tree;
  state_->is_view = true;
  state_->composition = of.composition;
}
void Draft::set_attributes_in_tree() { state_->attributes_in_tree = true; }
void Draft::set_in_several_files() { state_->in_several_files = true; }
void Draft::set_place(std::shared_ptr<const Place> place) { state_->place = std::move(place); }
void Draft::set_folder_files(std::vector<FolderFile> files) { state_->folder_files = std::move(files); }
void Draft::add_left_behind(std::string what, std::string description) {
  std::vector<LeftBehind>& all = state_->left_behind;
  if (all.size() < Report::kMaxFindings)  // as many as a report keeps: two bytes of a pickle can make one
    all.push_back({std::move(what), std::move(description)});
  else if (all.size() == Report::kMaxFindings)
    all.push_back({"others", "more than a thousand are not named"});
}
void Draft::set_asked(std::uint32_t source) { state_->asked = source; }
void Draft::reserve(std::size_t tensors, std::size_t parts, std::size_t dims) {
  const auto make_room = [](auto& all, std::size_t count) {
    if (count <= all.capacity()) return;
    all.reserve(count);
    if (all.empty()) base::use_large_pages(std::as_writable_bytes(std::span(all.data(), all.capacity())));
  };
  make_room(state_->tensors, tensors);
  make_room(state_->parts, parts);
  make_room(state_->dims, dims);
}

HeaderMemory::HeaderMemory(std::string text) {
  const auto memory = std::make_shared<std::string>(std::move(text));
  bytes_ = std::as_writable_bytes(std::span(*memory));
  memory_ = memory;
}
HeaderMemory::HeaderMemory(std::uint64_t size) {
  const std::shared_ptr<std::byte[]> memory = std::make_unique_for_overwrite<std::byte[]>(base::to_size(size));
  bytes_ = {memory.get(), base::to_size(size)};
  memory_ = memory;
  base::use_large_pages(bytes_);
}

std::string_view Draft::retain_header(HeaderMemory header) {
  narrow(header.text().size(), "header");
  state_->header = std::move(header);
  return state_->header.text();
}

std::uint32_t Draft::add_source(std::shared_ptr<const Source> source) {
  for (std::size_t i = state_->sources.size(); i-- > 0;) {
    if (state_->sources[i] == source) return static_cast<std::uint32_t>(i);
    if (state_->sources.size() - i >= 4) break;  // many small in-memory sources: a full search would be quadratic
  }
  state_->sources.push_back(std::move(source));
  return narrow(state_->sources.size() - 1, "sources");
}

void Draft::add_sources(std::vector<std::shared_ptr<const Source>> more) {
  std::unordered_set<const Source*> there;
  for (const auto& each : state_->sources) there.insert(each.get());
  for (auto& each : more)
    if (there.insert(each.get()).second) state_->sources.push_back(std::move(each));
  narrow(state_->sources.size(), "sources");
}

TextRef Draft::refer(std::string_view text) {
  const auto within = [&](std::string_view whole) -> std::optional<std::uint32_t> {
    const auto address = reinterpret_cast<std::uintptr_t>(text.data());
    const auto start = reinterpret_cast<std::uintptr_t>(whole.data());
    if (address < start || address - start > whole.size() || text.size() > whole.size() - (address - start))
      return std::nullopt;
    return static_cast<std::uint32_t>(address - start);
  };
  const auto length = static_cast<std::uint32_t>(narrow(text.size(), "names"));
  if (const auto at = within(state_->header.text())) return {*at, length};
  if (const auto at = within(state_->arena)) return {*at | TextRef::kArena, length};
  const std::uint32_t offset = narrow(state_->arena.size(), "names");
  narrow(state_->arena.size() + text.size(), "names");
  state_->arena.append(text);
  return {offset | TextRef::kArena, length};
}

// Records are filled in place, and dimensions are copied one by one. A record assembled elsewhere would be copied with
// wider loads than its stores; such loads wait until all earlier stores reach the cache, which costs as much as
// parsing.
std::uint32_t Draft::append_dims(Shape shape) {
  const std::uint32_t first = narrow(state_->dims.size(), "dimensions");
  for (const std::uint64_t dim : shape) state_->dims.push_back(dim);
  return first;
}

std::uint32_t Draft::add_tensor(std::string_view name, Layout layout, DType dtype, Shape shape) {
  const TextRef text = refer(name);
  const std::uint32_t dims = append_dims(shape);
  const std::uint32_t first_part = narrow(state_->parts.size(), "parts");
  const std::uint32_t index = narrow(state_->tensors.size(), "tensors");
  TensorRecord& record = state_->tensors.emplace_back();
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
  state_->tensors[i].has_shape = false;
  return i;
}

std::uint32_t Draft::add_part(std::string_view role, DType dtype, Shape shape, Encoding encoding, const Extent& extent,
                              std::uint64_t size) {
  const std::uint16_t own_role = index_of_role(state_->roles, role);
  TensorRecord& tensor = state_->tensors.back();
  bool own_shape = tensor.has_shape && shape.size() == tensor.rank;
  for (std::size_t i = 0; own_shape && i < shape.size(); ++i) own_shape = shape[i] == state_->dims[tensor.dims + i];
  const std::uint32_t dims = own_shape ? tensor.dims : append_dims(shape);
  const std::uint32_t index = narrow(state_->parts.size(), "parts");
  PartRecord& part = state_->parts.emplace_back();
  part.role = own_role;
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

std::uint32_t Draft::add_dense(std::string_view name, DType dtype, Shape shape, const Extent& extent) {
  const std::uint16_t role = find_or_add(state_->roles, "data");
  const std::uint32_t index = add_tensor(name, Layout::dense, dtype, shape);
  TensorRecord& tensor = state_->tensors.back();
  tensor.part_count = 1;
  PartRecord& part = state_->parts.emplace_back();
  part.role = role;
  part.dims = tensor.dims;
  part.rank = tensor.rank;
  part.dtype = dtype;
  part.source = extent.source;
  part.offset = extent.offset;
  part.stored_length = extent.length;
  part.size = extent.length;
  return index;
}

std::uint32_t Draft::adopt(std::string_view name, const weighbridge::Tensor& tensor) {
  const State& from = Access::state(tensor);
  const TensorRecord& record = Access::record(tensor);
  const Shape shape(from.dims.data() + record.dims, record.rank);
  const std::uint32_t t = add_tensor(name, record.layout, record.dtype, shape);
  state_->tensors[t].has_shape = record.has_shape;
  if (const std::uint32_t i = tensor.index(); i < from.origins.size()) {
    state_->origins.resize(t);  // earlier tensors may be computed and have no origin
    state_->origins.push_back(from.origins[i]);
  }
  if (record.side != kNone) {
    const TensorSide& side = from.tensor_sides[record.side];
    TensorSide& mine = this->tensor(t).side();
    mine.id = side.id;
    mine.layout_name = side.layout_name;
    mine.type_name = side.type_name;
    mine.block_type = side.block_type;
    mine.write_as = side.write_as;
    mine.coded = side.coded;
    mine.stored = side.stored;
    mine.attributes = side.attributes;
    mine.extra = side.extra;
    if (side.unsupported) {
      const auto why = std::make_shared<Finding>(*side.unsupported);
      FileRef& file = why->file;
      if (file.empty() && from.asked != kNone)
        file = {std::string(from.sources[from.asked]->name()), add_source(from.sources[from.asked])};
      mine.unsupported = why;
    }
  }
  for (std::uint32_t i = 0; i < record.part_count; ++i) {
    const PartRecord& part = from.parts[record.first_part + i];
    // In a view, each source keeps its index.
    const bool placed = part.has_extent && part.source < state_->sources.size() &&
                        state_->sources[part.source] == from.sources[part.source];
    const std::uint32_t source = placed ? part.source : part.has_extent ? add_source(from.sources[part.source]) : 0;
    const Extent extent{source, part.offset, part.stored_length};
    const std::uint32_t p = add_part(from.roles[part.role], part.dtype, {from.dims.data() + part.dims, part.rank},
                                     part.encoding, extent, part.size);
    state_->parts[p].order = part.order;
    if (part.side != kNone) this->part(p).side() = from.part_sides[part.side];
  }
  return t;
}

void Draft::adopt_marked(const Model& model, const std::vector<bool>& marked) {
  const State* const from = Access::state(model);
  if (from == nullptr) return;
  State& to = *state_;
  // Where the roles, sources and dimensions of the other model are in this one, looked up once.
  std::vector<std::uint32_t> sources;
  for (const auto& source : from->sources) sources.push_back(add_source(source));
  std::vector<std::uint16_t> roles;
  for (const std::string& role : from->roles) roles.push_back(index_of_role(to.roles, role));
  // Reserve names for all tensors that may come, assuming that they are as long as these: growing in steps would copy
  // them.
  std::size_t names = to.arena.size();
  for (std::uint32_t i = 0; i < from->tensors.size(); ++i) names += marked[i] ? from->tensors[i].name.length : 0;
  if (names > to.arena.capacity()) {
    constexpr std::size_t kSpare = std::size_t{64} << 20;  // bytes reserved in advance for tensors that may never come
    const std::size_t tensors = std::max<std::size_t>(to.tensors.size() + from->tensors.size(), 1);
    const std::size_t room = std::max(to.tensors.capacity(), tensors);
    const auto like_these = base::checked_mul(names / tensors + 1, room).value_or(UINT64_MAX);
    to.arena.reserve(std::max(names, base::to_size(std::min<std::uint64_t>(like_these, std::max(kSpare, 2 * names)))));
  }
  // As adopt(), for tensors without rare properties, which nearly all are.
  const auto is_plain = [&](const TensorRecord& record) {
    bool plain = record.side == kNone;
    for (std::uint32_t p = 0; plain && p < record.part_count; ++p)
      plain = from->parts[record.first_part + p].side == kNone;
    return plain;
  };
  const auto adopt_plain = [&](const TensorRecord& record) {
    const std::string_view name = from->text(record.name);
    const std::uint32_t name_at = narrow(to.arena.size(), "names");
    narrow(to.arena.size() + name.size(), "names");
    to.arena.append(name);
    const std::uint32_t dims = append_dims({from->dims.data() + record.dims, record.rank});
    const std::uint32_t index = narrow(to.tensors.size(), "tensors");
    TensorRecord& tensor = to.tensors.emplace_back(record);
    tensor.name.offset = name_at | TextRef::kArena;
    tensor.dims = dims;
    tensor.first_part = narrow(to.parts.size(), "parts");
    for (std::uint32_t p = 0; p < record.part_count; ++p) {
      const PartRecord& part = from->parts[record.first_part + p];
      const bool own_shape = part.dims == record.dims && part.rank == record.rank;
      const std::uint32_t part_dims = own_shape ? dims : append_dims({from->dims.data() + part.dims, part.rank});
      narrow(to.parts.size(), "parts");
      PartRecord& made = to.parts.emplace_back(part);
      made.source = part.has_extent ? sources[part.source] : 0;
      made.dims = part_dims;
      made.role = roles[part.role];
    }
    return index;
  };
  std::vector<std::uint32_t> here(from->tensors.size(), kNone);
  for (std::uint32_t i = 0; i < here.size(); ++i) {
    if (!marked[i]) continue;
    const TensorRecord& record = from->tensors[i];
    here[i] = is_plain(record) ? adopt_plain(record) : adopt(from->text(record.name), model[i]);
    // The source of a computed part says which file it is computed from.
    for (std::uint32_t p = 0; p < record.part_count; ++p)
      if (const PartRecord& part = from->parts[record.first_part + p]; !part.has_extent && part.source < sources.size())
        to.parts[to.tensors[here[i]].first_part + p].source = sources[part.source];
  }
  for (const std::uint32_t i : from->by_name)
    if (here[i] != kNone) runs_.push_back(here[i]);
  run_ends_.push_back(runs_.size());
}

void Draft::sort_parts() {
  const TensorRecord& tensor = state_->tensors.back();
  PartRecord* const begin = state_->parts.data() + tensor.first_part;
  std::sort(begin, begin + tensor.part_count,
            [&](const PartRecord& a, const PartRecord& b) { return state_->roles[a.role] < state_->roles[b.role]; });
}

PartDraft Draft::first_part(std::uint32_t tensor) noexcept { return {*this, state_->tensors[tensor].first_part}; }

std::uint32_t Draft::size() const noexcept { return static_cast<std::uint32_t>(state_->tensors.size()); }
std::string_view Draft::name(std::uint32_t tensor) const noexcept { return state_->tensor_name(tensor); }
Shape Draft::shape(std::uint32_t tensor) const noexcept {
  const TensorRecord& record = state_->tensors[tensor];
  return {state_->dims.data() + record.dims, record.rank};
}
DType Draft::dtype(std::uint32_t tensor) const noexcept { return state_->tensors[tensor].dtype; }
std::optional<std::uint32_t> Draft::find(std::string_view name) const noexcept { return state_->find(name); }
const std::vector<std::shared_ptr<const Source>>& Draft::sources() const noexcept { return state_->sources; }
const std::vector<Value::Entry>& Draft::attributes() const noexcept { return state_->attributes.all; }
const Value* Draft::attribute(std::string_view key) {
  const std::vector<Value::Entry>& all = state_->attributes.all;
  if (!keys_) {
    keys_ = std::make_unique<Keys>(Keys{std::set<std::uint32_t, Keys::Order>(Keys::Order{&all})});
    ordered_ = 0;
  }
  for (; ordered_ < all.size(); ++ordered_) keys_->order.insert(narrow(ordered_, "attributes"));
  const auto found = keys_->order.find(key);
  return found == keys_->order.end() ? nullptr : &all[*found].second;
}
std::span<const std::string> Draft::roles() const noexcept { return state_->roles; }
std::uint32_t Draft::part_count(std::uint32_t tensor) const noexcept { return state_->tensors[tensor].part_count; }
Draft::Stored Draft::stored(std::uint32_t tensor, std::uint32_t part) const noexcept {
  const TensorRecord& t = state_->tensors[tensor];
  const PartRecord& p = state_->parts[t.first_part + part];
  return {t.layout, p.dtype, {p.source, p.offset, p.stored_length}};
}

void Draft::drop(const std::vector<std::uint32_t>& tensors) {
  if (tensors.empty()) return;
  std::size_t next = 0, kept = 0;
  for (std::uint32_t i = 0; i < state_->tensors.size(); ++i) {
    if (next < tensors.size() && tensors[next] == i) {
      while (next < tensors.size() && tensors[next] == i) ++next;
      continue;
    }
    if (i < state_->origins.size()) state_->origins[kept] = state_->origins[i];
    state_->tensors[kept++] = state_->tensors[i];  // parts of dropped tensors remain, unreferenced
  }
  state_->tensors.resize(kept);
  state_->origins.resize(std::min(kept, state_->origins.size()));
  forget_runs();
  index_names();
}

void Draft::clear() {
  forget_runs();
  state_->tensors.clear();
  state_->parts.clear();
  set_attributes({});
  state_->extra.set({});
}

Model Draft::finish() {
  if (state_->by_name.size() != state_->tensors.size()) index_names();
  state_->attributes.sort_keys();
  state_->extra.sort_keys();
  for (TensorSide& side : state_->tensor_sides) {
    side.attributes.sort_keys();
    side.extra.sort_keys();
  }
  for (PartSide& side : state_->part_sides) side.extra.sort_keys();
  if (!state_->is_view) mark_codes(*state_);  // a view has the marks of its model
  return Access::model(std::move(state_));
}

// Properties that few tensors have.

TensorSide& TensorDraft::side() {
  State& state = *draft_.state_;
  TensorRecord& record = state.tensors[at_];
  if (record.side == kNone) {
    record.side = static_cast<std::uint32_t>(state.tensor_sides.size());
    state.tensor_sides.emplace_back();
  }
  return state.tensor_sides[record.side];
}

TensorDraft& TensorDraft::name(std::string_view name) {
  draft_.state_->tensors[at_].name = draft_.refer(name);
  draft_.forget_runs();
  return *this;
}
TensorDraft& TensorDraft::dtype(DType dtype) {
  draft_.state_->tensors[at_].dtype = dtype;
  return *this;
}
TensorDraft& TensorDraft::id(std::optional<std::uint64_t> id) {
  side().id = id;
  return *this;
}
TensorDraft& TensorDraft::layout_name(std::string_view name) {
  side().layout_name = name;
  return *this;
}
TensorDraft& TensorDraft::type_name(std::string_view name) {
  side().type_name = name;
  return *this;
}
TensorDraft& TensorDraft::block_type(const BlockTypeInfo* type) {
  side().block_type = type;
  return *this;
}
TensorDraft& TensorDraft::stored(StoredWeight weight) {
  side().stored = std::make_shared<const StoredWeight>(std::move(weight));
  return *this;
}
TensorDraft& TensorDraft::undecoded(std::string why, Hint hint) {
  auto coded = side().coded ? std::make_shared<Coded>(*side().coded) : std::make_shared<Coded>();
  coded->why = std::move(why);
  coded->hint = std::move(hint);
  side().coded = std::move(coded);
  return *this;
}
TensorDraft& TensorDraft::write_as(DType dtype) {
  side().write_as = dtype;
  return *this;
}
TensorDraft& TensorDraft::attribute(std::string_view key, Value value) {
  side().attributes.add(std::string(key), std::move(value));
  return *this;
}
TensorDraft& TensorDraft::attributes(std::vector<Value::Entry> all) {
  side().attributes.set(std::move(all));
  return *this;
}
TensorDraft& TensorDraft::extra(std::string_view key, Value value) {
  side().extra.add(std::string(key), std::move(value));
  return *this;
}
TensorDraft& TensorDraft::extra(std::vector<Value::Entry> all) {
  side().extra.set(std::move(all));
  return *this;
}
TensorDraft& TensorDraft::unsupported(Finding why) {
  return unsupported(std::make_shared<const Finding>(std::move(why)));
}
TensorDraft& TensorDraft::unsupported(std::shared_ptr<const Finding> why) {
  TensorSide& mine = side();
  if (!mine.unsupported) mine.unsupported = std::move(why);
  return *this;
}
TensorDraft& TensorDraft::without_shape() {
  draft_.state_->tensors[at_].has_shape = false;
  return *this;
}

// Properties that few parts have.

PartSide& PartDraft::side() {
  State& state = *draft_.state_;
  PartRecord& record = state.parts[at_];
  if (record.side == kNone) {
    record.side = static_cast<std::uint32_t>(state.part_sides.size());
    state.part_sides.emplace_back();
  }
  return state.part_sides[record.side];
}

PartDraft& PartDraft::order(Order order) {
  draft_.state_->parts[at_].order = order;
  return *this;
}
PartDraft& PartDraft::strides(std::vector<std::int64_t> strides) {
  side().strides = std::move(strides);
  return *this;
}
PartDraft& PartDraft::make(
    std::function<void(const Context&, const std::function<bool(std::span<const std::byte>)>& sink)> make) {
  side().make = std::move(make);
  return *this;
}
PartDraft& PartDraft::elements(std::shared_ptr<const Elements> elements) {
  side().elements = std::move(elements);
  return *this;
}
PartDraft& PartDraft::cut(const Cut& cut) {
  side().cut = cut;
  return *this;
}
PartDraft& PartDraft::digest(std::string_view digest) {
  side().digest = digest;
  return *this;
}
PartDraft& PartDraft::dtype_name(std::string_view name) {
  side().dtype_name = name;
  return *this;
}
PartDraft& PartDraft::encoding(Encoding encoding) {
  draft_.state_->parts[at_].encoding = encoding;
  return *this;
}
PartDraft& PartDraft::encoding_name(std::string_view name) {
  side().encoding_name = name;
  return *this;
}
PartDraft& PartDraft::extra(std::string_view key, Value value) {
  side().extra.add(std::string(key), std::move(value));
  return *this;
}
PartDraft& PartDraft::length(std::uint64_t bytes) {
  PartRecord& record = draft_.state_->parts[at_];
  record.stored_length = record.size = bytes;
  return *this;
}
PartDraft& PartDraft::pull(Builder::Pull pull) {
  side().pull = std::move(pull);
  return *this;
}

}  // namespace weighbridge::core
