// SPDX-License-Identifier: Apache-2.0
/// \file
/// What differs between two models, whatever their containers: tensors (by their values), metadata and tokenizers.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weighbridge/context.h"
#include "weighbridge/model.h"
#include "weighbridge/view.h"

namespace weighbridge {

/// How far diff() looks for a tensor of the other model.
enum class Match : std::uint8_t {
  names,    ///< by its name
  content,  ///< and by its content; reads tensors without a partner twice
  guess     ///< and then by guessing: a prefix missing in one of the names, or a unique shape
};

/// What to compare, and what counts as equal.
struct DiffOptions {
  /// If one of these is set, only values count: elements are equal if |b - a| <= atol + rtol * |b|, as in
  /// numpy.allclose, whatever the dtypes are.
  std::optional<double> atol{};
  std::optional<double> rtol{};  ///< likewise
  /// Compares bits: zeros of different signs differ, and so do NaNs with different bits, and metadata of different
  /// types. Excludes atol and rtol.
  bool exact = false;
  std::vector<std::string> only{};     ///< globs of the tensors to compare; empty: all
  std::vector<std::string> without{};  ///< globs of the tensors to leave out
  /// New names for tensors of the first model, under which they are compared with the second.
  std::vector<Renaming> rename{};
  /// The same by patterns, as ViewOptions::patterns.
  std::vector<std::string> patterns{};
  Match match = Match::guess;  ///< how to pair tensors whose names do not match
  /// Whether to look for permuted rows (a Llama's q and k in another order; also under another name, unless `match` is
  /// Match::names), transposed square matrices, and tensors that the other model stores once (tied).
  bool permuted = false;
  bool metadata = true;  ///< whether to compare metadata and tokenizers
  /// "llama": compare a Llama or a BERT by the names of llama.cpp, in both models, as Options::gguf gives them. Empty:
  /// by the names that they have.
  std::string naming{};

  /// Sets an option of OptionOf::diff (options.h), or adds to it, as ViewOptions::add().
  void add(std::string_view option, std::string_view text);
  void add(std::string_view option, std::string_view key, std::string_view value);  ///< likewise
};

/// How values changed from a to b. The numbers cover pairs of finite values, and are computed in f64. A complex element
/// counts as two. For 64-bit integers, `changed` is exact. Where both types have at most 16 bits and there is no
/// tolerance, max_abs is rounded to f32, and sums of squares are within 1.1e-6 of their value, relatively.
struct ValueDiff {
  std::uint64_t elements = 0;  ///< pairs
  std::uint64_t changed = 0;   ///< not equal by value: a NaN equals a NaN
  std::uint64_t beyond = 0;    ///< changed by more than the tolerance; `changed` without one
  std::uint64_t nans = 0;      ///< one of the two is NaN
  std::uint64_t infinite = 0;  ///< one of the two is infinite, or they are infinities of different signs
  double max_abs = 0;          ///< the largest |b - a|
  double max_relative = 0;     ///< the largest |b - a| / |a|, where a is not zero
  double rms = 0;              ///< the root of the mean of the squares of b - a
  double relative_rms = 0;     ///< the same, divided by the rms of a; NaN if both are 0
  double cosine = 1;           ///< similarity of a and b as vectors; NaN if one of them is zero
  double snr = 0;  ///< signal-to-noise ratio, 10 log10(sum a^2 / sum (b - a)^2); infinite if nothing changed
  std::optional<std::uint64_t> first{};    ///< row-major index, in a, of the first element that changed
  std::optional<std::uint64_t> largest{};  ///< index of the first element with the largest change
};

/// One tensor that differs between the models.
struct TensorDiff {
  /// The result.
  enum class Verdict : std::uint8_t {
    equal,        ///< no difference that counts: bits of zeros or NaNs, or changes within the tolerance
    different,    ///< a difference that counts
    only_a,       ///< the second model has no such tensor
    only_b,       ///< the first one has none
    incomparable  ///< this build cannot read its elements, or only one side is codes of a scheme: see `why`
  };
  /// How the partner was found.
  enum class By : std::uint8_t { name, content, guess };
  Verdict verdict = Verdict::equal;      ///< the result
  By by = By::name;                      ///< how the partner was found
  std::string name_a{};                  ///< empty if there is none; as `rename` has it
  std::string name_b{};                  ///< likewise
  std::string type_a{};                  ///< Tensor::type_name()
  std::string type_b{};                  ///< likewise
  std::vector<std::uint64_t> shape_a{};  ///< of the first
  std::vector<std::uint64_t> shape_b{};  ///< of the second
  bool renamed = false;                  ///< the names differ
  bool reshaped = false;                 ///< the shapes differ
  bool transposed = false;               ///< the values are compared with rows as columns
  bool permuted = false;                 ///< the rows of b are those of a in another order
  bool recast = false;                   ///< dtypes, block types or layouts differ
  bool changed = false;                  ///< values differ
  bool bits_only = false;                ///< values are equal; the bits of zeros or NaNs are not
  std::string tied_to{};                 ///< only_a, only_b: the tensor of the other model with the same content
  std::string order{};                   ///< permuted: which order of rows, if it is a known one
  std::string why{};                     ///< incomparable, or no `values`: why; or to which rows `values` are limited
  /// The scheme of which the elements are codes (scheme.h), in either model: then stored bytes are compared, and there
  /// are no `values`. Empty: they are values.
  std::string scheme{};
  /// If both have the same number of elements, or rows of the same shape: then of the rows that both have.
  std::optional<ValueDiff> values{};
};
std::string_view name(TensorDiff::Verdict) noexcept;  ///< "equal", "different", "only-a", "only-b", "incomparable"
std::string_view name(TensorDiff::By) noexcept;       ///< "name", "content", "guess"
std::string_view name(Match) noexcept;                ///< "names", "content", "guess"

/// One difference of metadata or of a tokenizer.
struct MetadataDiff {
  std::string key{};     ///< the attribute's key; for a tokenizer "kind", "size", "tokens", "merges" or "special.bos"
  std::string tensor{};  ///< for a tensor's own attribute
  std::string a{};       ///< as text, cut if long; empty with `only_b`
  std::string b{};       ///< likewise
  bool only_a = false;   ///< the second model has none
  bool only_b = false;   ///< the first has none
  std::optional<std::uint64_t> first{};  ///< for two lists: the index of the first item that differs
};

/// What diff() found.
struct Diff {
  /// Tensors that differ, in the order of the first model; those that only the second has come last.
  std::vector<TensorDiff> tensors{};
  /// Values that changed, then keys that only the first model has, then those of the second; each in their model's
  /// order.
  std::vector<MetadataDiff> metadata{};
  std::vector<MetadataDiff> tokenizer{};  ///< likewise
  std::uint64_t compared = 0;             ///< tensors with a partner, equal ones included
  std::uint64_t same = 0;                 ///< of these, equal ones that `tensors` leaves out
  std::uint64_t different = 0;            ///< tensors that differ, or are in one model only
  std::uint64_t incomparable = 0;         ///< tensors that could not be compared
  /// Codes of schemes with a partner: their stored bytes were compared, equal ones included.
  std::uint64_t codes = 0;
  std::vector<std::string> schemes{};  ///< of these, and of codes whose partner has values
  std::uint64_t moved = 0;             ///< tensors at another position, which does not count as a difference
  std::uint64_t bytes = 0;             ///< logical bytes of the tensors of the first model
  /// Nothing differs and everything could be compared.
  bool equal() const noexcept { return different == 0 && incomparable == 0 && metadata.empty() && tokenizer.empty(); }
  /// Something differs.
  bool differs() const noexcept { return different > 0 || !metadata.empty() || !tokenizer.empty(); }
};

/// [reads] Compares b with a. Tensors with the same name are compared in one pass over both, in constant memory; equal
/// bytes are not decoded. A transposed pair keeps one of its tensors in memory, within Limits::decoded, and so does a
/// sparse one. The result does not depend on the number of threads. Throws Error{misuse} for options that exclude one
/// another, a glob that no tensor of either model matches, or a renaming that matches no tensor of the first model;
/// Error{malformed} if a tensor's data is; Error{limit} if tensors share so many bytes that reading them exceeds
/// Limits::work.
Diff diff(const Model& a, const Model& b, const DiffOptions& = {}, const Context& = {});

/// Where two tensors differ: a grid of blocks over the matrix whose rows are the last dimension. The other dimensions
/// make the rows; a vector is one row.
struct DifferenceMap {
  /// The differences of the elements of one block.
  struct Block {
    double max_abs = 0;            ///< the largest |b - a| of finite numbers
    std::uint64_t changed = 0;     ///< numbers that are not equal by value, as ValueDiff::changed
    std::uint64_t not_finite = 0;  ///< of these, those of which one is NaN or infinite
    bool operator==(const Block&) const = default;
  };
  std::uint64_t rows = 0;          ///< of the matrix
  std::uint64_t columns = 0;       ///< likewise
  std::uint32_t grid_rows = 0;     ///< rows of the grid, at most `rows`
  std::uint32_t grid_columns = 0;  ///< columns of the grid, at most `columns`
  /// row by row; block (i, j) covers the rows [begin(i, rows, grid_rows), begin(i + 1, ...))
  std::vector<Block> blocks;
  /// The first of `of` rows or columns that block `i` of `blocks` covers.
  static std::uint64_t begin(std::uint32_t i, std::uint64_t of, std::uint32_t blocks) noexcept;
  bool operator==(const DifferenceMap&) const = default;
};

/// A pair of tensors that diff() compared, by the names in TensorDiff.
struct TensorPair {
  std::string_view a;  ///< TensorDiff::name_a
  std::string_view b;  ///< TensorDiff::name_b
};

/// [reads] The difference of two tensors over a grid of at most `grid_rows` x `grid_columns` blocks, from their
/// elements in order and with the names of these options, in one pass over both. The numbers are those of diff(): the
/// largest max_abs of a block is ValueDiff::max_abs, unless diff() found the tensor transposed or permuted.
/// @throws Error misuse: no such tensor, different numbers of elements, numbers that cannot be compared, or a grid
///   without blocks or with more than 1024 on a side; unsupported: elements that this build cannot read; and what
///   diff() throws.
DifferenceMap difference_map(const Model& a, const Model& b, const TensorPair&, std::uint32_t grid_rows,
                             std::uint32_t grid_columns, const DiffOptions& = {}, const Context& = {});

}  // namespace weighbridge
