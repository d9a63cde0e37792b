// SPDX-License-Identifier: Apache-2.0
// The state of empty handles, and accessors of a finished model that are not public.
#include "core/model/state.h"

#include <algorithm>

#include "base/fail.h"
#include "base/order.h"

namespace weighbridge::core {

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

std::optional<std::span<const std::byte>> Mappings::find(std::uint32_t part) const {
  const std::lock_guard lock(mutex_);
  const auto found = all_.find(part);
  if (found == all_.end()) return std::nullopt;
  return found->second.span;
}

std::span<const std::byte> Mappings::keep(std::uint32_t part, Bytes bytes) const {
  const std::lock_guard lock(mutex_);
  return all_.try_emplace(part, std::move(bytes)).first->second.span;
}

void Entries::set(std::vector<Value::Entry> entries) {
  all = std::move(entries);
  by_key.clear();
}

void Entries::sort_keys() {
  constexpr std::size_t kFew = 16;
  if (all.size() <= kFew || by_key.size() == all.size()) return;
  by_key = base::order_by(all.size(), [&](std::uint32_t i) { return std::string_view(all[i].first); });
}

const Value* Entries::find(std::string_view key) const noexcept { return core::find(all, by_key, key); }

const Value* find(std::span<const Value::Entry> all, std::span<const std::uint32_t> by_key,
                  std::string_view key) noexcept {
  if (by_key.empty()) return weighbridge::find(all, key);
  const auto at =
      std::ranges::lower_bound(by_key, key, {}, [&](std::uint32_t i) { return std::string_view(all[i].first); });
  return at != by_key.end() && all[*at].first == key ? &all[*at].second : nullptr;
}

std::optional<std::uint32_t> State::find(std::string_view name) const noexcept {
  const auto at = std::lower_bound(by_name.begin(), by_name.end(), name,
                                   [&](std::uint32_t i, std::string_view wanted) { return tensor_name(i) < wanted; });
  if (at == by_name.end() || tensor_name(*at) != name) return std::nullopt;
  return *at;
}

std::span<const std::uint32_t> by_name(const Model& model) noexcept {
  const State* const state = Access::state(model);
  return state ? std::span<const std::uint32_t>(state->by_name) : std::span<const std::uint32_t>{};
}

std::string_view retained_header(const Model& model) noexcept {
  const State* const state = Access::state(model);
  return state ? state->header.text() : std::string_view{};
}

bool is_view(const Model& model) noexcept {
  const State* const state = Access::state(model);
  return state && state->is_view;
}

DType write_as(const Tensor& tensor) noexcept {
  const TensorRecord& record = Access::record(tensor);
  return record.side == kNone ? DType::unknown : Access::state(tensor).tensor_sides[record.side].write_as;
}

std::string_view named_after_place(const Model& model) noexcept {
  const State* const state = Access::state(model);
  return state ? std::string_view(state->named_after_place) : std::string_view{};
}

std::span<const FolderFile> folder_files(const Model& model) noexcept {
  const State* const state = Access::state(model);
  return state && state->place ? std::span<const FolderFile>(state->folder_files) : std::span<const FolderFile>{};
}

std::span<const LeftBehind> left_behind(const Model& model) noexcept {
  const State* const state = Access::state(model);
  return state ? std::span<const LeftBehind>(state->left_behind) : std::span<const LeftBehind>{};
}
bool has_values_beside(const Model& model) noexcept {
  const State* const state = Access::state(model);
  return state != nullptr && state->attributes_in_tree;
}

const Incomplete* incomplete(const Model& model) noexcept {
  const State* const state = Access::state(model);
  return state != nullptr && state->incomplete ? &*state->incomplete : nullptr;
}

void require_whole(const Model& model, bool allow_part, std::string_view rule) {
  const Incomplete* const part = incomplete(model);
  if (part == nullptr || allow_part) return;
  base::unsupported(rule, "this is only a part of a model: " + part->why, base::option_hint("allow", "part"));
}

std::shared_ptr<const Source> open_folder_file(const Model& model, std::string_view name) {
  const State* const state = Access::state(model);
  return state && state->place ? state->place->open(name) : nullptr;
}

const Source& source_of(const Part& part) noexcept { return *Access::state(part).sources[Access::record(part).source]; }

}  // namespace weighbridge::core
