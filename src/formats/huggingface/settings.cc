// SPDX-License-Identifier: Apache-2.0
// Reads and writes the settings of sentence-transformers.
#include "formats/huggingface/settings.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/model/words.h"
#include "formats/huggingface/config.h"
#include "formats/huggingface/format.h"

namespace weighbridge::huggingface {
namespace {

using wire::JsonKind, wire::JsonReader, wire::JsonWriter;

struct PoolingMode {
  std::string_view mode, key, name;  // `name`: as version 6 writes it
};
// In the order in which sentence-transformers joins them. Version 6 has a list, whose order counts.
constexpr PoolingMode kModes[] = {{"cls", "pooling_mode_cls_token", "cls"},
                                  {"max", "pooling_mode_max_tokens", "max"},
                                  {"mean", "pooling_mode_mean_tokens", "mean"},
                                  {"mean_sqrt_len", "pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens"},
                                  {"weightedmean", "pooling_mode_weightedmean_tokens", "weightedmean"},
                                  {"lasttoken", "pooling_mode_lasttoken", "lasttoken"}};
// In the order in which versions before 6 write the keys, and those that every version has.
constexpr std::size_t kWritten[] = {0, 2, 1, 3, 4, 5};
constexpr std::size_t kAlwaysWritten = 4;

// The names that versions of sentence-transformers give to sentence_bert_config.json; the first that is there counts.
constexpr std::string_view kEncoderConfigs[] = {kSentenceConfig,
                                                "sentence_roberta_config.json",
                                                "sentence_distilbert_config.json",
                                                "sentence_camembert_config.json",
                                                "sentence_albert_config.json",
                                                "sentence_xlm-roberta_config.json",
                                                "sentence_xlnet_config.json"};
constexpr std::string_view kPackage = "sentence_transformers.", kTorch = "torch.";

void append_mode(std::string& to, std::string_view mode) { (to += to.empty() ? "" : "+") += mode; }

// Reads the files in the order in which the package does.
class SettingsReader {
 public:
  SettingsReader(Reading& reading, bool shows_layers) : reading_(reading), shows_layers_(shows_layers) {}

  SettingsFiles run() {
    read_encoder();
    read_modules();
    read_prompts();
    return std::move(out_);
  }

 private:
  using Module = core::SentenceModule;
  using Type = Module::Type;

  void invalid(const JsonObject& object, const Member& member, std::string_view wanted) {
    reading_.in(object.file)
        .report(rules::kSettingValue, {.offset = object.offset(member)}, wanted, {},
                core::in_quotes(member.key, core::kWhole));
  }

  // A member of this kind; null if it is absent or null, or of another kind (reported).
  const Member* member_of(const JsonObject& object, std::string_view key, JsonKind kind, std::string_view wanted) {
    const Member* const member = object.find(key);
    if (member == nullptr || member->kind == JsonKind::null) return nullptr;
    if (member->kind == kind) return member;
    invalid(object, *member, wanted);
    return nullptr;
  }
  std::optional<bool> truth(const JsonObject& object, std::string_view key) {
    const Member* const member = member_of(object, key, JsonKind::boolean, "true or false");
    return member != nullptr ? std::optional(member->raw == "true") : std::nullopt;
  }
  std::optional<std::uint64_t> number(const JsonObject& object, std::string_view key, bool zero = false) {
    constexpr std::string_view kWanted = "a positive integer";
    const Member* const member = member_of(object, key, JsonKind::number, kWanted);
    if (member == nullptr) return std::nullopt;
    const auto value = zero && member->raw == "0" ? std::optional<std::uint64_t>(0) : positive(member->raw);
    if (!value) invalid(object, *member, kWanted);
    return value;
  }

  void read_encoder() {
    for (const std::string_view name : kEncoderConfigs) {
      const auto object = read_object(reading_, name);
      if (!object) continue;
      out_.judged.judge(name, kSentenceConfig, *object, SettingJudge::Unknown::refused);
      out_.settings.max_seq_length = number(*object, kMaxSeqLength);
      out_.lowers_first = truth(*object, kLowerCase).value_or(false);
      return;
    }
  }

  void read_modules() {
    const TextFile file = read_text(reading_, kModules);
    if (!file.text) {
      read_pooling(kPooling);
      return;
    }
    out_.saved_by_package = true;
    JsonReader in(*file.text, reading_.limits.depth);
    if (!in.enter_array()) {
      if (in.ok())
        reading_.in(file).report(rules::kJsonRoot, {.offset = 0}, "a list");
      else
        report_json(reading_, file, *file.text, in.error());
      return;
    }
    std::vector<JsonObject> modules;
    while (in.next_element()) {
      const bool is_module = in.peek() == JsonKind::object;
      std::string_view raw;
      if (!in.skip_value(raw)) break;
      if (!is_module) out_.judged.refuse(kModules, "module", raw, "no module");
      if (auto module = is_module ? object_in(reading_, file, raw) : std::nullopt)
        modules.push_back(*std::move(module));
    }
    if (!in.ok() || !in.finish()) return report_json(reading_, file, *file.text, in.error());
    // A folder made by hand may contain the file of a pooling that modules.json does not list.
    const auto is_pooling = [](const JsonObject& module) {
      return module.text("type").value_or("").ends_with(".Pooling");
    };
    pooled_ = std::ranges::none_of(modules, is_pooling) && read_pooling(kPooling);
    for (std::size_t i = 0; i < modules.size(); ++i) add_module(modules[i], i);
    finish();
  }

  void finish() {
    if (!pooled_ && !out_.word_table)
      out_.judged.refuse(kModules, "Pooling", "null", "no module makes one vector of those of the tokens");
    bool last = false;
    while (!modules_.empty() && modules_.back().type == Type::normalize) {
      last = true;
      modules_.pop_back();
    }
    out_.settings.normalize = last;
    out_.settings.modules = core::text_of(modules_);
  }

  void add_module(const JsonObject& object, std::uint64_t index) {
    out_.judged.judge(kModules, kModules, object, SettingJudge::Unknown::refused);
    const std::string type = object.text("type").value_or("");
    const std::string name = type.starts_with(kPackage) ? type.substr(type.rfind('.') + 1) : type;
    path_ = object.text("path").value_or("");
    const auto refuse = [&](std::string why) {
      wire::JsonWriter json;
      json.string(type);
      out_.judged.refuse(kModules, name.empty() ? "type" : name, json.take(), std::move(why));
    };
    if (name == "StaticEmbedding") {
      if (index != 0) return refuse("it is not the first module");
      out_.word_table = core::is_plain_name(path_) ? path_ : "";
      return;
    }
    if (name == "Transformer") {
      if (index != 0) return refuse("it is not the first module");
      if (!path_.empty()) refuse("the encoder is in a folder of its own");
      return;
    }
    if (name == "Dropout") return;                          // only used in training
    if (name == "Normalize" && path_.empty()) path_ = ".";  // it needs no file
    if (name != "Normalize" && !core::is_plain_name(path_)) return refuse("it has no folder of its own");
    const bool token_stage = !pooled_ && !out_.word_table;
    if (name == "Pooling") {
      if (!token_stage) return refuse("there is one vector already");
      pooled_ = true;
      read_pooling(path_ + "/config.json");
      return;
    }
    if (name == "WeightedLayerPooling") return token_stage ? add_weighted(refuse) : refuse("it comes after pooling");
    if (name != "Dense" && name != "LayerNorm" && name != "Normalize")
      return refuse("weighbridge does not compute that module");
    if (token_stage) return refuse("it comes before pooling");
    if (name == "Dense") return add_dense(refuse);
    const auto config = config_of(name);
    modules_.push_back(name == "LayerNorm" ? Module{.type = Type::layer_norm, .path = path_} : Module{});
  }

  // Reads the module's config.json, and checks it by the rows of its class.
  std::optional<JsonObject> config_of(const std::string& name) {
    if (path_ == ".") return std::nullopt;
    auto object = read_object(reading_, path_ + "/config.json");
    if (!object) return object;
    out_.judged.judge(path_ + "/config.json", "module " + name, *object, SettingJudge::Unknown::refused);
    out_.held.push_back(path_ + "/config.json");
    return object;
  }

  template <class Refuse> void add_weighted(const Refuse& refuse) {
    const auto config = config_of("WeightedLayerPooling");
    if (!config) return refuse("its config.json is missing");
    if (!shows_layers_)
      return refuse("config.json does not have output_hidden_states true, without which it does nothing");
    if (!modules_.empty()) return refuse("there are two of them");
    modules_.push_back({.type = Type::weighted_layers,
                        .path = path_,
                        .first_layer = number(*config, "layer_start", true).value_or(4)});
  }

  template <class Refuse> void add_dense(const Refuse& refuse) {
    const auto config = config_of("Dense");
    if (!config) return refuse("its config.json is missing");
    const auto inputs = number(*config, "in_features"), outputs = number(*config, "out_features");
    if (!inputs || !outputs) return refuse("its config.json lacks in_features or out_features");
    std::string activation = "Tanh";
    if (const Member* const member = config->find("activation_function"); member != nullptr) {
      activation = config->text("activation_function").value_or("");
      if (!activation.starts_with(kTorch)) {
        out_.judged.refuse(path_ + "/config.json", member->key, member->raw, "not an activation of torch");
        activation = "Tanh";
      }
      activation = activation.substr(activation.rfind('.') + 1);
    }
    modules_.push_back({.type = Type::dense,
                        .path = path_,
                        .activation = activation,
                        .inputs = *inputs,
                        .outputs = *outputs,
                        .bias = truth(*config, "bias").value_or(true),
                        .residual = truth(*config, "use_residual").value_or(false)});
  }

  // False if there is no such file.
  bool read_pooling(std::string_view path) {
    const auto object = read_object(reading_, path);
    if (!object) return false;
    out_.judged.judge(path, "module Pooling", *object, SettingJudge::Unknown::refused);
    out_.held.emplace_back(path);
    out_.settings.include_prompt = truth(*object, core::kIncludePrompt).value_or(true);
    const Member* const modes = object->find(kPoolingMode);
    if (modes != nullptr) {
      read_modes(path, *object, *modes);
      return true;
    }
    bool any_key = false;
    for (const PoolingMode& each : kModes) {
      any_key = any_key || object->find(each.key) != nullptr;
      if (truth(*object, each.key) == true) append_mode(out_.settings.pooling_mode, each.mode);
    }
    if (any_key && out_.settings.pooling_mode.empty())
      out_.judged.refuse(path, kPoolingMode, "null",
                         "no pooling is true, which versions of the package read differently");
    return true;
  }

  // A name, or a list of names.
  void read_modes(std::string_view path, const JsonObject& object, const Member& member) {
    JsonReader in(member.raw, reading_.limits.depth);
    const auto add = [&] {
      wire::JsonString text;
      std::string scratch;
      if (!in.read_string(text)) return false;
      const auto mode = std::ranges::find(kModes, wire::json_text(text, scratch), &PoolingMode::name);
      if (mode == std::end(kModes) || out_.settings.pooling_mode.size() > kMaxModes)
        out_.judged.refuse(path, member.key, member.raw, "no pooling that weighbridge computes");
      else
        append_mode(out_.settings.pooling_mode, mode->mode);
      return true;
    };
    bool good = true;
    if (member.kind == JsonKind::string)
      good = add();
    else if (member.kind == JsonKind::array && in.enter_array())
      while (good && in.next_element()) good = add();
    else
      good = false;
    if (!good) return invalid(object, member, "the name of a pooling, or a list of them");
    if (out_.settings.pooling_mode.empty())
      out_.judged.refuse(path, member.key, member.raw, "no pooling that weighbridge computes");
  }

  void read_prompts() {
    const auto object = read_object(reading_, kPromptsConfig);
    if (!object) return;
    out_.judged.judge(kPromptsConfig, kPromptsConfig, *object, SettingJudge::Unknown::warned);
    out_.prompts_held = std::ranges::all_of(
        object->members, [](const Member& member) { return find_setting(kPromptsConfig, member.key) != nullptr; });
    constexpr std::string_view kTexts = "an object of texts, or nulls";
    std::vector<std::pair<std::string, std::string>> prompts;
    if (const Member* const member = member_of(*object, core::kPrompts, JsonKind::object, kTexts)) {
      const auto parsed = core::parse_prompts(member->raw);
      if (!parsed) return invalid(*object, *member, kTexts);
      prompts = *parsed;
      const bool any = std::ranges::any_of(prompts, [](const auto& prompt) { return !prompt.second.empty(); });
      if (any) {
        wire::JsonWriter json;
        copy_json(json, member->raw);
        out_.settings.prompts = json.take();
      }
    }
    if (const Member* const member =
            member_of(*object, core::kDefaultPrompt, JsonKind::string, "the name of a prompt")) {
      const std::string name = unquote(member->raw);
      const bool usual = name == "query" || name == "document";  // every model has these, possibly empty
      if (!usual && std::ranges::none_of(prompts, [&](const auto& prompt) { return prompt.first == name; }))
        return invalid(*object, *member, "the name of a prompt");
      if (!out_.settings.prompts.empty()) out_.settings.default_prompt = name;
    }
    out_.settings.truncate_dim = number(*object, core::kTruncateDim);
  }

  static constexpr std::size_t kMaxModes = 200;  // bytes: a hostile file must not ask for endless vectors
  Reading& reading_;
  const bool shows_layers_;
  SettingsFiles out_;
  std::vector<Module> modules_;
  std::string path_;  // of the module that is being read
  bool pooled_ = false;
};

// The text of one file, indented as the Python packages write it.
template <class Fill> std::string document(Fill fill) {
  JsonWriter out(JsonWriter::Style::indented);
  fill(out);
  return out.take() + "\n";
}

void module(JsonWriter& out, std::uint64_t index, std::string_view path, std::string_view type) {
  out.begin_object();
  out.key("idx").u64(index);
  out.key("name").string(std::to_string(index));
  out.key("path").string(path);
  out.key("type").string("sentence_transformers.models." + std::string(type));
  out.end_object();
}

// The modes of the text; empty if one is unknown.
std::vector<std::size_t> modes_of(std::string_view text) {
  std::vector<std::size_t> out;
  for (bool more = true; more;) {
    const std::size_t end = std::min(text.find('+'), text.size());
    const auto mode = std::ranges::find(kModes, text.substr(0, end), &PoolingMode::mode);
    const auto at = static_cast<std::size_t>(mode - std::begin(kModes));
    if (mode == std::end(kModes)) return {};
    out.push_back(at);
    more = end < text.size();
    if (more) text.remove_prefix(end + 1);
  }
  return out;
}

}  // namespace

SettingsFiles read_settings(Reading& reading, bool shows_layers) { return SettingsReader(reading, shows_layers).run(); }

std::vector<std::string> module_folders(Reading& reading, const TextFile& modules) {
  std::vector<std::string> out;
  JsonReader in(*modules.text, reading.limits.depth);
  if (!in.enter_array()) return out;
  while (in.next_element()) {
    const bool is_module = in.peek() == JsonKind::object;
    std::string_view raw;
    if (!in.skip_value(raw)) break;
    const auto module = is_module ? object_in(reading, modules, raw) : std::nullopt;
    std::string path = module ? module->text("path").value_or("") : "";
    if (core::is_plain_name(path)) out.push_back(std::move(path));
  }
  std::ranges::sort(out);
  const auto repeated = std::ranges::unique(out);
  out.erase(repeated.begin(), repeated.end());
  return out;
}

bool is_pooling_mode(std::string_view mode) { return !modes_of(mode).empty(); }

std::string sentence_config_json(std::uint64_t max_seq_length) {
  return document([&](JsonWriter& out) {
    out.begin_object();
    out.key(kMaxSeqLength).u64(max_seq_length);
    out.key(kLowerCase);
    out.boolean(false);  // lowercasing before the tokenizer; the tokenizer's own setting is separate
    out.end_object();
  });
}

std::string modules_json(bool pooling, bool normalize) {
  return document([&](JsonWriter& out) {
    out.begin_array();
    std::uint64_t index = 0;
    module(out, index++, "", "Transformer");
    if (pooling) module(out, index++, "1_Pooling", "Pooling");
    if (normalize) module(out, index, std::to_string(index) + "_Normalize", "Normalize");
    out.end_array();
  });
}

std::string pooling_json(std::string_view mode, std::uint64_t dimension, bool include_prompt) {
  const std::vector<std::size_t> modes = modes_of(mode);
  const bool in_order = std::ranges::adjacent_find(modes, std::greater_equal<>{}) == modes.end();
  return document([&](JsonWriter& out) {
    out.begin_object();
    out.key("word_embedding_dimension").u64(dimension);
    if (in_order) {
      for (std::size_t i = 0; i < std::size(kWritten); ++i) {
        const bool on = std::ranges::find(modes, kWritten[i]) != modes.end();
        if (!on && i >= kAlwaysWritten) continue;
        out.key(kModes[kWritten[i]].key).boolean(on);
      }
    } else {  // only version 6 has an order
      out.key(kPoolingMode).begin_array();
      for (const std::size_t each : modes) out.string(kModes[each].name);
      out.end_array();
    }
    if (!include_prompt) {
      out.key(core::kIncludePrompt).boolean(false);
    }
    out.end_object();
  });
}

std::string prompts_json(const Settings& settings) {
  return document([&](JsonWriter& out) {
    out.begin_object();
    out.key(core::kPrompts);
    copy_json(out, settings.prompts.empty() ? "{}" : std::string_view(settings.prompts));
    out.key(core::kDefaultPrompt);
    if (settings.default_prompt)
      out.string(*settings.default_prompt);
    else
      out.null();
    if (settings.truncate_dim) {
      out.key(core::kTruncateDim).u64(*settings.truncate_dim);
    }
    out.end_object();
  });
}

}  // namespace weighbridge::huggingface
