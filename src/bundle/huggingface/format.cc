// SPDX-License-Identifier: Apache-2.0
// The descriptor of Hugging Face folders, which hold what safetensors holds and a tokenizer, and their content rules.
#include "bundle/huggingface/format.h"

#include "bundle/huggingface/rules.h"
#include "core/format_options.h"
#include "registry/registry.h"

namespace weighbridge::huggingface {
namespace {

constexpr auto kOptions = core::names_of(core::kMetadataOptions);

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
  out.content_can_fail = false;
  out.layout = layout;
  out.append = nullptr;
  return out;
}

}  // namespace

const core::Format& format() noexcept {
  static const core::Format made = describe();
  return made;
}

}  // namespace weighbridge::huggingface
