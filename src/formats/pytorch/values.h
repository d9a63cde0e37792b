// SPDX-License-Identifier: Apache-2.0
// The plain values in a pickle: numbers, texts, lists of them, and objects of harmless classes. Knows where such an
// object has its content, and bounds a walk over values by a budget.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/reading/budget.h"
#include "formats/pytorch/layout.h"
#include "weighbridge/context.h"
#include "weighbridge/value.h"
#include "wire/pickle.h"

namespace weighbridge::pytorch {

enum class WalkEnd : std::uint8_t {
  done,
  depth,   // containers nest deeper than Limits::depth
  names,   // names or values are many times longer than the pickle
  memory,  // values take more than Limits::memory
};

// Remaining budget of a walk over a pickle. A call returns false at a limit; `end` says which.
class WalkBudget {
 public:
  WalkBudget(const wire::Pickle&, const Limits&);
  bool visit(std::uint64_t values = 1) { return spend(visits_, values, 1, WalkEnd::names); }
  bool text(std::uint64_t bytes) { return spend(text_, bytes, 1, WalkEnd::names); }
  // Of `values` in lists.
  bool values(std::uint64_t values) { return spend(memory_, values, kValueBytes, WalkEnd::memory); }
  void give_back(std::uint64_t values) { memory_.give_back(values, kValueBytes); }

  WalkEnd end = WalkEnd::done;

 private:
  static constexpr std::uint64_t kValueBytes = 128;  // about
  bool spend(core::Budget& from, std::uint64_t n, std::uint64_t each, WalkEnd why) {
    const bool left = from.take(n, each);
    if (!left) end = why;
    return left;
  }
  core::Budget visits_, text_, memory_;
};

class Values {
 public:
  using Ref = wire::Pickle::Ref;
  Values(const wire::Pickle& pickle, const wire::PickleInput& input, WalkBudget& budget)
      : pickle_(pickle), input_(input), budget_(budget) {}

  // A number, text or other scalar, or nested lists of them. nullopt: anything else.
  std::optional<Value> plain(Ref ref, unsigned depth = 0);
  // The same, also with dictionaries.
  std::optional<Value> whole(Ref ref, unsigned depth = 0);
  // A key of a dictionary as a part of a name.
  std::string key(Ref ref, unsigned depth = 0);

  // The state of an object if it is a dictionary, or (a dictionary, more).
  std::optional<Ref> state(Ref ref) const;
  // The value of a key.
  std::optional<Ref> member(Ref dict, std::string_view key);
  // Keys and values in the arguments of an object: OrderedDict([[key, value], ...]), as protocol 2 may have it;
  // defaultdict(factory, {...}); Counter({...}).
  std::vector<Ref> pairs(Ref ref);

 private:
  std::optional<Value> scalar(Ref ref, unsigned depth);
  std::optional<std::string> read_string(Ref ref);
  std::optional<std::string> read_bytes(Ref ref);
  std::optional<Value> string_value(Ref ref, bool text);
  std::optional<Value> object_value(Ref ref, unsigned depth);
  std::optional<Value> date(std::string_view name, std::span<const Ref> arguments);
  std::optional<Value> numpy_scalar(std::span<const Ref> arguments);
  std::optional<Value> integers(Ref ref);
  std::optional<Value> plain_list(Ref ref, unsigned depth);
  std::optional<Value> whole_list(Ref ref, unsigned depth);
  bool rebuild_would(Ref ref) const;

  const wire::Pickle& pickle_;
  const wire::PickleInput& input_;
  WalkBudget& budget_;
};

}  // namespace weighbridge::pytorch
