// SPDX-License-Identifier: Apache-2.0
/// \file
/// Low-rank adapters (LoRA) merged into a model. Owns Lora, open_lora() and merge_lora(). The result is a Model, whose
/// changed tensors are computed while they are read, one block of rows at a time.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "weighbridge/context.h"
#include "weighbridge/dtype.h"
#include "weighbridge/model.h"

namespace weighbridge {

/// An adapter: changes of a model's tensors, each a product of two narrow matrices. Adapters of peft, kohya's scripts
/// and llama.cpp (GGUF) are read, and ALR1 packages for an .slm (slm.h).
struct Lora {
  Model adapter{};       ///< with its tensors
  std::string config{};  ///< the text of peft's adapter_config.json; empty: the adapter has none
  double scale = 1;      ///< multiplies the changes; must be finite, and 1 for an ALR1 package
  /// whether the adapter's own embeddings may have another number of rows than the model's: the vocabulary was resized
  /// before the training
  bool resize_vocab = false;
};
/// [reads] The adapter at a path: a file, or a folder that peft wrote. Also reads adapter_config.json beside it.
Lora open_lora(const std::string& path, double scale = 1, const Context& = {});
/// [reads] The same from "PATH" or "PATH=SCALE". Error{misuse}: a scale that is not a finite number.
Lora lora_from_text(std::string_view text, const Context& = {});

/// The model with the changes of adapters added: each change is summed in f64 over the inner rank in ascending order,
/// scaled and added to the value in the order given, and the sum is rounded once to the tensor's dtype. An ALR1 package
/// is added as slm::adapt() adds it, with the same bits. Tensors that no adapter changes are the model's own. Reads
/// only the scales. The payload is read when a tensor is used, with the two matrices of its change in memory (within
/// limits.decoded).
/// @param dequantize changed tensors that are quantized become dense tensors of this dtype: f32, f16 or bf16, or
///   unknown: their own. Options::dequantize does this for the others. nullopt: they are an error. Weights that are
///   codes of a scheme (scheme.h) become dense in any case
/// @throws Error misuse "misuse/lora-...": a change that fits no tensor of the model, shapes that disagree, a kind of
///   adapter that is not low-rank (DoRA, LoHa, LoKr, ...), values that are not finite; values that overflow their dtype
///   are found only while they are read.
Model merge_lora(const Model&, std::span<const Lora>, std::optional<DType> dequantize = {}, const Context& = {});

}  // namespace weighbridge
