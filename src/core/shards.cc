// SPDX-License-Identifier: Apache-2.0
// Reads weight files into one draft, and checks the index against them.
#include "core/shards.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/common_rules.h"
#include "core/words.h"

namespace weighbridge::core {
namespace {

using wire::JsonReader;
using wire::JsonString;

// The memory for an entry of weight_map besides the text that it points to, and for a key of metadata.
constexpr std::uint64_t kEntryCost = 80, kMetadataCost = 256;

std::string text_of(const JsonString& string) {
  std::string scratch;
  return std::string(wire::json_text(string, scratch));
}

std::uint64_t offset_in(const TextFile& file, const JsonString& string) {
  return static_cast<std::uint64_t>(string.raw.data() - file.text->data());
}

}  // namespace

ShardReader::ShardReader(JsonReading& reading, const Opening& opening, const ShardRules& rules, std::string_view format,
                         Draft& draft)
    : reading_(reading), opening_(opening), rules_(rules), format_(format), draft_(draft), context_(opening.context) {}

void ShardReader::read_whole(const std::shared_ptr<const Source>& source) {
  bool sound = true;
  const Model model = load(source, sound);
  for (std::uint32_t i = 0; i < model.size(); ++i) adopt(model, i);
  keep_metadata(model);
}

Model ShardReader::load(const std::shared_ptr<const Source>& source, bool& sound) {
  const std::uint64_t before = reading_.findings.errors();
  Findings in_file = reading_.in(*source);
  Member member = opening_.load(source, format_, context_, in_file);
  if (!member.format.empty() && member.format != format_)
    in_file.report(rules_.format, {.offset = 0}, std::string(format_), std::string(member.format));
  reading_.sources.push_back(source);
  sound = reading_.findings.errors() == before;
  // Headers share one limit: the next one may use what this one leaves.
  context_.limits.header -= std::min<std::uint64_t>(context_.limits.header, retained_header(member.model).size());
  context_.limits.tensors -= std::min<std::uint64_t>(context_.limits.tensors, member.model.size());
  return std::move(member.model);
}

void ShardReader::adopt(const Model& model, std::uint32_t index) {
  const Tensor tensor = model[index];
  draft_.adopt(tensor.name(), tensor);
  if (tensor.part_count() > 0) bytes_ += tensor.main().size();
}

void ShardReader::keep_metadata(const Model& model) {
  for (const Value::Entry& entry : model.attributes()) {
    const auto [known, is_new] = by_key_.emplace(entry.first, metadata_.size());
    if (!is_new) {
      const Value& kept = metadata_[known->second].second;
      if (kept != entry.second)
        reading_.findings.in(*model.sources()[0])
            .report(rules_.metadata_conflict, {}, excerpt(kept.to_text()), excerpt(entry.second.to_text()),
                    quoted(excerpt(entry.first)));
      continue;
    }
    metadata_.push_back(entry);
    if (metadata_.size() > context_.limits.memory / kMetadataCost) {
      reading_.findings.report(rules::kLimitMemory, {}, "at most " + bytes_text(context_.limits.memory), {},
                               "the shards have too much metadata to keep");
      return;
    }
  }
}

void ShardReader::read_index(const TextFile& file) {
  const std::uint64_t before = reading_.findings.errors();
  context_.limits.header -= std::min<std::uint64_t>(context_.limits.header, file.text->size());
  const auto index = object_in(reading_, file, *file.text);
  const JsonMember* const map = index ? index->find("weight_map") : nullptr;
  std::vector<Entry> entries;
  if (map == nullptr || !read_map(file, map->raw, entries)) {
    if (reading_.findings.errors() == before)
      reading_.in(file).report(rules_.index_value, {.offset = map != nullptr ? index->offset(*map) : 0});
    return;
  }
  report_duplicates(file, entries);  // also sorts by the tensors' names
  std::vector<std::pair<std::string, const Entry*>> by_shard;
  by_shard.reserve(entries.size());
  for (const Entry& entry : entries) by_shard.emplace_back(text_of(entry.shard), &entry);
  std::ranges::stable_sort(by_shard, {}, [](const auto& each) -> std::string_view { return each.first; });
  std::vector<const Entry*> of_one;
  for (std::size_t first = 0, last = 0; first < by_shard.size(); first = last) {
    const std::string& name = by_shard[first].first;
    of_one.clear();
    for (; last < by_shard.size() && by_shard[last].first == name; ++last) of_one.push_back(by_shard[last].second);
    if (const auto source = open_shard(file, name, offset_in(file, of_one[0]->shard)))
      read_shard(file, name, source, of_one);
  }
  report_unmatched(file);
  if (reading_.findings.errors() == before) check_total(*index);
}

bool ShardReader::read_map(const TextFile& file, std::string_view raw, std::vector<Entry>& entries) {
  JsonReader in(raw, reading_.limits.depth);
  if (!in.enter_object()) return false;
  for (Entry entry; in.next_key(entry.name);) {
    if (!in.read_string(entry.shard)) return false;
    entries.push_back(entry);
    if (entries.size() <= std::min(reading_.limits.tensors, reading_.limits.memory / kEntryCost)) continue;
    const bool count = entries.size() > reading_.limits.tensors;
    reading_.in(file).report(count ? rules::kLimitTensors : rules::kLimitMemory, {});
    return false;
  }
  return in.ok();
}

// Sorts by name; of equal names, keeps the first.
void ShardReader::report_duplicates(const TextFile& file, std::vector<Entry>& entries) {
  std::vector<std::pair<std::string, Entry>> named;
  named.reserve(entries.size());
  for (const Entry& entry : entries) named.emplace_back(text_of(entry.name), entry);
  std::ranges::stable_sort(named, {}, [](const auto& each) -> std::string_view { return each.first; });
  entries.clear();
  for (std::size_t i = 0; i < named.size(); ++i) {
    if (i == 0 || named[i].first != named[i - 1].first)
      entries.push_back(named[i].second);
    else
      reading_.in(file).report(reading_.rules.duplicate_key, {.offset = offset_in(file, named[i].second.name)}, {},
                               quoted(named[i].first));
  }
}

std::shared_ptr<const Source> ShardReader::open_shard(const TextFile& index, const std::string& name,
                                                      std::uint64_t at) {
  if (!is_plain_name(name)) {
    reading_.in(index).report(rules_.path, {.offset = at}, {}, quoted(name));
    return nullptr;
  }
  try {
    if (auto source = reading_.place.open(name)) return source;
    reading_.in(index).report(rules_.missing, {.offset = at}, {}, {}, name);
  } catch (const Error& error) {
    // A name that is there, but no file: a directory, a FIFO.
    const bool outside = error.finding().rule == "io/outside";
    if (!outside && error.kind() != Kind::misuse) throw;
    reading_.in(index).report(outside ? rules_.link : rules_.missing, {.offset = at}, {}, {},
                              outside ? name : name + ": " + error.finding().message);
  }
  return nullptr;
}

// `entries` are those that the index lists for this shard, by name. Every listed tensor must be there, and every tensor
// must be listed.
void ShardReader::read_shard(const TextFile& index, const std::string& name,
                             const std::shared_ptr<const Source>& source, std::span<const Entry* const> entries) {
  bool sound = true;
  const Model model = load(source, sound);
  const auto file = static_cast<std::uint32_t>(files_.size());
  files_.push_back(name);
  std::vector<bool> placed(model.size(), false);
  for (const Entry* const entry : entries) {
    std::string tensor = text_of(entry->name);
    if (const auto found = model.find(tensor))
      placed[found->index()] = true;
    else if (sound)  // else its own findings say why it is missing
      missing_.push_back({offset_in(index, entry->name), std::move(tensor), file});
  }
  for (std::uint32_t i = 0; i < model.size(); ++i) {
    if (placed[i])
      adopt(model, i);
    else if (unlisted_.size() <= Report::kMaxFindings)  // one more than a report keeps is enough
      unlisted_.emplace_back(file, model.name(i));
  }
  keep_metadata(model);
}

void ShardReader::report_unmatched(const TextFile& index) {
  std::ranges::stable_sort(missing_, {}, [](const Missing& each) -> std::string_view { return each.tensor; });
  for (const Missing& each : missing_)
    reading_.in(index).report(rules_.tensor_missing, {.offset = each.offset, .tensor = each.tensor}, {}, {},
                              files_[each.file]);
  for (const auto& [file, tensor] : unlisted_)
    reading_.in(index).report(rules_.tensor_unlisted, {.tensor = tensor}, {}, {}, files_[file]);
}

void ShardReader::check_total(const JsonObject& index) {
  const JsonMember* const metadata = index.find("metadata");
  const auto inner = metadata != nullptr ? object_in(reading_, index.file, metadata->raw) : std::nullopt;
  const JsonMember* const total = inner ? inner->find("total_size") : nullptr;
  if (total != nullptr && wire::as_u64(total->raw) != bytes_)
    reading_.in(index.file)
        .report(rules_.total_size, {.offset = index.offset(*total)}, std::to_string(bytes_), excerpt(total->raw));
}

}  // namespace weighbridge::core
