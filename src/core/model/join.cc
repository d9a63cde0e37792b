// SPDX-License-Identifier: Apache-2.0
// Joins models: one more index over the same payload, like a view. Keeps the models, whose content rules still apply,
// and a list of what was left out, for plans.
#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/fail.h"
#include "core/model/plan_text.h"
#include "core/model/state.h"
#include "core/model/view.h"
#include "core/model/words.h"
#include "weighbridge/join.h"

namespace weighbridge {
namespace {

constexpr std::string_view kNames[] = {"error", "first", "last"};

class Joiner {
 public:
  Joiner(std::span<const Model> models, OnDuplicate on_duplicate, const Limits& limits)
      : on_duplicate_(on_duplicate),
        limits_(limits),
        composition_(std::make_shared<core::Composition>(core::Composition{.models = {models.begin(), models.end()}})),
        state_(std::make_shared<core::State>()) {
    composition_->selected = models.size();
  }

  Model run() {
    require_limits();
    state_->is_view = true;  // its tensors are not those of one file
    state_->composition = composition_;
    set_formats();
    for (std::uint32_t m = 0; m < models().size(); ++m) {
      begins_.push_back(static_cast<std::uint32_t>(state_->tensors.size()));
      const core::State* const from = core::Access::state(models()[m]);
      if (from == nullptr) continue;
      append(*from, m);
      if (m == 0) state_->answers = from->answers;  // all members were opened with the same
      for (const Value::Entry& entry : from->attributes.all) join_entry(attributes_, "attributes", entry, m);
      for (const Value::Entry& entry : from->extra.all) join_entry(extra_, "extra", entry, m);
      join_tokenizer(m);
      if (!from->composition) continue;
      composition_->losses.insert(composition_->losses.end(), from->composition->losses.begin(),
                                  from->composition->losses.end());
      composition_->changes.insert(composition_->changes.end(), from->composition->changes.begin(),
                                   from->composition->changes.end());
    }
    index_names();
    state_->attributes.set(attributes_.take());
    state_->attributes.sort_keys();
    state_->extra.set(extra_.take());
    state_->extra.sort_keys();
    join_places();
    core::mark_codes(*state_);  // codes and the tensors that complete them may be in different models
    join_incomplete();
    return core::Access::model(std::move(state_));
  }

 private:
  struct Kept {
    Value::Entry entry;
    std::uint32_t model = 0;
  };
  // Metadata by key, in the order in which the keys occur first.
  struct Metadata {
    std::vector<Kept> entries;
    std::map<std::string, std::size_t, std::less<>> by_key;

    std::vector<Value::Entry> take() {
      std::vector<Value::Entry> out;
      out.reserve(entries.size());
      for (Kept& kept : entries) out.push_back(std::move(kept.entry));
      return out;
    }
  };

  const std::vector<Model>& models() const { return composition_->models; }
  std::string called(std::size_t model) const { return core::called(models()[model], model); }
  std::string in_both(std::size_t a, std::size_t b) const {
    return core::quoted(called(a)) + " and in " + core::quoted(called(b));
  }

  void require_limits() const {
    std::uint64_t tensors = 0, header = 0;
    for (const Model& model : models()) {
      tensors += model.size();
      header = base::checked_add(header, std::uint64_t{core::retained_header(model).size()}).value_or(UINT64_MAX);
    }
    if (tensors > limits_.tensors)
      base::over_limit("tensors",
                       "the models have " + std::to_string(tensors) + " tensors together, more than the limit of " +
                           std::to_string(limits_.tensors),
                       tensors);
    if (header > limits_.header)
      base::over_limit("header",
                       "the models have " + std::to_string(header) +
                           " bytes of headers together, more than the limit of " + std::to_string(limits_.header),
                       header);
  }

  // Models of one format join to a model of that format, so that writers keep what only that format has. If there are
  // several formats, the name lists them.
  void set_formats() {
    std::vector<std::string_view> formats;
    std::string all;
    bool checked = true, one_version = true;
    for (const Model& model : models()) {
      checked = checked && model.checked();
      one_version = one_version && model.version() == models()[0].version();
      if (std::ranges::find(formats, model.format()) != formats.end()) continue;
      formats.push_back(model.format());
      all += (all.empty() || model.format().empty() ? "" : "+") + std::string(model.format());
    }
    state_->format = all;
    if (formats.size() == 1 && one_version) state_->version = models()[0].version();
    state_->checked = checked;
  }

  // Records that `kept` replaced `dropped`.
  void note(LossKind kind, std::string subject, std::string what, std::size_t dropped, std::size_t kept) {
    composition_->changes.push_back(
        {kind, std::move(subject), std::move(what),
         "taken from " + core::quoted(called(kept)) + ", not from " + core::quoted(called(dropped))});
  }

  void join_entry(Metadata& metadata, std::string_view what, const Value::Entry& entry, std::uint32_t m) {
    const auto [known, is_new] = metadata.by_key.emplace(entry.first, metadata.entries.size());
    if (is_new) return metadata.entries.push_back({entry, m});
    Kept& kept = metadata.entries[known->second];
    if (kept.entry.second == entry.second) return;
    const auto follows = [&](std::uint32_t of) { return core::named_after_place(models()[of]) == entry.first; };
    if (follows(m)) return;  // a value derived from a file's name is replaced
    if (!follows(kept.model)) {
      if (on_duplicate_ == OnDuplicate::error)
        base::misuse("duplicate-attribute",
                     "the attribute " + core::quoted(core::excerpt(entry.first)) + " is " +
                         core::quoted(core::excerpt(kept.entry.second.to_text())) + " in " +
                         core::quoted(called(kept.model)) + " and " +
                         core::quoted(core::excerpt(entry.second.to_text())) + " in " + core::quoted(called(m)),
                     base::option_hint("on-duplicate", "first"));
      const bool first = on_duplicate_ == OnDuplicate::first;
      note(what == "extra" ? LossKind::extra : LossKind::attribute, core::indexed(what, entry.first),
           (first ? entry : kept.entry).second.to_text(), first ? m : kept.model, first ? kept.model : m);
      if (first) return;
    }
    kept = {entry, m};
  }

  void join_tokenizer(std::uint32_t m) {
    const auto own = models()[m].tokenizer();
    if (!own) return;
    if (!tokenizer_) {
      tokenizer_ = m;
      state_->tokenizer = *own;
      return;
    }
    if (*models()[*tokenizer_].tokenizer() == *own) return;
    if (on_duplicate_ == OnDuplicate::error)
      base::misuse("duplicate-tokenizer", "there are different tokenizers in " + in_both(*tokenizer_, m),
                   base::option_hint("on-duplicate", "first"));
    const bool first = on_duplicate_ == OnDuplicate::first;
    note(LossKind::tokenizer, "tokenizer", "a tokenizer", first ? m : *tokenizer_, first ? *tokenizer_ : m);
    if (first) return;
    tokenizer_ = m;
    state_->tokenizer = *own;
  }

  std::uint32_t model_of(std::uint32_t tensor) const {
    return static_cast<std::uint32_t>(std::upper_bound(begins_.begin(), begins_.end(), tensor) - begins_.begin() - 1);
  }

  // Appends the tensors of a model.
  void append(const core::State& from, std::uint32_t model) {
    core::State& to = *state_;
    const std::uint32_t sources = place_sources(from),
                        dims = count(to.dims.size() + from.dims.size(), from.dims.size()),
                        parts = count(to.parts.size() + from.parts.size(), from.parts.size()),
                        sides = static_cast<std::uint32_t>(to.tensor_sides.size()),
                        part_sides = static_cast<std::uint32_t>(to.part_sides.size());
    std::vector<std::uint16_t> roles;
    for (const std::string& role : from.roles) roles.push_back(core::index_of_role(to.roles, role));
    to.dims.insert(to.dims.end(), from.dims.begin(), from.dims.end());
    for (core::PartRecord part : from.parts) {
      part.role = roles[part.role];
      part.dims += dims;
      if (part.has_extent) part.source += sources;
      if (part.side != core::kNone) part.side += part_sides;
      to.parts.push_back(part);
    }
    to.part_sides.insert(to.part_sides.end(), from.part_sides.begin(), from.part_sides.end());
    for (std::uint32_t i = 0; i < from.tensors.size(); ++i) {
      core::TensorRecord tensor = from.tensors[i];
      const std::string_view name = from.tensor_name(i);
      tensor.name = {count(to.arena.size() + name.size(), name.size()) | core::TextRef::kArena,
                     static_cast<std::uint32_t>(name.size())};
      to.arena.append(name);
      tensor.dims += dims;
      tensor.first_part += parts;
      if (tensor.side != core::kNone) tensor.side += sides;
      to.tensors.push_back(tensor);
      to.origins.push_back({model, i});
    }
    for (core::TensorSide side : from.tensor_sides) {
      if (side.unsupported) {
        const auto why = std::make_shared<Finding>(*side.unsupported);
        if (!why->file.empty())
          why->file.source = why->file.source.value_or(0) + sources;
        else if (from.asked != core::kNone)
          why->file = {std::string(from.sources[from.asked]->name()), from.asked + sources};
        side.unsupported = why;
      }
      to.tensor_sides.push_back(std::move(side));
    }
  }

  // The index where the `added` elements begin, if the total still fits an index.
  static std::uint32_t count(std::size_t all, std::size_t added) {
    if (all >= core::TextRef::kArena)
      base::misuse("too-large", "a model cannot hold more than 2^31 bytes of names, dimensions or parts");
    return static_cast<std::uint32_t>(all - added);
  }

  // The index of a model's first source; two views of one file share their sources.
  std::uint32_t place_sources(const core::State& from) {
    if (from.sources.empty()) return 0;
    auto& all = state_->sources;
    const auto end = static_cast<std::uint32_t>(all.size());
    const std::uint32_t begin = begin_of_.emplace(from.sources[0].get(), end).first->second;
    if (from.sources.size() <= all.size() - begin &&
        std::equal(from.sources.begin(), from.sources.end(), all.begin() + static_cast<std::ptrdiff_t>(begin)))
      return begin;
    all.insert(all.end(), from.sources.begin(), from.sources.end());
    return end;
  }

  void index_names() {
    const auto name = [&](std::uint32_t i) { return state_->tensor_name(i); };
    std::vector<std::string_view> names;
    names.reserve(state_->tensors.size());
    for (std::uint32_t i = 0; i < state_->tensors.size(); ++i) names.push_back(name(i));
    state_->by_name = core::order_of(names);
    std::vector<std::pair<std::uint32_t, std::uint32_t>> same;  // the later of two, and the earlier
    for (std::size_t i = 1; i < names.size(); ++i)
      if (names[state_->by_name[i]] == names[state_->by_name[i - 1]])
        same.emplace_back(state_->by_name[i], state_->by_name[i - 1]);
    if (same.empty()) return;
    std::ranges::sort(same);
    if (on_duplicate_ == OnDuplicate::error)
      base::misuse("duplicate-tensor",
                   "the tensor " + core::quoted(name(same[0].first)) + " is in " +
                       in_both(model_of(same[0].second), model_of(same[0].first)) +
                       (same.size() == 1   ? ""
                        : same.size() == 2 ? ", and so is 1 more"
                                           : ", and so are " + std::to_string(same.size() - 1) + " more"),
                   base::option_hint("on-duplicate", "first"));
    drop(same);
  }

  void drop(std::span<const std::pair<std::uint32_t, std::uint32_t>> same) {
    const bool first = on_duplicate_ == OnDuplicate::first;
    std::vector<std::uint32_t> place(state_->tensors.size(), 0);  // kNone: dropped
    for (const auto& [later, earlier] : same) {
      const std::uint32_t out = first ? later : earlier, m = model_of(out);
      const Tensor tensor = models()[m][out - begins_[m]];
      note(LossKind::name, core::subject(tensor), std::string(tensor.type_name()), m,
           model_of(first ? earlier : later));
      place[out] = core::kNone;
    }
    std::uint32_t kept = 0;  // parts of dropped tensors remain, unreferenced
    for (std::uint32_t i = 0; i < place.size(); ++i) {
      if (place[i] == core::kNone) continue;
      state_->tensors[kept] = state_->tensors[i];
      state_->origins[kept] = state_->origins[i];
      place[i] = kept++;
    }
    state_->tensors.resize(kept);
    state_->origins.resize(kept);
    std::erase_if(state_->by_name, [&](std::uint32_t i) { return place[i] == core::kNone; });
    for (std::uint32_t& i : state_->by_name) i = place[i];
  }

  // Keeps the other files of one model's folder; those of the other models are lost, as in a conversion from a folder
  // to a file.
  void join_places() {
    std::optional<std::size_t> from;
    for (std::size_t m = 0; m < models().size(); ++m) {
      const core::State* const state = core::Access::state(models()[m]);
      if (state == nullptr) continue;
      state_->left_behind.insert(state_->left_behind.end(), state->left_behind.begin(), state->left_behind.end());
      if (!state->named_after_place.empty())
        if (const auto kept = attributes_.by_key.find(state->named_after_place);
            kept != attributes_.by_key.end() && attributes_.entries[kept->second].model == m)
          state_->named_after_place = state->named_after_place;
      if (!state->folder_files.empty() && (!from || on_duplicate_ == OnDuplicate::last)) from = m;
    }
    if (!from) return;
    for (std::size_t m = 0; m < models().size(); ++m) {
      const core::State* const state = core::Access::state(models()[m]);
      if (state == nullptr || state->folder_files.empty()) continue;
      if (m == *from) {
        state_->place = state->place;
        state_->folder_files = state->folder_files;
        continue;
      }
      for (const core::FolderFile& file : state->folder_files)
        if (!file.held)
          composition_->losses.push_back(
              {file.weights ? LossKind::unsupported : LossKind::file, core::indexed("files", file.name),
               core::kFolderFile,
               "left out: the files beside the weights are those of " + core::quoted(called(*from))});
    }
  }

  // Incomplete models are complete again once every file that one of them lacks is among the joined models.
  void join_incomplete() {
    std::set<std::string, std::less<>> here;
    for (const auto& source : state_->sources) here.emplace(source->file_name());
    for (const Model& model : models()) {
      const core::Incomplete* const part = core::incomplete(model);
      if (part == nullptr || state_->incomplete) continue;
      const auto is_here = [&](const std::string& file) { return here.contains(file); };
      if (part->others.empty() || !std::ranges::all_of(part->others, is_here)) state_->incomplete = *part;
    }
  }

  const OnDuplicate on_duplicate_;
  const Limits& limits_;
  std::shared_ptr<core::Composition> composition_;
  std::shared_ptr<core::State> state_;
  std::vector<std::uint32_t> begins_;                          // of each model, its first tensor
  std::unordered_map<const Source*, std::uint32_t> begin_of_;  // where the sources of a model begin, by its first one
  Metadata attributes_, extra_;
  std::optional<std::uint32_t> tokenizer_;  // the model whose tokenizer it is
};

}  // namespace

std::string_view name(OnDuplicate one) noexcept { return kNames[static_cast<std::size_t>(one)]; }

std::optional<OnDuplicate> on_duplicate_from_name(std::string_view text) noexcept {
  const auto* const at = std::ranges::find(kNames, text);
  if (at == std::end(kNames)) return std::nullopt;
  return static_cast<OnDuplicate>(at - std::begin(kNames));
}

namespace {

// The files of a model in several, sorted; none for a view, of which two may be parts of one model.
std::vector<std::string_view> files_of(const Model& model) {
  const core::State* const state = core::Access::state(model);
  std::vector<std::string_view> out;
  if (state == nullptr || state->is_view || !state->in_several_files) return out;
  for (const auto& source : state->sources) out.push_back(source->path());
  std::ranges::sort(out);
  out.erase(std::unique(out.begin(), out.end()), out.end());  // the one that was opened may be there twice
  return !out.empty() && out[0].empty() ? std::vector<std::string_view>() : out;
}

}  // namespace

Model join(std::span<const Model> models, OnDuplicate on_duplicate, const Limits& limits) {
  std::vector<Model> once;
  std::set<std::vector<std::string_view>> seen;
  for (const Model& model : models)
    if (auto files = files_of(model); files.size() < 2 || seen.insert(std::move(files)).second) once.push_back(model);
  if (once.size() == 1) return once[0];
  return Joiner(once, on_duplicate, limits).run();
}

namespace core {

std::string called(const Model& model, std::size_t number) {
  const State* const state = Access::state(model);
  if (state != nullptr && state->asked != kNone) return std::string(state->sources[state->asked]->name());
  if (state != nullptr && state->place) return std::string(state->place->name());
  if (state != nullptr && !state->sources.empty() && !state->sources[0]->path().empty())
    return std::string(state->sources[0]->name());  // not "<memory>", which several can be
  return "input " + std::to_string(number + 1);
}

std::vector<Model> members_of(const Model& model) {
  const State* const state = Access::state(model);
  if (state == nullptr || !state->composition) return {model};
  const std::vector<Model>& models = state->composition->models;
  std::vector<std::vector<std::uint32_t>> taken(state->composition->selected);
  for (const Origin& origin : state->origins)
    if (origin.model != kNone) taken[origin.model].push_back(origin.tensor);
  std::vector<Model> out;
  const auto add = [&](const Model& one) {
    for (Model& each : members_of(one)) out.push_back(std::move(each));
  };
  for (std::size_t m = 0; m < models.size(); ++m) {
    const State* const from = Access::state(models[m]);
    if (from == nullptr || m >= taken.size()) {
      add(models[m]);
      continue;
    }
    Draft draft;
    draft.begin_view(models[m]);
    for (const std::uint32_t i : taken[m]) draft.adopt(from->tensor_name(i), models[m][i]);
    draft.index_names();
    draft.set_attributes(from->attributes.all);
    add(draft.finish());
  }
  return out;
}

std::span<const Item> losses_of_making(const Model& model) noexcept {
  const State* const state = Access::state(model);
  return state != nullptr && state->composition ? std::span<const Item>(state->composition->losses)
                                                : std::span<const Item>();
}
std::span<const Item> changes_of_making(const Model& model) noexcept {
  const State* const state = Access::state(model);
  return state != nullptr && state->composition ? std::span<const Item>(state->composition->changes)
                                                : std::span<const Item>();
}

Model made_with(const Model& of, const Model& from, std::span<const Model> others, std::vector<Item> losses,
                std::vector<Item> changes, std::span<const std::uint32_t> tensors) {
  auto state = std::make_shared<State>(*Access::state(of));
  auto composition = std::make_shared<Composition>(Composition{.models = {from}, .selected = 1});
  composition->models.insert(composition->models.end(), others.begin(), others.end());
  const auto behind = [](std::span<const Item> first, std::vector<Item> second) {
    std::vector<Item> all(first.begin(), first.end());
    all.insert(all.end(), std::move_iterator(second.begin()), std::move_iterator(second.end()));
    return all;
  };
  composition->losses = behind(losses_of_making(from), std::move(losses));
  composition->changes = behind(changes_of_making(from), std::move(changes));
  state->composition = std::move(composition);
  state->origins.clear();
  for (std::uint32_t i = 0; i < state->tensors.size(); ++i) {
    const std::uint32_t origin = tensors.empty() ? i : tensors[i];  // kNone: of one of the others
    state->origins.push_back({origin == kNone ? kNone : 0, origin});
  }
  return Access::model(std::move(state));
}

}  // namespace core
}  // namespace weighbridge
