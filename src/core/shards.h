// SPDX-License-Identifier: Apache-2.0
// Shards by an index: {"metadata": {"total_size": N}, "weight_map": {"tensor": "file"}}, and the files that must match
// it both ways. Owns the walk over index and shards; leaves which format a shard has, and by which rules it breaks, to
// its callers.
//
// One shard is read at a time and then let go: what stays of it are its tensors, and its metadata once. Headers count
// against Limits::header together, and tensors against Limits::tensors.
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
  const Rule& format;             // a file of weights has another format
  const Rule& index_value;        // the index has no weight_map
  const Rule& path;               // the index names a shard by something other than a plain name
  const Rule& link;               // a shard is a link that leads out
  const Rule& missing;            // a shard is not there
  const Rule& tensor_missing;     // the index places a tensor where it is not
  const Rule& tensor_unlisted;    // a shard holds a tensor that the index does not place there
  const Rule& total_size;         // metadata.total_size is another
  const Rule& metadata_conflict;  // two shards say different things
};

// Reads files of one model into a draft, and keeps their metadata, each key once.
class ShardReader {
 public:
  // `format` is the name that every file's must have. What is read stands in reading.sources and the draft.
  ShardReader(JsonReading&, const Opening&, const ShardRules&, std::string_view format, Draft&);

  // One file that holds all tensors.
  void read_whole(const std::shared_ptr<const Source>&);
  // All files that the index names.
  void read_index(const TextFile& index);

  // Of all files, in order; of equal keys the first, and another value was reported.
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

  // The file as a model; none where it has another format. `sound`: nothing in it was an error.
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
  Context context_;  // what is left of the limits
  std::vector<std::string> files_;
  std::uint64_t bytes_ = 0;  // of the tensors that were adopted
  std::vector<Missing> missing_;
  std::vector<std::pair<std::uint32_t, std::string>> unlisted_;  // file, tensor
  std::vector<Value::Entry> metadata_;
  std::map<std::string, std::size_t, std::less<>> by_key_;  // in metadata_
};

}  // namespace weighbridge::core
