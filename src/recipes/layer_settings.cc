// SPDX-License-Identifier: Apache-2.0
// Names are looked up, so that a config may list every layer; patterns are tried, up to a limit of work.
#include "recipes/layer_settings.h"

#include <algorithm>

#include "weighbridge/error.h"
#include "weighbridge/text.h"

namespace weighbridge::recipes {
namespace {

using By = schemes::LayerSettings::By;

constexpr std::uint64_t kMaxWork = std::uint64_t{1} << 28;  // characters of names times those of patterns
constexpr std::size_t kMaxPatterns = 256;                   // regular expressions, which take memory
constexpr std::size_t kMaxModules = 16;  // components of a name, of which each sequence may be the name of a module

// Modules around a language model, which the names in a config may have or not.
std::string_view without_shell(std::string_view name) {
  for (bool more = true; more;) {
    more = false;
    for (const std::string_view shell : {"model.", "language_model.", "text_model.", "base_model.", "thinker."})
      if (name.starts_with(shell)) {
        name.remove_prefix(shell.size());
        more = true;
      }
  }
  return name;
}

// As Pattern takes it: from the beginning, as Python's re.match().
std::string as_pattern(std::string_view regex) {
  std::string out = "s/^(?:";
  for (std::size_t i = 0; i < regex.size(); ++i) {
    if (regex[i] == '/') out += '\\';
    out += regex[i];
    if (regex[i] == '\\' && i + 1 < regex.size()) out += regex[++i];
  }
  return out + ")/x/";
}

}  // namespace

LayersOfConfig::LayersOfConfig(schemes::Config config) : config_(std::move(config)), left_(kMaxWork) {
  const auto width = [&](std::uint64_t bits) {
    if (bits > 0 && std::ranges::find(widths_, bits) == widths_.end() && widths_.size() < 8) widths_.push_back(bits);
  };
  width(config_.all.bits);
  for (std::size_t i = 0; i < config_.layers.size(); ++i) {
    const schemes::LayerSettings& each = config_.layers[i];
    width(each.settings.bits);
    if (each.by == By::name)
      if (auto& same = names_[std::string(without_shell(each.pattern))]; same.size() < kMaxModules) same.push_back(i);
    if (each.by == By::glob) globs_.push_back(i);
    if (each.by == By::type && types_.size() < kMaxModules) types_.push_back(i);
    if (each.by != By::regex) continue;
    if (patterns_.size() == kMaxPatterns) known_ = false;
    if (!known_) break;
    try {
      patterns_.emplace_back(core::Pattern(as_pattern(each.pattern)), i);
    } catch (const Error&) {
      known_ = false;
    }
  }
}

LayersOfConfig::Said LayersOfConfig::of(std::string_view layer) {
  Said out{.settings = config_.all, .known = known_};
  std::vector<std::size_t> found = types_;
  // Exclusions may name a module above, so that each sequence of components is looked up.
  const std::string_view inner = without_shell(layer);
  std::vector<std::size_t> begins{0};
  for (std::size_t i = 0; i < inner.size() && begins.size() < kMaxModules; ++i)
    if (inner[i] == '.') begins.push_back(i + 1);
  std::vector<std::size_t> named;
  for (std::size_t from = 0; from < begins.size() && !names_.empty(); ++from)
    for (std::size_t to = from + 1; to <= begins.size(); ++to) {
      const bool last = to == begins.size();
      const std::size_t end = last ? inner.size() : begins[to] - 1;
      const auto at = names_.find(std::string(inner.substr(begins[from], end - begins[from])));
      if (at == names_.end()) continue;
      for (const std::size_t i : at->second)
        if ((from == 0 && last) || config_.layers[i].excluded) named.push_back(i);
    }
  const auto work = [&](std::size_t i) {
    const std::string& pattern = config_.layers[i].pattern;  // repetitions are written out
    const std::uint64_t steps = pattern.find('{') == pattern.npos ? pattern.size() + 1 : 1000;
    const std::uint64_t cost = (layer.size() + 1) * steps;
    out.known = out.known && cost <= left_;
    left_ -= std::min(left_, cost);
    return left_ > 0;
  };
  if (left_ == 0) out.known = false;
  const bool able = left_ > 0;
  for (std::size_t k = 0; able && k < globs_.size(); ++k)
    if (const std::size_t i = globs_[k]; work(i) && matches_glob(config_.layers[i].pattern, layer)) found.push_back(i);
  for (const auto& [pattern, i] : patterns_) try {
      if (able && work(i) && pattern.apply(layer)) found.push_back(i);
    } catch (const Error&) {
      out.known = false;
    }
  found.insert(found.end(), named.begin(), named.end());
  for (const std::size_t i : found) {
    out.excluded = out.excluded || config_.layers[i].excluded;
    schemes::take_settings(out.settings, config_.layers[i].settings);
  }
  return out;
}

}  // namespace weighbridge::recipes
