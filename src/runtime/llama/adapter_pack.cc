// SPDX-License-Identifier: Apache-2.0
// Makes adapter packages from deltas in any container.
#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/endian.h"
#include "base/fail.h"
#include "convert/adapter.h"
#include "convert/rep.h"
#include "core/model/words.h"
#include "formats/slm_adapter/format.h"
#include "weighbridge/slm.h"

namespace weighbridge::slm {
namespace {

using core::quoted;

constexpr std::string_view kFactorA = ".lora_a", kFactorB = ".lora_b";

slm_adapter::Kind format_kind(AdapterKind kind) { return static_cast<slm_adapter::Kind>(kind); }

// Deltas as tensors that the package's layout can stream, and the models that must outlive them.
struct Gathered {
  std::vector<slm_adapter::Delta> deltas;
  std::vector<Model> kept;
};

std::uint32_t target_named(const Model& base, std::string_view name) {
  if (const auto found = base.find(name)) return found->index();
  std::string sentence = "the base model has no tensor " + quoted(name);
  if (const auto near = base.nearest(name, 1); !near.empty())
    sentence += "; did you mean " + quoted(near.front()) + "?";
  base::misuse("adapter-tensor", sentence);
}

slm_adapter::Delta delta_for(const Tensor& target) {
  slm_adapter::Delta out;
  out.name_hash = target.id().value_or(0);
  out.dims.assign(target.shape().begin(), target.shape().end());
  return out;
}

void require_float(const Tensor& tensor) {
  if (info(tensor.dtype()).kind != DTypeKind::real)
    base::misuse("adapter-dtype", "the delta " + quoted(tensor.name()) + " is not a floating-point tensor");
}

[[noreturn]] void refuse_value(const Tensor& delta) {
  base::misuse("adapter-value", "the delta " + quoted(delta.name()) + " has a value that is not finite as f32");
}

// A package with a value that is not finite is malformed, and f32 turns a too large value into one.
void require_finite(const Tensor& delta, const Context& context) {
  delta.stream_dense(DType::f32, context, [&](std::span<const std::byte> piece) {
    for (std::size_t i = 0; i < piece.size(); i += sizeof(float))
      if (!std::isfinite(std::bit_cast<float>(base::load_le<std::uint32_t>(piece.data() + i)))) refuse_value(delta);
    return true;
  });
}

void require_shape(const Tensor& delta, const Tensor& target) {
  if (!std::ranges::equal(delta.shape(), target.shape()))
    base::misuse("adapter-shape", "the delta " + quoted(delta.name()) + " has another shape than the base's tensor");
}

// The nonzero elements, as a model of two tensors.
Model nonzeros(const Tensor& delta, const Context& context) {
  const auto indices = std::make_shared<std::vector<std::uint64_t>>();
  const auto values = std::make_shared<std::vector<float>>();
  std::uint64_t at = 0;
  delta.stream_dense(DType::f32, context, [&](std::span<const std::byte> piece) {
    for (std::size_t i = 0; i < piece.size(); i += sizeof(float), ++at) {
      const float value = std::bit_cast<float>(base::load_le<std::uint32_t>(piece.data() + i));
      if (value == 0) continue;
      if (!std::isfinite(value)) refuse_value(delta);
      indices->push_back(at);
      values->push_back(value);
    }
    return true;
  });
  Builder out;
  out.tensor("indices", DType::u64, {indices->size()}, {std::as_bytes(std::span(*indices)), indices});
  out.tensor("values", DType::f32, {values->size()}, {std::as_bytes(std::span(*values)), values});
  return out.build();
}

void gather_low_rank(const Model& base, const Model& deltas, Gathered& out, const Context& context) {
  for (std::uint32_t i = 0; i < deltas.size(); ++i) {
    const Tensor a = deltas[i];
    const std::string_view name = a.name();
    if (name.ends_with(kFactorB)) {
      const std::string other = std::string(name.substr(0, name.size() - kFactorB.size())) + std::string(kFactorA);
      if (!deltas.find(other))
        base::misuse("adapter-factor", "there is no " + quoted(other) + " beside " + quoted(name));
      continue;
    }
    if (!name.ends_with(kFactorA))
      base::misuse("adapter-factor", "a low-rank delta is NAME.lora_a and NAME.lora_b, not " + quoted(name));
    const std::string stem(name.substr(0, name.size() - kFactorA.size()));
    const auto b = deltas.find(stem + std::string(kFactorB));
    if (!b)
      base::misuse("adapter-factor", "there is no " + quoted(stem + std::string(kFactorB)) + " beside " + quoted(name));
    require_float(a);
    require_float(*b);
    const Tensor target = base[target_named(base, stem)];
    slm_adapter::Delta delta = delta_for(target);
    const std::uint64_t rows = delta.dims.size() > 1 ? delta.dims[0] : 1;
    const std::uint64_t columns = *base::element_count(target.shape()) / rows;
    const Shape left = a.shape(), right = b->shape();
    if (left.size() != 2 || right.size() != 2 || left[0] != rows || right[1] != columns || left[1] != right[0] ||
        left[1] == 0 || left[1] > std::min(rows, columns))
      base::misuse("adapter-shape", "the factors of " + quoted(stem) + " do not fit: [" + std::to_string(rows) +
                                        ", r] and [r, " + std::to_string(columns) + "] are needed");
    require_finite(a, context);
    require_finite(*b, context);
    delta.count = left[1];
    delta.parts = {a, *b};
    out.deltas.push_back(std::move(delta));
  }
}

Gathered gather(const Model& base, const Model& deltas, AdapterKind kind, const Context& context) {
  Gathered out;
  Context quiet;
  quiet.limits = context.limits;
  if (kind == AdapterKind::low_rank) {
    gather_low_rank(base, deltas, out, quiet);
    return out;
  }
  for (std::uint32_t i = 0; i < deltas.size(); ++i) {
    const Tensor tensor = deltas[i];
    require_float(tensor);
    const Tensor target = base[target_named(base, tensor.name())];
    require_shape(tensor, target);
    slm_adapter::Delta delta = delta_for(target);
    if (kind == AdapterKind::dense) {
      require_finite(tensor, quiet);
      delta.count = *base::element_count(target.shape());
      delta.parts = {tensor};
    } else {
      const Model& kept = out.kept.emplace_back(nonzeros(tensor, quiet));
      const Tensor first = kept[0U];
      delta.count = first.shape()[0];
      if (delta.count == 0) continue;  // the delta has only zeros
      delta.parts = {first, kept[1U]};
    }
    out.deltas.push_back(std::move(delta));
  }
  return out;
}

}  // namespace

Plan plan_adapter(const Model& base, const Model& deltas, AdapterKind kind, const Options& options,
                  const Context& context) {
  const slm_adapter::Identity identity = convert::identity_of(base);
  Gathered gathered = gather(base, deltas, kind, context);
  if (gathered.deltas.empty()) base::misuse("adapter-empty", "there are no deltas, so there is nothing to pack");
  auto rep = std::make_shared<convert::PlanRep>();
  rep->format = &slm_adapter::kFormat;
  rep->layout = slm_adapter::package_layout(format_kind(kind), identity, gathered.deltas);
  rep->models = {deltas, base};
  rep->models.insert(rep->models.end(), gathered.kept.begin(), gathered.kept.end());
  return convert::PlanMaker::make(std::move(rep), deltas, options);
}

std::string_view name(AdapterKind kind) noexcept {
  constexpr std::string_view kNames[] = {"adp1", "asp1", "alr1"};
  return kNames[static_cast<std::size_t>(kind)];
}
std::optional<AdapterKind> adapter_kind_from_name(std::string_view text) noexcept {
  for (const AdapterKind kind : {AdapterKind::dense, AdapterKind::sparse, AdapterKind::low_rank})
    if (name(kind) == text) return kind;
  return std::nullopt;
}

}  // namespace weighbridge::slm
