// SPDX-License-Identifier: Apache-2.0
// Files of weights into models, and the index against them.
#include "bundle/huggingface/weights.h"

#include <algorithm>
#include <optional>

#include "bundle/huggingface/format.h"
#include "bundle/huggingface/rules.h"
#include "core/common_rules.h"
#include "registry/detect.h"
#include "registry/load.h"

namespace weighbridge::huggingface {
namespace {

using wire::JsonReader;
using wire::JsonString;

// What an entry of weight_map takes in memory beside the text that it points into.
constexpr std::uint64_t kEntryCost = 80;

struct Entry {
  JsonString name, shard;
  std::uint32_t file = 0;  // in Weights::files, once they are known
};

std::string text_of(const JsonString& string) {
  std::string scratch;
  return std::string(wire::json_text(string, scratch));
}

bool is_plain(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find_first_of(std::string_view("/\\\0", 3)) == name.npos;
}

class WeightsReader {
 public:
  WeightsReader(Reading& reading, const Context& context)
      : reading_(reading), findings_(reading.findings), context_(context) {}

  Weights run() {
    const auto whole = reading_.folder.file(kWeights);
    const TextFile index = read_text(reading_, kIndex);
    if (whole && index.present) findings_.report(rules::kTwoWeights, {});
    if (whole) {
      read_one(std::string(kWeights), whole);
      for (std::uint32_t i = 0; i < out_.models[0].size(); ++i) out_.tensors.emplace_back(0, i);
    } else if (index.text) {
      read_shards(index);
    } else if (!index.present) {
      const bool pickle = reading_.folder.file(kPickle) || reading_.folder.file(kPickleIndex);
      findings_.report(pickle ? rules::kPickle : rules::kWeightsMissing, {});
    }
    return std::move(out_);
  }

 private:
  void read_one(const std::string& name, const std::shared_ptr<const Source>& source) {
    const std::uint64_t before = findings_.errors();
    registry::Loaded loaded;
    core::Findings in_file = findings_.in(*source);
    const core::Format* const format = registry::detect(*source, {}).format;
    if (format != nullptr && format->info.name != "safetensors")
      in_file.report(rules::kWeightsFormat, {.offset = 0}, "safetensors", std::string(format->info.name));
    else
      loaded = registry::load(source, context_, {}, in_file);
    reading_.sources.push_back(source);
    broken_.push_back(findings_.errors() != before);
    out_.files.push_back(name);
    out_.models.push_back(std::move(loaded.model));
  }

  void read_shards(const TextFile& file) {
    const std::uint64_t before = findings_.errors();
    const auto index = object_in(reading_, file, *file.text);
    const Member* const map = index ? index->find("weight_map") : nullptr;
    std::vector<Entry> entries;
    if (map == nullptr || !read_map(file, map->raw, entries)) {
      if (findings_.errors() == before)
        reading_.in(file).report(rules::kIndexValue, {.offset = map != nullptr ? index->offset(*map) : 0});
      return;
    }
    report_duplicates(file, entries);
    open_shards(file, entries);
    match(file, entries);
    if (findings_.errors() == before) check_total(*index);
  }

  bool read_map(const TextFile& file, std::string_view raw, std::vector<Entry>& entries) {
    JsonReader in(raw, reading_.limits.depth);
    if (!in.enter_object()) return false;
    for (Entry entry; in.next_key(entry.name);) {
      if (!in.read_string(entry.shard)) return false;
      entries.push_back(entry);
      if (entries.size() <= std::min(reading_.limits.tensors, reading_.limits.memory / kEntryCost)) continue;
      const bool count = entries.size() > reading_.limits.tensors;
      reading_.in(file).report(count ? core::rules::kLimitTensors : core::rules::kLimitMemory, {});
      return false;
    }
    return in.ok();
  }

  static std::uint64_t offset(const TextFile& file, const JsonString& string) {
    return static_cast<std::uint64_t>(string.raw.data() - file.text->data());
  }

  // Sorts by name; of equal names the first stays.
  void report_duplicates(const TextFile& file, std::vector<Entry>& entries) {
    std::vector<std::pair<std::string, Entry>> named;
    named.reserve(entries.size());
    for (const Entry& entry : entries) named.emplace_back(text_of(entry.name), entry);
    std::ranges::stable_sort(named, {}, [](const auto& each) -> std::string_view { return each.first; });
    entries.clear();
    for (std::size_t i = 0; i < named.size(); ++i) {
      if (i == 0 || named[i].first != named[i - 1].first)
        entries.push_back(named[i].second);
      else
        reading_.in(file).report(rules::kDuplicateKey, {.offset = offset(file, named[i].second.name)}, {},
                                 "\"" + named[i].first + "\"");
    }
  }

  // Opens each shard once, in the order of their names. Entries of one that cannot be had name no file.
  void open_shards(const TextFile& file, std::vector<Entry>& entries) {
    std::vector<std::pair<std::string, Entry*>> by_shard;
    by_shard.reserve(entries.size());
    for (Entry& entry : entries) by_shard.emplace_back(text_of(entry.shard), &entry);
    std::ranges::stable_sort(by_shard, {}, [](const auto& each) -> std::string_view { return each.first; });
    for (std::size_t i = 0; i < by_shard.size(); ++i) {
      const auto& [shard, entry] = by_shard[i];
      if (i > 0 && shard == by_shard[i - 1].first) {
        entry->file = by_shard[i - 1].second->file;
      } else {
        entry->file = open_shard(file, shard, offset(file, entry->shard));
      }
    }
  }

  std::uint32_t open_shard(const TextFile& index, const std::string& name, std::uint64_t at) {
    const auto file = static_cast<std::uint32_t>(out_.files.size());
    if (!is_plain(name)) {
      reading_.in(index).report(rules::kShardPath, {.offset = at}, {}, "\"" + name + "\"");
    } else if (reading_.folder.leads_out && reading_.folder.leads_out(name)) {
      reading_.in(index).report(rules::kShardLink, {.offset = at}, {}, {}, name);
    } else if (const auto source = reading_.folder.file(name)) {
      read_one(name, source);
      return file;
    } else {
      reading_.in(index).report(rules::kShardMissing, {.offset = at}, {}, {}, name);
    }
    return core::kNone;
  }

  // Entries are sorted by the tensors' names. Both ways: what the index places is there, what is there is placed.
  void match(const TextFile& file, const std::vector<Entry>& entries) {
    std::vector<std::vector<bool>> placed;
    for (const Model& model : out_.models) placed.emplace_back(model.size(), false);
    for (const Entry& entry : entries) {
      if (entry.file == core::kNone) continue;
      const std::string name = text_of(entry.name);
      if (const auto tensor = out_.models[entry.file].find(name))
        placed[entry.file][tensor->index()] = true;
      else if (!broken_[entry.file])  // else its own findings say why it is not there
        reading_.in(file).report(rules::kTensorMissing, {.offset = offset(file, entry.name), .tensor = name}, {}, {},
                                 out_.files[entry.file]);
    }
    for (std::uint32_t m = 0; m < out_.models.size(); ++m) {
      for (std::uint32_t i = 0; i < placed[m].size(); ++i) {
        if (placed[m][i])
          out_.tensors.emplace_back(m, i);
        else
          reading_.in(file).report(rules::kTensorUnlisted, {.tensor = out_.models[m].name(i)}, {}, {}, out_.files[m]);
      }
    }
    if (out_.tensors.size() > reading_.limits.tensors) {
      reading_.in(file).report(core::rules::kLimitTensors, {}, "at most " + std::to_string(reading_.limits.tensors));
      out_.tensors.clear();
    }
  }

  void check_total(const JsonObject& index) {
    const Member* const metadata = index.find("metadata");
    const auto inner = metadata != nullptr ? object_in(reading_, index.file, metadata->raw) : std::nullopt;
    const Member* const total = inner ? inner->find("total_size") : nullptr;
    if (total == nullptr) return;
    std::uint64_t sum = 0;
    for (const auto& [m, i] : out_.tensors)
      sum += out_.models[m][i].part_count() == 0 ? 0 : out_.models[m][i].main().size();
    if (wire::as_u64(total->raw) != sum)
      reading_.in(index.file)
          .report(rules::kTotalSize, {.offset = index.offset(*total)}, std::to_string(sum),
                  std::string(total->raw.substr(0, 40)));
  }

  Reading& reading_;
  core::Findings& findings_;
  const Context& context_;
  Weights out_;
  std::vector<bool> broken_;  // of each file: some of it could not be read
};

}  // namespace

Weights read_weights(Reading& reading, const Context& context) { return WeightsReader(reading, context).run(); }

}  // namespace weighbridge::huggingface
