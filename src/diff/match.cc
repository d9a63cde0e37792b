// SPDX-License-Identifier: Apache-2.0
// By name first. The remaining tensors are matched by a hash of their values, with `permuted` by one of their rows in
// any order, then guessed by names that differ in a prefix, and by shapes that no other tensor has.
#include "diff/steps.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/checked.h"
#include "base/fail.h"
#include "convert/naming.h"
#include "core/model/coded.h"
#include "core/model/words.h"
#include "core/writing/options.h"
#include "recipes/match.h"
#include "weighbridge/text.h"

namespace weighbridge::comparison {
namespace {

using By = TensorDiff::By;
using Indices = std::vector<std::uint32_t>;

constexpr std::string_view kNamings[] = {"llama"};
constexpr std::size_t kLongestName = 1024;  // how much of a name guesses look at
constexpr std::size_t kMaxGuesses = 1 << 15;
constexpr std::size_t kMaxPairs = 1 << 16;  // of tensors with one content, whose names are compared

// The model under llama.cpp's names, if it has others.
Model named(const Model& model, const std::string& naming) {
  if (naming.empty() || convert::needs_own_names(model, "slm")) return model;
  core::Derived out = convert::named_for_llama_cpp(model);
  if (!out.blockers.empty()) base::misuse("naming", out.blockers.front().to);
  return std::move(out.model);
}

Indices chosen(const Model& model, const DiffOptions& options, std::vector<bool>& used) {
  Indices out;
  for (std::uint32_t i = 0; i < model.size(); ++i) {
    bool taken = options.only.empty(), left = false;
    for (std::size_t k = 0; k < options.only.size(); ++k)
      if (matches_glob(options.only[k], model.name(i))) taken = used[k] = true;
    for (std::size_t k = 0; k < options.without.size(); ++k)
      if (matches_glob(options.without[k], model.name(i))) left = used[options.only.size() + k] = true;
    if (taken && !left) out.push_back(i);
  }
  return out;
}

// What two tensors must have in common to be equal by their values.
struct Form {
  std::uint64_t count;
  DType dtype;
  bool codes;                          // of a scheme, which are no values
  std::vector<std::uint64_t> shape{};  // if rows in any order are compared
  bool operator<(const Form& other) const {
    return std::tie(count, dtype, codes, shape) < std::tie(other.count, other.dtype, other.codes, other.shape);
  }
};

class Matcher {
 public:
  Matcher(const Selection& in, const DiffOptions& options, const Context& context)
      : in_(in), options_(options), context_(context), partner_(in.a.size()), taken_(in.b.size()) {}

  std::vector<Partners> run() {
    by_name();
    if (options_.match != Match::names) by_content();
    if (options_.match != Match::names && options_.permuted) by_content(true);
    if (options_.match == Match::guess) guess();
    if (options_.permuted) find_tied();
    std::vector<Partners> out;
    for (const std::uint32_t i : in_.chosen_a) {
      out.push_back({.a = i, .b = {}});
      if (partner_[i]) out.back().b = partner_[i]->first, out.back().by = partner_[i]->second;
      if (const auto tied = tied_a_.find(i); tied != tied_a_.end()) out.back().tied_to = in_.b.name(tied->second);
    }
    for (const std::uint32_t i : in_.chosen_b)
      if (!taken_[i]) {
        out.push_back({.a = {}, .b = i});
        if (const auto tied = tied_b_.find(i); tied != tied_b_.end()) out.back().tied_to = in_.a.name(tied->second);
      }
    return out;
  }

 private:
  void pair(std::uint32_t a, std::uint32_t b, By by) {
    partner_[a] = std::pair(b, by);
    taken_[b] = true;
  }
  Indices left_a() const {
    Indices out;
    for (const std::uint32_t i : in_.chosen_a)
      if (!partner_[i]) out.push_back(i);
    return out;
  }
  Indices left_b() const {
    Indices out;
    for (const std::uint32_t i : in_.chosen_b)
      if (!taken_[i]) out.push_back(i);
    return out;
  }

  void by_name() {
    for (const std::uint32_t i : in_.chosen_a) {
      const auto other = in_.b.find(in_.a.name(i));
      if (other && std::ranges::binary_search(in_.chosen_b, other->index())) pair(i, other->index(), By::name);
    }
  }

  // Tensors without unsupported() and with elements; with `rows`, those whose rows have hashes.
  std::optional<Form> form_of(const Tensor& tensor, bool rows) const {
    if (tensor.unsupported()) return std::nullopt;
    const Elements elements = elements_of(tensor);
    if (elements.count == 0 || is_too_sparse(elements, context_.limits)) return std::nullopt;
    if (rows && (core::is_codes(tensor) || !has_rows(elements))) return std::nullopt;
    if (rows) return Form{elements.count, elements.dtype, false, elements.shape};
    return Form{elements.count, hashed_as(elements.dtype), core::is_codes(tensor)};
  }
  std::set<Form> forms_of(const Model& model, const Indices& of, bool rows = false) const {
    std::set<Form> out;
    for (const std::uint32_t i : of)
      if (const auto form = form_of(model[i], rows)) out.insert(*form);
    return out;
  }

  using Key = std::tuple<std::uint64_t, std::uint64_t, Form>;  // two halves of a hash
  // The tensors whose form the other model has too, by their hashes.
  std::map<Key, Indices> hashed(const Model& model, const Indices& of, const std::set<Form>& wanted,
                                bool rows = false) const {
    std::vector<std::pair<std::uint32_t, Form>> read;
    core::Work work;
    std::uint64_t total = 0;
    for (const std::uint32_t i : of) {
      const auto form = form_of(model[i], rows);
      if (!form || !wanted.contains(*form)) continue;
      read.emplace_back(i, *form);
      add_work(work, elements_of(model[i]));
      for (const Part& part : model[i].parts()) total += part.size();
    }
    work.require(context_.limits);
    std::vector<codecs::Hash128> hashes(read.size());
    core::Progress progress(context_, total);
    core::executor_of(context_).for_each(read.size(), [&](std::uint64_t k) {
      const Tensor tensor = model[read[base::to_size(k)].first];
      const Elements elements = elements_of(tensor);
      hashes[base::to_size(k)] =
          rows ? hash_of_rows(elements, progress.inner()) : hash_values(elements, progress.inner());
      for (const Part& part : tensor.parts()) progress.add(part.size());
    });
    std::map<Key, Indices> out;
    for (std::size_t k = 0; k < read.size(); ++k)
      out[{hashes[k].high, hashes[k].low, read[k].second}].push_back(read[k].first);
    return out;
  }

  void by_content(bool rows = false) {
    const Indices a = left_a(), b = left_b();
    if (a.empty() || b.empty()) return;
    const auto from = hashed(in_.a, a, forms_of(in_.b, b, rows), rows);
    if (from.empty()) return;
    const auto to = hashed(in_.b, b, forms_of(in_.a, a, rows), rows);
    for (const auto& [key, ours] : from) {
      const auto theirs = to.find(key);
      if (theirs == to.end()) continue;
      // Of several with the same content, those of the same shape and the most similar names; of very many, in order.
      const bool in_order = theirs->second.size() > kMaxPairs / ours.size();
      for (std::size_t k = 0; k < ours.size(); ++k) {
        const std::uint32_t i = ours[k];
        std::optional<std::uint32_t> best;
        if (in_order && k < theirs->second.size()) best = theirs->second[k];
        for (const std::uint32_t j : in_order ? Indices() : theirs->second)
          if (!taken_[j] && (!best || likeness(i, j) > likeness(i, *best))) best = j;
        if (best) pair(i, *best, By::content);
      }
    }
  }

  // Of two tensors: the same shape, then how much of the ends of their names is the same.
  std::pair<bool, std::size_t> likeness(std::uint32_t i, std::uint32_t j) const {
    const std::string_view a = in_.a.name(i), b = in_.b.name(j);
    std::size_t same = 0;
    while (same < std::min({a.size(), b.size(), kLongestName}) && a[a.size() - 1 - same] == b[b.size() - 1 - same])
      ++same;
    return {shape_of(in_.a[i]) == shape_of(in_.b[j]), same};
  }

  void guess() {
    guess_prefix();
    guess_shapes();
  }

  // "", "model.", "model.layers.", of the first names that differ in them.
  static std::vector<std::string> prefixes(const Model& model, const Indices& of) {
    std::vector<std::string> out{""};
    for (std::size_t k = 0; k < of.size() && out.size() < 12; k += std::max<std::size_t>(1, of.size() / 8)) {
      const std::string_view name = model.name(of[k]);
      std::size_t at = 0;
      for (int depth = 0; depth < 3 && (at = name.find_first_of("./", at)) != name.npos && ++at < kLongestName; ++depth)
        if (std::ranges::find(out, name.substr(0, at)) == out.end()) out.emplace_back(name.substr(0, at));
    }
    return out;
  }

  void guess_prefix() {
    const Indices a = left_a(), b = left_b();
    if (a.empty() || b.empty() || a.size() > kMaxGuesses || b.size() > kMaxGuesses) return;
    std::unordered_map<std::string_view, std::uint32_t> names;
    for (const std::uint32_t j : b) names.emplace(in_.b.name(j), j);
    std::vector<std::pair<std::uint32_t, std::uint32_t>> best;
    for (const std::string& from : prefixes(in_.a, a))
      for (const std::string& to : prefixes(in_.b, b)) {
        if (from == to) continue;
        std::vector<std::pair<std::uint32_t, std::uint32_t>> found;
        for (const std::uint32_t i : a) {
          const std::string_view name = in_.a.name(i);
          if (!name.starts_with(from) || name.size() > kLongestName) continue;
          const auto there = names.find(to + std::string(name.substr(from.size())));
          if (there != names.end() && shape_of(in_.a[i]) == shape_of(in_.b[there->second]))
            found.emplace_back(i, there->second);
        }
        if (found.size() > best.size()) best = std::move(found);
      }
    for (const auto& [i, j] : best) pair(i, j, By::guess);
  }

  void guess_shapes() {
    const auto alone = [](const Model& model, const Indices& of) {
      std::map<std::vector<std::uint64_t>, std::optional<std::uint32_t>> out;
      for (const std::uint32_t i : of) {
        const auto [at, is_new] = out.try_emplace(shape_of(model[i]), i);
        if (!is_new) at->second.reset();
      }
      return out;
    };
    const Indices a = left_a(), b = left_b();
    if (a.empty() || b.empty() || a.size() > kMaxGuesses || b.size() > kMaxGuesses) return;
    const auto theirs = alone(in_.b, b);
    for (const auto& [shape, i] : alone(in_.a, a)) {
      const auto there = theirs.find(shape);
      if (i && !shape.empty() && there != theirs.end() && there->second) pair(*i, *there->second, By::guess);
    }
  }

  // For a tensor that only one model has: a tensor of the other one with the same content.
  void find_tied() {
    const auto find = [this](const Model& model, const Indices& left, const Model& other, const Indices& all,
                             std::map<std::uint32_t, std::uint32_t>& tied) {
      if (left.empty()) return;
      const auto from = hashed(model, left, forms_of(other, all));
      if (from.empty()) return;
      const auto to = hashed(other, all, forms_of(model, left));
      for (const auto& [key, ours] : from)
        if (const auto theirs = to.find(key); theirs != to.end())
          for (const std::uint32_t i : ours) tied.emplace(i, theirs->second.front());
    };
    find(in_.a, left_a(), in_.b, in_.chosen_b, tied_a_);
    find(in_.b, left_b(), in_.a, in_.chosen_a, tied_b_);
  }

  const Selection& in_;
  const DiffOptions& options_;
  const Context& context_;
  std::vector<std::optional<std::pair<std::uint32_t, By>>> partner_;
  std::vector<bool> taken_;
  std::map<std::uint32_t, std::uint32_t> tied_a_, tied_b_;
};

}  // namespace

Selection select(const Model& a, const Model& b, const DiffOptions& options, const Context& context) {
  if (!options.naming.empty()) core::check_word("naming", options.naming, kNamings);
  const auto numbers = [&](const Model& model) {
    return core::uses_of_codes(model).empty()
               ? model
               : recipes::numbers_of(model, DType::unknown, context, {.whole = false}).model;
  };
  // A GGUF that was made of a folder has other names than the folder.
  const auto is_folder_of = [](const Model& one, const Model& other) {
    return one.format() == "hf" && other.format() == "gguf" && other.attribute("general.architecture") != nullptr &&
           convert::has_known_names(one);
  };
  const bool known = options.naming.empty() && options.rename.empty() && (is_folder_of(a, b) || is_folder_of(b, a));
  const std::string naming = known ? "llama" : options.naming;
  Selection out{view(named(numbers(a), naming), {.rename = options.rename, .patterns = options.patterns}),
                named(numbers(b), naming),
                {},
                {}};
  std::vector<bool> used(options.only.size() + options.without.size());
  out.chosen_a = chosen(out.a, options, used);
  out.chosen_b = chosen(out.b, options, used);
  for (std::size_t k = 0; k < used.size() && out.a.size() + out.b.size() > 0; ++k)
    if (!used[k])
      base::misuse(
          "nothing-matches",
          "no tensor of either model matches " +
              core::quoted(k < options.only.size() ? options.only[k] : options.without[k - options.only.size()]));
  return out;
}

std::vector<Partners> match(const Selection& selection, const DiffOptions& options, const Context& context) {
  return Matcher(selection, options, context).run();
}

}  // namespace weighbridge::comparison

namespace weighbridge {

namespace {

constexpr core::Bound<DiffOptions> kBound[] = {
#define WB_DIFF_OPTION(MEMBER, ...) WB_BOUND(DiffOptions, MEMBER)
#include "core/writing/option_rows.def"
};

}  // namespace

void DiffOptions::add(std::string_view option, std::string_view text) {
  core::set<DiffOptions>(*this, OptionOf::diff, kBound, option, text);
}
void DiffOptions::add(std::string_view option, std::string_view key, std::string_view value) {
  if (option == "rename")
    rename.push_back({.from = std::string(key), .to = std::string(value)});
  else
    add(option, std::string(key) + "=" + std::string(value));
}

}  // namespace weighbridge
