// SPDX-License-Identifier: Apache-2.0
// A language model computed plainly, in double, to compare runtimes with; and a model with its weights dequantized.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "weighbridge/convert.h"
#include "weighbridge/model.h"

namespace weighbridge::test {

using Matrix = std::vector<double>;

// Reading M9 step by step, one token at a time, in double.
class PlainLlama {
 public:
  explicit PlainLlama(const Model& model) : model_(model) {
    hidden_ = number("hidden_size"), layers_ = number("layer_count"), heads_ = number("head_count");
    kv_heads_ = number("kv_head_count"), head_ = number("head_dim"), ffn_ = number("ffn_size");
    epsilon_ = *model.attribute("slm.rms_norm_epsilon")->as_f64();
    theta_ = *model.attribute("slm.rope_theta")->as_f64();
    keys_.resize(layers_), values_.resize(layers_);
  }

  Matrix feed(std::uint32_t id) {
    const Matrix& table = of("tok_embeddings.weight");
    Matrix x(table.begin() + static_cast<std::ptrdiff_t>(id * hidden_),
             table.begin() + static_cast<std::ptrdiff_t>((id + 1) * hidden_));
    for (std::size_t l = 0; l < layers_; ++l) {
      const std::string at = "layers." + std::to_string(l) + ".";
      const Matrix n = norm(x, of(at + "attention_norm.weight"));
      Matrix q = times(of(at + "wq.weight"), n), k = times(of(at + "wk.weight"), n), v = times(of(at + "wv.weight"), n);
      turn(q, heads_), turn(k, kv_heads_);
      keys_[l].push_back(k), values_[l].push_back(v);
      add(x, times(of(at + "wo.weight"), attend(q, l)));
      const Matrix m = norm(x, of(at + "ffn_norm.weight"));
      Matrix gate = times(of(at + "w1.weight"), m);
      const Matrix up = times(of(at + "w3.weight"), m);
      for (std::size_t i = 0; i < gate.size(); ++i) gate[i] = gate[i] / (1 + std::exp(-gate[i])) * up[i];
      add(x, times(of(at + "w2.weight"), gate));
    }
    ++position_;
    const bool tied = (*model_.attribute("slm.flags")->as_u64() & 1U) != 0;
    return times(tied ? table : of("output.weight"), norm(x, of("norm.weight")));
  }

 private:
  std::size_t number(const char* field) const {
    return static_cast<std::size_t>(*model_.attribute("slm." + std::string(field))->as_u64());
  }
  const Matrix& of(const std::string& name) {
    const auto [at, is_new] = tensors_.try_emplace(name);
    if (is_new) {
      const Array array = model_[name].to_dense(DType::f32);
      const auto* values = reinterpret_cast<const float*>(array.data.get());
      at->second.assign(values, values + array.size / sizeof(float));
    }
    return at->second;
  }
  static Matrix times(const Matrix& w, const Matrix& x) {
    Matrix out(w.size() / x.size());
    for (std::size_t i = 0; i < out.size(); ++i)
      for (std::size_t j = 0; j < x.size(); ++j) out[i] += w[i * x.size() + j] * x[j];
    return out;
  }
  static void add(Matrix& x, const Matrix& y) {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += y[i];
  }
  Matrix norm(const Matrix& x, const Matrix& weight) const {
    double squares = 0;
    for (const double value : x) squares += value * value;
    const double by = 1 / std::sqrt(squares / static_cast<double>(x.size()) + epsilon_);
    Matrix out(x);
    for (std::size_t i = 0; i < x.size(); ++i) out[i] *= by * weight[i];
    return out;
  }
  void turn(Matrix& x, std::size_t heads) const {
    for (std::size_t h = 0; h < heads; ++h)
      for (std::size_t i = 0; i < head_; i += 2) {
        const double angle =
            static_cast<double>(position_) * std::pow(theta_, -static_cast<double>(i) / static_cast<double>(head_));
        double &a = x[h * head_ + i], &b = x[h * head_ + i + 1];
        const double old = a;
        a = a * std::cos(angle) - b * std::sin(angle);
        b = old * std::sin(angle) + b * std::cos(angle);
      }
  }
  Matrix attend(const Matrix& q, std::size_t layer) const {
    Matrix out(hidden_);
    for (std::size_t h = 0; h < heads_; ++h) {
      const std::size_t at = h / (heads_ / kv_heads_) * head_;
      Matrix weight;
      double total = 0;
      for (const Matrix& k : keys_[layer]) {
        double score = 0;
        for (std::size_t d = 0; d < head_; ++d) score += q[h * head_ + d] * k[at + d];
        weight.push_back(std::exp(score / std::sqrt(static_cast<double>(head_))));
        total += weight.back();
      }
      for (std::size_t p = 0; p < weight.size(); ++p)
        for (std::size_t d = 0; d < head_; ++d) out[h * head_ + d] += weight[p] / total * values_[layer][p][at + d];
    }
    return out;
  }

  const Model& model_;
  std::map<std::string, Matrix> tensors_;
  std::size_t hidden_, layers_, heads_, kv_heads_, head_, ffn_, position_ = 0;
  double epsilon_, theta_;
  std::vector<std::vector<Matrix>> keys_, values_;
};

// The same model with every tensor dense in f32.
inline Model dequantized(const Model& model) {
  Builder builder;
  for (const auto& [key, value] : model.attributes()) builder.attribute(std::string(key), value);
  if (model.tokenizer() != nullptr) builder.tokenizer(*model.tokenizer());
  for (std::uint32_t i = 0; i < model.size(); ++i) {
    const Tensor tensor = model[i];
    const auto held = std::make_shared<Array>(tensor.to_dense(DType::f32));
    builder.tensor(std::string(tensor.name()), DType::f32, {tensor.shape().begin(), tensor.shape().end()},
                   Bytes{{held->data.get(), static_cast<std::size_t>(held->size)}, held});
  }
  return builder.build();
}

}  // namespace weighbridge::test
