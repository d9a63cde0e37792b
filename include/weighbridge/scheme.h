// SPDX-License-Identifier: Apache-2.0
/// \file
/// Quantization schemes that spread a weight over several tensors: codes, and the scales, zeros and maps that complete
/// them (FP8 with scales, AWQ, GPTQ, bitsandbytes, HQQ, Quanto, torchao, MLX, compressed-tensors, NVFP4, MXFP4).
///
/// They are recognized when a model is opened: from the names, dtypes and shapes of its tensors, and from what its
/// config says. Views keep what was recognized, whatever they select or rename. Codes are copied as they are, and can
/// be read in their own dtype; what needs their values (a cast, statistics, a language model) is Error{unsupported}
/// with a rule that ends in "/scheme" and a message that names the scheme. Formats whose own types hold codes with
/// their scales, GGUF's blocks and zTensor's quantized layouts, are not schemes: their tensors have values.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

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
