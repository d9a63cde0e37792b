// SPDX-License-Identifier: Apache-2.0
// Views: a second index over the same payload.
#include "core/view.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/checked.h"
#include "base/fail.h"
#include "base/utf8.h"
#include "core/nearest.h"
#include "core/state.h"
#include "core/words.h"
#include "weighbridge/text.h"

namespace weighbridge {
namespace {

constexpr std::size_t kMostNear = 3;

void check_text(std::string_view what, std::string_view text) {
  if (!base::is_utf8(text))
    base::misuse("name", "the " + std::string(what) + " " + core::quoted(text) + " is not UTF-8");
}

// "; the nearest is ..." or empty.
template <class NameOf> std::string near_text(std::string_view wanted, std::size_t count, NameOf name_of) {
  std::string out;
  for (const std::uint32_t i : core::nearest(wanted, static_cast<std::uint32_t>(count), kMostNear, name_of))
    out += (out.empty() ? "; the nearest is " : ", ") + core::quoted(name_of(i));
  return out;
}

class Maker {
 public:
  Maker(const Model& model, const ViewOptions& options)
      : options_(options), model_(model), state_(*core::Access::state(model)) {}

  Model run() {
    select();
    read_renames();
    draft_.begin_view(model_);
    for (const std::uint32_t i : chosen_) {
      const auto renamed = renames_.find(i);
      draft_.adopt(renamed != renames_.end() ? renamed->second : state_.tensor_name(i), model_[i]);
    }
    if (const auto same = draft_.index_names(); !same.empty()) refuse_same(same[0].first, same[0].second);
    edit_attributes();
    if (options_.tokenizer) draft_.set_tokenizer(options_.tokenizer);
    return draft_.finish();
  }

 private:
  void select() {
    std::vector<bool> used(options_.only.size(), options_.only.empty());
    for (std::uint32_t i = 0; i < state_.tensors.size(); ++i) {
      const std::string_view name = state_.tensor_name(i);
      bool taken = options_.only.empty();
      for (std::size_t k = 0; k < options_.only.size(); ++k)
        if (matches_glob(options_.only[k], name)) taken = used[k] = true;
      const auto matches = [&](const std::string& glob) { return matches_glob(glob, name); };
      if (taken && std::ranges::none_of(options_.without, matches)) chosen_.push_back(i);
    }
    const auto unused = std::ranges::find(used, false);
    if (unused == used.end()) return;
    const std::string& glob = options_.only[static_cast<std::size_t>(unused - used.begin())];
    base::misuse("nothing-matches",
                 "no tensor matches " + core::quoted(glob) +
                     near_text(glob, state_.tensors.size(), [&](std::uint32_t i) { return state_.tensor_name(i); }));
  }

  void read_renames() {
    for (const auto& [from, to] : options_.rename) {
      check_text("name", to);
      const auto tensor = model_.find(from);
      if (!tensor)
        base::misuse("no-such-tensor", "there is no tensor " + core::quoted(from) + " to rename" +
                                           near_text(from, state_.tensors.size(),
                                                     [&](std::uint32_t i) { return state_.tensor_name(i); }));
      if (!renames_.emplace(tensor->index(), to).second)
        base::misuse("rename", "the tensor " + core::quoted(from) + " is renamed twice");
    }
  }

  [[noreturn]] void refuse_same(std::uint32_t a, std::uint32_t b) const {
    base::misuse("duplicate-name", "the tensors " + core::quoted(state_.tensor_name(chosen_[a])) + " and " +
                                       core::quoted(state_.tensor_name(chosen_[b])) + " would both be called " +
                                       core::quoted(draft_.name(b)));
  }

  void edit_attributes() {
    std::unordered_map<std::string_view, const std::string*> set;
    std::unordered_set<std::string_view> unset;
    const auto once = [](bool first, std::string_view key) {
      if (!first)
        base::misuse("duplicate-attribute", "the attribute " + core::quoted(key) + " is set or unset more than once");
    };
    for (const auto& [key, value] : options_.set) {
      check_text("key", key);
      check_text("value", value);
      once(set.emplace(key, &value).second, key);
    }
    for (const std::string& key : options_.unset) {
      once(!set.contains(key) && unset.insert(key).second, key);
      const auto has_key = [&](const Value::Entry& entry) { return entry.first == key; };
      if (std::ranges::none_of(state_.attributes, has_key))
        base::misuse("no-such-attribute", "there is no attribute " + core::quoted(key) + " to unset" +
                                              near_text(key, state_.attributes.size(), [&](std::uint32_t i) {
                                                return std::string_view(state_.attributes[i].first);
                                              }));
    }
    for (const auto& [key, value] : state_.attributes) {
      if (unset.contains(key)) continue;
      const auto changed = set.find(key);
      draft_.set_attribute(key, changed != set.end() ? Value::text(*changed->second) : value);
      if (changed != set.end()) set.erase(changed);
    }
    for (const auto& [key, value] : options_.set)  // in the order given
      if (set.contains(key)) draft_.set_attribute(key, Value::text(value));
  }

  const ViewOptions& options_;
  const Model& model_;
  const core::State& state_;
  core::Draft draft_;
  std::vector<std::uint32_t> chosen_;
  std::unordered_map<std::uint32_t, std::string_view> renames_;
};

// Both sides of the first `divider`; the left one must not be empty.
std::optional<std::pair<std::string, std::string>> divided(std::string_view text, char divider) {
  const std::size_t at = text.find(divider);
  if (at == std::string_view::npos || at == 0) return std::nullopt;
  return std::pair(std::string(text.substr(0, at)), std::string(text.substr(at + 1)));
}

bool is_comment(std::string_view line) { return line == "#" || line.starts_with("# "); }

}  // namespace

bool ViewOptions::empty() const noexcept {
  return only.empty() && without.empty() && rename.empty() && set.empty() && unset.empty() && !tokenizer;
}

void ViewOptions::add(std::string_view option, std::string_view text) {
  const auto pair = [&](const char* form) {
    auto made = divided(text, '=');
    if (!made) base::misuse("option", std::string(option) + " takes " + form + ", not " + core::quoted(text));
    return *std::move(made);
  };
  if (option == "only")
    only.emplace_back(text);
  else if (option == "without")
    without.emplace_back(text);
  else if (option == "rename")
    rename.push_back(pair("FROM=TO"));
  else if (option == "set")
    set.push_back(pair("KEY=VALUE"));
  else if (option == "unset")
    unset.emplace_back(text);
  else
    base::misuse("option", "there is no option " + core::quoted(option));
}

void ViewOptions::rename_from(const Source& source, const Limits& limits) {
  if (source.size() > limits.header)
    base::over_limit("header",
                     "the file of names to change has " + std::to_string(source.size()) +
                         " bytes, more than the limit of " + std::to_string(limits.header),
                     source.size());
  std::string text(base::to_size(source.size()), '\0');
  source.read_at(0, std::as_writable_bytes(std::span(text)));
  std::size_t number = 0;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    ++number;
    if (line.empty() || is_comment(line)) continue;
    auto pair = divided(line, line.find('\t') != line.npos ? '\t' : '=');
    if (!pair)
      base::misuse_of(source.name(), "rename-file",
                      "line " + std::to_string(number) + " is not FROM=TO: " + core::quoted(core::excerpt(line)));
    rename.push_back(*std::move(pair));
  }
}

Model view(const Model& model, const ViewOptions& options) {
  if (options.empty()) return model;
  // An empty Model has no state.
  return Maker(core::Access::state(model) != nullptr ? model : Builder().build(), options).run();
}

Model core::view_without(const Model& model, std::span<const std::uint32_t> tensors) {
  const State& from = *Access::state(model);
  Draft draft;
  draft.begin_view(model);
  for (std::uint32_t i = 0; i < from.tensors.size(); ++i)
    if (!std::ranges::binary_search(tensors, i)) draft.adopt(from.tensor_name(i), model[i]);
  draft.index_names();
  draft.set_attributes(from.attributes);
  return draft.finish();
}

}  // namespace weighbridge
