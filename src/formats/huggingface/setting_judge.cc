// SPDX-License-Identifier: Apache-2.0
// The table of settings, and checking settings by it.
#include "formats/huggingface/setting_judge.h"

#include <algorithm>
#include <iterator>

#include "core/model/words.h"
#include "formats/huggingface/config.h"

namespace weighbridge::huggingface {
namespace {

using Verdict = SettingRow::Verdict;

constexpr SettingRow kRows[] = {
#define WB_SETTING(file, key, verdict, accepted, note) {file, key, Verdict::verdict, accepted, note},
#include "formats/huggingface/embedding_settings.def"
#include "formats/huggingface/tokenizer_settings.def"
#undef WB_SETTING
};
constexpr std::size_t kMaxShown = 80;  // characters of a value, so that a message is a line
constexpr std::size_t kMaxOdd = 1000;  // of a kind: a hostile file must not fill the metadata

bool is_accepted(std::string_view accepted, const std::string& json) {
  if (json == "null") return true;
  for (std::string_view rest = accepted; !rest.empty();) {
    const std::size_t end = std::min(rest.find('|'), rest.size());
    if (rest.substr(0, end) == json) return true;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return false;
}

void keep(std::vector<core::OddSetting>& to, core::OddSetting setting) {
  if (to.size() < kMaxOdd && std::ranges::find(to, setting) == to.end()) to.push_back(std::move(setting));
}

}  // namespace

std::span<const SettingRow> setting_rows() noexcept { return kRows; }

const SettingRow* find_setting(std::string_view file, std::string_view key) noexcept {
  const auto found =
      std::ranges::find_if(kRows, [&](const SettingRow& row) { return row.file == file && row.key == key; });
  return found == std::end(kRows) ? nullptr : found;
}

void SettingJudge::judge(std::string_view file, std::string_view table, const JsonObject& object, Unknown unknown) {
  for (const Member& member : object.members) judge(file, table, member.key, member.raw, unknown);
}

void SettingJudge::judge(std::string_view file, std::string_view table, std::string_view key, std::string_view json,
                         Unknown unknown) {
  const SettingRow* const row = find_setting(table, key);
  if (row == nullptr) return unknown == Unknown::warned ? warn(file, key, json) : refuse(file, key, json, "unknown");
  if (row->verdict == Verdict::refused && !is_accepted(row->accepted, compact(json)))
    refuse(file, key, json, std::string(row->note));
}

void SettingJudge::refuse(std::string_view file, std::string_view key, std::string_view json, std::string why) {
  keep(refused_,
       {std::string(file), core::excerpt(key, kMaxShown), core::excerpt(compact(json), kMaxShown), std::move(why)});
}
void SettingJudge::warn(std::string_view file, std::string_view key, std::string_view json, std::string why) {
  keep(unknown_,
       {std::string(file), core::excerpt(key, kMaxShown), core::excerpt(compact(json), kMaxShown), std::move(why)});
}

void SettingJudge::add(const SettingJudge& other) {
  for (const core::OddSetting& each : other.refused_) keep(refused_, each);
  for (const core::OddSetting& each : other.unknown_) keep(unknown_, each);
}

void SettingJudge::add(std::string_view refused, std::string_view unknown) {
  for (const core::OddSetting& each : core::parse_odd_settings(refused)) keep(refused_, each);
  for (const core::OddSetting& each : core::parse_odd_settings(unknown)) keep(unknown_, each);
}

SettingJudge check_settings(const Model& model) {
  SettingJudge out;
  for (const auto& [key, value] : model.attributes()) {
    if (key == core::kSettingsRefused || key == core::kSettingsUnknown) continue;
    if (key.starts_with(kOwn) && key != kPrefixKey)
      out.judge(kConfig, kConfig, std::string_view(key).substr(kOwn.size()), attribute_json(value.to_text()),
                SettingJudge::Unknown::warned);
  }
  const auto text = [&](std::string_view key) {
    const Value* const value = model.attribute(key);
    return value ? value->to_text() : std::string();
  };
  out.add(text(core::kSettingsRefused), text(core::kSettingsUnknown));
  return out;
}

}  // namespace weighbridge::huggingface
