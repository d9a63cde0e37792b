// SPDX-License-Identifier: Apache-2.0
/// \file
/// What is specific to .slm models: fixtures of known sizes, and adapter packages (ADP1, ASP1, ALR1;
/// src/formats/slm_adapter/README.md). open() and plan() read and write .slm itself.
#pragma once
#include <optional>
#include <span>
#include <string_view>

#include "weighbridge/context.h"
#include "weighbridge/convert.h"
#include "weighbridge/model.h"

namespace weighbridge::slm {

/// Deterministic f32 models for tests and experiments; plan(..., "slm", {.quantize = ...}) makes the other dtypes.
enum class Fixture : std::uint8_t {
  tiny,       ///< 260 tokens, width 8, 1 layer, feed-forward 16: 12 tensors, 4,824 parameters
  tiny_tied,  ///< the same without output.weight: 11 tensors, 2,744 parameters
  tiny_bpe,   ///< tiny with a BPE1 tokenizer of 272 ids
  tinylm16m   ///< width 512, 4 layers, 8 heads, feed-forward 2048, context 512: 39 tensors, 17,048,064 parameters
};
std::string_view name(Fixture) noexcept;                              ///< "tiny", "tiny-tied", "tiny-bpe", "tinylm16m"
std::optional<Fixture> fixture_from_name(std::string_view) noexcept;  ///< as name() spells it
Model fixture(Fixture);                                               ///< the model, held in memory

/// How a package stores its deltas.
enum class AdapterKind : std::uint8_t {
  dense,    ///< ADP1: tensors with the base's shapes
  sparse,   ///< ASP1: the nonzero elements
  low_rank  ///< ALR1: products of two narrow matrices
};
std::string_view name(AdapterKind) noexcept;                                   ///< "adp1", "asp1", "alr1"
std::optional<AdapterKind> adapter_kind_from_name(std::string_view) noexcept;  ///< as name() spells it

/// [reads] Plans a package for `base`, which was opened from an .slm, from deltas in any container, named like the
/// base's tensors. dense: tensors with the base's shapes. sparse: the same, or sparse_coo tensors; zeros are left out.
/// low_rank: NAME.lora_a [rows, r] and NAME.lora_b [r, columns], delta = A x B. Integers are refused; other floats
/// become f32. Error{misuse}: a name or shape that the base lacks. The deltas of a sparse package are held in memory.
Plan plan_adapter(const Model& base, const Model& deltas, AdapterKind, const Options& = {}, const Context& = {});

/// [reads] The base with packages added in the order given. Tensors that no package changes are shared with the base;
/// the others are f32, held in memory within limits.decoded. All checks happen before the result exists, and the base
/// never changes. Error{malformed}: an invalid package. Error{misuse} "misuse/adapter-...": a package for another
/// model, or a sum that is not finite.
Model adapt(const Model& base, std::span<const Model> packages, const Context& = {});

}  // namespace weighbridge::slm
