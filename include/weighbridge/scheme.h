// SPDX-License-Identifier: Apache-2.0
/// \file
/// Quantization schemes that spread a weight over several tensors: codes, and the scales, zeros and maps that complete
/// them (FP8 with scales, AWQ, GPTQ, bitsandbytes, HQQ, Quanto, torchao, MLX, compressed-tensors, NVFP4, MXFP4).
///
/// They are recognized when a model is opened: from the names, dtypes and shapes of its tensors, and from what its
/// config says. Views keep what was recognized, whatever they select or rename. Codes are copied as they are, and can
/// be read in their own dtype. logical() is the model with the numbers that they stand for, and conversions and
/// runtimes use it. What needs the values of codes that are not decoded is Error{unsupported} with a rule that ends in
/// "/scheme" and a message that names the scheme: docs/quantized.md. Formats whose own types hold codes with
/// their scales, GGUF's blocks and zTensor's quantized layouts, are not schemes: their tensors have values.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "weighbridge/context.h"
#include "weighbridge/model.h"

namespace weighbridge {

/// What a tensor is to a scheme.
struct TensorScheme {
  std::string id;       ///< stable: "fp8", "awq", "bitsandbytes-nf4", "other" (what only a config names)
  std::string name;     ///< for people: "FP8 with scales", "GPTQ (auto-round)"
  bool codes = false;   ///< the weight itself; else it completes codes
  bool opaque = false;  ///< its numbers say nothing by themselves: codes, and integers that complete them
  bool operator==(const TensorScheme&) const = default;
};
/// nullopt: the elements are values.
std::optional<TensorScheme> scheme_of(const Tensor&);

/// The model with the numbers that its codes stand for. Each weight of a scheme that this build decodes is one dense
/// tensor, in the type to which the library that made it decodes it, with the bits of that library; the tensors that it
/// is made of are gone. Codes that this build does not decode, or whose files leave something open that
/// OpenOptions::scheme does not say, stay as they are. A view: values are computed while they are read. [reads] Small
/// tensors that state shapes, groups and maps.
/// @param as what the weights are read as: where it is another dtype than theirs, they are f32 before the last rounding
Model logical(const Model&, const Context& = {}, DType as = DType::unknown);

/// The model with what its files leave open of quantization schemes, as OpenOptions::scheme says it. Error{misuse}: no
/// scheme has the name, or the question.
Model with_scheme(const Model&, std::span<const std::string> options);

/// How the files store a weight of logical().
struct StoredWeight {
  std::string id;                    ///< as TensorScheme::id
  std::string text;                  ///< for people: "fp8 128x128", "gptq 4-bit g128"
  std::vector<std::string> tensors;  ///< that it is made of, the codes first
  std::uint64_t bytes = 0;           ///< of all of them
  bool operator==(const StoredWeight&) const = default;
};
/// Null: the tensor is not computed from codes. Lives as long as a handle.
const StoredWeight* stored_weight(const Tensor&) noexcept;

/// A scheme that a model uses.
struct ModelScheme {
  std::string id;                ///< as TensorScheme::id
  std::string name;              ///< as TensorScheme::name
  std::uint64_t codes = 0;       ///< tensors that are codes
  std::uint64_t companions = 0;  ///< tensors that complete them
  bool operator==(const ModelScheme&) const = default;
};
/// Of all tensors; the scheme with the most codes first.
std::vector<ModelScheme> schemes_of(const Model&);

/// Whether a tensor holds numbers, rather than texts or objects of a program. What takes many tensors at once leaves
/// the latter out, and names them.
bool is_numeric(const Tensor& tensor) noexcept;

}  // namespace weighbridge
