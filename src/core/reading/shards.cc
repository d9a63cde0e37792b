// SPDX-License-Identifier: Apache-2.0
// Reads weight files into one draft, and checks an index against them.
#include "core/reading/shards.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <set>

#include "core/model/plan_text.h"
#include "core/model/state.h"
#include "core/model/words.h"
#include "core/reading/budget.h"
#include "core/reading/rules.h"
#include "io/temporary.h"

namespace weighbridge::core {
namespace {

using wire::JsonReader, wire::JsonString;

// The memory for an entry of weight_map besides the text that it points to, and for a key of metadata.
constexpr std::uint64_t kEntryCost = 80, kMetadataCost = 256;
constexpr std::uint64_t kAbsentCost = 1024;  // of a tensor that is listed with the reason why it is absent
constexpr std::string_view kWeightMap = "weight_map";

// Of the part that holds its values.
std::uint64_t main_size(const Model& model, std::uint32_t tensor) {
  const State& state = *Access::state(model);
  const TensorRecord& record = state.tensors[tensor];
  if (record.part_count == 1) return state.parts[record.first_part].size;
  return record.part_count == 0 ? 0 : model[tensor].main().size();
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

bool each_in_index(std::string_view text, const Limits& limits,
                   const std::function<bool(std::string_view tensor, std::string_view file)>& take) {
  JsonReader in(text, limits.depth);
  std::string name_text, file_text;
  const auto take_file = [&](const JsonString& tensor) {
    JsonString file;
    return in.read_string(file) && take(wire::json_text(tensor, name_text), wire::json_text(file, file_text));
  };
  if (!in.enter_object()) return false;
  for (JsonString key; in.next_key(key);) {
    std::string_view raw;
    if (wire::json_text(key, name_text) != kWeightMap) {
      if (!in.skip_value(raw)) return false;
      continue;
    }
    if (!in.enter_object()) return false;
    for (JsonString tensor; in.next_key(tensor);) {
      if (in.peek() == wire::JsonKind::string) {
        if (!take_file(tensor)) return false;
        continue;
      }
      if (!in.enter_array()) return false;  // Keras: a group in several files
      while (in.next_element())
        if (!take_file(tensor)) return false;
    }
  }
  return in.ok();
}

std::string last_component(std::string_view path) { return std::string(path.substr(path.rfind('/') + 1)); }

namespace {

// A larger index is not read for a remark.
constexpr std::uint64_t kMaxIndex = std::uint64_t{64} << 20;

std::optional<Incomplete> lacks_by_index(const Place& place, const Limits& limits, const std::string& file,
                                         const std::string& index) try {
  const auto source = place.open(index);
  if (!source || source->size() > std::min(limits.header, kMaxIndex)) return std::nullopt;
  std::set<std::string, std::less<>> listed;
  const bool good =
      each_in_index(whole_text(*source, limits, index), limits, [&](std::string_view, std::string_view of) {
        listed.emplace(of);
        return true;
      });
  if (!good || !listed.contains(file) || listed.size() < 2) return std::nullopt;
  Incomplete out;
  for (const std::string& each : listed)
    if (each != file) out.others.push_back(each);
  out.why = index + " lists " +
            (out.others.size() == 1 ? out.others[0] : std::to_string(out.others.size()) + " files") +
            " besides it: open that to read all tensors";
  return out;
} catch (const Error&) {  // the index cannot be opened, and the caller did not ask for it
  return std::nullopt;
}

}  // namespace

std::optional<Incomplete> one_of_several(const Place& place, const Limits& limits, std::string_view extension,
                                         std::span<const std::string> indexes) {
  const std::string file(place.file()->file_name());
  if (io::is_temporary(file)) return std::nullopt;  // an output that is read back, beside the index that it replaces
  for (const std::string& index : indexes)
    if (auto lacks = lacks_by_index(place, limits, file, index)) return lacks;
  const auto name = parse_shard_name(file, extension);
  if (!name || name->count < 2 || name->number < 1 || name->number > name->count) return std::nullopt;
  // A name can state any count; so many names take less than a megabyte.
  constexpr std::uint64_t kMaxNamed = 10'000;
  Incomplete out;
  for (std::uint64_t number = 1; number <= name->count && name->count <= kMaxNamed; ++number)
    if (number != name->number) out.others.push_back(spell_shard_name({name->stem, number, name->count}, extension));
  out.why = "its name says that it is file " + std::to_string(name->number) + " of " + std::to_string(name->count) +
            ", and no index beside it lists them";
  return out;
}

void warn_shard_alone(const Place& place, const Limits& limits, const Rule& alone, std::string_view extension,
                      std::span<const std::string> indexes, Findings& findings, Draft& draft) {
  auto lacks = one_of_several(place, limits, extension, indexes);
  if (!lacks) return;
  findings.report(alone, {}, {}, {}, lacks->why);
  draft.set_incomplete(*std::move(lacks));
}

ShardReader::ShardReader(Reading& reading, const ReadJob& job, const ShardRules& rules, std::string_view format,
                         Draft& draft)
    : reading_(reading),
      job_(job),
      rules_(rules),
      format_(format),
      draft_(draft),
      context_(job.context),
      kept_(context_.limits.memory) {}

Model ShardReader::read_whole(const std::shared_ptr<const Source>& source) {
  complete_ = true;
  bool sound = true;
  Model model = load(source, sound);
  draft_.adopt_marked(model, std::vector<bool>(model.size(), true));
  keep_metadata(model);
  return model;
}

Model ShardReader::load(const std::shared_ptr<const Source>& source, bool& sound) {
  const std::uint64_t before = reading_.findings.errors();
  Findings in_file = reading_.in(source);
  Member member = job_.load(source, format_, context_, in_file);
  if (!member.format.empty() && member.format != format_)
    in_file.report(rules_.format, {.offset = 0}, format_, member.format);
  reading_.sources.push_back(source);
  if (const Incomplete* const part = incomplete(member.model)) draft_.set_incomplete(*part);
  // What a part of a shard lacks is not what the index has wrong.
  sound = reading_.findings.errors() == before && incomplete(member.model) == nullptr;
  // Headers share one limit: the next one may use what this one leaves.
  context_.limits.header -= std::min<std::uint64_t>(context_.limits.header, retained_header(member.model).size());
  context_.limits.tensors -= std::min<std::uint64_t>(context_.limits.tensors, member.model.size());
  return std::move(member.model);
}

void ShardReader::keep_metadata(const Model& model, std::string_view own) {
  for (const Value::Entry& entry : model.attributes()) {
    if (!own.empty() && entry.first.starts_with(own)) continue;
    const auto [known, is_new] = by_key_.emplace(entry.first, metadata_.size());
    if (!is_new) {
      const Value& kept = metadata_[known->second].second;
      if (kept != entry.second)
        reading_.findings.in(model.sources()[0])
            .report(rules_.metadata_conflict, {}, excerpted(kept.to_text()), excerpted(entry.second.to_text()),
                    in_quotes(entry.first));
      continue;
    }
    metadata_.push_back(entry);
    if (!kept_.keep(reading_.findings, {}, 1, kMetadataCost, "the shards have too much metadata to keep")) return;
  }
}

void ShardReader::read_numbered(const ShardName& name, std::string_view extension, std::string_view own,
                                const std::function<void(std::uint64_t number, const Model&)>& on_file) {
  complete_ = true;
  count_ = name.count;
  Incomplete lacks;
  // A name can state a hundred thousand files that were never there.
  constexpr std::size_t kMaxAbsent = 1000;
  for (std::uint64_t number = 1; number <= name.count && lacks.others.size() < kMaxAbsent; ++number) {
    const std::string file = spell_shard_name({name.stem, number, name.count}, extension);
    bool absent = false;
    const auto source = open_shard(reading_.findings, std::nullopt, file, &absent);
    if (absent) lacks.others.push_back(file);
    if (!source && !absent) return;
    if (!source) continue;
    bool sound = true;
    const Model model = load(source, sound);
    files_.push_back(file);
    if (sound) on_file(number, model);
    // The files of a model have about as many tensors each. A name can state any count, so that the room is bounded.
    constexpr std::uint64_t kMaxReserved = std::uint64_t{1} << 20;
    if (number == 2 && model.size() <= kMaxReserved) {
      const auto room = base::to_size(std::min(kMaxReserved, name.count * model.size()));
      draft_.reserve(room, room, 2 * room);
    }
    draft_.adopt_marked(model, std::vector<bool>(model.size(), true));
    keep_metadata(model, own);
  }
  if (lacks.others.empty()) return;
  // One finding for all of them.
  const std::string& first = lacks.others.front();
  const std::size_t more = lacks.others.size() - 1;
  const std::string named = first + (more > 0 ? " and " + std::to_string(more) + " more" : std::string());
  reading_.findings.report_absent(rules_.missing, {.hint = {Hint::What::file, first, {}}}, named);
  lacks.why = named + (more > 0 ? " are missing" : " is missing");
  if (lacks.others.size() == kMaxAbsent) lacks.others.clear();  // not all are known
  draft_.set_incomplete(std::move(lacks));
}

void ShardReader::report_strays(std::string_view stem, std::string_view extension) {
  if (!complete_ || rules_.stray == nullptr || reading_.place.kind() != Place::Kind::folder) return;
  for (const std::string& file : reading_.place.list()) {
    const auto name = parse_shard_name(file, extension);
    if (!name || name->stem != stem || std::ranges::binary_search(named_, file)) continue;
    const bool numbered = name->count == count_ && name->number >= 1 && name->number <= count_;
    if (!numbered) reading_.findings.report(*rules_.stray, {}, {}, {}, file);
  }
}

void ShardReader::read_index(JsonReading& reading, const IndexRules& rules, const TextFile& file) {
  Index in{reading, rules, file};
  const std::uint64_t before = reading_.findings.errors();
  context_.limits.header -= std::min<std::uint64_t>(context_.limits.header, file.text->size());
  const MemberReader map{kWeightMap, [&](JsonReader& value) { read_map(in, value); }};
  const auto index = object_in(reading, file, *file.text, &map);
  if (reading_.findings.errors() == before && in.beyond != nullptr) in.findings().report(*in.beyond, {});
  if (!index || !in.good) {
    const JsonMember* const there = index ? index->find(kWeightMap) : nullptr;
    if (reading_.findings.errors() == before)
      in.findings().report(rules.value, {.offset = there != nullptr ? index->offset(*there) : 0});
    return;
  }
  complete_ = true;
  if (!in.sorted) report_duplicates(in);
  // `order` has the entries of each shard, one shard after the other: an index of as many shards as tensors must not
  // need a list for each.
  const std::vector<Entry>& entries = in.entries;
  std::vector<std::uint32_t> begins(in.shards.size() + 1), order(entries.size());
  for (const Entry& entry : entries) ++begins[entry.shard + 1];
  for (std::size_t i = 1; i < begins.size(); ++i) begins[i] += begins[i - 1];
  std::vector<std::uint32_t> next(begins.begin(), begins.end() - 1);
  for (std::uint32_t i = 0; i < entries.size(); ++i) order[next[entries[i].shard]++] = i;
  draft_.reserve(entries.size(), entries.size(), 2 * entries.size());
  for (const auto& [name, number] : in.numbers) {
    named_.push_back(name);
    const std::uint64_t at = in.shards[number];
    const auto listed = std::span(order).subspan(begins[number], begins[number + 1] - begins[number]);
    std::shared_ptr<const Finding> why;
    if (!is_plain_name(name))
      in.findings().report(rules.path, {.offset = at}, {}, in_quotes(name, kWhole));
    else if (const auto source = open_shard(in.findings(), at, name, nullptr, &why))
      read_shard(in, name, source, listed);
    std::string scratch;
    if (why && rules.group_of == nullptr)
      for (const std::uint32_t i : listed) add_absent(std::string(in.name(entries[i], scratch)), why);
  }
  report_unmatched(in);
  list_absent();
  if (reading_.findings.errors() == before) check_total(in, *index);
}

// Goes on to the end of the value whatever is wrong with it, because malformed JSON after it takes precedence.
void ShardReader::read_map(Index& index, JsonReader& in) {
  const std::size_t depth = in.depth();
  const std::uint64_t maximum = std::min(reading_.limits.tensors, reading_.limits.memory / kEntryCost);
  std::string scratch, shard_text;
  std::string_view previous;
  auto last = index.numbers.end();
  const auto add = [&](const JsonString& name, const JsonString& shard) {
    const std::string_view file = wire::json_text(shard, shard_text);
    if (last == index.numbers.end() || last->first != file) last = index.numbers.find(file);
    if (last == index.numbers.end()) {
      last = index.numbers.emplace(std::string(file), static_cast<std::uint32_t>(index.shards.size())).first;
      index.shards.push_back(index.offset(shard));
    }
    Entry& entry = index.entries.emplace_back();
    entry.name_at = index.offset(name);
    entry.name_size = static_cast<std::uint32_t>(name.raw.size());
    entry.shard = last->second;
    if (index.entries.size() <= maximum) return true;
    index.beyond = index.entries.size() > reading_.limits.tensors ? &rules::kLimitTensors : &rules::kLimitMemory;
    return false;
  };
  const auto read_entry = [&](const JsonString& name) {
    if (name.raw.size() > UINT32_MAX) return false;
    index.escapes = index.escapes || name.escaped;
    index.sorted = index.sorted && !name.escaped && (index.entries.empty() || previous < name.raw);
    previous = name.raw;
    JsonString shard;
    if (in.read_string(shard)) return add(name, shard);
    // A group may be in several files.
    if (!in.ok() || index.rules.group_of == nullptr || !in.enter_array()) return false;
    bool any = false;
    for (; in.next_element(); any = true)
      if (!in.read_string(shard) || !add(name, shard)) return false;
    return any;
  };
  index.good = in.enter_object();
  if (index.good)
    for (JsonString name; index.good && in.next_key(name);) index.good = read_entry(name);
  if (in.ok()) in.unwind(depth);
}

// Of equal names, keeps the first.
void ShardReader::report_duplicates(Index& index) {
  std::vector<Entry>& entries = index.entries;
  std::deque<std::string> unescaped;  // whose texts stay where they are
  std::vector<std::string_view> names;
  names.reserve(entries.size());
  std::string scratch;
  for (const Entry& entry : entries) {
    const std::string_view name = index.name(entry, scratch);
    names.push_back(name.data() == scratch.data() ? unescaped.emplace_back(name) : name);
  }
  const std::vector<std::uint32_t> order = order_of(names);
  std::vector<std::uint32_t> again;
  for (std::size_t i = 1, first = 0; i < order.size(); ++i) {
    if (names[order[i]] != names[order[first]]) first = i;
    // One key has several entries if its group is in several files.
    const std::uint64_t at = entries[order[i]].name_at;
    if (at == entries[order[first]].name_at) continue;
    again.push_back(order[i]);
    if (at != entries[order[i - 1]].name_at)
      index.findings().report(index.reading.rules.duplicate_key, {.offset = at}, {},
                              in_quotes(names[order[i]], kWhole));
  }
  if (again.empty()) return;
  std::ranges::sort(again);
  std::size_t kept = 0;
  for (std::uint32_t i = 0; i < entries.size(); ++i)
    if (!std::ranges::binary_search(again, i)) entries[kept++] = entries[i];
  entries.resize(kept);
}

std::shared_ptr<const Source> ShardReader::open_shard(Findings in, std::optional<std::uint64_t> at,
                                                      const std::string& name, bool* is_absent,
                                                      std::shared_ptr<const Finding>* why) {
  const At where = at ? At{.offset = *at} : At{};
  At absent = where;
  absent.hint = {Hint::What::file, name, {}};
  try {
    if (auto source = reading_.place.open(name)) return source;
    if (is_absent != nullptr) {
      *is_absent = true;
      return nullptr;
    }
    auto reason = in.report_missing(rules_.missing, absent, {}, {}, name);
    if (why != nullptr) *why = std::move(reason);
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
                             std::span<const std::uint32_t> entries) {
  bool sound = true;
  const Model model = load(source, sound);
  const auto file = static_cast<std::uint32_t>(files_.size());
  files_.push_back(name);
  std::vector<bool> placed(model.size(), false);
  std::vector<std::uint32_t> absent;
  if (index.rules.group_of != nullptr)
    absent = place_groups(index, model, entries, placed);
  else
    absent = place_tensors(index, model, entries, placed);
  std::string scratch;
  for (const std::uint32_t i : absent) {
    Missing lacks{index.entries[i].name_at, std::string(index.name(index.entries[i], scratch)), file};
    if (sound) {
      missing_.push_back(std::move(lacks));
    } else if (reading_.findings.list_incomplete() && index.rules.group_of == nullptr) {
      // Listed without a finding of its own: those of the shard say why it is missing.
      auto why = std::make_shared<const Finding>(
          Findings::make(index.rules.tensor_missing, {.offset = lacks.offset, .tensor = lacks.tensor}, {}, {}, name));
      add_absent(std::move(lacks.tensor), std::move(why));
    }
  }
  for (std::uint32_t i = 0; i < model.size() && unlisted_.size() <= Report::kMaxFindings; ++i)
    if (!placed[i] && incomplete(model) == nullptr)
      unlisted_.emplace_back(file, model.name(i));  // one more than a report keeps is enough
  for (std::uint32_t i = 0; i < model.size(); ++i)
    if (placed[i]) bytes_ += main_size(model, i);
  if (reading_.findings.list_incomplete()) placed.assign(model.size(), true);
  draft_.adopt_marked(model, placed);
  keep_metadata(model);
}

std::vector<std::uint32_t> ShardReader::place_tensors(const Index& index, const Model& model,
                                                      std::span<const std::uint32_t> entries,
                                                      std::vector<bool>& placed) {
  std::vector<std::uint32_t> absent;
  const State* const state = Access::state(model);
  std::string scratch;
  std::uint32_t next = 0;  // an index often lists tensors in the order of their file
  for (const std::uint32_t i : entries) {
    const std::string_view tensor = index.name(index.entries[i], scratch);
    if (next < model.size() && state->tensor_name(next) == tensor)
      placed[next++] = true;
    else if (const auto found = model.find(tensor))
      placed[found->index()] = true, next = found->index() + 1;
    else
      absent.push_back(i);
  }
  return absent;
}

std::vector<std::uint32_t> ShardReader::place_groups(const Index& index, const Model& model,
                                                     std::span<const std::uint32_t> entries,
                                                     std::vector<bool>& placed) {
  std::map<std::string, bool, std::less<>> listed;  // whether a tensor is in it
  std::string scratch;
  for (const std::uint32_t i : entries) listed.emplace(index.name(index.entries[i], scratch), false);
  for (std::uint32_t i = 0; i < model.size(); ++i)
    if (const auto group = listed.find(index.rules.group_of(model.name(i))); group != listed.end())
      placed[i] = group->second = true;
  std::vector<std::uint32_t> absent;
  for (const std::uint32_t i : entries)
    if (!listed.find(index.name(index.entries[i], scratch))->second) absent.push_back(i);
  return absent;
}

void ShardReader::report_unmatched(const Index& index) {
  std::ranges::stable_sort(missing_, {}, [](const Missing& each) -> std::string_view { return each.tensor; });
  for (const Missing& each : missing_)
    if (auto why = index.findings().report_missing(
            index.rules.tensor_missing, {.offset = each.offset, .tensor = each.tensor}, {}, {}, files_[each.file]);
        why && index.rules.group_of == nullptr)
      add_absent(each.tensor, std::move(why));
  for (const auto& [file, tensor] : unlisted_)
    index.findings().report_missing(index.rules.tensor_unlisted, {.tensor = tensor}, {}, {}, files_[file]);
}

void ShardReader::add_absent(std::string tensor, std::shared_ptr<const Finding> why) {
  if (absent_.size() < reading_.limits.memory / kAbsentCost) {
    absent_.push_back({std::move(tensor), std::move(why)});
  } else if (!std::exchange(too_many_absent_, true)) {
    reading_.findings.report(rules::kLimitMemory, {}, at_most(reading_.limits.memory / kAbsentCost), {},
                             "too many tensors are missing to list them");
  }
}

// A tensor that is in another file than the index says is not absent.
void ShardReader::list_absent() {
  if (!reading_.findings.list_incomplete()) return;
  draft_.drop_same_names([](std::uint32_t, std::uint32_t) {});  // of several files, where the index lists one
  Incomplete lacks;
  for (Absent& each : absent_) {
    if (draft_.find(each.tensor)) continue;
    if (lacks.why.empty()) lacks.why = each.why->message;
    const std::uint32_t tensor = draft_.add_tensor_without_shape(each.tensor, Layout::dense, DType::unknown);
    draft_.tensor(tensor).unsupported(std::move(each.why));
  }
  if (!lacks.why.empty()) draft_.set_incomplete(std::move(lacks));
}

void ShardReader::check_total(const Index& index, const JsonObject& object) {
  const JsonMember* const metadata = object.find("metadata");
  const auto inner = metadata != nullptr ? object_in(index.reading, index.file, metadata->raw) : std::nullopt;
  // No attribute holds what else the index says about the shards ("total_parameters").
  constexpr std::string_view kTotal = "total_size";
  for (const JsonMember& member : inner ? inner->members : std::vector<JsonMember>{})
    if (member.key != kTotal) draft_.add_left_behind(indexed("metadata of the index", member.key), excerpt(member.raw));
  const JsonMember* const total = inner ? inner->find(kTotal) : nullptr;
  if (total == nullptr) return;
  // Keras writes it with a point.
  const auto exact = wire::as_u64(total->raw);
  const bool right =
      exact ? *exact == bytes_
            : total->kind == wire::JsonKind::number && wire::as_double(total->raw) == static_cast<double>(bytes_);
  if (!right)
    index.findings().report(index.rules.total_size, {.offset = object.offset(*total)}, bytes_, excerpted(total->raw));
}

bool is_index(const Probe& probe, std::string_view suffix) {
  const auto brace = std::ranges::find_if(probe.head, [](std::byte b) {
    return b != std::byte{' '} && b != std::byte{'\n'} && b != std::byte{'\r'} && b != std::byte{'\t'};
  });
  return probe.name.ends_with(suffix) && brace != probe.head.end() && *brace == std::byte{'{'};
}

void read_index_file(const ReadJob& job, const IndexedFiles& of, Draft& draft) {
  draft.set_format(of.format);
  JsonReading reading(job.place, job.context.limits, job.findings, of.json);
  ShardReader shards(reading, job, of.shards, of.format, draft);
  const auto source = job.place.file();
  const std::string name(source->file_name());
  if (const TextFile index = text_of_file(reading, name, source); index.text)
    shards.read_index(reading, of.index, index);
  for (auto& [key, value] : shards.take_metadata()) draft.set_attribute(std::move(key), std::move(value));
  draft.add_sources(std::move(reading.sources));
}

}  // namespace weighbridge::core
