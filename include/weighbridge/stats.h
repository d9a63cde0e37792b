// SPDX-License-Identifier: Apache-2.0
/// \file
/// Statistics and histograms of a tensor's elements, in constant memory.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "weighbridge/context.h"
#include "weighbridge/model.h"
#include "weighbridge/value.h"

namespace weighbridge {

struct Verdict;

/// The number of finite elements in each of several equal intervals between the least and the greatest one. Interval i
/// begins at from + i * (to - from) / counts.size(); the last one includes its end. `counts` is empty if no element is
/// finite.
struct Histogram {
  double from = 0;                    ///< the least finite element
  double to = 0;                      ///< the greatest one
  std::vector<std::uint64_t> counts;  ///< one for each interval
  bool operator==(const Histogram&) const = default;
};

/// Statistics of a tensor's elements. Min, max and mean leave out NaN and infinities. A complex element counts as two
/// numbers.
struct Stats {
  std::uint64_t elements = 0;    ///< all of them
  std::uint64_t zeros = 0;       ///< of either sign
  std::uint64_t nans = 0;        ///< not a number
  std::uint64_t infinities = 0;  ///< of either sign
  Value min;        ///< exact: an integer for integers and booleans, else real; null if no element is finite
  Value max;        ///< likewise
  double mean = 0;  ///< 0 if no element is finite
  /// The standard deviation of the finite elements (of all of them, not of a sample). 0 if there is no histogram.
  double std = 0;
  Histogram histogram{};  ///< empty unless it was asked for, and for complex numbers
  /// Finite elements further than six standard deviations from the mean. 0 if there is no histogram.
  std::uint64_t outliers = 0;
  /// Rows of the slowest dimension whose elements are all zero, of a tensor with two dimensions or more; 0 if there is
  /// no histogram.
  std::uint64_t dead_rows = 0;
  /// The scheme of which the elements are codes (scheme.h); then there are no numbers. Empty: they are values.
  std::string scheme{};
  bool operator==(const Stats&) const = default;
};

/// [reads] Statistics of the dense form: a quantized tensor is dequantized, and the zeros of a sparse one count. Throws
/// the same errors as Tensor::stream_dense(), and Error{unsupported} for codes of a scheme. Context::progress counts
/// the bytes of this tensor.
Stats statistics(const Tensor&, const Context& = {});

/// [reads] Statistics of several tensors of a model, in this order, on the executor's threads: one thread for each.
/// Dense tensors with the same stored elements are read once. Unsupported tensors keep empty counts, and so do codes of
/// a scheme, which it names. With `bins`, 1 to
/// 65536, each is read a second time, for Stats::std, Stats::dead_rows and a histogram of that many intervals, and a
/// third time if it has outliers. Throws also Error{limit} if tensors share so many bytes that reading them exceeds
/// Limits::work.
std::vector<Stats> statistics(const Model&, std::span<const std::uint32_t> tensors, const Context& = {},
                              std::uint32_t bins = 0);

/// [reads] Reads the dense form twice, the first time for the extremes. `bins` is 1 to 65536. Error{misuse}: complex
/// numbers, which have no order.
Histogram histogram(const Tensor&, std::uint32_t bins, const Context& = {});

/// [reads] Reads what verify() did not need: every byte of the model's files once, for bad sectors, and every value.
/// Adds the warning "values/nan" for each tensor with NaN to the report. Throws also what statistics() throws.
void read_all(Verdict&, const Context& = {});

/// What a model is, by its metadata.
struct Summary {
  /// Tensors of one dtype.
  struct Share {
    std::string dtype;           ///< as Tensor::type_name(), or StoredWeight::text
    std::uint64_t tensors = 0;   ///< of this dtype
    std::uint64_t elements = 0;  ///< in them, where shapes are known
    std::uint64_t bytes = 0;     ///< of all their parts, decoded
    bool operator==(const Share&) const = default;
  };
  std::string architecture;  ///< as the metadata names it ("BertModel", "llama"); empty if it does not
  /// Elements of the tensors that are not integers or booleans. Of codes of a scheme, the numbers that they stand for;
  /// what completes codes does not count, and tensors with the same stored elements (tied ones) count once.
  std::uint64_t parameters = 0;
  std::vector<Share> dtypes;         ///< the one with the most bytes first
  std::uint64_t context_length = 0;  ///< tokens of a text, as the metadata states it; 0 if it does not
  bool chat_template = false;        ///< whether the metadata or a file of the folder has one
  std::string license;               ///< as the metadata names it; empty if it does not
  std::uint64_t vocabulary = 0;      ///< tokens of the tokenizer, or as the metadata states it; 0 if neither does
  std::string quantization;          ///< of most quantized bytes: a scheme or a block type; empty if there are none
  bool operator==(const Summary&) const = default;
};
/// Of all its tensors. [reads] Where a small tensor says the shape of packed codes, that one; from what is not
/// readable, an estimate.
Summary summarize(const Model&);

}  // namespace weighbridge
