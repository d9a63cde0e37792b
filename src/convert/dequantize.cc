// SPDX-License-Identifier: Apache-2.0
// Collects the view. Its tensors are f32, to which every block type decodes exactly; the dtype of the output is left to
// the writer, whose casts are counted.
#include "base/fail.h"
#include "convert/derived.h"

#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "core/model/draft.h"
#include "core/model/plan_text.h"
#include "core/model/view.h"
#include "core/model/words.h"
#include "core/payload/elements.h"

namespace weighbridge::convert {

std::string dense_text(DType dtype) { return std::string(kDense) + std::string(name(dtype)); }

std::optional<Item> factor_stays(const Model& model, const Tensor& tensor) {
  constexpr std::string_view kWeightWord = "weight", kFactor = "scale";
  const BlockTypeInfo* const type = tensor.block_type();
  if (!type || type->id != "ggml.nvfp4" || !tensor.name().ends_with(kWeightWord)) return std::nullopt;
  std::string factor(tensor.name());
  factor.replace(factor.size() - kWeightWord.size(), kWeightWord.size(), kFactor);
  if (!model.find(factor)) return std::nullopt;
  return Item{LossKind::layout, core::subject(tensor), std::string(type->name),
              "the values of its blocks; what multiplies them stays the tensor " + core::quoted(factor)};
}

namespace {
// Whether merging adapters has made tensors dense already.
bool was_dequantized(const Model& model) {
  return std::ranges::any_of(core::losses_of_making(model), [](const Item& loss) {
    return loss.kind == LossKind::layout && loss.to.starts_with(kDense);
  });
}

// Whether a dense tensor has the values of codes already, as those of PyTorch's quint8 and qint8.
bool is_made_of_codes(const Model& model, const Tensor& tensor) {
  const auto all = core::left_behind(model);
  return !all.empty() && tensor.layout() == Layout::dense &&
         std::ranges::find(all, core::subject(tensor), &core::LeftBehind::what) != all.end();
}
}  // namespace

core::Derived dequantized(const Model& model, DType to) {
  core::Derived out;
  core::Draft draft;
  draft.begin_view(model);
  for (const Tensor& tensor : model) {
    const auto elements = base::element_count(tensor.has_shape() ? tensor.shape() : Shape{});
    const auto size = elements ? packed_size(DType::f32, *elements) : std::nullopt;
    if (!is_quantized(tensor.layout()) || tensor.unsupported() || !size) {
      const std::uint32_t at = draft.adopt(tensor.name(), tensor);
      if (to != DType::unknown && is_made_of_codes(model, tensor)) draft.tensor(at).write_as(to);
      continue;
    }
    const DType dense = to == DType::unknown ? tensor.dtype() : to;
    out.losses.push_back({LossKind::layout, core::subject(tensor), std::string(tensor.type_name()), dense_text(dense)});
    if (auto change = factor_stays(model, tensor)) out.changes.push_back(*std::move(change));
    const std::uint32_t at = draft.add_tensor(tensor.name(), Layout::dense, DType::f32, tensor.shape());
    draft.tensor(at).write_as(dense);
    const std::uint32_t part = draft.add_part("data", DType::f32, tensor.shape(), Encoding::computed, {}, *size);
    draft.part(part).elements(core::elements_of(tensor, DType::f32));
  }
  // Blocks that this build cannot read are kept; the writer reports them.
  const auto may_be_quantized = [&](const Tensor& tensor) {
    return is_quantized(tensor.layout()) || tensor.unsupported() || is_made_of_codes(model, tensor);
  };
  bool any = was_dequantized(model);
  for (const Tensor& tensor : model) any = any || may_be_quantized(tensor);
  if (!any)
    base::malformed("convert/nothing-quantized",
                    "no tensor is quantized, so there is nothing to dequantize; nothing was written");
  draft.index_names();
  draft.set_attributes({model.attributes().begin(), model.attributes().end()});
  out.model = draft.finish();
  return out;
}

}  // namespace weighbridge::convert
