// SPDX-License-Identifier: Apache-2.0
// Sharded safetensors: opening an index or its folder, and the warning about a shard that is opened by itself.
//
//   {"metadata": {"total_size": N}, "weight_map": {"TENSOR": "model-00001-of-00002.safetensors"}}
#include <string>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "core/reading/json_file.h"
#include "core/reading/shards.h"
#include "formats/safetensors/format.h"
#include "formats/safetensors/layout.h"

namespace weighbridge::safetensors {
namespace {

constexpr core::JsonRules kJsonRules{
    .syntax = rules::kIndexJson, .root = rules::kIndexValue, .duplicate_key = rules::kIndexDuplicateKey};
constexpr core::ShardRules kShardRules{.format = rules::kShardFormat,
                                       .link = rules::kShardLink,
                                       .missing = rules::kShardMissing,
                                       .metadata_conflict = rules::kMetadataConflict,
                                       .stray = &rules::kShardStray};
constexpr core::IndexRules kIndexRules{.value = rules::kIndexValue,
                                       .path = rules::kShardPath,
                                       .tensor_missing = rules::kTensorMissing,
                                       .tensor_unlisted = rules::kTensorUnlisted,
                                       .total_size = rules::kTotalSize};

// The file of a folder to open: its index, else model.safetensors.
std::string main_file(const Place& place, core::Findings& findings) {
  std::vector<std::string> indexes;
  for (std::string& name : place.list())
    if (is_index_name(name)) indexes.push_back(std::move(name));
  if (indexes.size() > 1)
    base::misuse_of(place.name(), "not-a-file",
                    "this is a directory with several models: open '" + indexes[0] + "' or another index in it");
  // The single file and the shards may hold different models, and programs differ in which they read.
  if (!indexes.empty() && place.open(kWholeName)) findings.report(rules::kTwoWeights, {});
  return indexes.empty() ? std::string(kWholeName) : indexes[0];
}

}  // namespace

bool is_index_name(std::string_view name) noexcept { return name.ends_with(kIndexSuffix); }

std::string index_of_shard(std::string_view name) {
  const auto parsed = core::parse_shard_name(name, kSuffix);
  return parsed ? std::string(parsed->stem) + std::string(kIndexSuffix) : std::string();
}

bool spans_files(const core::Probe& probe) { return core::is_index(probe, kIndexSuffix); }

void read_files(const core::ReadJob& job, core::Draft& draft) {
  draft.set_format("safetensors");
  const auto given = job.place.file();
  const std::string name = given ? std::string(given->file_name()) : main_file(job.place, job.findings);
  const auto source = given ? given : job.place.open(name);
  if (!source) base::io_error_of(job.place.name(), "open", "the file '" + name + "' is no longer there");
  core::JsonReading reading(job.place, job.context.limits, job.findings, kJsonRules);
  core::ShardReader shards(reading, job, kShardRules, "safetensors", draft);
  if (!is_index_name(name)) {
    shards.read_whole(source);
  } else if (const core::TextFile index = core::text_of_file(reading, name, source); index.text) {
    shards.read_index(reading, kIndexRules, index);
  }
  if (job.findings.mode() == core::Findings::Mode::all)
    shards.report_strays(is_index_name(name) ? std::string_view(name).substr(0, name.size() - kIndexSuffix.size())
                                             : std::string_view(kStem),
                         kSuffix);
  for (auto& [key, value] : shards.take_metadata()) draft.set_attribute(std::move(key), std::move(value));
  draft.add_sources(std::move(reading.sources));
}

void warn_alone(const Place& place, const Context& context, core::Findings& findings, core::Draft& draft) {
  std::vector<std::string> indexes{std::string(kIndexName)};
  if (std::string own = index_of_shard(place.file()->file_name()); !own.empty() && own != kIndexName)
    indexes.insert(indexes.begin(), std::move(own));
  core::warn_shard_alone(place, context.limits, rules::kShardAlone, kSuffix, indexes, findings, draft);
}

}  // namespace weighbridge::safetensors
