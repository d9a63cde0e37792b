// SPDX-License-Identifier: Apache-2.0
// Applies adapter packages to their base model (reading M13): checks that they match, then adds in f32.
#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "base/checked.h"
#include "base/endian.h"
#include "base/fail.h"
#include "codecs/indexed_checksum.h"
#include "convert/adapter.h"
#include "core/model/draft.h"
#include "core/model/words.h"
#include "core/reading/findings.h"
#include "formats/slm_adapter/format.h"
#include "weighbridge/slm.h"

namespace weighbridge::slm {
namespace {

using core::quoted;

void require_sound(const Model& package, const Context& context) {
  if (package.format() != slm_adapter::kFormat.info.name)
    base::misuse("adapter-format", "the format " + quoted(package.format()) + " is not an adapter package");
  Report report;
  core::Findings findings(report, core::Findings::Mode::all);
  slm_adapter::check_content(package, context, findings);
  if (const Finding* error = report.first_error()) throw Error(*error);
}

// The index of each base tensor by its hash in the directory.
using ByHash = std::map<std::uint64_t, std::uint32_t>;
ByHash by_hash(const Model& base) {
  ByHash out;
  for (std::uint32_t i = 0; i < base.size(); ++i)
    if (const auto id = base[i].id()) out.emplace(*id, i);
  return out;
}

std::uint32_t find_target(const Model& base, const ByHash& tensors, const Tensor& delta) {
  const auto found = tensors.find(delta.id().value_or(0));
  if (found == tensors.end())
    base::misuse("adapter-tensor", "the package changes a tensor " + quoted(delta.name()) + " that the model lacks");
  const Tensor target = base[found->second];
  if (!std::ranges::equal(target.shape(), delta.shape()))
    base::misuse("adapter-shape", "the package has tensor " + quoted(target.name()) + " in another shape");
  return found->second;
}

std::span<float> floats(const Array& array) {
  return {reinterpret_cast<float*>(array.data.get()), base::to_size(array.size / sizeof(float))};
}

std::vector<float> floats(const Part& part) {
  const Bytes stored = part.stored();  // the format's reader has checked that it is raw and little-endian
  std::vector<float> out(stored.span.size() / sizeof(float));
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = std::bit_cast<float>(base::load_le<std::uint32_t>(stored.span.data() + i * sizeof(float)));
  return out;
}

void add_sparse(std::span<float> to, const Tensor& delta) {
  const Bytes indices = delta.part(slm_adapter::kIndices).value().stored();
  const std::vector<float> values = floats(*delta.part(slm_adapter::kValues));
  for (std::size_t i = 0; i < values.size(); ++i)
    to[base::to_size(base::load_le<std::uint64_t>(indices.span.data() + 8 * i))] += values[i];
}

// Sums in f64 over the inner rank in ascending order, rounds once to f32, then adds.
void add_low_rank(std::span<float> to, const Tensor& delta) {
  const Part a_part = *delta.part(slm_adapter::kA), b_part = *delta.part(slm_adapter::kB);
  const std::size_t rows = base::to_size(a_part.shape()[0]), inner = base::to_size(a_part.shape()[1]),
                    columns = base::to_size(b_part.shape()[1]);
  const std::vector<float> a = floats(a_part), b = floats(b_part);
  std::vector<double> sums(columns);
  for (std::size_t row = 0; row < rows; ++row) {
    std::ranges::fill(sums, 0.0);
    for (std::size_t k = 0; k < inner; ++k) {
      const double factor = a[row * inner + k];
      for (std::size_t c = 0; c < columns; ++c) sums[c] += factor * static_cast<double>(b[k * columns + c]);
    }
    for (std::size_t c = 0; c < columns; ++c) to[row * columns + c] += static_cast<float>(sums[c]);
  }
}

void add_delta(std::span<float> to, const Tensor& delta, const Context& context, std::string_view target) {
  if (delta.layout() == Layout::dense) {
    std::size_t at = 0;
    delta.stream_dense(DType::f32, context, [&](std::span<const std::byte> piece) {
      for (std::size_t i = 0; i < piece.size(); i += sizeof(float))
        to[at++] += std::bit_cast<float>(base::load_le<std::uint32_t>(piece.data() + i));
      return true;
    });
  } else if (delta.layout_name() == slm_adapter::kSparseLayout) {
    add_sparse(to, delta);
  } else {
    add_low_rank(to, delta);
  }
  if (std::ranges::any_of(to, [](float value) { return !std::isfinite(value); }))
    base::misuse("adapter-overflow", "with the package, tensor " + quoted(target) + " gets values that are not finite");
}

}  // namespace

Model adapt(const Model& base, std::span<const Model> packages, const Context& context) {
  Context quiet;
  quiet.limits = context.limits;
  const slm_adapter::Identity identity = convert::identity_of(base);
  const ByHash tensors = by_hash(base);
  std::uint64_t held = 0;
  for (const Model& package : packages) {
    require_sound(package, context);
    convert::require_identity(identity, package);
    for (const Tensor& delta : package) {
      find_target(base, tensors, delta);
      held += *base::element_count(delta.shape()) * sizeof(float);
    }
  }
  if (held > context.limits.decoded)
    base::over_limit("decoded",
                     "the adapted tensors take " + std::to_string(held) + " bytes, more than the limit of " +
                         std::to_string(context.limits.decoded),
                     held);
  std::map<std::uint32_t, Array> fused;
  for (const Model& package : packages) {
    for (const Tensor& delta : package) {
      const std::uint32_t target = find_target(base, tensors, delta);
      auto [at, is_new] = fused.try_emplace(target);
      if (is_new) at->second = base[target].to_dense(DType::f32, quiet);
      add_delta(floats(at->second), delta, quiet, base.name(target));
    }
  }
  core::Draft draft;
  // Keep every input file as a source, even if no bytes of it are used any more: none of them may be the output.
  for (const auto& source : base.sources()) draft.add_source(source);
  for (const Model& package : packages)
    for (const auto& source : package.sources()) draft.add_source(source);
  draft.adopt_metadata(base);
  for (std::uint32_t i = 0; i < base.size(); ++i) {
    const auto changed = fused.find(i);
    if (changed == fused.end()) {
      draft.adopt(base.name(i), base[i]);
      continue;
    }
    const Array& array = changed->second;
    const std::uint32_t source =
        draft.add_source(memory_source({{array.data.get(), base::to_size(array.size)}, array.data}));
    const std::uint32_t tensor = draft.add_tensor(base.name(i), Layout::dense, DType::f32, array.shape);
    draft.add_part("data", DType::f32, array.shape, Encoding::raw, {source, 0, array.size}, array.size);
    draft.tensor(tensor).id(base[i].id());
  }
  return draft.finish();
}

}  // namespace weighbridge::slm
