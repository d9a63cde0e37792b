// SPDX-License-Identifier: Apache-2.0
// The descriptor of Hugging Face folders, which hold what safetensors holds and a tokenizer, and their content rules.
#include "bundle/huggingface/format.h"

#include "bundle/huggingface/rules.h"
#include "core/format_options.h"
#include "registry/registry.h"

namespace weighbridge::huggingface {
namespace {

constexpr auto kOptions = core::names_of(core::kMetadataOptions);

// The last component of the path of the file that holds the tensor.
std::string_view file_of(const Model& model, std::string_view tensor) {
  const auto found = model.find(tensor);
  const auto extent = found && found->part_count() > 0 ? found->main().extent() : std::nullopt;
  if (!extent) return "the weights";
  const std::string_view path = model.sources()[extent->source]->name();
  return path.substr(path.rfind('/') + 1);
}

core::Format describe() {
  core::Format out = *registry::find("safetensors");
  out.info.name = "hf";
  out.info.title = "Hugging Face folder";
  out.info.extensions = {};
  out.info.versions = "config.json, vocab.txt or tokenizer.json, model.safetensors or its shards";
  out.info.folder = true;
  out.info.holds.tokenizer = true;
  out.info.options = kOptions;
  out.info.rules = rules::kAll;
  out.matches = nullptr;
  out.read = nullptr;
  out.check_content = check_content;
  out.content_can_fail = false;
  out.layout = layout;
  out.append = nullptr;
  return out;
}

}  // namespace

void check_content(const Model& model, const Context& context, core::Findings& findings) {
  Report report;
  core::Findings own(report, core::Findings::Mode::all);
  registry::find("safetensors")->check_content(model, context, own);
  for (Finding finding : report.findings()) {
    finding.message = std::string(file_of(model, finding.tensor)) + ": " + finding.message;
    findings.report(std::move(finding));
  }
}

const core::Format& format() noexcept {
  static const core::Format made = describe();
  return made;
}

}  // namespace weighbridge::huggingface
