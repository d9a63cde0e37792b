// SPDX-License-Identifier: Apache-2.0
// The descriptor of Hugging Face folders, which hold what safetensors can hold, and a tokenizer.
#include "formats/huggingface/format.h"

#include <algorithm>
#include <array>

#include "core/reading/shards.h"
#include "core/writing/options.h"
#include "formats/huggingface/layout.h"

namespace weighbridge::huggingface {
namespace {

constexpr auto kOptions = core::names_of_format<core::count_of_format("hf")>("hf");
constexpr std::string_view kMarkerFiles[] = {kConfig, kWeights, kIndex, kPickle, kPickleIndex};

}  // namespace

bool matches(const core::Probe& probe) {
  const auto lists = [&](std::string_view name) { return probe.lists(name); };
  if (!probe.folder) return false;
  if (std::ranges::any_of(std::array{kConfig, kPickle, kPickleIndex}, lists)) return true;
  if (lists(kModules) && lists(kWordTableFolder)) return true;
  if (lists(kAdapterConfig) &&
      std::ranges::any_of(kWeightKinds, [&](const WeightFiles& kind) { return lists(kind.whole); }))
    return true;
  return std::ranges::any_of(std::array{kWeights, kIndex}, lists) &&
         (std::ranges::any_of(kTokenizerFiles, lists) || lists(kSentenceConfig) || lists(kModules));
}

bool has_pickled_weights(const Model& model) {
  return std::ranges::any_of(model.sources(), [](const std::shared_ptr<const Source>& source) {
    const std::string_view name = source->file_name();
    return name.ends_with(kPickleFiles.suffix) &&
           (core::parse_shard_name(name, kPickleFiles.suffix) ||
            std::ranges::find(kWeightKinds, name, &WeightFiles::whole) != std::end(kWeightKinds));
  });
}

core::Format format(const core::Format& weights) {
  core::Format out = weights;
  out.info.name = "hf";
  out.info.title = "Hugging Face folder";
  out.info.extensions = {};
  out.info.versions = "config.json, vocab.txt or tokenizer.json, weights in safetensors or PyTorch pickles";
  out.info.folder = true;
  out.info.holds.tokenizer = true;
  out.info.options = kOptions;
  out.info.rules = rules::kAll;
  out.matches = matches;
  out.read = nullptr;
  out.read_files = read;
  out.spans_files = nullptr;
  out.warn_alone = nullptr;
  out.marker_files = kMarkerFiles;
  out.layout = layout;
  out.layout_files = nullptr;
  out.append = nullptr;
  return out;
}

}  // namespace weighbridge::huggingface
