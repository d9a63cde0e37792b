// SPDX-License-Identifier: Apache-2.0
// Reads shards by an index, {"metadata": {"total_size": N}, "weight_map": {"tensor": "file"}}: every listed tensor must
// exist, and every tensor must be listed. Callers give the format of the shards and the rules.
//
// Reads one shard at a time and keeps its tensors and its metadata (each key once). The headers together count against
// Limits::header, the tensors against Limits::tensors.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/format.h"
#include "core/json_file.h"

namespace weighbridge::core {

struct ShardRules {
  const Rule& format;             // a weight file has another format
  const Rule& index_value;        // the index has no weight_map
  const Rule& path;               // the index names a shard by something other than a plain name
  const Rule& link;               // a shard is a link that leads out of the folder
  const Rule& missing;            // a shard is missing
  const Rule& tensor_missing;     // a listed tensor is not in its shard
  const Rule& tensor_unlisted;    // a shard has a tensor that the index does not list for it
  const Rule& total_size;         // metadata.total_size is wrong
  const Rule& metadata_conflict;  // two shards have different values
};

// Reads the files of one model into a draft, and collects their metadata, each key once.
class ShardReader {
 public:
  // `format` is the format that every file must have. Adds the files to reading.sources and the draft.
  ShardReader(JsonReading&, const Opening&, const ShardRules&, std::string_view format, Draft&);

  // Reads a single file with all tensors.
  void read_whole(const std::shared_ptr<const Source>&);
  // Reads all files that the index names.
  void read_index(const TextFile& index);

  // The names of the files that the index names; empty for a single file.
  const std::vector<std::string>& files() const noexcept { return files_; }
  // The metadata of all files, in order. Of equal keys, the first counts; a different value has been reported.
  std::vector<Value::Entry> take_metadata() { return std::move(metadata_); }

 private:
  struct Entry {
    wire::JsonString name, shard;
  };
  struct Missing {
    std::uint64_t offset;  // in the index
    std::string tensor;
    std::uint32_t file;
  };

  // The file as a model; empty if it has another format. Sets `sound` if it has no errors.
  Model load(const std::shared_ptr<const Source>&, bool& sound);
  void adopt(const Model&, std::uint32_t tensor);
  void keep_metadata(const Model&);
  bool read_map(const TextFile&, std::string_view raw, std::vector<Entry>&);
  void report_duplicates(const TextFile&, std::vector<Entry>&);
  std::shared_ptr<const Source> open_shard(const TextFile&, const std::string& name, std::uint64_t at);
  void read_shard(const TextFile&, const std::string& name, const std::shared_ptr<const Source>&,
                  std::span<const Entry* const> entries);
  void report_unmatched(const TextFile& index);
  void check_total(const JsonObject& index);

  JsonReading& reading_;
  const Opening& opening_;
  const ShardRules& rules_;
  const std::string_view format_;
  Draft& draft_;
  Context context_;  // with what remains of the limits
  std::vector<std::string> files_;
  std::uint64_t bytes_ = 0;  // of the adopted tensors
  std::vector<Missing> missing_;
  std::vector<std::pair<std::uint32_t, std::string>> unlisted_;  // file, tensor
  std::vector<Value::Entry> metadata_;
  std::map<std::string, std::size_t, std::less<>> by_key_;  // in metadata_
};

}  // namespace weighbridge::core
