// SPDX-License-Identifier: Apache-2.0
// The steps of diff(), which are one source each: which tensors correspond, how metadata differ, how elements differ.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/model/progress.h"
#include "core/payload/work.h"
#include "diff/values.h"
#include "weighbridge/diff.h"

namespace weighbridge::comparison {

// Which tensor of one model is compared with which of the other: the selection, new names, names, contents, guesses.

// The tensors of both models that are compared, and the first model under its new names.
struct Selection {
  Model a, b;
  std::vector<std::uint32_t> chosen_a, chosen_b;  // ascending
};
// [reads] The numbers of codes in place of the codes. Throws Error{misuse} for a glob that no tensor of either model
// matches, for DiffOptions::naming, and as view() does for renamings.
Selection select(const Model& a, const Model& b, const DiffOptions&, const Context&);

struct Partners {
  std::optional<std::uint32_t> a, b;
  TensorDiff::By by = TensorDiff::By::name;
  std::string tied_to{};  // only one is there: the tensor of the other model with its content
};
// [reads] In the order of a; those without a partner in a come last. Reads tensors only if Match::content or `permuted`
// asks for it, and only those that some other could equal.
std::vector<Partners> match(const Selection&, const DiffOptions&, const Context&);

// Differences of metadata and of tokenizers.

// With `exact`, values of different types differ; else those with the same text are equal.
std::vector<MetadataDiff> compare_metadata(const Model& a, const Model& b, bool exact);
// The attributes of a dense tensor that both models have.
void compare_attributes(const Tensor& a, const Tensor& b, bool exact, bool same_format, std::vector<MetadataDiff>& out);
std::vector<MetadataDiff> compare_tokenizers(const Model& a, const Model& b);

// Compares the elements of many pairs of tensors on the executor's threads. Large tensors whose bytes can be read at
// any offset are divided; the others are read by one thread each. The numbers do not depend on the division among
// threads.

// Two tensors with the same number of elements.
struct Pair {
  Elements a, b;
  bool in_order = true;  // the elements correspond in row-major order; else this pair is left out
  Compared found{};      // the result
};

// Whether both are stored in the same form, so that equal bytes of their parts mean equal elements; not for dense ones.
bool same_form(const Tensor& a, const Tensor& b);
// [reads] Whether two tensors of the same form have the same bytes.
bool same_parts(const Tensor& a, const Tensor& b, const Context&);
// What compare_pairs() will count, in bytes.
std::uint64_t bytes_to_compare(const Pair&);
// [reads] Fills in `found`. Where the bytes are the same, the sums of squares may be missing.
void compare_pairs(std::span<Pair> pairs, codecs::Tolerance, const Context&, core::Progress&);

}  // namespace weighbridge::comparison
