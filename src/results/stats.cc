// SPDX-License-Identifier: Apache-2.0
// statistics() and histogram(): stream a tensor's elements into codecs' accumulator and into intervals. Of a sparse
// tensor those that are stored; the others are counted.
#include "weighbridge/stats.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "base/checked.h"
#include "base/fail.h"
#include "codecs/cast.h"
#include "codecs/stats.h"
#include "core/model/coded.h"
#include "core/model/draft.h"
#include "core/model/progress.h"
#include "core/payload/content.h"
#include "core/payload/dense.h"
#include "core/payload/extents.h"
#include "core/payload/work.h"
#include "io/read.h"
#include "weighbridge/scheme.h"
#include "weighbridge/verify.h"
#include "wire/json_reader.h"

namespace weighbridge {
namespace {

bool is_wide(DType dtype) { return dtype == DType::f64 || dtype == DType::complex128; }

// All real types below f64 fit f32, whose shortest decimal form is the familiar one.
Value value_of(const codecs::StatNumber& number, DType dtype) {
  if (const auto* u = std::get_if<std::uint64_t>(&number)) return Value::integer(*u);
  if (const auto* i = std::get_if<std::int64_t>(&number)) return Value::integer(*i);
  return Value::real(std::get<double>(number), is_wide(dtype) ? DType::f64 : DType::f32);
}

std::uint64_t elements_of(const Tensor& t) {
  std::uint64_t product = 1;
  for (const std::uint64_t dim : t.shape()) product *= dim;  // no overflow: opening checked the size
  return product;
}

bool is_complex(DType dtype) { return dtype == DType::complex64 || dtype == DType::complex128; }

// The nearest double, as for the elements themselves.
double number_of(const Value& value) {
  if (const auto real = value.as_f64()) return *real;
  if (const auto whole = value.as_i64()) return static_cast<double>(*whole);
  return static_cast<double>(value.as_u64().value_or(0));
}

}  // namespace

Stats statistics(const Tensor& tensor, const Context& context) {
  core::require_values(tensor, "its elements are not the numbers of a weight, and have no statistics");
  const DType dtype = tensor.dtype();
  codecs::StatsAccumulator accumulator(dtype, elements_of(tensor));
  const auto take = [&](std::span<const std::byte> piece) {
    accumulator.update(piece);
    return true;
  };
  if (core::is_sparse(tensor)) {
    const std::uint64_t parts = is_complex(dtype) ? 2 : 1;
    accumulator.zeros(core::stream_stored(tensor, context, take) * parts);
  } else {
    tensor.stream_dense(dtype, context, take);
  }
  const codecs::Statistics found = accumulator.finish();
  Stats stats;
  stats.elements = found.elements;
  stats.zeros = found.zero;
  stats.nans = found.nan;
  stats.infinities = found.infinite;
  stats.mean = found.mean;
  if (found.finite == 0) return stats;
  stats.min = value_of(found.min, dtype);
  stats.max = value_of(found.max, dtype);
  return stats;
}

namespace {

void require_bins(std::uint32_t bins) {
  if (bins == 0 || bins > 65536) base::misuse("histogram", "a histogram has 1 to 65536 intervals");
}

// Casts pieces of whole elements on their way to `sink`.
std::function<bool(std::span<const std::byte>)> as_doubles(
    const Tensor& tensor, const std::function<bool(std::span<const std::byte>)>& sink) {
  return [dtype = tensor.dtype(), sink](std::span<const std::byte> piece) {
    constexpr std::size_t kElementsAtOnce = 4096;
    const std::size_t width = info(dtype).bits / 8;
    std::vector<std::byte> doubles(kElementsAtOnce * sizeof(double));
    for (std::size_t n = 0; piece.size() >= width; piece = piece.subspan(n * width)) {
      n = std::min(kElementsAtOnce, piece.size() / width);
      const auto out = std::span(doubles).first(n * sizeof(double));
      if (!codecs::cast(dtype, piece.first(n * width), DType::f64, out, n).ok())
        base::misuse("cast", "an element does not fit a double");
      if (!sink(out)) return false;
    }
    return true;
  };
}

// Calls each(value) for the elements as doubles. Returns how many zeros a sparse tensor has besides.
template <class Each> std::uint64_t for_each_double(const Tensor& tensor, const Context& context, Each each) {
  const auto take = [&](std::span<const std::byte> piece) {
    for (; piece.size() >= sizeof(double); piece = piece.subspan(sizeof(double))) {
      double value = 0;
      std::memcpy(&value, piece.data(), sizeof value);
      each(value);
    }
    return true;
  };
  if (core::is_sparse(tensor)) return core::stream_stored(tensor, context, as_doubles(tensor, take));
  tensor.stream_dense(DType::f64, context, take);
  return 0;
}

// Fills in the histogram, the standard deviation and the dead rows from the extremes and the mean.
void distribute(const Tensor& tensor, std::uint32_t bins, const Context& context, Stats& stats) {
  if (stats.min.kind() == Value::Kind::null) return;
  Histogram out{number_of(stats.min), number_of(stats.max), std::vector<std::uint64_t>(bins)};
  // Halves, because the distance of two finite numbers may overflow.
  const double half = out.to / 2 - out.from / 2;
  double squares = 0;  // of distances from the mean, as parts of `half`, so that none overflows
  std::uint64_t finite = 0;
  const Shape shape = tensor.shape();
  // There are elements. Those of a sparse tensor do not come by rows.
  const std::uint64_t row = shape.size() < 2 || core::is_sparse(tensor) ? 0 : elements_of(tensor) / shape[0];
  std::uint64_t left = row;
  bool dead = true;
  const auto add = [&](double value, std::uint64_t times) {
    if (!std::isfinite(value)) return;
    const double place = half > 0 ? (value / 2 - out.from / 2) / half * bins : 0;
    out.counts[std::min(static_cast<std::uint32_t>(place), bins - 1)] += times;
    const double distance = half > 0 ? (value / 2 - stats.mean / 2) / half : 0;
    squares += distance * distance * static_cast<double>(times);
    finite += times;
  };
  const std::uint64_t zeros = for_each_double(tensor, context, [&](double value) {
    dead = dead && value == 0;
    if (row > 0 && --left == 0) {
      stats.dead_rows += dead ? 1U : 0U;
      left = row;
      dead = true;
    }
    add(value, 1);
  });
  if (zeros > 0) add(0, zeros);
  if (finite > 0) stats.std = half * (2 * std::sqrt(squares / static_cast<double>(finite)));
  stats.histogram = std::move(out);
}

constexpr double kFar = 6;  // standard deviations

// Reads the tensor only if an extreme is an outlier.
void count_outliers(const Tensor& tensor, const Context& context, Stats& stats) {
  const Histogram& all = stats.histogram;
  const double far = kFar * stats.std;
  const auto is_far = [&](double value) { return std::isfinite(value) && std::abs(value - stats.mean) > far; };
  if (all.counts.empty() || !(stats.std > 0) || !(is_far(all.from) || is_far(all.to))) return;
  const std::uint64_t zeros =
      for_each_double(tensor, context, [&](double value) { stats.outliers += is_far(value) ? 1U : 0U; });
  if (is_far(0)) stats.outliers += zeros;
}

// As elements_of(), for tensors that opening did not check; 0 if it is too large a number.
std::uint64_t known_elements_of(const Tensor& tensor) {
  std::optional<std::uint64_t> product = 1;
  for (const std::uint64_t dim : tensor.shape())
    if (product) product = base::checked_mul(*product, dim);
  return product.value_or(0);
}

// The architecture by the metadata of a Hugging Face folder, which conversions keep, or by the format.
std::string architecture_of(const Model& model) {
  const auto text = [&](std::string_view key) {
    const Value* const value = model.attribute(key);
    return value == nullptr ? std::string() : value->to_text();
  };
  // A JSON list of one name, as a rule.
  const std::string list = text("hf.architectures");
  const std::size_t begin = list.find('"'), end = begin == list.npos ? begin : list.find('"', begin + 1);
  if (list.starts_with('[') && end != list.npos) return list.substr(begin + 1, end - begin - 1);
  if (std::string type = text("hf.model_type"); !type.empty()) return type;
  if (model.format() == "embd") return "bert";
  return model.format() == "slm" || model.format() == "llama2c" ? "llama" : std::string();
}

void add_stated(Summary& out, const Model& model) {
  constexpr std::string_view kContext[] = {"max_position_embeddings", "context_length", "max_context",
                                           "max_seq_length"};
  for (const auto& [key, value] : model.attributes()) {
    const std::string_view last = std::string_view(key).substr(key.rfind('.') + 1);
    if (std::ranges::find(kContext, last) != std::end(kContext) && out.context_length == 0)
      out.context_length = wire::as_u64(value.to_text()).value_or(0);
    if (last == "vocab_size" && out.vocabulary == 0) out.vocabulary = wire::as_u64(value.to_text()).value_or(0);
    if (last == "license" && out.license.empty()) out.license = value.to_text();
    out.chat_template = out.chat_template || key.find("chat_template") != key.npos;
  }
  for (const core::FolderFile& file : core::folder_files(model))
    out.chat_template = out.chat_template || file.name.find("chat_template") != file.name.npos;
}

std::uint64_t bytes_of(const Tensor& tensor) {
  std::uint64_t bytes = 0;
  for (const Part& part : tensor.parts()) bytes += part.size();
  return bytes;
}

// For each of the tensors, the position of the first one with the same stored elements, which has the same statistics.
std::vector<std::size_t> first_equals(const Model& model, std::span<const std::uint32_t> tensors) {
  std::vector<std::size_t> first(tensors.size());
  std::iota(first.begin(), first.end(), std::size_t{0});
  std::vector<core::Range> ranges;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Tensor tensor = model[tensors[i]];
    if (tensor.unsupported() || tensor.layout() != Layout::dense || tensor.part_count() != 1) continue;
    if (core::is_codes(tensor)) continue;
    if (const auto extent = tensor.part(0).extent())
      ranges.push_back({extent->source, extent->offset, extent->length, static_cast<std::uint32_t>(i)});
  }
  const core::Range* before = nullptr;
  core::Extents(std::move(ranges)).walk([&](const core::Range& here, core::Relation relation, const core::Range*) {
    if (relation == core::Relation::alias) {
      // Of tensors that alternate between two types, all have one of these two before them.
      for (const std::size_t like : {first[before->item], std::size_t{before->item}})
        if (core::same_elements(model[tensors[like]].part(0), model[tensors[here.item]].part(0))) {
          first[here.item] = first[like];
          break;
        }
    }
    before = &here;
  });
  return first;
}

}  // namespace

std::vector<Stats> statistics(const Model& model, std::span<const std::uint32_t> tensors, const Context& context,
                              std::uint32_t bins) {
  if (bins > 0) require_bins(bins);
  const std::uint64_t passes = bins > 0 ? 3 : 1;
  const std::vector<std::size_t> first = first_equals(model, tensors);
  core::Work work;
  std::uint64_t total = 0;
  std::vector<std::size_t> distinct;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Tensor tensor = model[tensors[i]];
    if (first[i] != i || tensor.unsupported() || core::is_codes(tensor)) continue;
    distinct.push_back(i);
    for (std::uint64_t pass = 0; pass < passes; ++pass)
      for (const Part& part : tensor.parts()) work.add(part);
    total += passes * bytes_of(tensor);
  }
  work.require(context.limits);
  std::vector<Stats> stats(tensors.size());
  core::Progress progress(context, total);
  core::executor_of(context).for_each(distinct.size(), [&](std::uint64_t at) {
    const std::size_t i = distinct[base::to_size(at)];
    const Tensor tensor = model[tensors[i]];
    const std::uint64_t maximum = bytes_of(tensor);
    const auto pass = [&](auto read) {
      std::uint64_t counted = 0;
      Context inner = progress.inner();
      inner.progress = [&](std::uint64_t now, std::uint64_t) {
        progress.add(std::min(now, maximum) - counted);
        counted = std::max(counted, std::min(now, maximum));
        return true;
      };
      read(inner);
      progress.add(maximum - counted);
    };
    pass([&](const Context& inner) { stats[i] = statistics(tensor, inner); });
    if (bins == 0) return;
    pass([&](const Context& inner) {
      if (!is_complex(tensor.dtype())) distribute(tensor, bins, inner, stats[i]);
    });
    pass([&](const Context& inner) { count_outliers(tensor, inner, stats[i]); });
  });
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    stats[i] = stats[first[i]];
    if (const Tensor tensor = model[tensors[i]]; core::is_codes(tensor)) stats[i].scheme = core::coded(tensor)->name;
  }
  progress.finish();
  return stats;
}

Histogram histogram(const Tensor& tensor, std::uint32_t bins, const Context& context) {
  require_bins(bins);
  if (is_complex(tensor.dtype()))
    base::misuse("histogram", "complex numbers have no order that a histogram could show");
  Stats stats = statistics(tensor, context);
  distribute(tensor, bins, context, stats);
  return stats.histogram;
}

namespace {
// A file that cannot be read is found by others.
std::uint64_t numbers_of(const core::Coded& codes) {
  try {
    return core::parameters_of(codes);
  } catch (const Error&) {
    return codes.parameters;
  }
}
}  // namespace

void read_all(Verdict& verdict, const Context& context) {
  const auto begin = std::chrono::steady_clock::now();
  const Model& model = verdict.model;
  std::vector<std::uint32_t> numbers;
  std::vector<core::Range> counted;
  for (std::uint32_t i = 0; i < model.size(); ++i) {
    const Tensor tensor = model[i];
    if (tensor.unsupported() || core::is_codes(tensor)) continue;
    numbers.push_back(i);
    for (const Part& part : tensor.parts())
      if (const auto at = part.extent()) counted.push_back({at->source, at->offset, at->length, i});
  }
  // What is between and behind the tensors whose values are counted.
  const auto sources = model.sources();
  std::vector<std::uint64_t> ends(sources.size());
  const auto read = [&](std::uint32_t source, std::uint64_t to) {
    const std::uint64_t from = ends[source];
    if (to <= from) return;
    io::read_pieces(*sources[source], from, to, [&](std::uint64_t, std::span<const std::byte>) {
      core::check_cancelled(context);
      return true;
    });
  };
  core::Extents(std::move(counted)).walk([&](const core::Range& here, core::Relation, const core::Range*) {
    read(here.source, here.offset);
    ends[here.source] = std::max(ends[here.source], here.end());
  });
  for (std::uint32_t i = 0; i < sources.size(); ++i) read(i, sources[i]->size());
  const std::vector<Stats> stats = statistics(model, numbers, context);
  for (std::size_t i = 0; i < stats.size(); ++i) {
    if (stats[i].nans == 0) continue;
    Finding finding;
    finding.rule = "values/nan";
    finding.severity = Severity::warning;
    finding.message = std::to_string(stats[i].nans) + " of " + std::to_string(stats[i].elements) + " values are NaN";
    finding.tensor = model.name(numbers[i]);
    finding.has_tensor = true;
    verdict.report.add(std::move(finding));
  }
  for (const auto& source : sources) source->check_unchanged();
  verdict.checks.push_back(
      {"every byte and value", std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()});
  if (verdict.report.valid()) verdict.checked += verdict.checked.empty() ? "" : "; every byte was read";
}

Summary summarize(const Model& model) {
  Summary out;
  out.architecture = architecture_of(model);
  add_stated(out, model);
  if (const auto tokenizer = model.tokenizer())
    out.vocabulary = tokenizer->tokens.size() == 0 ? tokenizer->vocab_size : tokenizer->tokens.size();
  std::map<std::string_view, Summary::Share> shares;
  std::map<std::string_view, std::uint64_t> quantized;
  std::vector<std::uint32_t> all(model.size());
  std::iota(all.begin(), all.end(), 0U);
  const std::vector<std::size_t> first = first_equals(model, all);
  for (std::uint32_t i = 0; i < model.size(); ++i) {
    const Tensor tensor = model[i];
    const StoredWeight* const weight = stored_weight(tensor);
    Summary::Share& share = shares[weight != nullptr ? std::string_view(weight->text) : tensor.type_name()];
    const std::uint64_t elements = tensor.has_shape() ? known_elements_of(tensor) : 0;
    ++share.tensors;
    share.elements += elements;
    const std::uint64_t bytes = weight != nullptr ? weight->bytes : bytes_of(tensor);
    share.bytes += bytes;
    if (weight != nullptr) quantized[weight->text] += bytes;
    if (tensor.block_type() != nullptr) quantized[tensor.type_name()] += bytes;
    if (const core::Coded* const mark = core::coded(tensor)) {
      if (mark->codes) quantized[mark->name] += bytes, out.parameters += numbers_of(*mark);
      continue;
    }
    if (first[i] != i) continue;
    const DType dtype = tensor.dtype();
    const bool counts = dtype == DType::unknown || is_complex(dtype) || info(dtype).kind == DTypeKind::real;
    if (counts) out.parameters += elements;
  }
  for (auto& [dtype, share] : shares) {
    share.dtype = dtype;
    out.dtypes.push_back(std::move(share));
  }
  std::ranges::stable_sort(out.dtypes, std::greater{}, &Summary::Share::bytes);
  const auto most =
      std::ranges::max_element(quantized, [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most != quantized.end()) out.quantization = most->first;
  return out;
}

}  // namespace weighbridge
