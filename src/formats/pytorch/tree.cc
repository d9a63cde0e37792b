// SPDX-License-Identifier: Apache-2.0
// Walks over the values of a pickle without recursion.
#include "formats/pytorch/adder.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/model/words.h"
#include "formats/pytorch/globals.h"

namespace weighbridge::pytorch {
namespace {

using wire::Pickle, wire::PickleKind;
using Ref = Pickle::Ref;

class Walk {
 public:
  Walk(const Pickle& pickle, const wire::PickleInput& input, const Limits& limits, Found& found)
      : pickle_(pickle),
        depth_(limits.depth),
        found_(found),
        budget_(pickle, limits),
        values_(pickle, input, budget_) {}

  WalkEnd run(std::string_view top) {
    top_ = top;
    visit(pickle_.root());
    while (!stack_.empty() && budget_.end == WalkEnd::done) {
      Frame& frame = stack_.back();
      path_.resize(frame.path);
      if (frame.next == frame.items.size()) {
        stack_.pop_back();
        continue;
      }
      const std::size_t i = frame.next++;
      named_ = stack_.size() > 1;
      push_name(frame.names.empty() ? std::to_string(i) : frame.names[i]);
      visit(frame.items[i]);
    }
    return budget_.end;
  }

 private:
  // A container whose walk is in progress.
  struct Frame {
    Ref ref;
    std::size_t path;  // length of its name
    std::vector<Ref> items;
    std::vector<std::string> names;  // of the items; empty: numbers
    std::size_t next = 0;
  };

  // A key may be empty, so an empty path does not mean that there is no name.
  void push_name(std::string_view name) {
    if (named_) path_ += '.';
    path_ += name;
    named_ = true;
  }
  std::string_view name() const { return named_ ? std::string_view(path_) : top_; }

  void visit(Ref ref) {
    if (!budget_.visit() || !budget_.text(path_.size())) return;
    ref = unwrapped(ref);
    if (auto rebuilt = rebuild(pickle_, ref)) return found_.tensor(name(), *rebuilt, ref);
    if (auto value = values_.plain(ref)) return found_.value(name(), *std::move(value), ref);
    if (budget_.end != WalkEnd::done) return;
    switch (pickle_.kind(ref)) {
      case PickleKind::dict: return enter_dict(ref, pickle_.items(ref));
      case PickleKind::tuple:
      case PickleKind::list:
      case PickleKind::set: return enter(ref, pickle_.items(ref), {});
      case PickleKind::object: return visit_object(ref);
      default: return found_.opaque(name(), ref, {});
    }
  }

  // TorchScript wraps a value to state its type: restore_type_tag(value, type).
  Ref unwrapped(Ref ref) const {
    for (unsigned n = 0; n < kValueDepth && pickle_.kind(ref) == PickleKind::object; ++n) {
      const Ref callee = pickle_.callee(ref), arguments = pickle_.arguments(ref);
      if (pickle_.kind(callee) != PickleKind::global || pickle_.kind(arguments) != PickleKind::tuple ||
          pickle_.tuple(arguments).empty() || holds_of(pickle_.module(callee), pickle_.name(callee)) != Holds::first)
        break;
      ref = pickle_.tuple(arguments)[0];
    }
    return ref;
  }

  void visit_object(Ref ref) {
    const Ref callee = pickle_.callee(ref);
    const Holds holds = pickle_.kind(callee) == PickleKind::global
                            ? holds_of(pickle_.module(callee), pickle_.name(callee))
                            : Holds::nothing;
    const auto state = values_.state(ref);
    if (holds == Holds::items || holds == Holds::state) {
      std::vector<Ref> items = pickle_.items(ref);
      if (holds == Holds::items && items.empty()) items = values_.pairs(ref);
      if (holds == Holds::state && state) {
        const auto more = pickle_.items(*state);
        items.insert(items.end(), more.begin(), more.end());
      }
      if (holds == Holds::items && state) visit_dict_state(*state);
      if (items.size() % 2 == 0) return enter_dict(ref, items);
    }
    if (holds == Holds::list) {
      const auto arguments = pickle_.arguments(ref);
      if (pickle_.kind(arguments) == PickleKind::tuple && pickle_.tuple(arguments).size() == 1) {
        const Ref inner = pickle_.tuple(arguments)[0];
        if (pickle_.kind(inner) == PickleKind::list || pickle_.kind(inner) == PickleKind::tuple)
          return enter(ref, pickle_.items(inner), {});
      }
    }
    if (holds == Holds::content && state)
      if (const auto inner = values_.member(*state, "_content")) return visit_inner(ref, *inner);
    // A module of torch.nn, of any class: lists what its state_dict() would have.
    if (state && values_.member(*state, "_parameters") && values_.member(*state, "_buffers") &&
        values_.member(*state, "_modules"))
      return enter_module(ref, *state);
    if (state && holds == Holds::script) return enter_dict(ref, pickle_.items(*state));
    found_.opaque(name(), ref, {});
  }

  void visit_inner(Ref outer, Ref inner) {
    if (pickle_.kind(inner) == PickleKind::dict) return enter_dict(outer, pickle_.items(inner));
    if (pickle_.kind(inner) == PickleKind::list) return enter(outer, pickle_.items(inner), {});
    found_.opaque(name(), outer, {});
  }

  // What a state_dict has besides its items: the versions of its modules, as one value, and attributes.
  void visit_dict_state(Ref state) {
    if (const auto metadata = values_.member(state, kMetadata)) visit_whole(std::string(kMetadata), *metadata);
    const auto attributes = values_.member(state, kAttributes);
    if (!attributes || pickle_.kind(*attributes) != PickleKind::dict) return;
    found_.attributes();
    const std::vector<Ref> pairs = pickle_.items(*attributes);
    for (std::size_t i = 0; i + 1 < pairs.size() && budget_.visit(); i += 2)
      visit_whole(values_.key(pairs[i]), pairs[i + 1]);
  }
  void visit_whole(std::string_view key, Ref ref) {
    const std::size_t length = path_.size();
    const bool was_named = named_;
    push_name(key);
    if (auto value = values_.whole(ref))
      found_.value(name(), *std::move(value), ref);
    else if (budget_.end == WalkEnd::done)
      found_.opaque(name(), ref, {});
    path_.resize(length);
    named_ = was_named;
  }

  void enter_module(Ref ref, Ref state) {
    std::vector<Ref> items;
    std::vector<std::string> names;
    for (const std::string_view key : {"_parameters", "_buffers", "_modules"}) {
      const auto part = values_.member(state, key);
      if (!part) continue;
      std::vector<Ref> pairs;
      if (pickle_.kind(*part) == PickleKind::dict || pickle_.kind(*part) == PickleKind::object)
        pairs = pickle_.items(*part);
      if (pairs.empty() && pickle_.kind(*part) == PickleKind::object) pairs = values_.pairs(*part);
      for (std::size_t i = 0; i + 1 < pairs.size(); i += 2) {
        if (pickle_.kind(pairs[i + 1]) == PickleKind::none) continue;  // an absent parameter or module
        names.push_back(values_.key(pairs[i]));
        items.push_back(pairs[i + 1]);
      }
    }
    enter(ref, std::move(items), std::move(names));
  }

  void enter_dict(Ref ref, const std::vector<Ref>& pairs) {
    std::vector<Ref> items;
    std::vector<std::string> names;
    items.reserve(pairs.size() / 2);
    names.reserve(pairs.size() / 2);
    // If a key is set twice, Python keeps the last value at the place of the first.
    std::map<std::pair<bool, std::string>, std::size_t> places;
    for (std::size_t i = 0; i + 1 < pairs.size(); i += 2) {
      std::string key = values_.key(pairs[i]);
      const bool text = pickle_.kind(pairs[i]) == PickleKind::text;
      if (const auto [place, is_new] = places.try_emplace({text, key}, items.size()); !is_new) {
        items[place->second] = pairs[i + 1];
        continue;
      }
      names.push_back(std::move(key));
      items.push_back(pairs[i + 1]);
    }
    if (items.empty()) {
      if (named_) found_.value(name(), Value::map({}), ref);
      return;
    }
    enter(ref, std::move(items), std::move(names));
  }

  void enter(Ref ref, std::vector<Ref> items, std::vector<std::string> names) {
    if (!budget_.visit(items.size())) return;
    if (stack_.size() >= depth_) {
      budget_.end = WalkEnd::depth;
      return;
    }
    if (std::ranges::any_of(stack_, [&](const Frame& frame) { return frame.ref == ref; }))
      return found_.opaque(name(), ref, "it contains itself");
    stack_.push_back({ref, path_.size(), std::move(items), std::move(names)});
  }

  const Pickle& pickle_;
  const std::uint32_t depth_;
  Found& found_;
  WalkBudget budget_;
  Values values_;
  std::string_view top_;
  std::string path_;
  bool named_ = false;  // the path is a name, if perhaps an empty one
  std::vector<Frame> stack_;
};

}  // namespace

WalkEnd walk(const Pickle& pickle, const wire::PickleInput& input, const Limits& limits, std::string_view top,
             Found& found) {
  return Walk(pickle, input, limits, found).run(top);
}

std::string spell_class(const Pickle& pickle, Ref ref) {
  if (pickle.kind(ref) == PickleKind::object) ref = pickle.callee(ref);
  switch (pickle.kind(ref)) {
    case PickleKind::global:
      if (pickle.computed(ref)) return "a class whose name is computed";
      return core::excerpt(std::string(pickle.module(ref)) + "." + std::string(pickle.name(ref)), 200);
    case PickleKind::object: return "what a call returns";
    case PickleKind::persistent: return "a persistent id";
    case PickleKind::extension: return "extension " + std::to_string(pickle.extension(ref));
    case PickleKind::buffer: return "a buffer that is not in the file";
    default: return "a container";
  }
}

}  // namespace weighbridge::pytorch
