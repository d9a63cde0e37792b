// SPDX-License-Identifier: Apache-2.0
// diff(): matches tensors, compares each pair, and judges what was found.
#include "weighbridge/diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <span>
#include <utility>

#include "base/checked.h"
#include "base/fail.h"
#include "core/model/coded.h"
#include "core/model/progress.h"
#include "core/payload/work.h"
#include "diff/steps.h"

namespace weighbridge {
namespace {

using comparison::Compared, comparison::Elements, comparison::Pair, comparison::Partners, comparison::is_too_sparse;
using Verdict = TensorDiff::Verdict;

void check(const DiffOptions& options) {
  for (const auto& tolerance : {options.atol, options.rtol})
    if (tolerance && !(*tolerance >= 0 && std::isfinite(*tolerance)))
      base::misuse("option", "a tolerance is a finite number, 0 or more");
  if (options.exact && (options.atol || options.rtol))
    base::misuse("option", "an exact comparison has no tolerance: choose one of the two");
}

// For vectors that are near each other, computed from their difference, which keeps the digits after 0.999.
double cosine(double xx, double yy, double dd, double xy) {
  const double x = std::sqrt(xx), y = std::sqrt(yy);
  const double out = 4 * dd < xx ? 1 - (dd - (x - y) * (x - y)) / (2 * x * y) : xy / (x * y);
  return std::clamp(out, -1.0, 1.0);
}

ValueDiff numbers(const codecs::PairDifferences& d) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  ValueDiff out;
  out.elements = d.pairs;
  out.snr = std::numeric_limits<double>::infinity();
  if (d.changed == 0) return out;
  const double xx = d.xx.total(), yy = d.yy.total(), dd = d.dd.total();
  out.changed = d.changed;
  out.beyond = d.beyond;
  out.nans = d.nans;
  out.infinite = d.infinite;
  out.max_abs = d.max_abs;
  out.max_relative = d.max_rel;
  out.rms = d.finite > 0 ? std::sqrt(dd / static_cast<double>(d.finite)) : 0;
  out.relative_rms = dd == 0 && xx == 0 ? kNone : std::sqrt(dd / xx);
  out.cosine = xx > 0 && yy > 0 ? cosine(xx, yy, dd, d.xy.total()) : kNone;
  if (dd > 0) out.snr = 10 * std::log10(xx / dd);
  if (d.first != codecs::PairDifferences::kNone) out.first = d.first;
  if (d.largest != codecs::PairDifferences::kNone) out.largest = d.largest;
  return out;
}

// A complex element is two numbers; an index is that of the element.
void index_elements(ValueDiff& values, DType dtype) {
  if (info(dtype).kind != DTypeKind::complex) return;
  if (values.first) *values.first /= 2;
  if (values.largest) *values.largest /= 2;
}

bool same_type(const Tensor& a, const Tensor& b) {
  if (a.block_type() || b.block_type()) return a.block_type() == b.block_type();
  return a.layout() == b.layout() && a.layout_name() == b.layout_name() && a.dtype() == b.dtype();
}

bool is_reversed(const std::vector<std::uint64_t>& a, const std::vector<std::uint64_t>& b) {
  return a.size() == 2 && b.size() == 2 && a[0] == b[1] && a[1] == b[0];
}
bool is_matrix(const std::vector<std::uint64_t>& shape) { return shape.size() == 2 && shape[0] > 1 && shape[1] > 1; }

class Differ {
 public:
  Differ(comparison::Selection in, const DiffOptions& options, const Context& context)
      : in_(std::move(in)),
        options_(options),
        context_(context),
        tolerance_{options.atol.value_or(0), options.rtol.value_or(0)} {}

  Diff run() {
    const std::vector<Partners> partners = comparison::match(in_, options_, context_);
    core::Progress progress(context_, require_work(partners));
    for (std::size_t at = 0; at < partners.size(); at += kBatch) {
      const auto batch = std::span(partners).subspan(at, std::min(kBatch, partners.size() - at));
      found_.clear();
      pair_of_.clear();
      pairs_.clear();
      for (const Partners& partner : batch) prepare(partner);
      comparison::compare_pairs(pairs_, tolerance_, context_, progress);
      for (std::size_t k = 0; k < found_.size(); ++k)
        if (pair_of_[k]) finish(found_[k], pairs_[*pair_of_[k]], progress);
      for (TensorDiff& found : found_) judge(found);
    }
    progress.finish();
    out_.moved = moved(partners);
    if (!options_.metadata) return std::move(out_);
    auto metadata = comparison::compare_metadata(in_.a, in_.b, options_.exact);
    std::move(out_.metadata.begin(), out_.metadata.end(), std::back_inserter(metadata));
    out_.metadata = std::move(metadata);
    out_.tokenizer = comparison::compare_tokenizers(in_.a, in_.b);
    for (auto* const list : {&out_.metadata, &out_.tokenizer})
      std::ranges::stable_sort(*list, {}, [](const MetadataDiff& each) {
        return each.only_b ? 2 : each.only_a ? 1 : 0;
      });
    return std::move(out_);
  }

 private:
  static constexpr std::size_t kBatch = 4096;  // tensors whose handles are held at once

  // Returns the bytes to read. Throws if tensors share so many that the job would never end.
  std::uint64_t require_work(const std::vector<Partners>& partners) const {
    core::Work work_a, work_b;
    std::uint64_t total = 0;
    for (const Partners& partner : partners) {
      if (!partner.a || !partner.b) continue;
      const Tensor a = in_.a[*partner.a], b = in_.b[*partner.b];
      if (a.unsupported() || b.unsupported() || core::is_codes(a) || core::is_codes(b)) {
        for (const Part& part : a.parts()) work_a.add(part);
        for (const Part& part : b.parts()) work_b.add(part);
        continue;
      }
      Elements from = comparison::elements_of(a), to = comparison::elements_of(b);
      comparison::keep_common_rows(from, to);
      if (from.count != to.count || is_too_sparse(from, context_.limits) || is_too_sparse(to, context_.limits))
        continue;
      comparison::add_work(work_a, from);
      comparison::add_work(work_b, to);
      total += from.stream.size + to.stream.size;
    }
    work_a.require(context_.limits);
    work_b.require(context_.limits);
    return total;
  }

  // Describes the tensors, and adds the pair to compare, if there is one.
  void prepare(const Partners& partner) {
    TensorDiff& found = found_.emplace_back();
    pair_of_.emplace_back();
    found.by = partner.by;
    found.tied_to = partner.tied_to;
    describe(partner.a, in_.a, found.name_a, found.type_a, found.shape_a);
    describe(partner.b, in_.b, found.name_b, found.type_b, found.shape_b);
    if (partner.a)
      for (const Part& part : in_.a[*partner.a].parts()) out_.bytes += part.size();
    if (!partner.a || !partner.b) {
      found.verdict = partner.a ? Verdict::only_a : Verdict::only_b;
      return;
    }
    ++out_.compared;
    const Tensor a = in_.a[*partner.a], b = in_.b[*partner.b];
    found.renamed = found.name_a != found.name_b;
    found.recast = !same_type(a, b);
    found.reshaped = a.has_shape() && b.has_shape() && found.shape_a != found.shape_b;
    if (options_.metadata)
      comparison::compare_attributes(a, b, options_.exact, in_.a.format() == in_.b.format(), out_.metadata);
    if (a.unsupported() || b.unsupported()) return compare_stored(a, b, found);
    if (core::is_codes(a) || core::is_codes(b)) return compare_codes(a, b, found);
    Pair pair{comparison::elements_of(a), comparison::elements_of(b)};
    if (const std::uint64_t rows = comparison::keep_common_rows(pair.a, pair.b); rows > 0)
      found.why = fmt::format("of the first {} rows, which both have", rows);
    if (pair.a.count != pair.b.count) {
      found.changed = true;
      found.why = fmt::format("{} elements became {}", pair.a.count, pair.b.count);
      return;
    }
    if (!codecs::can_pair(pair.a.dtype, pair.b.dtype)) {
      found.changed = true;
      found.why = "complex numbers are not compared with real ones";
      return;
    }
    for (const Elements* const side : {&pair.a, &pair.b})
      if (is_too_sparse(*side, context_.limits)) {
        core::Progress progress(context_, 0);  // two threads read, and the hook expects one at a time
        if (comparison::same_form(a, b) && comparison::same_parts(a, b, progress.inner())) return;
        found.verdict = Verdict::incomparable;
        found.why =
            fmt::format("the dense form of a sparse tensor takes {} bytes, more than the limit of {} for memory",
                        side->stream.size, context_.limits.memory);
        return;
      }
    pair.in_order = !(pair.a.shape != pair.b.shape && is_reversed(found.shape_a, found.shape_b) &&
                      is_matrix(found.shape_a) && found.reshaped);
    pair_of_.back() = pairs_.size();
    pairs_.push_back(std::move(pair));
  }

  static void describe(std::optional<std::uint32_t> i, const Model& model, std::string& name, std::string& type,
                       std::vector<std::uint64_t>& shape) {
    if (!i) return;
    const Tensor tensor = model[*i];
    name = tensor.name();
    type = tensor.type_name();
    shape = comparison::shape_of(tensor);
  }

  // What cannot be read is still the same if its stored bytes are.
  void compare_stored(const Tensor& a, const Tensor& b, TensorDiff& found) {
    const bool same = a.unsupported() && b.unsupported() && comparison::same_stored(a, b, context_);
    if (same) {
      found.recast = false;
      return;
    }
    found.verdict = Verdict::incomparable;
    found.why = (a.unsupported() ? a.unsupported() : b.unsupported())->message;
  }

  // Codes are the same if their stored bytes are. What they stand for is not known, so there are no numbers.
  void compare_codes(const Tensor& a, const Tensor& b, TensorDiff& found) {
    const auto mark_of = [](const Tensor& tensor) { return core::is_codes(tensor) ? core::coded(tensor) : nullptr; };
    const core::Coded *const from = mark_of(a), *const to = mark_of(b);
    found.scheme = (from ? from : to)->name;
    if (std::ranges::find(out_.schemes, found.scheme) == out_.schemes.end()) out_.schemes.push_back(found.scheme);
    if (!from || !to || from->id != to->id) {
      found.verdict = Verdict::incomparable;
      found.why = (from ? from : to)->name + " in " + (from ? "A" : "B") + ": codes that other tensors complete; " +
                  (from && to ? to->name + " in B" : std::string("values in ") + (from ? "B" : "A"));
      return;
    }
    ++out_.codes;
    const bool same = !found.recast && !found.reshaped && comparison::same_bytes(stored(a), stored(b), context_);
    found.changed = !same;
    found.why = found.scheme + ", stored bytes are " + (same ? "equal" : "not equal");
  }
  static comparison::Stream stored(const Tensor& tensor) { return comparison::stream_of(tensor.main()); }

  // The numbers of a pair, and the orders of elements that one pass does not find.
  void finish(TensorDiff& found, Pair& pair, core::Progress& progress) {
    if (!pair.in_order) {
      reverse(found, pair, progress);
    } else if (options_.permuted && pair.found.values.changed > 0 && !found.reshaped) {
      permute(found, pair, progress);
    }
    ValueDiff values = numbers(pair.found.values);
    index_elements(values, pair.a.dtype);
    found.changed = values.changed > 0;
    found.bits_only = !found.changed && !found.recast && !found.transposed && !pair.found.same_bits;
    found.values = values;
  }

  // A matrix whose shape is reversed has been transposed, unless its elements in order are nearer.
  void reverse(TensorDiff& found, Pair& pair, core::Progress& progress) {
    const Context inner = progress.inner();
    Compared turned = comparison::compare_transposed(pair.a, pair.b, tolerance_, inner);
    found.transposed = true;
    if (turned.values.changed > 0) {
      Compared plain =
          comparison::compare(pair.a, pair.b, tolerance_, inner, [&](std::uint64_t bytes) { progress.add(bytes); });
      if (is_nearer(plain, turned)) {
        found.transposed = false;
        turned = std::move(plain);
      }
    }
    pair.found = std::move(turned);
  }
  static bool is_nearer(const Compared& a, const Compared& b) {
    return std::pair(a.values.dd.total(), a.values.changed) < std::pair(b.values.dd.total(), b.values.changed);
  }

  void permute(TensorDiff& found, Pair& pair, core::Progress& progress) {
    if (pair.a.shape.size() < 2) return;
    const Context inner = progress.inner();
    if (is_matrix(pair.a.shape) && pair.a.shape[0] == pair.a.shape[1]) {
      Compared turned = comparison::compare_transposed(pair.a, pair.b, tolerance_, inner);
      // A hundredth of the error, or none: it would not become that small by chance.
      if (turned.values.changed == 0 || 1e4 * turned.values.dd.total() < pair.found.values.dd.total()) {
        found.transposed = true;
        pair.found = std::move(turned);
        return;
      }
    }
    const comparison::RowOrder order = comparison::find_row_order(pair.a, pair.b, inner);
    if (!order.permuted) return;
    found.permuted = true;
    found.order = order.name;
    const std::uint64_t pairs = pair.found.values.pairs;
    pair.found = {};
    pair.found.values.pairs = pairs;
  }

  void judge(TensorDiff& found) {
    if (found.verdict == Verdict::equal) {  // so far: see prepare()
      const bool moved = found.renamed || found.reshaped || found.transposed || found.permuted;
      const bool content = options_.exact                   ? found.recast || found.changed || found.bits_only
                           : options_.atol || options_.rtol ? found.changed && !is_within(found)
                                                            : found.recast || found.changed;
      found.verdict = moved || content ? Verdict::different : Verdict::equal;
      if (found.verdict == Verdict::equal && !found.recast && !found.changed && !found.bits_only) {
        ++out_.same;
        return;
      }
    }
    if (found.verdict == Verdict::incomparable)
      ++out_.incomparable;
    else if (found.verdict != Verdict::equal)
      ++out_.different;
    out_.tensors.push_back(std::move(found));
  }
  static bool is_within(const TensorDiff& found) { return found.values && found.values->beyond == 0; }

  // How many of the tensors that both have would have to change places: those outside the longest run of the second
  // model's order.
  static std::uint64_t moved(const std::vector<Partners>& partners) {
    std::vector<std::uint32_t> ends;  // the least last place of an ascending run of each length
    std::uint64_t both = 0;
    for (const Partners& partner : partners) {
      if (!partner.a || !partner.b) continue;
      ++both;
      const auto at = std::ranges::lower_bound(ends, *partner.b);
      at == ends.end() ? ends.push_back(*partner.b) : static_cast<void>(*at = *partner.b);
    }
    return both - ends.size();
  }

  const comparison::Selection in_;
  const DiffOptions& options_;
  const Context& context_;
  const codecs::Tolerance tolerance_;
  std::vector<TensorDiff> found_;
  std::vector<std::optional<std::size_t>> pair_of_;  // of each of found_
  std::vector<Pair> pairs_;
  Diff out_;
};

}  // namespace

std::string_view name(Verdict verdict) noexcept {
  switch (verdict) {
    case Verdict::equal: return "equal";
    case Verdict::different: return "different";
    case Verdict::only_a: return "only-a";
    case Verdict::only_b: return "only-b";
    case Verdict::incomparable: break;
  }
  return "incomparable";
}
std::string_view name(TensorDiff::By by) noexcept {
  return by == TensorDiff::By::name ? "name" : by == TensorDiff::By::content ? "content" : "guess";
}
std::string_view name(Match match) noexcept {
  return match == Match::names ? "names" : match == Match::content ? "content" : "guess";
}

Diff diff(const Model& a, const Model& b, const DiffOptions& options, const Context& context) {
  check(options);
  return Differ(comparison::select(a, b, options, context), options, context).run();
}

}  // namespace weighbridge
