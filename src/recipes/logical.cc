// SPDX-License-Identifier: Apache-2.0
// Replaces the tensors of each recipe by the one that they make.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/checked.h"
#include "base/fail.h"
#include "core/model/coded.h"
#include "core/model/draft.h"
#include "core/model/plan_text.h"
#include "core/reading/json_file.h"
#include "recipes/match.h"
#include "weighbridge/scheme.h"

namespace weighbridge::recipes {
namespace {

// What a config says of the quantization, which is untrue of the numbers.
bool is_config(std::string_view key) {
  const std::string_view last = key.substr(key.rfind('.') + 1);
  return last == "quantization_config" || last == "compression_config" || last == "quantization";
}

// "fp8 128x128", "gptq 4-bit g128".
std::string text_of(const Recipe& r) {
  constexpr std::string_view kFamily = "bitsandbytes-", kWhole[] = {"fp8", "int8", "nvfp4", "mxfp4", "mxfp6", "mxfp8"};
  std::string out(r.id.starts_with(kFamily) ? r.id.substr(kFamily.size()) : r.id);
  if (std::ranges::find(kWhole, r.id) == std::end(kWhole) && !r.id.starts_with(kFamily))
    out += " " + std::to_string(r.bits) + "-bit";
  const Grid& grid = r.scale;
  if (r.id == "hqq" || (r.id == "quanto" && r.zero.values))  // a group is a row of the matrix, or a column
    return out + " g" + std::to_string(grid.rows == 1 ? r.columns : r.rows);
  if (!grid.values || r.id.starts_with("nv") || r.id.starts_with("mx")) return out;
  if (grid.rows > 1 && grid.columns < r.columns)
    return out + " " + std::to_string(grid.rows) + "x" + std::to_string(grid.columns);
  if (grid.columns >= r.columns && r.columns > 1) return out + (grid.rows >= r.rows ? " per tensor" : " per row");
  return out + " g" + std::to_string(grid.columns);
}

StoredWeight described(const Model& model, const Match& match) {
  StoredWeight out{.id = std::string(match.recipe->id), .text = text_of(*match.recipe), .tensors = {}};
  for (const std::uint32_t each : match.tensors) {
    const Tensor tensor = model[each];
    out.tensors.emplace_back(tensor.name());
    for (const Part& part : tensor.parts()) out.bytes += part.size();
  }
  return out;
}

}  // namespace

std::vector<Value::Entry> without_configs(const Model& model, std::vector<Item>& changes) {
  std::vector<Value::Entry> out;
  for (const auto& [key, value] : model.attributes()) {
    const auto dropped = [&changes, &key = key](std::string what) {
      changes.push_back({LossKind::attribute, core::indexed("attributes", key), std::move(what),
                         "dropped: no tensor is quantized any more"});
    };
    if (is_config(key)) {
      dropped(value.to_text());
    } else if (const auto text = value.as_text(); text && text->starts_with('{')) {  // text_config and the like
      std::string rest = core::with_members(*text, [](std::string_view name, std::string_view inner) {
        return is_config(name) && inner.starts_with('{') ? std::optional<std::string>("") : std::nullopt;
      });
      if (rest != *text) dropped("quantization_config");
      out.emplace_back(key, Value::text(std::move(rest)));
    } else {
      out.emplace_back(key, value);
    }
  }
  return out;
}

void require_asked(const Model& model) {
  for (const schemes::Answer& answer : core::answers_of(model)) {
    // Shapes alone may not tell these two apart.
    const auto is_groups = [](std::string_view id) { return id == "gptq" || id == "awq"; };
    const bool groups = is_groups(answer.id);
    const bool any = std::ranges::any_of(model, [&](const Tensor& tensor) {
      const core::Coded* const mark = core::coded(tensor);
      return (mark != nullptr && (mark->id == answer.id || (groups && is_groups(mark->id)))) ||
             (groups && tensor.layout() == Layout::quantized_group);
    });
    if (!any) base::misuse("scheme", "no tensor of the model is of the scheme " + std::string(answer.id));
  }
}

core::Derived numbers_of(const Model& model, DType to, const Context& context, Numbers how) {
  core::Derived out;
  const std::vector<Match> matches = matches_of(model, context, how.whole ? Look::zeros : Look::enough);
  std::map<std::uint32_t, const Match*> first;  // by the tensor with the codes
  std::set<std::uint32_t> parts;
  for (const Match& each : matches) {
    first.emplace(each.tensors.front(), &each);
    if (each.recipe) parts.insert(each.tensors.begin(), each.tensors.end());
  }
  for (const Tensor& tensor : model) {
    const core::Coded* const mark = core::coded(tensor);
    const auto at = first.find(tensor.index());
    if (at != first.end() ? at->second->recipe != nullptr
                          : mark == nullptr || !mark->codes || parts.contains(tensor.index()))
      continue;
    out.blockers.push_back({LossKind::unsupported, core::subject(tensor), mark ? mark->name : "codes",
                            at != first.end() ? at->second->refusal : "this version does not decode the scheme"});
  }
  if ((how.whole && !out.blockers.empty()) || matches.empty()) {
    out.model = model;
    return out;
  }
  core::Draft draft;
  draft.begin_view(model);
  for (const Tensor& tensor : model) {
    const auto at = first.find(tensor.index());
    const core::Coded* const mark = core::coded(tensor);
    if (at == first.end()) {
      if (parts.contains(tensor.index())) continue;
      // What completes codes stays with them, if they do.
      if (mark == nullptr || mark->codes || !out.blockers.empty()) {
        draft.adopt(tensor.name(), tensor);
        continue;
      }
      out.changes.push_back({LossKind::layout, core::subject(tensor), mark->name, std::string(kOtherScale)});
      continue;
    }
    const Match& match = *at->second;
    if (!match.recipe) {
      const std::uint32_t t = draft.adopt(tensor.name(), tensor);
      if (mark) draft.tensor(t).undecoded(match.refusal, match.hint);
      continue;
    }
    const bool own = to == DType::unknown || to == match.recipe->result;
    const DType dtype = own ? match.recipe->result : DType::f32;
    const core::ElementsPtr elements = elements_of(match.recipe, own);
    const std::uint32_t t = draft.add_tensor(match.name, Layout::dense, dtype, match.recipe->shape);
    if (!own) draft.tensor(t).write_as(to);
    if (how.described) draft.tensor(t).stored(described(model, match));
    const std::uint32_t part = draft.add_part("data", dtype, match.recipe->shape, Encoding::computed, {},
                                              packed_size(dtype, elements->count()).value_or(0));
    draft.part(part).elements(elements);
    out.losses.push_back({LossKind::layout, core::subject(tensor), mark ? mark->name : std::string(match.recipe->id),
                          "dense " + std::string(name(own ? dtype : to))});
  }
  draft.index_names();
  draft.set_attributes(without_configs(model, out.changes));
  out.model = draft.finish();
  return out;
}

}  // namespace weighbridge::recipes

namespace weighbridge {

Model logical(const Model& model, const Context& context, DType as) {
  recipes::require_asked(model);
  if (core::uses_of_codes(model).empty()) return model;
  return recipes::numbers_of(model, as, context, {.whole = false, .described = true}).model;
}

}  // namespace weighbridge
