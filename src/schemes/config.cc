// SPDX-License-Identifier: Apache-2.0
// Reads one JSON object. What is not JSON says nothing.
#include <algorithm>
#include <array>
#include <utility>

#include "schemes/recognize.h"
#include "wire/json_reader.h"

namespace weighbridge::schemes {
namespace {

constexpr std::size_t kMaxConfigBytes = std::size_t{4}
                                        << 20;  // bytes of a config that are read; far more than real ones have
constexpr int kDeepest = 6;                     // objects within objects, read by recursion; deeper than real ones

constexpr std::array<std::string_view, 3> kConfigs{"quantization_config", "compression_config", "quantization"};
// Configs of a part of a model with a vision tower and the like.
constexpr std::array<std::string_view, 5> kParts{"text_config", "llm_config", "language_config", "thinker_config",
                                                 "language_model_config"};
constexpr std::array<std::string_view, 2> kDtypes{"dtype", "torch_dtype"};

// The words for the same thing in the configs of the libraries.
constexpr std::pair<std::string_view, std::uint64_t Settings::*> kNumbers[] = {
    {"bits", &Settings::bits},  {"nbits", &Settings::bits},       {"num_bits", &Settings::bits},
    {"w_bit", &Settings::bits}, {"group_size", &Settings::group}, {"q_group_size", &Settings::group}};
constexpr std::pair<std::string_view, std::string Settings::*> kTexts[] = {
    {"format", &Settings::format},    {"checkpoint_format", &Settings::format}, {"version", &Settings::version},
    {"mode", &Settings::mode},        {"quant_algo", &Settings::algorithm},     {"packing_format", &Settings::packing},
    {"strategy", &Settings::strategy}};
constexpr std::array<std::string_view, 2> kBlocks{"weight_block_size", "block_structure"},
    kSymmetric{"sym", "symmetric"};
constexpr std::array<std::string_view, 6> kExclusions{
    "modules_to_not_convert", "ignored_layers", "ignore", "exclude_modules", "llm_int8_skip_modules", "skip_modules"};

bool is_one_of(std::string_view key, const auto& keys) { return std::ranges::find(keys, key) != std::end(keys); }
std::string_view last_of(std::string_view key) { return key.substr(key.find_last_of('.') + 1); }
bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }

// Takes what `from` says; with `only_new`, only of what nothing is said yet.
void take(Settings& to, const Settings& from, bool only_new) {
  const auto one = [&](auto member) {
    if (from.*member != decltype(from.*member){} && (!only_new || to.*member == decltype(from.*member){}))
      to.*member = from.*member;
  };
  for (const auto member : {&Settings::bits, &Settings::group}) one(member);
  for (const auto member : {&Settings::format, &Settings::version, &Settings::mode, &Settings::algorithm,
                            &Settings::packing, &Settings::strategy, &Settings::sparsity, &Settings::odd})
    one(member);
  one(&Settings::block);
  one(&Settings::symmetric);
}

class ConfigReader {
 public:
  ConfigReader(wire::JsonReader& in, bool mlx) : in_(in), mlx_(mlx) {}

  // False for {} and null, which quantize nothing.
  bool run(Config& out) {
    if (in_.peek() != wire::JsonKind::object) {
      in_.skip_value();
      return false;
    }
    Config found;
    if (!top(found)) return false;
    // mlx writes bits and group size, and no method; it copies them to quantization_config.
    if (found.method == "none") return false;
    if (mlx_ && found.all.bits == 0 && found.all.algorithm.empty()) return false;  // another kind of "quantization"
    if (found.method.empty() && found.all.bits > 0 && (mlx_ || found.all.group > 0)) found.method = "mlx";
    const bool modules = found.method == "mlx" || found.method == "metal";
    for (LayerSettings& each : modules_)
      if (modules)
        found.layers.push_back(std::move(each));
      else
        take(found.all, each.settings, true);
    out.stated = true;
    if (out.method.empty()) out.method = std::move(found.method);
    take(out.all, found.all, true);
    if (out.layers.empty()) out.layers = std::move(found.layers);
    return true;
  }

 private:
  // Calls each(key) for the members of the next value, if it is an object; each() reads the value.
  template <class Each> void members(Each each) {
    if (!in_.enter_object()) return void(in_.skip_value());
    std::string scratch;
    for (wire::JsonString key; in_.next_key(key);) {
      each(wire::json_text(key, scratch));
      if (!in_.ok()) return;
    }
  }
  template <class Take> void texts(Take each) {
    if (!in_.enter_array()) return void(in_.skip_value());
    while (in_.next_element()) {
      wire::JsonString text;
      if (in_.read_string(text))
        each(std::string(wire::json_text(text, scratch_)));
      else if (!in_.skip_value())
        return;
    }
  }

  // A number of elements. GPTQ's configs say -1 for all of them.
  std::uint64_t size_of(std::string_view name, Settings& to) {
    std::uint64_t number = 0;
    wire::JsonNumber other;
    if (in_.peek() != wire::JsonKind::number)
      in_.skip_value();
    else if (!in_.read_u64(number) && in_.read_number(other) && other.raw.starts_with("-") && other.raw != "-1")
      to.odd = name;
    return number;
  }

  bool setting(std::string_view name, Settings& to) {
    for (const auto& [key, member] : kNumbers)
      if (name == key && in_.peek() == wire::JsonKind::number) {
        const std::uint64_t number = size_of(name, to);
        if (to.*member == 0) to.*member = number;
        return true;
      }
    for (const auto& [key, member] : kTexts)
      if (wire::JsonString text; name == key && in_.read_string(text)) {
        if ((to.*member).empty() || name == "checkpoint_format") to.*member = wire::json_text(text, scratch_);
        return true;
      }
    if (bool flag = false; is_one_of(name, kSymmetric) && in_.read_bool(flag)) {
      if (!to.symmetric) to.symmetric = flag;
      return true;
    }
    if (!is_one_of(name, kBlocks) || !in_.enter_array()) return false;
    std::vector<std::uint64_t> block;
    while (in_.next_element()) block.push_back(size_of(name, to));
    if (std::ranges::find(block, 0U) != block.end()) to.odd = name;
    if (to.block.empty()) to.block = std::move(block);
    return true;
  }

  // Settings of weights, wherever a library writes them; ignores those of activations and caches.
  void nested(Settings& to, int depth) {
    members([&](std::string_view name) {
      if (setting(name, to)) return;
      if (depth < kDeepest && in_.peek() == wire::JsonKind::object && name.find("activation") == name.npos &&
          name.find("cache") == name.npos)
        return nested(to, depth + 1);
      in_.skip_value();
    });
  }

  static LayerSettings::By by(std::string& pattern) {
    if (pattern.starts_with("re:")) return pattern.erase(0, 3), LayerSettings::By::regex;
    if (pattern.find_first_of("*?") != pattern.npos) return LayerSettings::By::glob;
    const bool type = !pattern.empty() && is_upper(pattern[0]) && pattern.find('.') == pattern.npos;
    return type ? LayerSettings::By::type : LayerSettings::By::name;
  }
  void add(Config& out, std::string pattern, LayerSettings layer) {
    layer.by = by(pattern);
    layer.pattern = std::move(pattern);
    out.layers.push_back(std::move(layer));
  }

  void groups(Config& out) {
    members([&](std::string_view) {
      std::vector<std::string> targets;
      Settings settings;
      members([&](std::string_view name) {
        if (name == "targets") return texts([&](std::string text) { targets.push_back(std::move(text)); });
        if (name == "weights") return nested(settings, 2);
        if (!setting(name, settings)) in_.skip_value();
      });
      take(out.all, settings, true);
      for (std::string& target : targets) add(out, std::move(target), {.settings = settings});
    });
  }
  // GPTQModel's `dynamic`: "-:" before a regular expression excludes layers.
  void overrides(Config& out, bool regex) {
    members([&](std::string_view name) {
      std::string pattern(name);
      LayerSettings layer{.excluded = regex && pattern.starts_with("-:")};
      if (regex && (layer.excluded || pattern.starts_with("+:"))) pattern.erase(0, 2);
      nested(layer.settings, 2);
      add(out, (regex ? "re:" : "") + pattern, std::move(layer));
    });
  }

  bool top(Config& out) {
    bool any = false;
    members([&](std::string_view name) {
      any = true;
      wire::JsonString text;
      bool flag = false;
      if (name == "quant_method" && in_.read_string(text)) {
        out.method = wire::json_text(text, scratch_);
        std::ranges::transform(out.method, out.method.begin(),
                               [](char c) { return is_upper(c) ? static_cast<char>(c - 'A' + 'a') : c; });
      } else if ((name == "load_in_8bit" || name == "load_in_4bit") && in_.read_bool(flag)) {
        if (flag && out.method.empty()) out.method = "bitsandbytes";
      } else if (setting(name, out.all)) {
        if (name == "quant_algo" && out.method.empty()) out.method = "modelopt";
      } else if (name == "config_groups") {
        groups(out);
      } else if (name == "dynamic" || name == "quantized_layers") {
        overrides(out, name == "dynamic");
      } else if (name == "sparsity_config") {
        Settings sparsity;
        nested(sparsity, 1);
        if (sparsity.format != "dense") out.all.sparsity = std::move(sparsity.format);
      } else if (is_one_of(name, kExclusions)) {
        texts([&](std::string each) { add(out, std::move(each), {.excluded = true}); });
      } else if ((name == "lm_head" || name.find('.') != name.npos) && in_.read_bool(flag)) {
        if (!flag) add(out, std::string(name), {.excluded = true});
      } else if (in_.peek() == wire::JsonKind::object && name.find("activation") == name.npos &&
                 name.find("cache") == name.npos) {
        LayerSettings module{.pattern = std::string(name)};
        nested(module.settings, 1);
        modules_.push_back(std::move(module));
      } else {
        in_.skip_value();
      }
    });
    return any && in_.ok();
  }

  wire::JsonReader& in_;
  bool mlx_;
  std::string scratch_;
  std::vector<LayerSettings> modules_;  // of MLX, or objects in which other libraries write their settings
};

}  // namespace

void take_settings(Settings& to, const Settings& from) { take(to, from, false); }

bool may_hold_config(std::string_view key) noexcept {
  const std::string_view last = last_of(key);
  return is_one_of(last, kConfigs) || is_one_of(last, kParts) || is_one_of(last, kDtypes);
}

void read_config(std::string_view key, std::string_view text, Config& out) {
  if (text.size() > kMaxConfigBytes) return;
  const std::string_view last = last_of(key);
  if (is_one_of(last, kDtypes)) {
    out.dtype = text;
    return;
  }
  wire::JsonReader in(text);
  const auto read = [&](std::string_view name) { ConfigReader(in, name == "quantization").run(out); };
  if (is_one_of(last, kConfigs)) return read(last);
  if (!in.enter_object()) return;
  std::string scratch;
  for (wire::JsonString inner; in.next_key(inner);) {
    wire::JsonString word;
    if (is_one_of(inner.raw, kConfigs))
      read(inner.raw);
    else if (is_one_of(inner.raw, kDtypes) && in.read_string(word)) {
      if (out.dtype.empty()) out.dtype = wire::json_text(word, scratch);
    } else if (!in.skip_value())
      return;
    if (!in.ok()) return;
  }
}

}  // namespace weighbridge::schemes
