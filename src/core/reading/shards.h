// SPDX-License-Identifier: Apache-2.0
// Reads the files of one model. Either an index names them, {"metadata": {"total_size": N}, "weight_map": {"tensor":
// "file"}}; then every listed tensor must exist and every tensor must be listed. Or their names are numbered. Callers
// give the format of the files and the rules.
//
// Reads one file at a time and keeps its tensors and its metadata (each key once). The headers together count against
// Limits::header, the tensors against Limits::tensors.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "core/reading/budget.h"
#include "core/reading/format.h"
#include "core/reading/json_file.h"

namespace weighbridge::core {

// "model-00002-of-00005.gguf": how huggingface_hub and llama.cpp name the files of one model.
struct ShardName {
  std::string_view stem;                // "model"
  std::uint64_t number = 0, count = 0;  // 2, 5
};
// `extension` begins with a dot. nullopt: the file is named in another way.
std::optional<ShardName> parse_shard_name(std::string_view file, std::string_view extension) noexcept;
// Calls take(tensor, file) for the entries of an index, in its order. False: it is no index, or take() returned false.
bool each_in_index(std::string_view text, const Limits&,
                   const std::function<bool(std::string_view tensor, std::string_view file)>& take);
std::string spell_shard_name(const ShardName&, std::string_view extension);

// What is missing if the file is opened by itself: the other files of its model, which an index beside it (by one of
// these names) lists or its own name counts. nullopt: neither.
std::optional<Incomplete> one_of_several(const Place&, const Limits&, std::string_view extension,
                                         std::span<const std::string> indexes);
// Reports that with the rule, and marks the draft as incomplete.
void warn_shard_alone(const Place&, const Limits&, const Rule& alone, std::string_view extension,
                      std::span<const std::string> indexes, Findings&, Draft&);
// "w.safetensors" of "models/w.safetensors".
std::string last_component(std::string_view path);

struct ShardRules {
  const Rule& format;             // a file has another format
  const Rule& link;               // a file is a link that leads out of the folder
  const Rule& missing;            // a file is missing
  const Rule& metadata_conflict;  // two files have different values
  const Rule* stray = nullptr;    // a file is named like a shard, but is none
};
struct IndexRules {
  const Rule& value;            // the index has no weight_map
  const Rule& path;             // the index names a file by a path instead of a plain name
  const Rule& tensor_missing;   // a listed tensor is not in its file
  const Rule& tensor_unlisted;  // a file has a tensor that the index does not list for it
  const Rule& total_size;       // metadata.total_size is wrong
  // Gives the group of a tensor, for indexes that list groups of tensors with their file or files. Null: the index
  // lists tensors.
  std::string (*group_of)(std::string_view tensor) = nullptr;
};

// Reads the files of one model into a draft, and collects their metadata, each key once.
class ShardReader {
 public:
  // `format` is the format that every file must have. Adds the files to reading.sources and the draft.
  ShardReader(Reading&, const ReadJob&, const ShardRules&, std::string_view format, Draft&);

  // Reads a single file with all tensors.
  Model read_whole(const std::shared_ptr<const Source>&);
  // Reads all files that the index names.
  void read_index(JsonReading&, const IndexRules&, const TextFile&);
  // Reads all tensors of all files with the name's stem and count. Calls `on_file` with the number (from 1) and model
  // of each file without errors. Leaves out metadata whose keys begin with `own`, which differ between files. If files
  // are missing, marks the draft as incomplete, and verify reports an error.
  void read_numbered(const ShardName&, std::string_view extension, std::string_view own,
                     const std::function<void(std::uint64_t number, const Model&)>& on_file);

  // Reports files of the folder that are named like this model's and were not read. Lists the folder, so only `verify`
  // should call it.
  void report_strays(std::string_view stem, std::string_view extension);

  // The names of the files that the index names; empty for a single file.
  const std::vector<std::string>& files() const noexcept { return files_; }
  // The metadata of all files, in order. For equal keys the first value counts; a different value has been reported.
  std::vector<Value::Entry> take_metadata() { return std::move(metadata_); }

 private:
  // There can be a million of these, so they only point into the text.
  struct Entry {
    std::uint64_t name_at = 0;
    std::uint32_t name_size = 0;
    std::uint32_t shard = 0;  // in Index::shards
  };
  struct Index {
    JsonReading& reading;
    const IndexRules& rules;
    const TextFile& file;
    std::vector<Entry> entries{};
    std::map<std::string, std::uint32_t, std::less<>> numbers{};  // of the shards by name
    std::vector<std::uint64_t> shards{};                          // where the index first names each shard
    bool good = false;                                            // the index has a weight_map whose values are texts
    bool sorted = true;                                           // ascending by name, so no name repeats
    bool escapes = false;                                         // some name has an escape sequence
    const Rule* beyond = nullptr;                                 // the limit that it exceeds

    Findings findings() const { return reading.in(file); }
    std::uint64_t offset(const wire::JsonString& string) const noexcept {
      return static_cast<std::uint64_t>(string.raw.data() - file.text->data());
    }
    std::string_view name(const Entry& entry, std::string& scratch) const {
      const std::string_view raw = std::string_view(*file.text).substr(base::to_size(entry.name_at), entry.name_size);
      return wire::json_text({.offset = 0, .raw = raw, .escaped = escapes && raw.find('\\') != raw.npos}, scratch);
    }
  };
  struct Missing {
    std::uint64_t offset;  // in the index
    std::string tensor;
    std::uint32_t file;
  };
  // A tensor of an incomplete model that the caller lists.
  struct Absent {
    std::string tensor;
    std::shared_ptr<const Finding> why;
  };

  // The file as a model; empty if it has another format. Sets `sound` if it has no errors.
  Model load(const std::shared_ptr<const Source>&, bool& sound);
  void keep_metadata(const Model&, std::string_view own = {});
  void read_map(Index&, wire::JsonReader&);
  void report_duplicates(Index&);
  // Null, and reported to `in`, if it is missing or is not a file. A missing file is reported only if `absent` is null.
  std::shared_ptr<const Source> open_shard(Findings in, std::optional<std::uint64_t> at, const std::string& name,
                                           bool* absent = nullptr, std::shared_ptr<const Finding>* why = nullptr);
  void read_shard(const Index&, const std::string& name, const std::shared_ptr<const Source>&,
                  std::span<const std::uint32_t> entries);
  // Mark the tensors that the index lists for the file; return the entries that the file lacks.
  static std::vector<std::uint32_t> place_tensors(const Index&, const Model&, std::span<const std::uint32_t> entries,
                                                  std::vector<bool>& placed);
  static std::vector<std::uint32_t> place_groups(const Index&, const Model&, std::span<const std::uint32_t> entries,
                                                 std::vector<bool>& placed);
  void report_unmatched(const Index&);
  void add_absent(std::string tensor, std::shared_ptr<const Finding> why);
  void list_absent();
  void check_total(const Index&, const JsonObject&);

  Reading& reading_;
  const ReadJob& job_;
  const ShardRules& rules_;
  const std::string_view format_;
  Draft& draft_;
  Context context_;  // with what remains of the limits
  Budget kept_;      // of metadata
  std::vector<std::string> files_;
  bool complete_ = false;           // all files of the model are known by name
  std::vector<std::string> named_;  // sorted: the files that the index names, readable or not
  std::uint64_t count_ = 0;         // of numbered files
  std::uint64_t bytes_ = 0;         // of the tensors that the index lists
  std::vector<Missing> missing_;
  std::vector<std::pair<std::uint32_t, std::string>> unlisted_;  // file, tensor
  std::vector<Absent> absent_;
  bool too_many_absent_ = false;
  std::vector<Value::Entry> metadata_;
  std::map<std::string, std::size_t, std::less<>> by_key_;  // in metadata_
};

// Whether the file's name has this suffix and its content is a JSON object.
bool is_index(const Probe&, std::string_view suffix);

// Reads an index that the caller opened, and the files beside it.
struct IndexedFiles {
  const JsonRules& json;
  const ShardRules& shards;
  const IndexRules& index;
  std::string_view format;  // of the model and of each file
};
void read_index_file(const ReadJob&, const IndexedFiles&, Draft&);

}  // namespace weighbridge::core
