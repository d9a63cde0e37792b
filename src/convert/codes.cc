// SPDX-License-Identifier: Apache-2.0
// Finds codes in a plan.
#include "convert/derived.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "core/model/coded.h"
#include "core/model/plan_text.h"
#include "core/writing/layout.h"
#include "recipes/match.h"

namespace weighbridge::convert {
namespace {

// Formats of one architecture, whose readers compute with every tensor.
constexpr std::array<std::string_view, 2> kRun{"slm", "embd"};

// Whether each tensor of codes, or one that completes them, makes a weight that is decoded.
std::vector<bool> decoded_tensors(const Model& model) {
  std::vector<bool> out(model.size());
  for (const recipes::Match& match : recipes::matches_of(model, {}))
    for (const std::uint32_t each : match.tensors) out[each] = match.recipe != nullptr;
  return out;
}

}  // namespace

bool needs_values(const Options& options, std::string_view target) noexcept {
  return options.cast != DType::unknown || options.dequantize || !options.quantize.empty() ||
         !options.gguf.naming.empty() || !options.zt.sparse.empty() || std::ranges::find(kRun, target) != kRun.end();
}

Options without_values(Options options) {
  options.cast = DType::unknown;
  options.dequantize.reset();
  options.quantize.clear();
  options.gguf.naming.clear();
  options.zt.sparse.clear();
  return options;
}

void check_codes(core::WriteLayout& layout, const Model& model, std::string_view from, std::string_view to) {
  std::map<std::string, std::uint32_t, std::less<>> marked;  // tensors, by their subjects
  for (const Tensor& tensor : model)
    if (core::coded(tensor) != nullptr) marked.emplace(core::subject(tensor), tensor.index());
  if (marked.empty()) return;
  // The tensor that an item's subject names: tensors["w"], or one of its parts.
  const auto tensor_of = [&](std::string_view subject) -> std::optional<Tensor> {
    const std::size_t part = subject.find("\"].parts[");
    const auto at = marked.find(part == subject.npos ? subject : subject.substr(0, part + 2));
    return at == marked.end() ? std::nullopt : std::optional(model[at->second]);
  };
  const auto mark_of = [&](std::string_view subject) {
    const std::optional<Tensor> tensor = tensor_of(subject);
    return tensor ? core::coded(*tensor) : nullptr;
  };
  std::set<std::string, std::less<>> changed;  // subjects of tensors that would get another dtype or layout
  for (const core::WriteLayout* const file : core::files_of(layout))
    for (const core::OutTensor& out : file->tensors)
      if (core::coded(out.from) != nullptr && (out.dtype != out.from.dtype() || out.layout != out.from.layout()))
        changed.insert(core::subject(out.from));
  std::optional<std::vector<bool>> decoded;
  const auto kept = [&](std::string_view subject, std::string why) {
    if (!decoded) decoded = decoded_tensors(model);
    return "codes that other tensors complete, which are copied as they are: " + std::move(why) +
           ((*decoded)[tensor_of(subject)->index()] ? "; dequantizing makes numbers of them"
                                                    : "; they are not decoded");
  };
  for (Item& item : layout.blockers) {
    const core::Coded* const mark = mark_of(item.subject);
    if (mark == nullptr || item.kind == LossKind::name || item.kind == LossKind::shape) continue;
    item.kind = LossKind::unsupported;
    item.to = kept(item.subject, (item.from.empty() ? "" : item.from + ", ") + item.to);
    item.from = mark->name;
  }
  const auto is_kept = [&](const Item& item) {
    const bool changes =
        item.kind == LossKind::precision || item.kind == LossKind::unsupported ||
        ((item.kind == LossKind::dtype || item.kind == LossKind::layout) && changed.contains(item.subject));
    return !changes || mark_of(item.subject) == nullptr;
  };
  const auto others = std::stable_partition(layout.losses.begin(), layout.losses.end(), is_kept);
  const auto kept_items = static_cast<std::size_t>(others - layout.losses.begin());
  for (Item& item : std::span(layout.losses).subspan(kept_items)) {
    changed.erase(item.subject);
    layout.blockers.push_back({LossKind::unsupported, item.subject, mark_of(item.subject)->name,
                               kept(item.subject, "it would become " + std::move(item.to))});
  }
  layout.losses.erase(others, layout.losses.end());
  for (const std::string& subject : changed)
    layout.blockers.push_back({LossKind::unsupported, subject, mark_of(subject)->name,
                               kept(subject, "it would get another dtype or layout")});
  if (from != to)
    for (const core::CodedUse& use : core::uses_of_codes(model))
      layout.changes.push_back({LossKind::layout, core::indexed("tensors", use.first), use.scheme,
                                "the same codes in " + std::to_string(use.tensors) +
                                    (use.tensors == 1 ? " tensor" : " tensors") +
                                    ": what reads them must know the scheme"});
  core::for_each_forgotten(model, [&](const Tensor& tensor) {
    layout.losses.push_back({LossKind::layout, core::subject(tensor), core::coded(tensor)->name,
                             "plain " + std::string(tensor.type_name()) +
                                 ": what completes its codes is not in the output, or has another name there"});
  });
}

}  // namespace weighbridge::convert
