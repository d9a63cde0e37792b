// SPDX-License-Identifier: Apache-2.0
// Split models: files of one model that are numbered in their names and in their metadata (reading U13).
// Every file is a GGUF by itself (layout.h); split.no, split.count and split.tensors.count in its metadata number it.
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "core/model/words.h"
#include "core/reading/json_file.h"
#include "core/reading/shards.h"
#include "formats/gguf/format.h"
#include "formats/gguf/layout.h"

namespace weighbridge::gguf {
namespace {

constexpr core::ShardRules kShardRules{.format = rules::kPartFormat,
                                       .link = rules::kPartLink,
                                       .missing = rules::kPartMissing,
                                       .metadata_conflict = rules::kPartMetadata,
                                       .stray = &rules::kPartStray};

// The name of one of several files.
std::optional<core::ShardName> part_name(std::string_view file) noexcept {
  const auto name = core::parse_shard_name(file, kSuffix);
  return name && name->count > 1 && name->number >= 1 && name->number <= name->count ? name : std::nullopt;
}

// The file of the only model in a folder, or the first existing one of its files.
std::string first_of(const Place& place) {
  std::vector<std::string> all, others;  // others: files of models whose first file is missing
  for (std::string& file : place.list()) {
    const auto name = part_name(file);
    if (file == kWholeName || (name && name->number == 1))
      all.push_back(std::move(file));
    else if (name && others.empty())
      others.push_back(std::move(file));
  }
  if (all.empty()) all = std::move(others);
  if (all.size() > 1)
    base::misuse_of(place.name(), "not-a-file",
                    "this is a directory with several models: open '" + all[0] + "' or '" + all[1] + "'");
  if (all.empty()) base::io_error_of(place.name(), "open", "the first file of its model is no longer there");
  return all[0];
}

std::optional<std::uint64_t> number_of(const Model& model, std::string_view key) {
  const Value* const value = model.attribute(key);
  return value ? value->as_u64() : std::nullopt;
}

void read_parts(const core::ShardName& name, core::Reading& reading, core::ShardReader& parts, core::Draft& draft) {
  bool is_first = true;
  const std::uint64_t before = reading.findings.errors();
  std::uint64_t tensors = 0;
  std::optional<Value> stated;
  parts.read_numbered(name, kSuffix, kSplitPrefix, [&](std::uint64_t number, const Model& model) {
    if (std::exchange(is_first, false)) {
      draft.set_version(model.version());
      if (const Value* const value = model.attribute(kSplitTensors)) stated = *value;
    }
    tensors += model.size();
    const auto no = number_of(model, kSplitNumber), count = number_of(model, kSplitCount);
    if (no == number - 1 && count == name.count) return;
    const auto text = [](std::optional<std::uint64_t> value) { return value ? std::to_string(*value) : "none"; };
    reading.in(model.sources()[0])
        .report(rules::kPartNumber, {}, {number - 1, " and ", name.count}, {text(no), " and ", text(count)});
  });
  if (reading.findings.errors() == before && !draft.is_incomplete() && stated && stated->as_u64() != tensors)
    reading.findings.report(rules::kPartTensors, {}, tensors, core::excerpted(stated->to_text()));
}

}  // namespace

bool is_part(std::string_view file) noexcept { return part_name(file).has_value(); }

bool spans_files(const core::Probe& probe) { return is_part(probe.name) && matches(probe); }

void read_files(const core::ReadJob& job, core::Draft& draft) {
  draft.set_format("gguf");
  const auto given = job.place.file();
  const std::string file = given ? std::string(given->file_name()) : first_of(job.place);
  core::Reading reading{.place = job.place, .limits = job.context.limits, .findings = job.findings};
  core::ShardReader parts(reading, job, kShardRules, "gguf", draft);
  if (const auto name = core::parse_shard_name(file, kSuffix)) {
    read_parts(*name, reading, parts, draft);
  } else if (const auto whole = job.place.open(file)) {
    const Model model = parts.read_whole(whole);
    draft.set_version(model.version());
  }
  if (job.findings.mode() == core::Findings::Mode::all) {
    const auto name = core::parse_shard_name(file, kSuffix);
    parts.report_strays(name ? name->stem : kStem, kSuffix);
  }
  for (auto& [key, value] : parts.take_metadata()) draft.set_attribute(std::move(key), std::move(value));
  // Duplicates within one file were reported by its reader.
  draft.drop_same_names([&](std::uint32_t, std::uint32_t later) {
    job.findings.report(rules::kDuplicateName, {.tensor = draft.name(later)}, {}, {}, "in two files");
  });
  draft.add_sources(std::move(reading.sources));
}

// A part whose name does not say so: the names of the other files are unknown.
void warn_alone(const Place&, const Context&, core::Findings& findings, core::Draft& draft) {
  const auto number = [&](std::string_view key) -> std::optional<std::uint64_t> {
    const Value* const value = draft.attribute(key);
    return value != nullptr ? value->as_u64() : std::nullopt;
  };
  const auto count = number(kSplitCount), no = number(kSplitNumber);
  if (!count || *count < 2) return;
  const std::string which = "it is number " + (no && *no < UINT64_MAX ? std::to_string(*no + 1) : std::string("?")) +
                            " of " + std::to_string(*count);
  findings.report_absent(rules::kPartMissing, {}, which + ", and its name does not say where the others are");
  draft.set_incomplete({.why = which + " files of a split model, the others of which its name does not tell"});
}

}  // namespace weighbridge::gguf
