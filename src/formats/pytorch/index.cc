// SPDX-License-Identifier: Apache-2.0
// Checkpoints in shards: opening the index that transformers writes beside them (reading P11).
#include <string>
#include <vector>

#include "core/reading/json_file.h"
#include "core/reading/shards.h"
#include "formats/pytorch/format.h"
#include "formats/pytorch/layout.h"

namespace weighbridge::pytorch {
namespace {

constexpr core::JsonRules kJsonRules{
    .syntax = rules::kIndexJson, .root = rules::kIndexValue, .duplicate_key = rules::kIndexDuplicateKey};
constexpr core::ShardRules kShardRules{.format = rules::kShardFormat,
                                       .link = rules::kShardLink,
                                       .missing = rules::kShardMissing,
                                       .metadata_conflict = rules::kMetadataConflict};
constexpr core::IndexRules kIndexRules{.value = rules::kIndexValue,
                                       .path = rules::kShardPath,
                                       .tensor_missing = rules::kTensorMissing,
                                       .tensor_unlisted = rules::kTensorUnlisted,
                                       .total_size = rules::kTotalSize};

}  // namespace

void warn_alone(const Place& place, const Context& context, core::Findings& findings, core::Draft& draft) {
  constexpr std::string_view kExtension = ".bin";
  const std::string file(place.file()->file_name());
  if (!file.ends_with(kExtension)) return;
  std::vector<std::string> indexes{"pytorch_model" + std::string(kIndexSuffix)};
  if (const auto name = core::parse_shard_name(file, kExtension))
    indexes.insert(indexes.begin(), std::string(name->stem) + std::string(kIndexSuffix));
  core::warn_shard_alone(place, context.limits, rules::kShardAlone, kExtension, indexes, findings, draft);
}

bool spans_files(const core::Probe& probe) { return core::is_index(probe, kIndexSuffix); }

void read_files(const core::ReadJob& job, core::Draft& draft) {
  core::read_index_file(job, {.json = kJsonRules, .shards = kShardRules, .index = kIndexRules, .format = "pytorch"},
                        draft);
}

}  // namespace weighbridge::pytorch
