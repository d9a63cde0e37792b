// SPDX-License-Identifier: Apache-2.0
// Opens files of modules, and renames norms.
#include "convert/derived.h"

#include <algorithm>
#include <utility>

#include "base/fail.h"
#include "core/model/draft.h"
#include "core/model/plan_text.h"
#include "core/model/words.h"
#include "core/reading/encoder_settings.h"
#include "formats/huggingface/setting_judge.h"
#include "weighbridge/open.h"

namespace weighbridge::convert {
namespace {

constexpr std::string_view kFiles[] = {"/model.safetensors", "/pytorch_model.bin"};  // the first that exists counts
constexpr std::pair<std::string_view, std::string_view> kNorms[] = {{".gamma", ".weight"}, {".beta", ".bias"}};
constexpr std::string_view kNorm = "LayerNorm";

bool is_bert(const Model& model) {
  return model.find("embeddings.word_embeddings.weight") || model.find("bert.embeddings.word_embeddings.weight");
}

bool has_tensors(const Model& model, const std::string& begin) {
  for (const Tensor& tensor : model)
    if (tensor.name().starts_with(begin)) return true;
  return false;
}

std::string new_name(std::string_view name) {
  for (const auto& [from, to] : kNorms)
    if (name.ends_with(from) && name.substr(0, name.size() - from.size()).ends_with(kNorm))
      return std::string(name.substr(0, name.size() - from.size())) + std::string(to);
  return std::string(name);
}

}  // namespace

core::Derived with_modules(const Model& model, const Context& context) {
  core::Derived out{.model = model};
  const Value* const value = model.attribute(core::kSentenceModules);
  const auto modules = value ? core::parse_sentence_modules(value->to_text()) : std::nullopt;
  if (!modules) return out;
  std::vector<Model> others;
  std::vector<std::pair<std::string, Tensor>> more;
  std::vector<std::string> seen;
  for (const core::SentenceModule& module : *modules) {
    const std::string begin = module.path + ".";
    if (module.path.empty() || std::ranges::find(seen, module.path) != seen.end() || has_tensors(model, begin))
      continue;
    seen.push_back(module.path);
    for (const std::string_view name : kFiles) {
      const std::string file = module.path + std::string(name);
      const auto source = core::open_folder_file(model, file);
      if (!source) continue;
      others.push_back(open(source, context));
      for (const Tensor& tensor : others.back()) more.emplace_back(begin + std::string(tensor.name()), tensor);
      out.files.push_back(file);
      break;
    }
  }
  if (more.empty()) return out;
  core::Draft draft;
  draft.begin_view(model);
  for (const Tensor& tensor : model) draft.adopt(tensor.name(), tensor);
  for (const auto& [name, tensor] : more) {
    draft.adopt(name, tensor);
    out.changes.push_back(
        {LossKind::name, core::indexed("tensors", name), "in a file of the module", "among the tensors of the model"});
  }
  for (const auto& [key, text] : model.attributes()) draft.set_attribute(key, text);
  if (!draft.index_names().empty())
    base::unsupported("embed/tensors", "two tensors of the model and its modules would have the same name");
  out.model = draft.finish();
  return out;
}

core::Derived with_norm_names(const Model& model) {
  core::Derived out{.model = model};
  const auto is_old = [](const Tensor& tensor) { return new_name(tensor.name()) != tensor.name(); };
  if (!is_bert(model)) return out;
  bool any = false;
  for (const Tensor& tensor : model) {
    if (!is_old(tensor)) continue;
    if (model.find(new_name(tensor.name()))) return out;
    any = true;
  }
  if (!any) return out;
  core::Draft draft;
  draft.begin_view(model);
  for (const Tensor& tensor : model) {
    const std::string name = new_name(tensor.name());
    draft.adopt(name, tensor);
    if (name != tensor.name())
      out.changes.push_back({LossKind::name, core::subject(tensor), std::string(tensor.name()), name});
  }
  for (const auto& [key, value] : model.attributes()) draft.set_attribute(key, value);
  draft.index_names();
  out.model = draft.finish();
  return out;
}

std::vector<Item> refused_settings(const Model& model) {
  std::vector<Item> out;
  if (!is_bert(model)) return out;
  const huggingface::SettingJudge judged = huggingface::check_settings(model);
  for (const core::OddSetting& each : judged.all_refused())
    out.push_back({LossKind::unsupported, each.file + ": " + core::quoted(each.key), each.value,
                   each.why.empty() ? "not supported" : "not supported: " + each.why});
  return out;
}

}  // namespace weighbridge::convert
