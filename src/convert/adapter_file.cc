// SPDX-License-Identifier: Apache-2.0
// What is stored of an adapter: pairs of factors by the endings of their names, and the settings beside them.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/checked.h"
#include "base/endian.h"
#include "base/fail.h"
#include "convert/adapter.h"
#include "convert/naming.h"
#include "core/model/view.h"
#include "core/model/words.h"
#include "wire/json_reader.h"

namespace weighbridge::convert {

using core::quoted;

// Values by the names of modules. A key fits the end of a name as in peft: the match begins the name or follows a dot,
// a dot in the key matches any character, and the first key that fits counts. Keys of one size with dots at the same
// places are looked up together.
template <class Value> class ByModule {
 public:
  bool empty() const noexcept { return values_.empty(); }
  std::size_t size() const noexcept { return values_.size(); }
  const Value& front() const { return values_.front(); }

  void add(std::string_view key, Value value) {
    const bool whole = key.starts_with('^');
    if (whole) key.remove_prefix(1);
    std::string plain;
    std::vector<std::size_t> dots;
    for (std::size_t i = 0; i < key.size(); ++i) {
      const bool escaped = key[i] == '\\' && i + 1 < key.size();
      if (escaped) ++i;
      if (key[i] == '.' && !escaped) dots.push_back(plain.size());
      plain += key[i];
    }
    const std::size_t size = plain.size();
    keys_[{size, whole, std::move(dots)}].emplace(std::move(plain), values_.size());
    values_.push_back(std::move(value));
  }
  const Value* find(std::string_view module) const {
    std::size_t first = values_.size();
    std::string end;
    for (const auto& [form, keys] : keys_) {
      const auto& [size, whole, dots] = form;
      if (size > module.size() || (whole && size != module.size())) continue;
      if (size < module.size() && module[module.size() - size - 1] != '.') continue;
      end = module.substr(module.size() - size);
      for (const std::size_t dot : dots) end[dot] = '.';
      if (const auto at = keys.find(end); at != keys.end()) first = std::min(first, at->second);
    }
    return first < values_.size() ? &values_[first] : nullptr;
  }

 private:
  using Form = std::tuple<std::size_t, bool, std::vector<std::size_t>>;  // size, whether it is the whole name, dots
  std::map<Form, std::unordered_map<std::string, std::size_t>> keys_;    // to the index of the value
  std::vector<Value> values_;
};

// The settings in the adapter_config.json of peft or mlx-lm that determine the scale of an adapter.
struct AdapterConfig {
  double rank = 0, alpha = 0;
  bool has_rank = false, has_alpha = false, root = false, transposed = false, full = false;
  ByModule<double> ranks, alphas;
  ByModule<std::vector<std::uint64_t>> tokens;  // that were trained
  std::optional<double> scale;                  // of mlx-lm, whose changes it multiplies
};

namespace {

class ConfigReader {
 public:
  explicit ConfigReader(const Lora& lora) : lora_(lora), in_(lora.config) {}

  AdapterConfig run() {
    std::string scratch;
    if (!in_.enter_object()) fail("is not a JSON object");
    for (wire::JsonString key; in_.next_key(key);) {
      const std::string name(wire::json_text(key, scratch));
      std::string_view raw;
      if (!in_.skip_value(raw)) break;
      take(name, raw);
    }
    if (!in_.ok() || !in_.finish()) fail("is not JSON: " + std::string(in_.error().sentence));
    if (out_.full) return std::move(out_);
    if (!out_.has_rank) fail("has no r, the inner rank");
    if (out_.scale && out_.has_alpha && out_.alpha != out_.rank)
      fail(
          "has scale and alpha in lora_parameters, which mlx-lm up to 0.14.1 (May 2024) multiplies to scale * alpha / "
          "rank, while versions since then ignore alpha (up to 0.22.2 they write it all the same). Remove alpha if one "
          "of these wrote the adapter; otherwise also set scale to the product");
    if (!out_.scale && !out_.has_alpha) fail("has no lora_alpha");
    return std::move(out_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    refuse_adapter(lora_, "config", "adapter_config.json " + what);
  }

  void take(const std::string& name, std::string_view raw) {
    const bool is_null = raw == "null" || raw == "false" || raw == "[]" || raw == "{}";
    if (name == "peft_type" && raw != "\"LORA\"" && !is_null)
      fail("is for an adapter of type " + std::string(core::excerpt(raw)) + ": only LORA is known");
    if (name == "use_dora" && boolean(name, raw))
      refuse_adapter(lora_, "kind", "the adapter is DoRA (use_dora): only plain LoRA is known");
    if (name == "init_lora_weights" && !keeps_base(raw))
      fail("says init_lora_weights " + core::excerpt(raw) +
           ", which also changes the base or is not known: save the adapter as a plain LoRA first "
           "(path_initial_model_for_weight_conversion)");
    constexpr std::string_view kOtherSums =
        "layer_replication alora_invocation_tokens lora_bias use_qalora use_bdlora kasa_config monteclora_config";
    if (core::has_word(kOtherSums, name) && !is_null) fail("says " + name + ", which is not known");
    if (name == "r") out_.rank = number(name, raw), out_.has_rank = true;
    if (name == "lora_alpha") out_.alpha = number(name, raw), out_.has_alpha = true;
    if (name == "use_rslora") out_.root = boolean(name, raw);
    if (name == "fan_in_fan_out") out_.transposed = boolean(name, raw);
    if (name == "fine_tune_type" && raw == "\"dora\"")
      refuse_adapter(lora_, "kind", "the adapter is DoRA (fine_tune_type): only plain LoRA is known");
    if (name == "fine_tune_type" && raw == "\"full\"") out_.full = true;
    if (name == "lora_parameters" && !is_null) parameters_of_mlx(raw);
    if (name == "rank_pattern" && !is_null) out_.ranks = patterns(name, raw);
    if (name == "alpha_pattern" && !is_null) out_.alphas = patterns(name, raw);
    if (name == "trainable_token_indices" && raw != "null") tokens_of_peft(name, raw);
  }

  // Whether peft leaves the base as it is when it prepares factors in this way.
  static bool keeps_base(std::string_view raw) {
    std::string lower(raw);
    for (char& c : lower)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return core::has_word("true false null \"gaussian\" \"eva\" \"orthogonal\" \"mica\"", lower);
  }

  // Python takes more values for true than JSON's true.
  bool boolean(const std::string& name, std::string_view raw) const {
    if (raw != "true" && raw != "false" && raw != "null")
      fail("says " + name + " " + core::excerpt(raw) + ", which is neither true nor false");
    return raw == "true";
  }

  void parameters_of_mlx(std::string_view raw) {
    wire::JsonReader in(raw);
    std::string scratch;
    if (!in.enter_object()) fail("says lora_parameters " + core::excerpt(raw) + ", which is not an object");
    for (wire::JsonString key; in.next_key(key);) {
      const std::string name(wire::json_text(key, scratch));
      std::string_view value;
      if (!in.skip_value(value)) break;
      if (name == "rank") out_.rank = number(name, value), out_.has_rank = true;
      if (name == "alpha") out_.alpha = number(name, value), out_.has_alpha = true;
      if (name == "scale") out_.scale = number(name, value);
    }
    if (!out_.scale) fail("has no scale in lora_parameters");
  }

  // A list is of the input embedding.
  void tokens_of_peft(const std::string& name, std::string_view raw) {
    wire::JsonReader in(raw);
    std::string scratch;
    const auto take_list = [&](const std::string& module) {
      std::vector<std::uint64_t> tokens;
      std::uint64_t token = 0;
      if (in.enter_array())
        while (in.next_element() && in.read_u64(token)) tokens.push_back(token);
      out_.tokens.add(module, std::move(tokens));
    };
    if (raw.starts_with('[')) {
      take_list("embed_tokens");
    } else if (in.enter_object()) {
      for (wire::JsonString key; in.next_key(key);) take_list(std::string(wire::json_text(key, scratch)));
    }
    if (!in.ok() || !in.finish()) fail("says " + name + " " + core::excerpt(raw) + ", which are no lists of tokens");
  }

  double number(const std::string& name, std::string_view raw) const {
    const auto value = wire::as_double(raw);
    if (!value) fail("says " + name + " " + core::excerpt(raw) + ", which is not a number");
    return *value;
  }

  // \d and the like; a backslash before another character only says that this one is meant.
  static bool has_class(std::string_view pattern) {
    for (std::size_t at = pattern.find('\\'); at != pattern.npos; at = pattern.find('\\', at + 2)) {
      const char next = at + 1 < pattern.size() ? pattern[at + 1] : 'A';
      if ((next >= '0' && next <= '9') || (next >= 'A' && next <= 'Z') || (next >= 'a' && next <= 'z')) return true;
    }
    return false;
  }

  ByModule<double> patterns(const std::string& name, std::string_view raw) const {
    ByModule<double> out;
    wire::JsonReader in(raw);
    std::string scratch;
    if (!in.enter_object()) fail("says " + name + " " + core::excerpt(raw) + ", which is not an object");
    for (wire::JsonString key; in.next_key(key);) {
      const std::string pattern(wire::json_text(key, scratch));
      std::string_view value;
      if (!in.skip_value(value)) break;
      if (pattern.find_first_of("$*+?()[]{}|") != pattern.npos || has_class(pattern))
        fail("has the " + name + " " + quoted(core::excerpt(pattern)) +
             ", a regular expression: only names, ^ and dots are understood");
      out.add(pattern, number(name, value));
    }
    return out;
  }

  const Lora& lora_;
  wire::JsonReader in_;
  AdapterConfig out_;
};

enum class Side : std::uint8_t { down, up, alpha };
struct Ending {
  std::string_view text;
  Side side;
  bool transposed = false;  // for an embedding: the product is [columns, rows]
  bool is_short = false;    // of llama.cpp and mlx-lm
};
constexpr Ending kEndings[] = {{".lora_A.weight", Side::down},
                               {".lora_B.weight", Side::up},
                               {".lora_A.default.weight", Side::down},
                               {".lora_B.default.weight", Side::up},
                               {".lora_embedding_A", Side::down, true},
                               {".lora_embedding_B", Side::up, true},
                               {".lora_down.weight", Side::down},
                               {".lora_up.weight", Side::up},
                               {".lora.down.weight", Side::down},
                               {".lora.up.weight", Side::up},
                               {".lora_a", Side::down, false, true},
                               {".lora_b", Side::up, false, true},
                               {".alpha", Side::alpha}};
// Endings of names in other kinds of adapters.
constexpr std::pair<std::string_view, std::string_view> kOthers[] = {{"lora_magnitude_vector", "DoRA"},
                                                                     {"dora_scale", "DoRA"},
                                                                     {".hada_w", "LoHa"},
                                                                     {".lokr_w", "LoKr"},
                                                                     {".oft_", "OFT"},
                                                                     {".lora_mid.", "LoCon with a third factor"},
                                                                     {".lora_A.bias", "LoRA with biases"},
                                                                     {".lora_B.bias", "LoRA with biases"}};

}  // namespace

void refuse_adapter(const Lora& lora, std::string_view what, std::string message) {
  base::misuse_of(core::called(lora.adapter, 0), "lora-" + std::string(what), std::move(message));
}

std::string number_text(double value) {
  return value == std::floor(value) && std::abs(value) < 1e15 ? std::to_string(static_cast<long long>(value))
                                                              : fmt::format("{}", value);
}

StoredAdapter::StoredAdapter(const Lora& lora) : lora_(lora) {
  if (!lora.config.empty()) config_ = std::make_shared<const AdapterConfig>(ConfigReader(lora).run());
  std::unordered_map<std::string, std::size_t> known;
  for (const Tensor& tensor : lora_.adapter) {
    const std::string_view name = tensor.name();
    for (const auto& [part, kind] : kOthers)
      if (name.find(part) != name.npos)
        refuse_adapter(lora_, "kind",
                       "the adapter is " + std::string(kind) + " (" + quoted(name) + "): only plain LoRA is known");
    const auto* const ending =
        std::ranges::find_if(kEndings, [&](const Ending& each) { return name.ends_with(each.text); });
    if (ending == std::end(kEndings)) {
      whole_.push_back(tensor);
      continue;
    }
    std::string stem(name.substr(0, name.size() - ending->text.size()));
    const auto [at, is_new] = known.emplace(stem, pairs_.size());
    if (is_new) pairs_.push_back({.stem = std::move(stem)});
    FactorPair& pair = pairs_[at->second];
    pair.transposed = pair.transposed || ending->transposed;
    (lora_.adapter.format() == "gguf" ? pair.is_gguf : pair.is_mlx) |= ending->is_short;
    std::optional<Tensor>& place = ending->side == Side::down ? pair.down
                                   : ending->side == Side::up ? pair.up
                                                              : pair.alpha;
    if (place)
      refuse_adapter(lora_, "twice",
                     "the adapter has two tensors for " + quoted(pair.stem) + ": " + quoted(place->name()) + " and " +
                         quoted(name));
    place = tensor;
  }
  if (is_gguf_adapter(lora.adapter) || std::ranges::any_of(pairs_, &FactorPair::is_gguf)) check_gguf();
}

// What llama.cpp checks, and what it computes in another way.
void StoredAdapter::check_gguf() const {
  const Value* const kind = lora_.adapter.attribute("adapter.type");
  if (kind == nullptr || kind->to_text() != "lora")
    refuse_adapter(lora_, "kind",
                   "\"adapter.type\" is " + (kind ? quoted(core::excerpt(kind->to_text())) : std::string("absent")) +
                       ": only \"lora\" is known");
  if (lora_.adapter.attribute("adapter.alora.invocation_tokens"))
    refuse_adapter(lora_, "kind", "the adapter is an aLoRA, which begins at certain tokens: only plain LoRA is known");
}

bool StoredAdapter::stores_transposed() const noexcept { return config_ && config_->transposed; }
bool StoredAdapter::trains_tokens() const noexcept { return config_ && !config_->tokens.empty(); }

const std::vector<std::uint64_t>& StoredAdapter::tokens_of(std::string_view module) const {
  if (trains_tokens()) {
    if (const auto* const known = config_->tokens.find(module)) return *known;
    if (config_->tokens.size() == 1) return config_->tokens.front();  // an output embedding that is tied to it
  }
  refuse_adapter(lora_, "config",
                 "adapter_config.json does not say which tokens of " + quoted(module) + " were trained");
}

double StoredAdapter::scalar(const Tensor& tensor, const Context& context) const {
  const auto count = tensor.has_shape() ? base::element_count(tensor.shape()) : std::nullopt;
  const bool readable = !tensor.unsupported() && tensor.layout() == Layout::dense && count == 1;
  double out = std::nan("");
  if (readable) {
    const Array array = tensor.to_dense(DType::f64, context);
    out = std::bit_cast<double>(base::load_le<std::uint64_t>(array.data.get()));
  }
  if (!std::isfinite(out))
    refuse_adapter(lora_, "alpha", "the tensor " + quoted(tensor.name()) + " is not one finite number");
  return out;
}

StoredAdapter::Scaling StoredAdapter::scaling_of(const FactorPair& pair, std::string_view module, std::uint64_t rank,
                                                 const Context& context) const {
  const auto r = static_cast<double>(rank);
  Scaling out{.alpha = r, .divisor = r};  // without an alpha, the product is not scaled
  if (pair.is_gguf) {
    const Value* const value = lora_.adapter.attribute(kLoraAlpha);
    const double stated = value != nullptr ? value->as_f64().value_or(0) : 0;
    if (!std::isfinite(stated)) refuse_adapter(lora_, "alpha", std::string(kLoraAlpha) + " is not a finite number");
    if (stated != 0) out.alpha = stated;
  } else if (pair.alpha) {
    out.alpha = scalar(*pair.alpha, context);
  } else if (config_ && !config_->full) {
    const double* const own_rank = config_->ranks.find(module);
    const double* const own_alpha = config_->alphas.find(module);
    const double stated = own_rank ? *own_rank : config_->rank;
    if (stated != r)
      refuse_adapter(lora_, "rank",
                     "adapter_config.json gives the inner rank " + number_text(stated) + " of " + quoted(pair.stem) +
                         ", and its tensors have " + std::to_string(rank));
    out.alpha = own_alpha ? *own_alpha : config_->alpha;
    if (config_->root) out.divisor = std::sqrt(r);
  } else if (pair.is_mlx || pair.stem.starts_with(kPeftPrefix)) {
    refuse_adapter(lora_, "config",
                   "an adapter of " + std::string(pair.is_mlx ? "mlx-lm" : "peft") +
                       " needs its adapter_config.json, which says how its changes are scaled");
  }
  if (config_) out.factor = config_->scale;
  return out;
}

}  // namespace weighbridge::convert
