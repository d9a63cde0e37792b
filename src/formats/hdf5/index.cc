// SPDX-License-Identifier: Apache-2.0
// Weights of Keras in several files: opening the index, which names the group of each layer's variables and its file,
// or the list of its files (reading H8).
#include <string>

#include "core/reading/json_file.h"
#include "core/reading/shards.h"
#include "formats/hdf5/format.h"
#include "formats/hdf5/layout.h"
#include "formats/hdf5/rules.h"

namespace weighbridge::hdf5 {
namespace {

constexpr core::JsonRules kJsonRules{
    .syntax = h5::kIndexJson, .root = h5::kIndexValue, .duplicate_key = h5::kIndexDuplicateKey};
constexpr core::ShardRules kShardRules{.format = h5::kShardFormat,
                                       .link = h5::kShardLink,
                                       .missing = h5::kShardMissing,
                                       .metadata_conflict = h5::kMetadataConflict};

// "/layers/dense/vars" of "layers/dense/vars/0".
std::string group_of(std::string_view dataset) {
  const std::size_t slash = dataset.rfind('/');
  return "/" + std::string(dataset.substr(0, slash == dataset.npos ? 0 : slash));
}

constexpr core::IndexRules kIndexRules{.value = h5::kIndexValue,
                                       .path = h5::kShardPath,
                                       .tensor_missing = h5::kGroupMissing,
                                       .tensor_unlisted = h5::kGroupUnlisted,
                                       .total_size = h5::kTotalSize,
                                       .group_of = group_of};

}  // namespace

bool is_keras_index(const core::Probe& probe) { return core::is_index(probe, kKerasIndexSuffix); }

void warn_keras_shard_alone(const Place& place, const Context& context, core::Findings& findings, core::Draft& draft) {
  constexpr std::string_view kExtension = ".weights.h5";
  const std::string file(place.file()->file_name());
  const std::size_t number = file.rfind('_');
  if (!file.ends_with(kExtension) || number == file.npos) return;
  const std::string indexes[] = {file.substr(0, number) + std::string(kKerasIndexSuffix)};
  core::warn_shard_alone(place, context.limits, h5::kShardAlone, kExtension, indexes, findings, draft);
}

void read_keras_index(const core::ReadJob& job, core::Draft& draft) {
  core::read_index_file(job, {.json = kJsonRules, .shards = kShardRules, .index = kIndexRules, .format = "hdf5"},
                        draft);
  // A group may be in several files, but a dataset is in one.
  draft.drop_same_names(
      [&](std::uint32_t, std::uint32_t later) { job.findings.report(h5::kGroupTwice, {.tensor = draft.name(later)}); });
}

}  // namespace weighbridge::hdf5
