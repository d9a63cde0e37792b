// SPDX-License-Identifier: Apache-2.0
// Views: a second index over the same payload.
#include "core/model/view.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/checked.h"
#include "base/fail.h"
#include "base/utf8.h"
#include "core/model/pattern.h"
#include "core/model/plan_text.h"
#include "core/model/state.h"
#include "core/model/words.h"
#include "weighbridge/text.h"

namespace weighbridge {
namespace {

void check_text(std::string_view what, std::string_view text) {
  if (!base::is_utf8(text))
    base::misuse("name", "the " + std::string(what) + " " + core::quoted(text) + " is not UTF-8");
}

// Throws for a pair of names; says its line if it is from a file.
[[noreturn]] void refuse_renaming(const Renaming& renaming, std::string_view what, std::string message) {
  if (renaming.line > 0) message = "line " + std::to_string(renaming.line) + ": " + message;
  base::misuse_of(renaming.file, what, std::move(message));
}

class Maker {
 public:
  Maker(const Model& model, const ViewOptions& options)
      : options_(options),
        model_(model),
        state_(*core::Access::state(model)),
        patterns_(options.patterns.begin(), options.patterns.end()),
        matched_(options.patterns.size()) {}

  Model run() {
    select();
    read_renames();
    draft_.begin_view(model_);
    for (const std::uint32_t i : chosen_) {
      const auto renamed = renames_.find(i);
      draft_.adopt(renamed != renames_.end() ? renamed->second : by_patterns(i), model_[i]);
    }
    if (const auto unused = std::ranges::find(matched_, false); unused != matched_.end() && !chosen_.empty())
      base::misuse("nothing-matches",
                   "no tensor's name matches the pattern " +
                       core::quoted(options_.patterns[static_cast<std::size_t>(unused - matched_.begin())]));
    if (const auto same = draft_.index_names(); !same.empty()) refuse_same(same[0].first, same[0].second);
    edit_attributes();
    if (options_.tokenizer) draft_.set_tokenizer(options_.tokenizer);
    return unselected_.empty() ? draft_.finish() : made();
  }

 private:
  // Keeps what `only` takes and `without` leaves. Each glob must match a tensor.
  void select() {
    std::vector<bool> taking(options_.only.size()), leaving(options_.without.size());
    const auto note = [](const std::vector<std::string>& globs, std::vector<bool>& used, std::string_view name) {
      bool any = false;
      for (std::size_t k = 0; k < globs.size(); ++k)
        if (matches_glob(globs[k], name)) any = used[k] = true;
      return any;
    };
    for (std::uint32_t i = 0; i < state_.tensors.size(); ++i) {
      const std::string_view name = state_.tensor_name(i);
      const bool taken = note(options_.only, taking, name) || options_.only.empty();
      const bool left = note(options_.without, leaving, name);
      if (taken && !left) chosen_.push_back(i);
    }
    for (const auto& [key, value] : tree()) {
      const bool taken = note(options_.only, taking, key) || options_.only.empty() || key == kVersions;
      if (note(options_.without, leaving, key) || !taken) unselected_.emplace(key);
    }
    if (state_.tensors.empty()) return;
    require_matches(options_.only, taking);
    require_matches(options_.without, leaving);
    if (chosen_.empty())
      base::misuse("nothing-left", "no tensor is left: every tensor" +
                                       std::string(options_.only.empty() ? "" : " that is selected") +
                                       " is also left out");
  }

  // The attributes to which the selection applies. The versions of modules belong to no name.
  static constexpr std::string_view kVersions = "_metadata";
  std::span<const Value::Entry> tree() const {
    return state_.attributes_in_tree ? std::span(state_.attributes.all) : std::span<const Value::Entry>();
  }
  // The view, and the attributes that it leaves out as changes.
  Model made() {
    std::vector<Item> changes;
    for (const auto& [key, value] : state_.attributes.all)
      if (unselected_.contains(key))
        changes.push_back({LossKind::attribute, core::indexed("attributes", key), "a value beside the tensors",
                           "left out: it is not selected"});
    return core::made_with(draft_.finish(), model_, {}, {}, std::move(changes), chosen_);
  }

  void require_matches(const std::vector<std::string>& globs, const std::vector<bool>& used) const {
    const auto unused = std::ranges::find(used, false);
    if (unused == used.end()) return;
    const std::string& glob = globs[static_cast<std::size_t>(unused - used.begin())];
    base::misuse("nothing-matches", "no tensor matches " + core::quoted(glob) + better_glob(glob));
  }

  // A word without wildcards is often part of a name.
  std::string better_glob(const std::string& glob) const {
    const auto name_of = [&](std::uint32_t i) { return state_.tensor_name(i); };
    const std::string inside = "*" + glob + "*";
    if (!glob.empty() && glob.find_first_of("*?[") == glob.npos)
      for (std::uint32_t i = 0; i < state_.tensors.size(); ++i)
        if (matches_glob(inside, name_of(i))) return ", " + core::quoted(inside) + " does";
    return core::near_text(glob, count(), name_of);
  }

  std::uint32_t count() const { return static_cast<std::uint32_t>(state_.tensors.size()); }

  void read_renames() {
    for (const Renaming& each : options_.rename) {
      const auto& [from, to, file, line] = each;
      if (!base::is_utf8(to)) refuse_renaming(each, "name", "the name " + core::quoted(to) + " is not UTF-8");
      if (to.empty()) refuse_renaming(each, "name", "the new name of " + core::quoted(from) + " is empty");
      const auto tensor = model_.find(from);
      if (!tensor)
        refuse_renaming(each, "no-such-tensor",
                        "there is no tensor " + core::quoted(from) + " to rename" +
                            core::near_text(from, count(), [&](std::uint32_t i) { return state_.tensor_name(i); }) +
                            (line > 0 && from.starts_with('#') ? "; a comment is # and a space" : ""));
      if (!renames_.emplace(tensor->index(), to).second)
        refuse_renaming(each, "rename", "the tensor " + core::quoted(from) + " is renamed twice");
    }
  }

  // The tensor's name after the patterns, valid until the next call.
  std::string_view by_patterns(std::uint32_t i) {
    std::string_view name = state_.tensor_name(i);
    for (std::size_t k = 0; k < patterns_.size(); ++k) {
      auto changed = patterns_[k].apply(name);
      if (!changed) continue;
      matched_[k] = true;
      name = changed_ = *std::move(changed);
      if (name.empty())
        base::misuse("name", "the pattern " + core::quoted(options_.patterns[k]) + " leaves nothing of the name " +
                                 core::quoted(state_.tensor_name(i)));
    }
    return name;
  }

  [[noreturn]] void refuse_same(std::uint32_t a, std::uint32_t b) const {
    base::misuse("duplicate-name", "the tensors " + core::quoted(state_.tensor_name(chosen_[a])) + " and " +
                                       core::quoted(state_.tensor_name(chosen_[b])) + " would both be called " +
                                       core::quoted(draft_.name(b)));
  }

  void edit_attributes() {
    std::unordered_map<std::string_view, Value> set;
    std::vector<std::string_view> in_order;
    std::unordered_set<std::string_view> unset;
    const auto once = [](bool first, std::string_view key) {
      if (!first)
        base::misuse("duplicate-attribute", "the attribute " + core::quoted(key) + " is set or unset more than once");
    };
    for (const auto& [key, value] : options_.set) {
      check_text("key", key);
      check_text("value", value);
      once(set.emplace(key, Value::text(value)).second, key);
      in_order.push_back(key);
    }
    for (const auto& [key, value] : options_.values) {
      check_text("key", key);
      if (const auto text = value.as_text()) check_text("value", *text);
      once(set.emplace(key, value).second, key);
      in_order.push_back(key);
    }
    if (set.contains(core::named_after_place(model_))) draft_.set_named_after_place({});
    for (const auto& [key, value] : set)
      if (const std::string folders = "hf." + std::string(key);
          state_.attributes.find(key) == nullptr && state_.attributes.find(folders) != nullptr)
        base::misuse("attribute-of-config", "config.json has this key: set " + core::quoted(folders) + ", not " +
                                                core::quoted(key) + ", which no program would read");
    const std::unordered_set<std::string_view> as_said(options_.unset.begin(), options_.unset.end());
    for (const std::string_view key : core::keys_meant(model_.attributes(), options_.unset)) {
      const bool by_glob = !as_said.contains(key);
      if (by_glob && set.contains(key)) continue;
      once(!set.contains(key) && unset.insert(key).second, key);
      if (state_.attributes.find(key) == nullptr)
        base::misuse(
            "no-such-attribute",
            "there is no attribute " + core::quoted(key) + " to unset" +
                core::near_text(key, static_cast<std::uint32_t>(state_.attributes.all.size()),
                                [&](std::uint32_t i) { return std::string_view(state_.attributes.all[i].first); }));
    }
    for (const auto& [key, value] : state_.attributes.all) {
      if (unset.contains(key) || unselected_.contains(key)) continue;
      const auto changed = set.find(key);
      draft_.set_attribute(key, changed != set.end() ? changed->second : value);
      if (changed != set.end()) set.erase(changed);
    }
    for (const std::string_view key : in_order)  // in the order given
      if (const auto added = set.find(key); added != set.end())
        draft_.set_attribute(std::string(key), std::move(added->second));
  }

  const ViewOptions& options_;
  const Model& model_;
  const core::State& state_;
  core::Draft draft_;
  std::vector<std::uint32_t> chosen_;
  std::unordered_set<std::string_view> unselected_;  // attributes
  std::unordered_map<std::uint32_t, std::string_view> renames_;
  const std::vector<core::Pattern> patterns_;
  std::vector<bool> matched_;  // by pattern
  std::string changed_;        // the last name that a pattern changed
};

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\v\f";
  const std::size_t begin = std::min(text.find_first_not_of(kBlanks), text.size());
  text.remove_prefix(begin);
  return text.substr(0, text.find_last_not_of(kBlanks) + 1);
}

// A name can begin with #, as those of hashes do.
bool is_comment(std::string_view line) { return line == "#" || line.starts_with("# ") || line.starts_with("#\t"); }

}  // namespace

bool ViewOptions::empty() const noexcept {
  return only.empty() && without.empty() && rename.empty() && patterns.empty() && set.empty() && values.empty() &&
         unset.empty() && !tokenizer;
}

void ViewOptions::rename_from(const Source& source, const Limits& limits) {
  const std::string text = core::whole_text(source, limits, "the file of names to change");
  std::uint64_t number = 0;
  std::string_view rest = text;
  if (constexpr std::string_view kMark = "\xEF\xBB\xBF"; rest.starts_with(kMark)) rest.remove_prefix(kMark.size());
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = trimmed(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    ++number;
    if (line.empty() || is_comment(line)) continue;
    auto pair = core::divided(line, line.find('\t') != line.npos ? '\t' : '=');
    const std::string from(trimmed(pair ? pair->first : "")), to(trimmed(pair ? pair->second : ""));
    if (from.empty() || to.empty())
      base::misuse_of(source.name(), "rename-file",
                      "line " + std::to_string(number) + " is not FROM=TO: " + core::quoted(core::excerpt(line)));
    rename.push_back({from, to, std::string(source.name()), number});
  }
}

Model view(const Model& model, const ViewOptions& options) {
  if (options.empty()) return model;
  // An empty Model has no state.
  return Maker(core::Access::state(model) != nullptr ? model : Builder().build(), options).run();
}

std::vector<std::string_view> core::keys_meant(const Attributes& attributes, std::span<const std::string> keys) {
  std::vector<std::string_view> out;
  std::unordered_set<std::string_view> known(keys.begin(), keys.end());
  for (const std::string& key : keys) {
    bool matched = false;
    if (attributes.find(key) == nullptr && key.find_first_of("*?[") != key.npos)
      for (const auto& [name, value] : attributes) {
        if (!matches_glob(key, name)) continue;
        matched = true;
        if (known.insert(name).second) out.push_back(name);
      }
    if (!matched) out.push_back(key);
  }
  return out;
}

namespace {

// The bits of one element, as they are stored. 0: not known.
std::uint64_t element_bits(const Part& part) {
  if (part.dtype() != DType::unknown) return info(part.dtype()).bits;
  const auto count = base::element_count(part.shape()), bits = base::checked_mul(part.size(), 8);
  return count && bits && *count > 0 && *bits % *count == 0 ? *bits / *count : 0;
}

void read_tensor_as(core::State& state, const Tensor& tensor, DType dtype) {
  const std::string what =
      "the tensor " + core::quoted(tensor.name()) + " cannot be read as " + std::string(name(dtype));
  if (!tensor.has_shape() || tensor.layout() != Layout::dense || tensor.part_count() != 1 ||
      tensor.block_type() != nullptr || tensor.part(0).encoding() == Encoding::unknown)
    base::misuse("read-as", what + ": it does not have one element of a fixed size for each number");
  const Part part = tensor.part(0);
  const std::uint64_t bits = element_bits(part), wanted = info(dtype).bits;
  if (bits != wanted && part.size() > 0)
    base::misuse("read-as", what + ", which has " + std::to_string(wanted) + " bits: its elements have " +
                                (bits == 0 ? "no fixed size" : std::to_string(bits) + " bits"));
  core::TensorRecord& record = state.tensors[tensor.index()];
  core::PartRecord& stored = state.parts[record.first_part];
  record.dtype = stored.dtype = dtype;
  if (record.side != core::kNone) {
    core::TensorSide& side = state.tensor_sides[record.side];
    side.type_name.clear();
    side.unsupported = nullptr;
  }
  if (stored.side == core::kNone) return;
  core::PartSide& side = state.part_sides[stored.side];
  side.dtype_name.clear();
  if (side.cut && side.cut->row == 0) side.cut->step = wanted / 8;
  if (side.elements) base::misuse("read-as", what + ": its elements are made when they are read");
}

}  // namespace

Model core::read_as(const Model& model, std::span<const std::string> options, std::vector<std::string>& names) {
  if (options.empty()) return model;
  auto state = std::make_shared<State>(*Access::state(model));
  for (const std::string& option : options) {
    const std::size_t at = option.rfind('=');
    const auto dtype = at == option.npos ? std::nullopt : dtype_from_any_name(std::string_view(option).substr(at + 1));
    if (!dtype || info(*dtype).bits % 8 != 0)
      base::misuse("option", "read-as takes GLOB=DTYPE, such as 'w=bf16', not " + quoted(option));
    const std::string glob = option.substr(0, at);
    const std::size_t before = names.size();
    for (const Tensor& tensor : model)
      if (matches_glob(glob, tensor.name())) {
        read_tensor_as(*state, tensor, *dtype);
        names.emplace_back(tensor.name());
      }
    if (names.size() == before) view(model, {.only = {glob}});  // throws: says what would match
  }
  return Access::model(std::move(state));
}

Model with_scheme(const Model& model, std::span<const std::string> options) {
  if (options.empty()) return model;
  auto state = std::make_shared<core::State>(*core::Access::state(model));
  for (const std::string& option : options) state->answers.push_back(schemes::answer_of(option));
  return core::Access::model(std::move(state));
}

Model core::view_without(const Model& model, std::span<const std::uint32_t> tensors) {
  const State& from = *Access::state(model);
  Draft draft;
  draft.begin_view(model);
  for (std::uint32_t i = 0; i < from.tensors.size(); ++i)
    if (!std::ranges::binary_search(tensors, i)) draft.adopt(from.tensor_name(i), model[i]);
  draft.index_names();
  draft.set_attributes(from.attributes.all);
  return draft.finish();
}

}  // namespace weighbridge
