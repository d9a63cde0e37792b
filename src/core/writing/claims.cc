// SPDX-License-Identifier: Apache-2.0
// The table of claims, how each is checked, and what a conversion does with it.
#include "core/writing/claims.h"
#include "core/writing/file_types.h"
#include "core/writing/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <utility>

#include "base/checked.h"
#include "base/endian.h"
#include "base/fail.h"
#include "codecs/checksum.h"
#include "core/model/coded.h"
#include "core/model/plan_text.h"
#include "core/model/progress.h"
#include "core/model/state.h"
#include "core/model/words.h"
#include "core/reading/json_file.h"
#include "core/reading/rules.h"
#include "io/read.h"
#include "weighbridge/hash.h"
#include "weighbridge/view.h"
#include "wire/json_reader.h"
#include "wire/template_text.h"

namespace weighbridge::core {
namespace {

constexpr std::string_view kTokenId = "_token_id", kGguf = "tokenizer.ggml.";
constexpr std::string_view kTokens = "tokenizer.ggml.tokens", kGenerationConfig = "generation_config.json";

constexpr Claim kClaims[] = {
    {"sshs_model_hash", About::data_hash},
    {"modelspec.hash_sha256", About::data_hash},
    {"sshs_legacy_hash", About::legacy_hash},
    {"general.file_type", About::file_type},
    {"general.quantization_version", About::quantization_version},
    {"hf.tie_word_embeddings", About::tied},
    {"tie_word_embeddings", About::tied},
    {"hf.torch_dtype", About::dtype},
    {"hf.dtype", About::dtype},
    {"torch_dtype", About::dtype},
    {"hf.quantization_config", About::quantization},
    {"hf.quantization", About::quantization},
    {"quantization_config", About::quantization},
    {"split.no", About::part},
    {"split.count", About::part},
    {"split.tensors.count", About::part},
    {"*_token_id", About::token_id},
    {"*_config", About::config},
};

// ---- tensors ----

// Word embeddings and heads under the names of transformers, of GGUF and of .slm.
struct Pair {
  std::string_view input, output;
};
constexpr Pair kPairs[] = {
    {"model.embed_tokens.weight", "lm_head.weight"},
    {"embed_tokens.weight", "lm_head.weight"},
    {"model.language_model.embed_tokens.weight", "lm_head.weight"},
    {"language_model.model.embed_tokens.weight", "language_model.lm_head.weight"},
    {"transformer.wte.weight", "lm_head.weight"},
    {"wte.weight", "lm_head.weight"},
    {"model.decoder.embed_tokens.weight", "lm_head.weight"},
    {"transformer.word_embeddings.weight", "lm_head.weight"},
    {"gpt_neox.embed_in.weight", "embed_out.weight"},
    {"shared.weight", "lm_head.weight"},
    {"bert.embeddings.word_embeddings.weight", "cls.predictions.decoder.weight"},
    {"embeddings.word_embeddings.weight", "cls.predictions.decoder.weight"},
    {"token_embd.weight", "output.weight"},
    {"tok_embeddings.weight", "output.weight"},
};

std::uint64_t elements(const Tensor& tensor) {
  return tensor.has_shape() ? base::element_count(tensor.shape()).value_or(0) : 0;
}
bool is_matrix(const Tensor& tensor) { return tensor.has_shape() && tensor.shape().size() >= 2; }

// How many elements have each type: the name of a dtype, block type or layout. Counts vectors only if there is nothing
// else.
using Census = std::map<std::string, std::uint64_t, std::less<>>;
struct Types {
  Census matrices, all, floats;
  bool quantized = false, coded = false;

  void add(const Tensor& tensor, Layout layout, std::string type, DType dense) {
    const std::uint64_t count = elements(tensor);
    quantized = quantized || is_quantized(layout);
    if (is_quantized(layout)) floats[std::string()] += count;
    if (layout == Layout::dense && info(dense).kind == DTypeKind::real) floats[std::string(name(dense))] += count;
    if (is_matrix(tensor)) matrices[type] += count;
    all[std::move(type)] += count;
  }
  static std::string_view main_type(const Census& census) {
    const auto fewer = [](const auto& a, const auto& b) { return a.second < b.second; };
    const auto at = std::max_element(census.begin(), census.end(), fewer);
    return at == census.end() ? std::string_view{} : std::string_view(at->first);
  }
  std::string_view main_type() const { return main_type(matrices.empty() ? all : matrices); }
  // Empty if most are quantized, or codes: the stated dtype is then the one in which a program computes.
  std::string_view main_type_of_floats() const { return coded ? std::string_view() : main_type(floats); }
};

Types types_of(const Model& model) {
  Types out;
  for (const Tensor& tensor : model)
    out.add(tensor, tensor.layout(),
            tensor.layout() == Layout::dense ? std::string(name(tensor.dtype())) : std::string(tensor.type_name()),
            tensor.dtype());
  return out;
}

Types types_of(const WriteLayout& layout, const Options& options) {
  Types out;
  for (const WriteLayout* const file : files_of(layout)) {
    if (file->repeats) continue;
    for (const OutTensor& tensor : file->tensors) {
      std::string type(name(tensor.dtype));
      if (tensor.layout != Layout::dense)
        type = is_quantized(tensor.from.layout()) || options.quantize.empty() ? std::string(tensor.from.type_name())
                                                                              : options.quantize;
      out.add(tensor.from, tensor.layout, std::move(type), tensor.dtype);
    }
  }
  return out;
}

struct TorchName {
  std::string_view dtype, torch;
};
constexpr TorchName kTorchNames[] = {{"f64", "float64"},   {"f32", "float32"},           {"f16", "float16"},
                                     {"bf16", "bfloat16"}, {"f8_e4m3", "float8_e4m3fn"}, {"f8_e5m2", "float8_e5m2"}};

// The new value of a claim about the dtype after a conversion, in PyTorch's spelling, with or without "torch.".
std::string torch_text(std::string_view stated, std::string_view torch) {
  constexpr std::string_view kModule = "torch.";
  return std::string(stated.starts_with(kModule) ? kModule : std::string_view{}) + std::string(torch);
}

// The JSON text with a new dtype in every object that states one: text_config and the like have their own.
std::string with_dtype(std::string_view json, std::string_view torch) {
  return with_members(json, [&](std::string_view name, std::string_view value) -> std::optional<std::string> {
    if ((name != "dtype" && name != "torch_dtype") || !value.starts_with('"')) return std::nullopt;
    return "\"" + torch_text(value.substr(1, value.size() - 2), torch) + "\"";
  });
}

// ---- bytes of a .safetensors ----

// Where the tensor data begin, if the model is exactly one whole safetensors file.
std::optional<std::uint64_t> data_begin(const Model& model) {
  const State* const state = Access::state(model);
  if (state == nullptr || state->format != "safetensors" || state->in_several_files || state->sources.size() != 1 ||
      state->composition || state->sources[0]->size() < 8)
    return std::nullopt;
  std::array<std::byte, 8> prefix{};
  state->sources[0]->read_at(0, prefix);
  const auto header = base::load_le<std::uint64_t>(prefix.data());
  const auto begin = base::checked_add(header, std::uint64_t{8});
  return begin && *begin <= state->sources[0]->size() ? begin : std::nullopt;
}

std::array<std::byte, 32> sha256_of(const Source& source, std::uint64_t begin, std::uint64_t end,
                                    const Context& context) {
  codecs::Sha256 hash;
  io::read_pieces(source, begin, end, [&](std::uint64_t, std::span<const std::byte> piece) {
    check_cancelled(context);
    hash.update(piece);
    return true;
  });
  return hash.finish();
}

std::string hash_of(const Source& source, std::uint64_t begin, std::uint64_t end, const Context& context) {
  return codecs::to_hex(sha256_of(source, begin, end, context));
}

// Whether the output has the tensor data of the source's file, byte for byte.
bool same_data(const Model& laid_out, const WriteLayout& layout, const FormatInfo& to) {
  const auto begin = to.name == "safetensors" ? data_begin(laid_out) : std::nullopt;
  if (!begin || layout.folder || layout.prefix_source || layout.base) return false;
  std::uint64_t at = *begin;
  for (const Payload& payload : layout.payloads) {
    const bool copied = (payload.form == Payload::Form::stored || payload.form == Payload::Form::logical) &&
                        payload.encoding == Encoding::raw && payload.stream_prefix.empty() && !payload.shared &&
                        payload.part < payload.tensor.part_count();
    if (!copied) return false;
    const auto extent = payload.tensor.part(payload.part).extent();
    if (!extent || extent->length != payload.logical_size || (extent->length > 0 && extent->offset != at)) return false;
    at += extent->length;
  }
  return at == laid_out.sources()[0]->size();
}

// The length of the header that safetensors.torch.save would write with only the metadata `ss_...`, without padding.
std::optional<std::uint64_t> training_header(std::string_view header, const Limits& limits) {
  constexpr std::string_view kMetadata = "__metadata__", kTraining = "ss_";
  // The length of the text without white space between its tokens.
  const auto length_of = [](std::string_view raw) {
    std::uint64_t out = 0;
    bool in_text = false, escaped = false;
    for (const char c : raw) {
      if (in_text || (c != ' ' && c != '\n' && c != '\r' && c != '\t')) ++out;
      if (!in_text)
        in_text = c == '"';
      else if (escaped)
        escaped = false;
      else if (c == '\\')
        escaped = true;
      else if (c == '"')
        in_text = false;
    }
    return out;
  };
  wire::JsonReader in(header, limits.depth);
  if (!in.enter_object()) return std::nullopt;
  std::uint64_t members = 0, metadata = 0, length = 2 + kMetadata.size() + 2 + 1 + 2;  // {"__metadata__":{}}
  std::string scratch;
  for (wire::JsonString key; in.next_key(key);) {
    std::string_view raw;
    if (wire::json_text(key, scratch) != kMetadata) {
      if (!in.skip_value(raw)) return std::nullopt;
      length += key.raw.size() + 3 + length_of(raw);
      ++members;
      continue;
    }
    if (!in.enter_object()) return std::nullopt;
    for (wire::JsonString own; in.next_key(own);) {
      const bool kept = wire::json_text(own, scratch).starts_with(kTraining);
      if (!in.skip_value(raw)) return std::nullopt;
      if (kept) length += own.raw.size() + 3 + raw.size() + (metadata++ > 0 ? 1 : 0);
    }
  }
  return in.ok() ? std::optional(length + members) : std::nullopt;  // a comma before each
}

// The hashes that kohya's scripts may have stated; there are two, because newer versions of safetensors pad the header.
std::vector<std::string> legacy_hashes(const Model& model, std::uint64_t begin, const Context& context) {
  constexpr std::uint64_t kAt = 0x100000, kLength = 0x10000;
  const Source& source = *model.sources()[0];
  if (begin - 8 > context.limits.header) return {};
  const std::string header = io::text_of(source, 8, begin - 8);
  const auto length = training_header(header, context.limits);
  if (!length) return {};
  std::vector<std::string> out;
  for (const std::uint64_t padded : {*length + (8 - *length % 8) % 8, *length}) {
    const std::uint64_t there = 8 + padded;
    if (there > kAt) continue;  // the hashed range would include the header, whose original order is unknown
    const std::uint64_t data = source.size() - begin, from = std::min(kAt - there, data);
    out.push_back(hash_of(source, begin + from, begin + std::min(from + kLength, data), context).substr(0, 8));
  }
  return out;
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out.starts_with("0x") ? out.substr(2) : out;
}

// ---- tokens ----

struct Vocabulary {
  std::uint64_t tokens = 0;
  std::string said_by;  // for people
};

std::optional<Vocabulary> vocabulary_of(const Model& model, std::string_view key) {
  if (key.starts_with(kGguf)) {
    const Value* const tokens = model.attribute(kTokens);
    if (tokens == nullptr) return std::nullopt;
    if (tokens->texts() != nullptr) return Vocabulary{tokens->texts()->size(), std::string(kTokens)};
    return Vocabulary{tokens->list().size(), std::string(kTokens)};
  }
  if (const auto tokenizer = model.tokenizer(); tokenizer && tokenizer->tokens.size() > 0) {
    std::uint64_t count = tokenizer->tokens.size();
    for (const std::uint32_t id : tokenizer->ids) count = std::max<std::uint64_t>(count, std::uint64_t{id} + 1);
    return Vocabulary{count, "the tokenizer"};
  }
  for (const std::string_view stated : {"hf.vocab_size", "vocab_size"})
    if (const Value* const value = model.attribute(stated))
      if (const auto count = value->as_u64(); count && *count > 0) return Vocabulary{*count, std::string(stated)};
  if (const Embeddings found = embeddings_of(model); found.input && is_matrix(*found.input))
    return Vocabulary{found.input->shape()[0], "its word embeddings"};
  return std::nullopt;
}

// The ids in a number or a list of numbers. Skips negative numbers, null and anything else that cannot be an id.
std::vector<std::uint64_t> ids_in(std::string_view json) {
  std::vector<std::uint64_t> out;
  wire::JsonReader in(json);
  const auto take = [&] {
    wire::JsonNumber number;
    std::string_view raw;
    if (in.peek() != wire::JsonKind::number) return in.skip_value(raw);
    if (!in.read_number(number)) return false;
    if (const auto id = wire::as_u64(number.raw); id && *id < UINT32_MAX) out.push_back(*id);
    return true;
  };
  if (in.peek() != wire::JsonKind::array) {
    take();
  } else if (in.enter_array()) {
    while (in.next_element() && take())
      ;
  }
  return out;
}

// A sentence about the first id without a token; empty if all ids have one.
std::string beyond(const Model& model, std::string_view key, std::string_view json) {
  const auto vocabulary = vocabulary_of(model, key);
  if (!vocabulary) return {};
  for (const std::uint64_t id : ids_in(json))
    if (id >= vocabulary->tokens)
      return fmt::format("{} is {}, and there are {} tokens by {}", key, id, vocabulary->tokens, vocabulary->said_by);
  return {};
}

// ---- verify ----

class Checker {
 public:
  Checker(const Model& model, const Context& context, Findings& findings)
      : model_(model), context_(context), findings_(findings) {}

  void run() {
    for (const auto& [key, value] : model_.attributes()) {
      if (const Claim* const claim = find_claim(key)) check(*claim, key, value);
      if (key.find("chat_template") != key.npos) check_templates(key, value);
    }
    check_generation_config();
    check_vocabulary();
  }

 private:
  void check(const Claim& claim, const std::string& key, const Value& value) {
    switch (claim.about) {
      case About::data_hash: return check_hash(key, value);
      case About::legacy_hash: return check_legacy(key, value);
      case About::token_id:
        if (const std::string said = beyond(model_, key, value.to_text()); !said.empty())
          findings_.report(rules::kClaimTokenId, {}, {}, {}, said);
        return;
      case About::tied: return check_tied(key, value);
      default: return;
    }
  }

  // One template, or several with their names.
  void check_templates(const std::string& key, const Value& value) {
    if (const auto text = value.as_text()) check_chat_template(*text, key, {}, findings_);
    for (const Value& each : value.list()) check_templates(key, each);
    for (const auto& [name, each] : value.map()) check_templates(key, each);
    if (const Texts* const texts = value.texts())
      for (std::size_t i = 0; i < texts->size(); ++i) check_chat_template((*texts)[i], key, {}, findings_);
  }

  void check_hash(const std::string& key, const Value& value) {
    const auto begin = data_begin(model_);
    if (!begin) return;
    if (data_hash_.empty()) data_hash_ = hash_of(*model_.sources()[0], *begin, model_.sources()[0]->size(), context_);
    if (const std::string stated = value.to_text(); lower(stated) != data_hash_)
      findings_.report(rules::kClaimDataHash, {}, data_hash_, excerpted(stated, 80), key);
  }

  void check_legacy(const std::string& key, const Value& value) {
    const auto begin = data_begin(model_);
    if (!begin) return;
    const auto right = legacy_hashes(model_, *begin, context_);
    const std::string stated = value.to_text();
    if (!right.empty() && std::ranges::find(right, lower(stated)) == right.end())
      findings_.report(rules::kClaimDataHash, {}, right[0], excerpted(stated, 80), key);
  }

  void check_tied(const std::string& key, const Value& value) {
    if (value.as_bool() != true) return;
    const auto [input, output, name] = embeddings_of(model_);
    if (!input || !output || input->unsupported() || output->unsupported()) return;
    if (have_same_values(*input, *output, context_)) return;
    findings_.report(
        rules::kClaimTied, {.tensor = output->name()}, {}, {},
        fmt::format("{} is true, and {} differs from {}", key, quoted(output->name()), quoted(input->name())));
  }

  // config.json is among the attributes; this file is not.
  void check_generation_config() try {
    const State* const state = Access::state(model_);
    if (state == nullptr || state->format != "hf" || !state->place) return;
    const auto source = state->place->open(kGenerationConfig);
    if (!source) return;
    const std::string text = whole_text(*source, context_.limits, kGenerationConfig);
    wire::JsonReader in(text, context_.limits.depth);
    if (!in.enter_object()) return;
    std::string scratch;
    for (wire::JsonString key; in.next_key(key);) {
      std::string_view raw;
      const std::string name(wire::json_text(key, scratch));
      if (!in.skip_value(raw)) return;
      if (!name.ends_with(kTokenId)) continue;
      if (const std::string said = beyond(model_, name, raw); !said.empty())
        findings_.in(source).report(rules::kClaimTokenId, {}, {}, {}, said);
    }
  } catch (const Error& error) {  // the folder's reader reports errors in its files
    if (error.kind() == Kind::limit) throw;
  }

  // More rows than tokens are padding.
  void check_vocabulary() try {
    const Embeddings found = embeddings_of(model_);
    if (!found.input || !is_matrix(*found.input)) return;
    const std::uint64_t rows = found.input->shape()[0];
    const auto compare = [&](std::uint64_t tokens, std::string_view said_by, Findings to) {
      if (tokens > rows)
        to.report(rules::kClaimVocabulary, {.tensor = found.input->name()}, at_most(rows), tokens, said_by);
    };
    for (const std::string_view key : {kTokens, std::string_view("vocab_size")})
      if (const auto said = vocabulary_of(model_, key)) compare(said->tokens, said->said_by, findings_);
    const State* const state = Access::state(model_);
    if (state == nullptr || state->format != "hf" || !state->place) return;
    for (const TokenFile& file : token_files(*state->place, context_.limits))
      compare(file.tokens, {}, findings_.in(file.source));
  } catch (const Error& error) {  // as above
    if (error.kind() == Kind::limit) throw;
  }

  const Model& model_;
  const Context& context_;
  Findings& findings_;
  std::string data_hash_;
};

}  // namespace

const Claim* find_claim(std::string_view key) noexcept {
  for (const Claim& claim : kClaims)
    if (claim.key.starts_with('*') ? key.ends_with(claim.key.substr(1)) : key == claim.key) return &claim;
  return nullptr;
}

Embeddings embeddings_of(const Model& model) {
  Embeddings out;
  for (const Pair& pair : kPairs) {
    const auto input = model.find(pair.input);
    if (!input) continue;
    out.input = *input;
    out.output_name = pair.output;
    if (const auto output = model.find(pair.output)) out.output = *output;
    return out;
  }
  return out;
}

std::optional<std::string> claims_tied(const Model& model) {
  for (const auto& [key, value] : model.attributes())
    if (const Claim* const claim = find_claim(key); claim != nullptr && claim->about == About::tied)
      if (value.as_bool() == true) return key;
  return std::nullopt;
}

std::vector<Restated> restated(const Model& before, const Model& laid_out, const WriteLayout& layout,
                               const FormatInfo& to, const Options& options) {
  std::vector<Restated> out;
  std::optional<Types> was, is;
  const auto count = [&] {
    if (was) return;
    was = types_of(before);
    is = types_of(layout, options);
    was->coded = !uses_of_codes(before).empty();
    is->coded = !uses_of_codes(laid_out).empty();
  };
  const auto drop = [&](const std::string& key, std::string why) { out.push_back({key, {}, std::move(why)}); };
  for (const auto& [key, value] : laid_out.attributes()) {
    const Claim* const claim = find_claim(key);
    if (claim == nullptr) continue;
    switch (claim->about) {
      case About::data_hash:
        if (options.canonical || !same_data(laid_out, layout, to))
          drop(key, "the output may have other tensor data, or the same in another order");
        break;
      case About::legacy_hash:
        if (options.canonical || is_view(laid_out) || !same_data(laid_out, layout, to))
          drop(key, "it depends on the tensor data, the names and the training metadata");
        break;
      case About::file_type: {
        count();
        const FileType* const row = find_file_type(options.quantize.empty() ? is->main_type() : options.quantize);
        if (options.quantize.empty() && was->main_type() == is->main_type()) break;
        if (row == nullptr || (options.quantize.empty() && row->name != row->type)) {
          drop(key, "most elements have another type than before");
          break;
        }
        const bool text = value.kind() == Value::Kind::text;
        const Value now =
            text ? Value::text(std::to_string(row->number)) : Value::integer(std::uint64_t{row->number}, DType::u32);
        if (now != value) out.push_back({key, now, {}});
        break;
      }
      case About::quantization_version:
        count();
        if (was->quantized && !is->quantized) drop(key, "no tensor is quantized");
        break;
      case About::config:
        if (value.kind() != Value::Kind::text || !value.as_text()->starts_with('{')) break;
        count();
        if (const auto* const row = std::ranges::find(kTorchNames, is->main_type_of_floats(), &TorchName::dtype);
            is->main_type_of_floats() != was->main_type_of_floats() && row != std::end(kTorchNames))
          if (std::string text = with_dtype(*value.as_text(), row->torch); text != *value.as_text())
            out.push_back({key, Value::text(std::move(text)), {}});
        break;
      case About::dtype: {
        count();
        const std::string_view now = is->main_type_of_floats();
        const auto* const row = std::ranges::find(kTorchNames, now, &TorchName::dtype);
        if (now == was->main_type_of_floats() || row == std::end(kTorchNames)) break;
        const std::string text = value.to_text(), stated = torch_text(text, row->torch);
        if (text != stated && text != "null") out.push_back({key, Value::text(stated), {}});
        break;
      }
      case About::quantization:
        count();
        if (was->quantized && !is->quantized && uses_of_codes(laid_out).empty())
          drop(key, "no tensor is quantized any more");
        break;
      case About::part: drop(key, "the output is no part of a split model"); break;
      case About::tied:
      case About::token_id: break;
    }
  }
  return out;
}

Model restate(const Model& model, std::span<const Restated> claims, std::vector<Item>& changes) {
  ViewOptions options;
  for (const Restated& each : claims) {
    const Value* const old = model.attribute(each.key);
    changes.push_back({LossKind::attribute, indexed("attributes", each.key),
                       old != nullptr ? excerpt(old->to_text(), 200) : std::string(kAbsent),
                       each.value ? each.value->to_text() : "dropped: " + each.why});
    if (each.value)
      options.values.emplace_back(each.key, *each.value);
    else
      options.unset.push_back(each.key);
  }
  return view(model, options);
}

std::vector<std::string> unsaid_by_edit(const Model& original, const Model& edited) {
  std::vector<std::string> out;
  const auto names_differ = [&] {
    if (original.size() != edited.size()) return true;
    for (std::uint32_t i = 0; i < original.size(); ++i)
      if (original.name(i) != edited.name(i)) return true;
    return false;
  };
  const auto training = [](const Model& model) {
    std::map<std::string, std::string> all;
    for (const auto& [key, value] : model.attributes())
      if (key.starts_with("ss_")) all.emplace(key, value.to_text());
    return all;
  };
  for (const auto& [key, value] : original.attributes()) {
    const Claim* const claim = find_claim(key);
    const Value* const now = claim != nullptr ? edited.attribute(key) : nullptr;
    if (now == nullptr || *now != value) continue;  // the edit sets the value explicitly
    const bool fewer = original.size() != edited.size();
    if ((claim->about == About::data_hash && fewer) ||
        (claim->about == About::legacy_hash && (names_differ() || training(original) != training(edited))))
      out.push_back(key);
  }
  return out;
}

void require_token_id(const Model& model, std::string_view key) {
  const Claim* const claim = find_claim(key);
  const Value* const value = model.attribute(key);
  if (claim == nullptr || claim->about != About::token_id || value == nullptr) return;
  if (const std::string said = beyond(model, key, value->to_text()); !said.empty())
    base::misuse("token-id", "no token has this id: " + said);
}

// Compares stored bytes, or values if the dtypes differ.
bool have_same_values(const Tensor& a, const Tensor& b, const Context& context) {
  if (!a.has_shape() || !b.has_shape() || !std::ranges::equal(a.shape(), b.shape())) return false;
  if (a.part_count() == 1 && b.part_count() == 1 && a.part(0).extent() && a.part(0).extent() == b.part(0).extent())
    return true;
  const bool plain = a.layout() == Layout::dense && b.layout() == Layout::dense && a.dtype() == b.dtype();
  const auto hash = [&](const Tensor& tensor) {
    codecs::Xxh3_128 sum;
    const auto add = [&](std::span<const std::byte> piece) {
      sum.update(piece);
      return true;
    };
    if (plain)
      tensor.main().stream(context, add);
    else
      tensor.stream_dense(DType::f64, context, add);
    return sum.finish();
  };
  return hash(a) == hash(b);
}

void check_chat_template(std::string_view text, std::string_view name, const At& at, Findings& findings) {
  if (const auto fault = wire::template_fault(text))
    findings.report(fault->escapes ? rules::kTemplateEscape : rules::kTemplateSyntax, at, {},
                    {excerpted(fault->found), " at byte ", fault->offset, " of it"}, name);
}

void check_claims(const Model& model, const Context& context, Findings& findings) {
  Checker(model, context, findings).run();
}

}  // namespace weighbridge::core

namespace weighbridge {

Digest data_sha256(const Model& model, const Context& context) {
  const auto begin = core::data_begin(model);
  if (!begin) base::misuse("autov3", "the hash of the tensor data is that of one safetensors file");
  const Source& file = *model.sources()[0];
  return {core::sha256_of(file, *begin, file.size(), context), 0};
}

}  // namespace weighbridge
