// SPDX-License-Identifier: Apache-2.0
// Models that a plan derives from its input before it lays them out, and what it says of codes that it copies. All are
// views: tensors stay where they are, and values are computed while they are read.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/view.h"
#include "core/reading/format.h"
#include "core/writing/layout.h"
#include "weighbridge/context.h"
#include "weighbridge/convert.h"
#include "weighbridge/model.h"

namespace weighbridge::convert {

// What plans say of tensors that are codes of a scheme (core/model/coded.h): they are copied as they are, with what
// completes them, or not at all.

// Whether the options, or the target (which takes every tensor for numbers), need the values of tensors.
bool needs_values(const Options&, std::string_view target) noexcept;
// The options of a copy.
Options without_values(Options);

// Of a layout of `model`: codes that the writer would change or leave out become blockers, which name the scheme. Codes
// that the output does not show as such are losses. In a container of another format than `from`, copied codes are a
// change that is listed.
void check_codes(core::WriteLayout&, const Model& model, std::string_view from, std::string_view to);

// Layers of GPTQ and of AWQ's gemm, of three or four tensors, as one quantized_group each, and back. Both are views:
// what has the same bits stays where it is, the rest is computed while it is read.

// A scheme whose layers are meant.
struct LayerScheme {
  std::string_view id;       // "gptq" or "awq"
  std::string_view zeros{};  // of GPTQ: "auto", "v1" or "v2", as OpenOptions::scheme says
};
// [reads] What recipes::matches_of() reads. A layer that no quantized_group holds stays, and a change says why. Throws
// Error{misuse} if the model has no such layer, or does not say how GPTQ's zeros are stored.
core::Derived groups_of_layers(const Model&, std::span<const LayerScheme>, const Context&);
// The reverse. A tensor that states the scheme that it had becomes that again if it is one of these, else one of the
// first. Reading qzeros may throw Error "convert/gptq-zeros" or "convert/awq-zeros".
core::Derived layers_of_groups(const Model&, std::span<const LayerScheme>);

// For a target GGUF: layers whose codes and scales are those of a block type of GGML, as such blocks. [reads] Their
// scales. The model itself if values are asked for (Options::cast, dequantize). With Options::quantize, only layers
// that fit that type. A layer that does not fit stays, and a change says why.
core::Derived blocks_for_gguf(const Model&, const Options&, const Context&);

// Quantized tensors as dense ones: a view whose values are computed while they are read.

// `to` is Options::dequantize. Tensors that this build cannot interpret stay what they are. Throws Error with rule
// "convert/nothing-quantized" if no tensor is quantized.
core::Derived dequantized(const Model&, DType to);

// What a loss of layout becomes: "dense f16".
inline constexpr std::string_view kDense = "dense ";
std::string dense_text(DType);

// The change that a factor stays a tensor of its own when `tensor`, one of the model, becomes dense: llama.cpp
// multiplies the product with an nvfp4 matrix `x.weight` by the one number of `x.scale`. nullopt: there is none.
std::optional<Item> factor_stays(const Model&, const Tensor& tensor);

// A sentence encoder as the runtime and other containers take it: with the tensors of the modules that a folder of
// sentence-transformers keeps in files of their own, and with today's names of norms. Views: tensors stay where they
// are.

// The tensors of the modules under the names of their folders, "2_Dense.linear.weight". The model itself if its
// attribute sentence_modules has none, or if it has their tensors. A file that is missing is left to who needs its
// tensors. [reads] Throws what open() throws.
core::Derived with_modules(const Model&, const Context&);

// LayerNorm.gamma and LayerNorm.beta, the names that TensorFlow's checkpoints had, become LayerNorm.weight and
// LayerNorm.bias, as transformers reads them. Other tensors called gamma keep their names. The model itself if it is no
// BERT, or if a tensor has the new name already.
core::Derived with_norm_names(const Model&);

// Settings of the folder that a program which has only the tensors and the usual metadata would not follow, as blockers
// of a conversion to such a container.
std::vector<Item> refused_settings(const Model&);

}  // namespace weighbridge::convert
