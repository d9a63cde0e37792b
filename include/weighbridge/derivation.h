// SPDX-License-Identifier: Apache-2.0
/// \file
/// Whether a GGUF file was made from a model: makes its tensors again as a conversion would, and compares every byte.
/// docs/gguf.md is the guide.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weighbridge/context.h"
#include "weighbridge/convert.h"
#include "weighbridge/diff.h"
#include "weighbridge/manifest.h"
#include "weighbridge/model.h"

namespace weighbridge {

/// A tensor that differs from the one that the source gives.
struct UnlikeTensor {
  /// How.
  enum class What : std::uint8_t {
    bytes,      ///< some of its blocks
    type,       ///< its type or its shape
    missing,    ///< the source gives it, and the file does not have it
    additional  ///< the file has it, and the source does not give it
  };
  What what = What::bytes;            ///< how
  std::string name{};                 ///< of the tensor
  std::string found{};                ///< its type and shape in the file; empty if it is missing
  std::string made{};                 ///< likewise of what the source gives
  std::uint64_t blocks = 0;           ///< that it has; elements, if its type has no blocks
  std::uint64_t unlike = 0;           ///< of these, those that differ
  std::uint64_t first = 0;            ///< index of the first of them
  std::optional<ValueDiff> values{};  ///< with DerivationOptions::values: how far the file's values are from those made
};
std::string_view name(UnlikeTensor::What) noexcept;  ///< "bytes", "type", "missing", "additional"

/// How to make the file again.
struct DerivationOptions {
  /// The matrix that the file was made with, if it was made with one.
  std::shared_ptr<const Source> imatrix{};
  /// What was given for the conversion. nullopt: the mix and the type of each tensor are read from the file.
  std::optional<Options> options{};
  bool with_matrix = false;  ///< it was made with a matrix, even if the file does not say so
  bool values = false;       ///< compare the values of the first tensors that differ, too
};

/// What derive_again() found.
struct Derivation {
  /// Why nothing is claimed: the file says that it was made with an importance matrix, and none was given. Then all
  /// else is empty.
  std::string unclaimed{};
  std::string quantize{};     ///< the mix that was made: "q4_k_m"; empty: nothing was quantized
  bool pure = false;          ///< without the exceptions of the mix
  bool imatrix = false;       ///< with an importance matrix
  std::uint64_t chosen = 0;   ///< tensors whose type is not that of the mix
  std::uint64_t tensors = 0;  ///< that were compared
  std::uint64_t bytes = 0;    ///< of these
  std::uint64_t as_ggml = 0;  ///< tensors with blocks that are equal with Options::gguf.as_ggml only
  /// Blocks that are equal only as builds of GGML for processors with FMA make them: docs/gguf.md
  std::uint64_t contracted = 0;
  std::uint64_t unlike = 0;                   ///< tensors that differ
  bool header = false;                        ///< the bytes before the tensors are also those that a conversion writes
  std::vector<UnlikeTensor> differences{};    ///< the first kMost of them, in the order of the file
  static constexpr std::size_t kMost = 1000;  ///< that `differences` holds
  /// Every byte is made again.
  bool derived() const noexcept { return unclaimed.empty() && unlike == 0 && tensors > 0; }
};

/// [reads] Makes the tensors of `file` from `source` as Plan::execute() would write them, one piece at a time, and
/// compares every byte. Metadata is not part of the claim: Derivation::header says whether it is equal too. Throws
/// Error{misuse} if `file` is no GGUF or the source cannot be converted, Error{unsupported} if it has a type that this
/// build does not make, and what plan() and reading throw.
Derivation derive_again(const Model& file, const Model& source, const DerivationOptions& = {}, const Context& = {});

/// [reads] What a statement says was given, with the matrix if there is one; `source` becomes the view that was
/// converted. Throws Error{malformed} with the rule "statement/source", "statement/subject" or "statement/imatrix" if
/// the statement is about another source, file or matrix, and Error{unsupported} "statement/option" for an option that
/// is not repeated.
DerivationOptions stated_options(const Statement&, const Source& file, Model& source,
                                 std::shared_ptr<const Source> imatrix = {}, const Context& = {});
/// [reads] The statement about a file that was made from `source` with these options, by name and value. It has the
/// digests of both, and of files that options name.
Statement state(const std::string& file, const Model& source, std::vector<std::pair<std::string, std::string>> options,
                const Context& = {});

}  // namespace weighbridge
