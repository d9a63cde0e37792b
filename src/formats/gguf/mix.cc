// SPDX-License-Identifier: Apache-2.0
#include "formats/gguf/mix.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "base/endian.h"
#include "base/fail.h"
#include "core/model/pattern.h"
#include "core/model/words.h"
#include "core/writing/file_types.h"
#include "weighbridge/block_type.h"
#include "wire/json_reader.h"

namespace weighbridge::gguf {
namespace {

enum class Role : std::uint8_t { output, embedding, value, key, query, attention_output, down, gate_up, other };

// What a rule asks of a tensor: bits that must all hold.
enum When : unsigned {
  always = 0,
  gqa = 1U << 0,         // at least four heads share a key
  more = 1U << 1,        // in the first or the last eighth of the layers, or every third one between
  first_two = 1U << 2,   // of the tensors with this role
  first_four = 1U << 3,  // likewise
  eighth = 1U << 4,      // in the first eighth of the layers
  sixteenth = 1U << 5,
  middle = 1U << 6,  // neither in the first nor in the last eighth
  no_matrix = 1U << 7,
  matrix = 1U << 8,
  four_experts = 1U << 9,    // or more
  eight_experts = 1U << 10,  // no more and no fewer
  falcon = 1U << 11,
  not_falcon = 1U << 12
};

struct MixRule {
  std::string_view mixes;  // words; empty: all others
  Role role;
  unsigned when;
  std::string_view type;  // empty: the type of most tensors
};

constexpr std::string_view kTwoBits = "iq2_xxs iq2_xs iq2_s iq2_m", kTwoSmall = "iq2_xxs iq2_xs",
                           kTwoLarge = "iq2_s iq2_m";
// The first that fits decides.
constexpr MixRule kMixRules[] = {
    {"iq2_xxs iq2_xs iq3_xxs iq2_s iq2_m", Role::output, always, "q5_k"},
    {"q8_0", Role::output, always, {}},
    {{}, Role::output, always, "q6_k"},
    {kTwoSmall, Role::embedding, always, "q2_k"},
    {"iq2_s iq2_m iq3_xxs", Role::embedding, always, "iq3_s"},
    {"tq1_0 tq2_0", Role::embedding, always, "q4_k"},

    {kTwoBits, Role::value, gqa, "q4_k"},
    {kTwoBits, Role::value, four_experts, "q4_k"},
    {kTwoLarge, Role::value, always, "iq3_s"},
    {kTwoSmall, Role::value, always, "q2_k"},
    {kTwoBits, Role::key, eight_experts, "q4_k"},
    {kTwoLarge, Role::down, eighth, "iq3_s"},
    {kTwoSmall, Role::down, eighth, "q2_k"},
    {kTwoBits, Role::attention_output, eight_experts, "q5_k"},
    {kTwoLarge, Role::attention_output, always, "iq3_s"},

    {{}, Role::value, eight_experts, "q8_0"},
    {"q2_k", Role::value, gqa, "q4_k"},
    {"q2_k", Role::value, always, "q3_k"},
    {"q2_k_s", Role::value, gqa, "q4_k"},
    {"iq3_xxs", Role::value, gqa, "q4_k"},
    {"iq3_xxs", Role::value, no_matrix, "iq3_s"},
    {"iq3_xs iq3_s", Role::value, gqa, "q4_k"},
    {"iq3_m", Role::value, always, "q4_k"},
    {"q3_k_m", Role::value, first_two, "q5_k"},
    {"q3_k_m", Role::value, always, "q4_k"},
    {"q3_k_l", Role::value, always, "q5_k"},
    {"iq4_nl iq4_xs", Role::value, gqa, "q5_k"},
    {"q4_k_m q5_k_m", Role::value, more, "q6_k"},
    {"q4_k_s", Role::value, first_four, "q5_k"},

    {{}, Role::key, eight_experts, "q8_0"},
    {"iq3_xs", Role::key, always, "iq3_xxs"},
    {"iq3_xxs", Role::key, always, "iq2_s"},
    {"iq3_xs", Role::query, always, "iq3_xxs"},
    {"iq3_xxs", Role::query, always, "iq2_s"},

    {"q2_k", Role::down, always, "q3_k"},
    {"q2_k_s", Role::down, eighth, "q4_k"},
    {"iq3_xxs", Role::down, no_matrix | eighth, "q4_k"},
    {"iq3_xxs", Role::down, no_matrix, "q3_k"},
    {"q3_k_m", Role::down, sixteenth, "q5_k"},
    {"q3_k_m", Role::down, falcon | more, "q4_k"},
    {"q3_k_m", Role::down, falcon, "q3_k"},
    {"q3_k_m", Role::down, always, "q4_k"},
    {"iq3_m", Role::down, eighth, "q4_k"},
    {"iq3_m", Role::down, eight_experts | more, "q4_k"},
    {"q3_k_l", Role::down, falcon, "q4_k"},
    {"q3_k_l", Role::down, always, "q5_k"},
    {"q4_k_m", Role::down, falcon | sixteenth, "q6_k"},
    {"q4_k_m", Role::down, falcon | more, "q5_k"},
    {"q4_k_m", Role::down, falcon, {}},
    {"q4_k_m q5_k_m", Role::down, more, "q6_k"},
    {"iq4_nl iq4_xs", Role::down, eighth | no_matrix, "q5_k"},
    {"q4_k_s", Role::down, not_falcon | eighth, "q5_k"},
    {"q4_0", Role::down, matrix | eighth, "q4_1"},
    {"q5_0", Role::down, matrix | eighth, "q5_1"},

    {"q2_k iq3_xs iq3_xxs q3_k_s q3_k_m iq4_nl q4_k_s q4_k_m iq3_s iq3_m iq4_xs", Role::attention_output,
     not_falcon | eight_experts, "q5_k"},
    {{}, Role::attention_output, not_falcon | eight_experts, {}},
    {"q3_k_l", Role::attention_output, falcon, "q4_k"},
    {{}, Role::attention_output, falcon, {}},
    {"q2_k", Role::attention_output, always, "q3_k"},
    {"iq3_xxs", Role::attention_output, always, "iq3_s"},
    {"q3_k_m iq3_m", Role::attention_output, always, "q4_k"},
    {"q3_k_l", Role::attention_output, always, "q5_k"},

    {"iq3_xs", Role::gate_up, middle, "iq3_xxs"},
};

// Where rows do not divide into blocks.
constexpr std::pair<std::string_view, std::string_view> kFallbacks[] = {
    {"iq2_xxs", "iq4_nl"}, {"iq2_xs", "iq4_nl"}, {"iq2_s", "iq4_nl"}, {"iq3_xxs", "iq4_nl"}, {"iq3_s", "iq4_nl"},
    {"iq4_xs", "iq4_nl"},  {"q2_k", "q4_0"},     {"q3_k", "q4_0"},    {"tq1_0", "q4_0"},     {"tq2_0", "q4_0"},
    {"q4_k", "q5_0"},      {"q5_k", "q5_1"},     {"q6_k", "q8_0"}};

// Parts of names of tensors that no mix touches.
constexpr std::string_view kLeft[] = {"_norm.weight",
                                      "ffn_gate_inp.weight",
                                      "ffn_gate_tid2eid.weight",
                                      "altup",
                                      "laurel",
                                      "per_layer_model_proj",
                                      "ssm_conv1d",
                                      "shortconv.conv.weight",
                                      "indexer.k_proj.weight",
                                      "indexer.q_proj.weight",
                                      "time_mix_first.weight",
                                      "time_mix_w0.weight",
                                      "time_mix_w1.weight",
                                      "time_mix_w2.weight",
                                      "time_mix_v0.weight",
                                      "time_mix_v1.weight",
                                      "time_mix_v2.weight",
                                      "time_mix_a0.weight",
                                      "time_mix_a1.weight",
                                      "time_mix_a2.weight",
                                      "time_mix_g1.weight",
                                      "time_mix_g2.weight",
                                      "time_mix_decay_w1.weight",
                                      "time_mix_decay_w2.weight",
                                      "time_mix_lerp_fused.weight",
                                      "attn_rel_b.weight",
                                      ".position_embd",
                                      "sam.pos_embd",
                                      "sam.neck.",
                                      "sam.net_",
                                      ".rel_pos",
                                      ".patch_embd",
                                      ".patch_merger",
                                      "a.rvq.codebook",
                                      "mm.a.code_embd"};

bool contains(std::string_view name, std::string_view part) { return name.find(part) != name.npos; }

bool is_candidate(const MixTensor& of) {
  const std::string_view name = of.tensor.name();
  return of.rank >= 2 && name.ends_with("weight") && name != "position_embd.weight" && name != "token_types.weight" &&
         std::ranges::none_of(kLeft, [&](std::string_view part) { return contains(name, part); });
}

Role role_of(std::string_view name) {
  if (name == "output.weight") return Role::output;
  if (name == "token_embd.weight" || name == "per_layer_token_embd.weight") return Role::embedding;
  if (contains(name, "attn_qkv.weight") || contains(name, "attn_kv_b.weight") || contains(name, "attn_v.weight"))
    return Role::value;
  if (contains(name, "attn_k.weight")) return Role::key;
  if (contains(name, "attn_q.weight")) return Role::query;
  if (contains(name, "attn_output.weight")) return Role::attention_output;
  if (contains(name, "ffn_down")) return Role::down;
  if (contains(name, "ffn_up") || contains(name, "ffn_gate")) return Role::gate_up;
  return Role::other;
}

// -1: in no layer.
std::int64_t layer_of(std::string_view name) {
  constexpr std::string_view kBlock = "blk.";
  if (!name.starts_with(kBlock)) return -1;
  const std::size_t dot = name.find('.', kBlock.size());
  const auto number = dot == name.npos ? std::nullopt : wire::as_u64(name.substr(kBlock.size(), dot - kBlock.size()));
  return number && *number < UINT32_MAX ? static_cast<std::int64_t>(*number) : -1;
}

bool in_eighths(std::uint64_t i, std::uint64_t n) { return i < n / 8 || i >= 7 * n / 8 || (i - n / 8) % 3 == 2; }

struct ModelFacts {
  std::string architecture;
  std::uint64_t layers = 0, heads = 0, kv_heads = 0, experts = 0;
  bool matrix = false;

  explicit ModelFacts(const Model& model, bool has_matrix) : matrix(has_matrix) {
    const Value* const name = model.attribute("general.architecture");
    if (name == nullptr) return;
    architecture = name->to_text();
    const auto number = [&](std::string_view key) -> std::uint64_t {
      const Value* const value = model.attribute(architecture + "." + std::string(key));
      if (value == nullptr) return 0;
      if (value->kind() == Value::Kind::numbers && info(value->type()).bits == 32 && value->bytes().size() >= 4)
        return base::load_le<std::uint32_t>(value->bytes().data());  // of the first layer
      return value->as_u64().value_or(0);
    };
    layers = number("block_count");
    heads = number("attention.head_count");
    kv_heads = model.attribute(architecture + ".attention.head_count_kv") ? number("attention.head_count_kv") : heads;
    experts = number("expert_count");
  }
  std::uint64_t shared_heads() const { return kv_heads == 0 ? 0 : heads / kv_heads; }
  // What llama.cpp calls 70B.
  bool is_large() const {
    return (layers == 80 &&
            ((architecture == "llama" && heads != kv_heads) || core::has_word("qwen2 deci olmo", architecture))) ||
           (layers == 68 && architecture == "jais2");
  }
};

class Mixer {
 public:
  Mixer(const Model& model, const Options& options)
      : options_(options),
        named_(has_names_of_llama_cpp(model)),
        facts_(model, options.gguf.imatrix != nullptr),
        mix_(core::find_file_type(options.quantize)),
        tied_(!model.find("output.weight")) {
    for (const std::string& each : options.gguf.tensor_type) overrides_.push_back(parsed(each));
    embedding_ = named_type(options.gguf.token_embedding_type);
    output_ = named_type(options.gguf.output_tensor_type);
    if (mix_ == nullptr) base::misuse("quantize", "there is no quantization '" + options.quantize + "'");
    if (!named_ && !options.gguf.pure && mix_->name != mix_->type && mix_->name != "mxfp4_moe")
      base::misuse("quantize",
                   "the mix " + std::string(mix_->name) +
                       " is made by the names that llama.cpp gives to tensors, and these have others",
                   base::option_hint("pure"));
    for (const Tensor& tensor : model) {
      MixTensor one{.tensor = tensor};
      if (tensor.has_shape()) {
        const Shape shape = tensor.shape();
        one.columns = shape.empty() ? 0 : shape.back();
        std::size_t first = 0;
        while (first + 1 < shape.size() && shape[first] == 1) ++first;
        one.rank = shape.size() - first;
        for (std::size_t d = 0; d + 2 < shape.size(); ++d) one.matrices *= shape[d];
      }
      tensors_.push_back(std::move(one));
    }
    if (named_)
      std::ranges::stable_sort(tensors_, {}, [](const MixTensor& each) {
        return std::pair(layer_of(each.tensor.name()), std::string_view(each.tensor.name()));
      });
    for (const MixTensor& each : tensors_) values_ += role_of(each.tensor.name()) == Role::value ? 1U : 0U;
  }

  std::vector<MixTensor> run() {
    for (MixTensor& each : tensors_) {
      if (info(each.tensor.dtype()).kind != DTypeKind::real) continue;
      if (named_ ? !is_candidate(each) : each.rank < 2) continue;
      choose(each);
    }
    return std::move(tensors_);
  }

 private:
  struct Override {
    core::Pattern pattern;
    const ElementType* type;
  };

  static const ElementType* named_type(const std::string& word) {
    if (word.empty()) return nullptr;
    const ElementType* const type = element_type(word);
    if (type == nullptr)
      base::misuse("tensor-type", "no tensor of GGUF can be made " + core::quoted(core::excerpt(word)));
    return type;
  }
  static Override parsed(const std::string& text) {
    const auto both = core::divided(text);
    if (!both)
      base::misuse("tensor-type", "a type of tensors is PATTERN=TYPE, not " + core::quoted(core::excerpt(text)));
    return {core::Pattern("s/" + both->first + "/x/"), named_type(both->second)};
  }

  void choose(MixTensor& one) {
    const std::string_view name = one.tensor.name();
    const Role role = role_of(name);
    if (embedding_ != nullptr && role == Role::embedding) return take(one, embedding_, false);
    if (output_ != nullptr && role == Role::output) return take(one, output_, false);
    if (!mix_->quantized) return take(one, element_type(mix_->type), false);
    for (const Override& each : overrides_)
      if (each.pattern.apply(name)) return take(one, each.type, true);
    take(one, options_.gguf.pure || !named_ ? element_type(mix_->type) : by_rules(one, role), true);
  }

  void take(MixTensor& one, const ElementType* type, bool falls_back) const {
    one.asked = type;
    one.type = falls_back ? fitting(type, one.columns) : type;
    if (!named_ && one.type != type && one.type->name == "f16") {  // not what llama.cpp asks of its own tensors
      one.type = nullptr;
      return;
    }
    one.needs_importance = one.tensor.name() != "token_embd.weight" && one.tensor.name() != "output.weight" &&
                           (core::has_word("iq2_xxs iq2_xs iq2_s iq3_xxs", one.type->name) ||
                            (mix_->name == "q2_k_s" && one.type->name == "q2_k"));
  }

  static std::uint64_t block_of(const ElementType* type) {
    const BlockTypeInfo* const block = find_block_type(type->block);
    return block == nullptr ? 1 : block->block_elements;
  }
  static const ElementType* fitting(const ElementType* type, std::uint64_t columns) {
    if (columns % block_of(type) == 0) return type;
    for (const auto& [from, to] : kFallbacks)
      if (type->name == from && columns % block_of(element_type(to)) == 0) return element_type(to);
    return element_type("f16");
  }

  const ElementType* by_rules(const MixTensor& one, Role role) {
    if (role == Role::output || (tied_ && role == Role::embedding)) {
      if (output_ != nullptr) return output_;
      if (mix_->name == "mxfp4_moe" || facts_.architecture == "falcon" ||
          one.columns % block_of(element_type(mix_->type)) != 0)
        return element_type("q8_0");
      role = Role::output;
    } else if (mix_->name == "mxfp4_moe") {
      return element_type(one.matrices > 1 ? "mxfp4" : "q8_0");
    }
    const bool two_bits = core::has_word(kTwoBits, mix_->name);
    const std::uint64_t running = role == Role::value ? next_value_++ : role == Role::down ? next_down_++ : 0;
    const std::int64_t layer = layer_of(one.tensor.name());
    // A layer's tensors of experts are no more than one each; the rest count as they come.
    const std::uint64_t at = role == Role::value     ? running
                             : role == Role::down    ? (facts_.experts > 1 && !two_bits ? by_name(layer) : running)
                             : facts_.experts > 1    ? by_name(layer)
                             : role == Role::gate_up ? next_gate_up_[contains(one.tensor.name(), "ffn_up") ? 0 : 1]++
                                                     : by_name(layer);
    const ElementType* type = element_type(mix_->type);
    for (const MixRule& rule : kMixRules) {
      if (rule.role != role ||
          !(rule.mixes.empty() ? !two_bits || role == Role::output : core::has_word(rule.mixes, mix_->name)))
        continue;
      if ((rule.when & ~holding(role, at)) != 0) continue;
      if (!rule.type.empty()) type = element_type(rule.type);
      break;
    }
    if (role == Role::value && !two_bits && facts_.is_large() && facts_.experts != 8 &&
        (type->name == "q3_k" || type->name == "q4_k"))
      type = element_type("q5_k");
    return type;
  }

  static std::uint64_t by_name(std::int64_t layer) { return layer < 0 ? 0 : static_cast<std::uint64_t>(layer); }

  unsigned holding(Role role, std::uint64_t at) const {
    const std::uint64_t n = role == Role::value ? values_ : facts_.layers;
    unsigned out = facts_.matrix ? matrix : no_matrix;
    out |= facts_.architecture == "falcon" ? falcon : not_falcon;
    if (facts_.shared_heads() >= 4) out |= gqa;
    if (in_eighths(at, n)) out |= more;
    if (at < 2) out |= first_two;
    if (at < 4) out |= first_four;
    if (at < n / 8) out |= eighth;
    if (at < n / 16) out |= sixteenth;
    if (at >= n / 8 && at < 7 * n / 8) out |= middle;
    if (facts_.experts >= 4) out |= four_experts;
    if (facts_.experts == 8) out |= eight_experts;
    return out;
  }

  const Options& options_;
  bool named_;
  ModelFacts facts_;
  const core::FileType* mix_;
  bool tied_;
  std::vector<Override> overrides_;
  const ElementType *embedding_ = nullptr, *output_ = nullptr;
  std::vector<MixTensor> tensors_;
  std::uint64_t values_ = 0, next_value_ = 0, next_down_ = 0, next_gate_up_[2] = {};
};

}  // namespace

const ElementType* element_type(std::string_view word) noexcept {
  for (const ElementType& row : kElementTypes) {
    if (row.name != word) continue;
    if (row.dtype == DType::f32 || row.dtype == DType::f16 || row.dtype == DType::bf16) return &row;
    const BlockTypeInfo* const block = find_block_type(row.block);
    return block != nullptr && block->can_encode ? &row : nullptr;
  }
  return nullptr;
}

bool stays_f32(std::string_view name) noexcept {
  constexpr std::string_view kNames[] = {"position_embd.weight", "token_types.weight"},
                             kParts[] = {"ffn_gate_inp", "conv1d"};
  return !name.ends_with(".weight") || name.ends_with("_norm.weight") ||
         std::ranges::find(kNames, name) != std::end(kNames) ||
         std::ranges::any_of(kParts, [&](std::string_view part) { return contains(name, part); });
}

bool has_names_of_llama_cpp(const Model& model) { return model.attribute("general.architecture") != nullptr; }

std::vector<MixTensor> mix(const Model& model, const Options& options) { return Mixer(model, options).run(); }

}  // namespace weighbridge::gguf
