// SPDX-License-Identifier: Apache-2.0
// Derives the hyperparameters of the header.
#include "formats/slm/hyper.h"

#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "core/model/plan_text.h"
#include "core/writing/layout.h"
#include "formats/slm/header.h"
#include "formats/slm/names.h"

namespace weighbridge::slm_format {
namespace {

using core::indexed;

// The default of transformers for a configuration without rope_theta.
constexpr float kUsualTheta = 10000;

class Deriver {
 public:
  Deriver(const Model& model, const Options& options, core::WriteLayout& out)
      : model_(model), options_(options), out_(out), before_(out.blockers.size()) {}

  Hyper run() {
    h_.model_type = u32("model_type").value_or(kModelType);
    h_.flags = flags();
    h_.special_token_count = u32("special_token_count").value_or(kMinSpecialTokens);
    h_.vocab_size = size_in_tensor("vocab_size", Role::tok_embeddings, 0);
    h_.hidden_size = size_in_tensor("hidden_size", Role::tok_embeddings, 1);
    h_.ffn_size = size_in_tensor("ffn_size", Role::w1, 0);
    h_.layer_count = layers();
    h_.head_count = stated("head_count");
    h_.max_context = stated("max_context");
    h_.rope_theta = theta();
    h_.rms_norm_epsilon = f32("rms_norm_epsilon");
    derive_head_dim();
    derive_kv();
    check_others(model_, used_, out_);
    if (out_.blockers.size() == before_) check();
    return {h_, kv_rows_};
  }

 private:
  static std::string key(std::string_view field) { return std::string(kPrefix) + std::string(field); }
  void block(const std::string& attribute, std::string from, std::string to) {
    out_.blockers.push_back({LossKind::attribute, indexed("attributes", attribute), std::move(from), std::move(to)});
  }
  void block_missing(std::string_view field, std::string why) { block(key(field), core::kAbsent, std::move(why)); }

  std::optional<Stated> stated_value(std::string_view field) {
    auto found = find_stated(model_, field);
    if (found) used_.push_back(found->key);
    return found;
  }

  std::optional<std::uint32_t> u32(std::string_view field) {
    const auto found = stated_value(field);
    if (!found) return std::nullopt;
    const auto number = found->value->as_u64();
    if (number && *number <= UINT32_MAX) return static_cast<std::uint32_t>(*number);
    block(found->key, found->value->to_text(), "a whole number below 2^32 is needed");
    return 0;
  }

  // Taken from slm.flags, or from an attribute that says whether the output is tied.
  std::uint32_t flags() {
    const auto found = find_stated(model_, "flags");
    const auto tied = found ? found->value->as_bool() : std::nullopt;
    if (!tied) return u32("flags").value_or(0);
    used_.push_back(found->key);
    return *tied ? kTiedOutput : 0;
  }

  // Newer configurations have it inside rope_parameters; the oldest do not have it.
  float theta() {
    if (find_stated(model_, "rope_theta")) {
      const float plain = f32("rope_theta");
      for (const auto& [name, value] : model_.attributes())
        if (const auto nested =
                name.ends_with("rope_parameters") ? parse_rotation(value.to_text()).theta : std::nullopt;
            nested && base::to_float(*nested) != plain)
          block(name, value.to_text(),
                "rope_theta says " + find_stated(model_, "rope_theta")->value->to_text() + ", and both cannot hold");
      return plain;
    }
    bool folder = false;
    for (const auto& [name, value] : model_.attributes()) {
      folder |= name == "hf.model_type";
      if (name != "hf.rope_parameters" && name != "rope_parameters") continue;
      const Rotation rotation = parse_rotation(value.to_text());
      if (!rotation.plain || !rotation.theta) continue;
      used_.push_back(name);
      return base::to_float(*rotation.theta);
    }
    if (!folder) return f32("rope_theta");
    out_.changes.push_back(
        {LossKind::attribute, indexed("attributes", "hf.rope_theta"), "none", "10000, as transformers takes it"});
    return kUsualTheta;
  }

  void derive_head_dim() {
    const std::uint32_t even = h_.head_count == 0 ? 0 : h_.hidden_size / h_.head_count;
    const auto found = find_stated(model_, "head_dim");
    h_.head_dim = u32("head_dim").value_or(even);
    if (found && found->key != key("head_dim") && h_.head_dim != even)
      block(found->key, found->value->to_text(),
            std::to_string(even) + ": the heads of an .slm share hidden_size evenly");
  }

  std::uint32_t stated(std::string_view field) {
    if (const auto value = u32(field)) return *value;
    block_missing(field, "the header of an .slm states it, and it cannot be derived from a tensor");
    return 0;
  }

  float f32(std::string_view field) {
    const auto found = stated_value(field);
    if (!found) {
      block_missing(field, "the header of an .slm states it, and it cannot be derived from a tensor");
      return 0;
    }
    const Value* const value = found->value;
    if (const auto number = value->as_f64()) {
      const float rounded = base::to_float(*number);
      // A text comes from a container without numbers. Its decimal stands for an f32, so rounding it to one is not a
      // loss.
      if (value->kind() != Value::Kind::text && static_cast<double>(rounded) != *number)
        out_.losses.push_back({LossKind::precision, indexed("attributes", found->key), value->to_text() + " (f64)",
                               Value::real(rounded, DType::f32).to_text() + " (f32)"});
      return rounded;
    }
    block(found->key, value->to_text(), "a number is needed");
    return 0;
  }

  // Taken from the attribute, else from a dimension of a tensor of rank 2.
  std::uint32_t size_in_tensor(std::string_view field, Role role, std::size_t dimension) {
    if (const auto value = u32(field)) return *value;
    const auto found = find_role(model_, role, 0);
    if (found && found->has_shape() && found->shape().size() == 2 && found->shape()[dimension] <= UINT32_MAX)
      return static_cast<std::uint32_t>(found->shape()[dimension]);
    block_missing(field, "neither this attribute nor a tensor \"" + spell(role, 0) + "\" of two dimensions has it");
    return 0;
  }

  std::uint32_t layers() {
    if (const auto value = u32("layer_count")) return *value;
    std::uint32_t layers = 0;
    for (std::uint32_t i = 0; i < model_.size(); ++i) {
      const auto n = layer_of(model_.name(i));
      if (n && *n < model_.size()) layers = std::max(layers, *n + 1);  // a model cannot have more layers than tensors
    }
    if (layers == 0) block_missing("layer_count", "neither this attribute nor a tensor \"layers.0. ...\" is there");
    return layers;
  }

  // M8. Without the attribute, the rows of wk give kv_head_count if they are fewer than hidden_size.
  void derive_kv() {
    const auto wk = find_role(model_, Role::wk, 0);
    std::uint64_t rows = h_.hidden_size;
    if (wk && wk->has_shape() && wk->shape().size() == 2) rows = wk->shape()[0];
    const auto attribute = u32("kv_head_count");
    const bool grouped = rows < h_.hidden_size && rows > 0 && h_.head_dim > 0 && rows % h_.head_dim == 0;
    h_.kv_head_count = attribute ? *attribute
                       : grouped ? static_cast<std::uint32_t>(rows / h_.head_dim)
                                 : h_.head_count;
    if (!grouped || rows != std::uint64_t{h_.kv_head_count} * h_.head_dim) return;
    kv_rows_ = rows;
    if (options_.slm.keep_gqa) {
      out_.changes.push_back(
          {LossKind::shape, "wk and wv", std::to_string(rows) + " rows",
           std::to_string(h_.hidden_size) + " rows, those added all zero; the original runtime refuses such a file"});
      return;
    }
    out_.changes.push_back({LossKind::attribute, indexed("attributes", key("kv_head_count")),
                            std::to_string(h_.kv_head_count),
                            std::to_string(h_.head_count) + ": each key and value head is repeated over its group"});
    repeated_from_ = h_.kv_head_count;
  }

  // Checks the header by the reader's own rules.
  void check() {
    Header whole = h_;
    whole.checksum = 1;
    Report report;
    core::Findings findings(report, core::Findings::Mode::all);
    check_fields(whole, findings);
    const auto tokenizer = model_.tokenizer();
    if (tokenizer && tokenizer->kind == Tokenizer::Kind::byte) check_special_tokens(whole, findings);
    for (const Finding& finding : report.findings())
      out_.blockers.push_back({LossKind::attribute, "the header", finding.found, finding.message});
    if (repeated_from_ != 0) h_.kv_head_count = h_.head_count;
  }

  const Model& model_;
  const Options& options_;
  core::WriteLayout& out_;
  const std::size_t before_;
  std::vector<std::string> used_;  // attributes that the header holds
  Header h_ = kNewHeader;
  std::uint64_t kv_rows_ = 0;
  std::uint32_t repeated_from_ = 0;
};

}  // namespace

Hyper derive_hyper(const Model& model, const Options& options, core::WriteLayout& out) {
  return Deriver(model, options, out).run();
}

}  // namespace weighbridge::slm_format
