// SPDX-License-Identifier: Apache-2.0
// Hyperparameters.
#include "formats/slm/hyper.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <utility>

#include "core/plan_text.h"
#include "formats/slm/header.h"
#include "formats/slm/names.h"

namespace weighbridge::slm {
namespace {

using core::indexed;

constexpr std::string_view kLayers = "layers.";

class Deriver {
 public:
  Deriver(const Model& model, const Options& options, core::WriteLayout& out)
      : model_(model), options_(options), out_(out), before_(out.blockers.size()) {}

  Hyper run() {
    h_.model_type = u32("model_type").value_or(kModelType);
    h_.flags = u32("flags").value_or(0);
    h_.special_token_count = u32("special_token_count").value_or(kMinSpecialTokens);
    h_.vocab_size = tensor_tells("vocab_size", spell(Role::tok_embeddings, 0), 0);
    h_.hidden_size = tensor_tells("hidden_size", spell(Role::tok_embeddings, 0), 1);
    h_.ffn_size = tensor_tells("ffn_size", spell(Role::w1, 0), 0);
    h_.layer_count = layers();
    h_.head_count = stated("head_count");
    h_.max_context = stated("max_context");
    h_.rope_theta = f32("rope_theta");
    h_.rms_norm_epsilon = f32("rms_norm_epsilon");
    const auto dim = u32("head_dim");
    h_.head_dim = dim ? *dim : h_.head_count == 0 ? 0 : h_.hidden_size / h_.head_count;
    derive_kv();
    drop_others();
    if (out_.blockers.size() == before_) check();
    return {h_, kv_rows_};
  }

 private:
  static std::string key(std::string_view field) { return std::string(kPrefix) + std::string(field); }
  void block(std::string_view field, std::string from, std::string to) {
    out_.blockers.push_back({LossKind::attribute, indexed("attributes", key(field)), std::move(from), std::move(to)});
  }

  std::optional<std::uint32_t> u32(std::string_view field) {
    const Value* const value = model_.attributes().find(key(field));
    if (!value) return std::nullopt;
    const auto number = value->as_u64();
    if (number && *number <= UINT32_MAX) return static_cast<std::uint32_t>(*number);
    block(field, value->to_text(), "a whole number below 2^32 is needed");
    return 0;
  }

  std::uint32_t stated(std::string_view field) {
    if (const auto value = u32(field)) return *value;
    block(field, "missing", "the header states it, and no tensor tells");
    return 0;
  }

  float f32(std::string_view field) {
    const Value* const value = model_.attributes().find(key(field));
    if (!value) {
      block(field, "missing", "the header states it, and no tensor tells");
      return 0;
    }
    if (const auto number = value->as_f64()) {
      const float rounded = static_cast<float>(*number);
      // Text is of a container that holds no numbers: its shortest decimal stands for the f32.
      if (value->kind() != Value::Kind::text && static_cast<double>(rounded) != *number)
        out_.losses.push_back({LossKind::precision, indexed("attributes", key(field)), value->to_text(),
                               Value::real(rounded, DType::f32).to_text()});
      return rounded;
    }
    block(field, value->to_text(), "a number is needed");
    return 0;
  }

  // The attribute, else a dimension of a tensor of rank 2.
  std::uint32_t tensor_tells(std::string_view field, const std::string& tensor, std::size_t dimension) {
    if (const auto value = u32(field)) return *value;
    const auto found = model_.find(tensor);
    if (found && found->has_shape() && found->shape().size() == 2 && found->shape()[dimension] <= UINT32_MAX)
      return static_cast<std::uint32_t>(found->shape()[dimension]);
    block(field, "missing", "neither this attribute nor a tensor \"" + tensor + "\" of two dimensions tells");
    return 0;
  }

  std::uint32_t layers() {
    if (const auto value = u32("layer_count")) return *value;
    std::uint32_t layers = 0;
    for (std::uint32_t i = 0; i < model_.size(); ++i) {
      const std::string_view name = model_[i].name();
      if (!name.starts_with(kLayers)) continue;
      std::uint32_t n = 0;
      const auto [end, error] = std::from_chars(name.data() + kLayers.size(), name.data() + name.size(), n);
      const bool whole = error == std::errc() && end != name.data() + name.size() && *end == '.';
      if (whole && n < model_.size()) layers = std::max(layers, n + 1);  // more layers than tensors are none
    }
    if (layers == 0) block("layer_count", "missing", "neither this attribute nor a tensor \"layers.0. ...\" tells");
    return layers;
  }

  // M8. Without the attribute, fewer rows in wk than hidden_size tell.
  void derive_kv() {
    const auto wk = model_.find(spell(Role::wk, 0));
    std::uint64_t rows = h_.hidden_size;
    if (wk && wk->has_shape() && wk->shape().size() == 2) rows = wk->shape()[0];
    const auto attribute = u32("kv_head_count");
    const bool grouped = rows < h_.hidden_size && rows > 0 && h_.head_dim > 0 && rows % h_.head_dim == 0;
    h_.kv_head_count = attribute ? *attribute
                       : grouped ? static_cast<std::uint32_t>(rows / h_.head_dim)
                                 : h_.head_count;
    if (!grouped || rows != std::uint64_t{h_.kv_head_count} * h_.head_dim) return;
    kv_rows_ = rows;
    if (options_.keep_gqa) {
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

  void drop_others() {
    for (const auto& [name, value] : model_.attributes().entries()) {
      bool held = false;
      for (const U32Field& f : kU32Fields) held |= f.attribute && name == key(f.name);
      for (const F32Field& f : kF32Fields) held |= name == key(f.name);
      if (!held)
        out_.losses.push_back({LossKind::attribute, indexed("attributes", name), value.to_text(),
                               "dropped: an .slm holds its header's fields only"});
    }
  }

  // By the reader's own rules.
  void check() {
    Header whole = h_;
    whole.checksum = 1;
    Report report;
    core::Findings findings(report, core::Findings::Mode::all);
    check_fields(whole, findings);
    for (const Finding& finding : report.findings())
      out_.blockers.push_back({LossKind::attribute, "the header", finding.found, finding.message});
    if (repeated_from_ != 0) h_.kv_head_count = h_.head_count;
  }

  const Model& model_;
  const Options& options_;
  core::WriteLayout& out_;
  const std::size_t before_;
  Header h_;
  std::uint64_t kv_rows_ = 0;
  std::uint32_t repeated_from_ = 0;
};

}  // namespace

Hyper derive_hyper(const Model& model, const Options& options, core::WriteLayout& out) {
  return Deriver(model, options, out).run();
}

}  // namespace weighbridge::slm
