// SPDX-License-Identifier: Apache-2.0
// Reads weight files into one draft, and checks an index against them.
#include "core/shards.h"

#include <fmt/format.h>

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

std::optional<ShardName> parse_shard_name(std::string_view file, std::string_view extension) noexcept {
  constexpr std::string_view kPattern = "-00001-of-00002";
  constexpr std::size_t kDigits = 5;
  if (!file.ends_with(extension) || file.size() <= extension.size() + kPattern.size()) return std::nullopt;
  file.remove_suffix(extension.size());
  const std::string_view tail = file.substr(file.size() - kPattern.size());
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  for (std::size_t i = 0; i < kPattern.size(); ++i)
    if (is_digit(kPattern[i]) ? !is_digit(tail[i]) : tail[i] != kPattern[i]) return std::nullopt;
  const auto number = [](std::string_view digits) {
    std::uint64_t out = 0;
    for (const char digit : digits) out = out * 10 + static_cast<std::uint64_t>(digit - '0');
    return out;
  };
  return ShardName{.stem = file.substr(0, file.size() - kPattern.size()),
                   .number = number(tail.substr(1, kDigits)),
                   .count = number(tail.substr(kPattern.size() - kDigits))};
}

std::string spell_shard_name(const ShardName& name, std::string_view extension) {
  return fmt::format("{}-{:05}-of-{:05}{}", name.stem, name.number, name.count, extension);
}

ShardReader::ShardReader(Reading& reading, const Opening& opening, const ShardRules& rules, std::string_view format,
                         Draft& draft)
    : reading_(reading), opening_(opening), rules_(rules), format_(format), draft_(draft), context_(opening.context) {}

Model ShardReader::read_whole(const std::shared_ptr<const Source>& source) {
  complete_ = true;
  bool sound = true;
  Model model = load(source, sound);
  for (std::uint32_t i = 0; i < model.size(); ++i) adopt(model, i);
  keep_metadata(model);
  return model;
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

void ShardReader::keep_metadata(const Model& model, std::string_view own) {
  for (const Value::Entry& entry : model.attributes()) {
    if (!own.empty() && entry.first.starts_with(own)) continue;
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

void ShardReader::read_numbered(const ShardName& name, std::string_view extension, std::string_view own,
                                const std::function<void(std::uint64_t number, const Model&)>& see) {
  complete_ = true;
  count_ = name.count;
  for (std::uint64_t number = 1; number <= name.count; ++number) {
    const std::string file = spell_shard_name({name.stem, number, name.count}, extension);
    const auto source = open_shard(reading_.findings, std::nullopt, file);
    // One finding, and not a hundred thousand, if the name states what is not there.
    if (!source) return;
    bool sound = true;
    const Model model = load(source, sound);
    files_.push_back(file);
    if (sound) see(number, model);
    for (std::uint32_t i = 0; i < model.size(); ++i) adopt(model, i);
    keep_metadata(model, own);
  }
}

void ShardReader::report_strays(std::string_view stem, std::string_view extension) {
  if (!complete_ || reading_.place.kind() != Place::Kind::folder) return;
  for (const std::string& file : reading_.place.list()) {
    const auto name = parse_shard_name(file, extension);
    if (!name || name->stem != stem || std::ranges::binary_search(named_, file)) continue;
    const bool numbered = name->count == count_ && name->number >= 1 && name->number <= count_;
    if (!numbered) reading_.findings.report(rules_.stray, {}, {}, {}, file);
  }
}

void ShardReader::read_index(JsonReading& reading, const IndexRules& rules, const TextFile& file) {
  const Index in{reading, rules, file};
  const std::uint64_t before = reading_.findings.errors();
  context_.limits.header -= std::min<std::uint64_t>(context_.limits.header, file.text->size());
  const auto index = object_in(reading, file, *file.text);
  const JsonMember* const map = index ? index->find("weight_map") : nullptr;
  std::vector<Entry> entries;
  if (map == nullptr || !read_map(in, map->raw, entries)) {
    if (reading_.findings.errors() == before)
      in.findings().report(rules.value, {.offset = map != nullptr ? index->offset(*map) : 0});
    return;
  }
  complete_ = true;
  report_duplicates(in, entries);  // also sorts by the tensors' names
  std::vector<std::pair<std::string, const Entry*>> by_shard;
  by_shard.reserve(entries.size());
  for (const Entry& entry : entries) by_shard.emplace_back(text_of(entry.shard), &entry);
  std::ranges::stable_sort(by_shard, {}, [](const auto& each) -> std::string_view { return each.first; });
  std::vector<const Entry*> of_one;
  for (std::size_t first = 0, last = 0; first < by_shard.size(); first = last) {
    const std::string& name = by_shard[first].first;
    of_one.clear();
    for (; last < by_shard.size() && by_shard[last].first == name; ++last) of_one.push_back(by_shard[last].second);
    named_.push_back(name);
    const std::uint64_t at = offset_in(file, of_one[0]->shard);
    if (!is_plain_name(name))
      in.findings().report(rules.path, {.offset = at}, {}, quoted(name));
    else if (const auto source = open_shard(in.findings(), at, name))
      read_shard(in, name, source, of_one);
  }
  report_unmatched(in);
  if (reading_.findings.errors() == before) check_total(in, *index);
}

bool ShardReader::read_map(const Index& index, std::string_view raw, std::vector<Entry>& entries) {
  JsonReader in(raw, reading_.limits.depth);
  if (!in.enter_object()) return false;
  for (Entry entry; in.next_key(entry.name);) {
    if (!in.read_string(entry.shard)) return false;
    entries.push_back(entry);
    if (entries.size() <= std::min(reading_.limits.tensors, reading_.limits.memory / kEntryCost)) continue;
    const bool count = entries.size() > reading_.limits.tensors;
    index.findings().report(count ? rules::kLimitTensors : rules::kLimitMemory, {});
    return false;
  }
  return in.ok();
}

// Sorts by name; of equal names, keeps the first.
void ShardReader::report_duplicates(const Index& index, std::vector<Entry>& entries) {
  std::vector<std::pair<std::string, Entry>> named;
  named.reserve(entries.size());
  for (const Entry& entry : entries) named.emplace_back(text_of(entry.name), entry);
  std::ranges::stable_sort(named, {}, [](const auto& each) -> std::string_view { return each.first; });
  entries.clear();
  for (std::size_t i = 0; i < named.size(); ++i) {
    if (i == 0 || named[i].first != named[i - 1].first)
      entries.push_back(named[i].second);
    else
      index.findings().report(index.reading.rules.duplicate_key,
                              {.offset = offset_in(index.file, named[i].second.name)}, {}, quoted(named[i].first));
  }
}

std::shared_ptr<const Source> ShardReader::open_shard(Findings in, std::optional<std::uint64_t> at,
                                                      const std::string& name) {
  const At where = at ? At{.offset = *at} : At{};
  try {
    if (auto source = reading_.place.open(name)) return source;
    in.report(rules_.missing, where, {}, {}, name);
  } catch (const Error& error) {
    // A name that is there, but no file: a directory, a FIFO.
    const bool outside = error.finding().rule == "io/outside";
    if (!outside && error.kind() != Kind::misuse) throw;
    in.report(outside ? rules_.link : rules_.missing, where, {}, {},
              outside ? name : name + ": " + error.finding().message);
  }
  return nullptr;
}

// `entries` are those that the index lists for this shard, by name. Every listed tensor must be there, and every tensor
// must be listed.
void ShardReader::read_shard(const Index& index, const std::string& name, const std::shared_ptr<const Source>& source,
                             std::span<const Entry* const> entries) {
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
      missing_.push_back({offset_in(index.file, entry->name), std::move(tensor), file});
  }
  for (std::uint32_t i = 0; i < model.size(); ++i) {
    if (placed[i])
      adopt(model, i);
    else if (unlisted_.size() <= Report::kMaxFindings)  // one more than a report keeps is enough
      unlisted_.emplace_back(file, model.name(i));
  }
  keep_metadata(model);
}

void ShardReader::report_unmatched(const Index& index) {
  std::ranges::stable_sort(missing_, {}, [](const Missing& each) -> std::string_view { return each.tensor; });
  for (const Missing& each : missing_)
    index.findings().report(index.rules.tensor_missing, {.offset = each.offset, .tensor = each.tensor}, {}, {},
                            files_[each.file]);
  for (const auto& [file, tensor] : unlisted_)
    index.findings().report(index.rules.tensor_unlisted, {.tensor = tensor}, {}, {}, files_[file]);
}

void ShardReader::check_total(const Index& index, const JsonObject& object) {
  const JsonMember* const metadata = object.find("metadata");
  const auto inner = metadata != nullptr ? object_in(index.reading, index.file, metadata->raw) : std::nullopt;
  const JsonMember* const total = inner ? inner->find("total_size") : nullptr;
  if (total != nullptr && wire::as_u64(total->raw) != bytes_)
    index.findings().report(index.rules.total_size, {.offset = object.offset(*total)}, std::to_string(bytes_),
                            excerpt(total->raw));
}

}  // namespace weighbridge::core
