// SPDX-License-Identifier: Apache-2.0
// What an adapter changes in a model: which tensor each pair of factors belongs to, by the naming of the program that
// wrote the adapter, and how the factors are scaled. Owns StoredAdapter and Change. lora.cc computes the sums.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/slm_adapter/layout.h"
#include "weighbridge/context.h"
#include "weighbridge/lora.h"
#include "weighbridge/model.h"

namespace weighbridge::convert {

// How peft begins the names of modules, and the two files of its adapters.
inline constexpr std::string_view kPeftPrefix = "base_model.model.", kPeftConfig = "adapter_config.json",
                                  kLoraAlpha = "adapter.lora.alpha", kWordEmbeddings = "token_embd.weight";

// Without a fraction if there is none.
std::string number_text(double);
[[noreturn]] void refuse_adapter(const Lora&, std::string_view what, std::string message);

// The two factors of a module, and kohya's scale.
struct FactorPair {
  std::string stem;
  std::optional<Tensor> down{}, up{}, alpha{};
  bool transposed = false;  // of an embedding: the product is [columns, rows]
  bool is_gguf = false, is_mlx = false;
};
struct AdapterConfig;
// The tensors of an adapter file, and what the file beside it says.
class StoredAdapter {
 public:
  // Throws Error{misuse} "misuse/lora-..." for an adapter that is not a plain LoRA.
  explicit StoredAdapter(const Lora&);

  const std::vector<FactorPair>& pairs() const noexcept { return pairs_; }
  // Tensors that replace the base's: modules_to_save and biases of peft.
  const std::vector<Tensor>& whole() const noexcept { return whole_; }
  bool has_config() const noexcept { return config_ != nullptr; }
  bool stores_transposed() const noexcept;  // fan_in_fan_out
  bool trains_tokens() const noexcept;      // trainable_token_indices
  // The tokens whose rows of a module's embedding were trained.
  const std::vector<std::uint64_t>& tokens_of(std::string_view module) const;

  // A product is multiplied by alpha / divisor, or by `factor` in place of both. The divisor is the rank, or its root.
  struct Scaling {
    double alpha = 1, divisor = 1;
    std::optional<double> factor{};  // of mlx-lm
  };
  // [reads] Reads kohya's scale.
  Scaling scaling_of(const FactorPair&, std::string_view module, std::uint64_t rank, const Context&) const;

 private:
  void check_gguf() const;
  double scalar(const Tensor&, const Context&) const;

  const Lora& lora_;
  std::shared_ptr<const AdapterConfig> config_;
  std::vector<FactorPair> pairs_;
  std::vector<Tensor> whole_;
};

// A factor of a change. It has two or more dimensions; all but the first count as one.
struct Factor {
  Tensor tensor{};
  std::string role{};    // the part that is the factor; empty if the whole tensor is
  bool by_rank = false;  // stored with the inner rank as the first dimension
};

// One change of a tensor.
struct Change {
  std::uint32_t target = 0;  // in the base
  Factor left{}, right{};    // [rows, rank], [rank, columns]
  std::uint64_t rows = 0, columns = 0;
  std::uint64_t first_row = 0;  // of the target, that changes
  std::uint64_t rank = 0;       // 0: left.tensor replaces the target, or those of its rows
  double scale = 1;
  std::vector<std::uint64_t> tokens{};  // the rows of the target that the rows of left.tensor replace
  std::optional<Tensor> base{};         // the adapter's own form of the target, to which the change is made
  bool rounds = false;                  // rounds the change, and then the sum, to f32: reading M13
  bool replaces_all() const noexcept { return rank == 0 && tokens.empty(); }
};

// The changes of one adapter, in the order of its tensors. Reads the scales. Throws Error{misuse} "misuse/lora-...".
std::vector<Change> changes_of(const Model& base, const Lora&, const Context&);

// The identity of its base model that an adapter package stores (reading M13).

// [reads] The identity of the .slm file that `base` was opened from: header, directory and tokenizer section. Throws a
// usage error if the file is no .slm.
slm_adapter::Identity identity_of(const Model& base);
// Throws Error{misuse} unless the package was made for the model with this identity.
void require_identity(const slm_adapter::Identity& base, const Model& package);

}  // namespace weighbridge::convert
