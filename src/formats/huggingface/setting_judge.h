// SPDX-License-Identifier: Apache-2.0
// Checks the settings in an encoder's folder against the table embedding_settings.def, and collects those that this
// library does not implement or does not know. Runtimes refuse them (core/reading/encoder_settings.h).
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/reading/encoder_settings.h"
#include "formats/huggingface/json_file.h"
#include "weighbridge/model.h"

namespace weighbridge::huggingface {

struct SettingRow {
  enum class Verdict : std::uint8_t { used, harmless, refused };
  std::string_view file, key;
  Verdict verdict;
  std::string_view accepted, note;
};
std::span<const SettingRow> setting_rows() noexcept;
const SettingRow* find_setting(std::string_view file, std::string_view key) noexcept;

class SettingJudge {
 public:
  // What becomes of a key that the table lacks.
  enum class Unknown : std::uint8_t { refused, warned };

  // Checks every member of an object in `file` by the rows of `table`.
  void judge(std::string_view file, std::string_view table, const JsonObject&, Unknown);
  void judge(std::string_view file, std::string_view table, std::string_view key, std::string_view json, Unknown);
  void refuse(std::string_view file, std::string_view key, std::string_view json, std::string why = {});
  void warn(std::string_view file, std::string_view key, std::string_view json, std::string why = {});
  void add(const SettingJudge&);
  void add(std::string_view refused, std::string_view unknown);  // texts of the two attributes

  std::string refused() const { return core::text_of(refused_); }  // texts of the two attributes
  std::string unknown() const { return core::text_of(unknown_); }
  const std::vector<core::OddSetting>& all_refused() const noexcept { return refused_; }
  const std::vector<core::OddSetting>& all_unknown() const noexcept { return unknown_; }
  bool operator==(const SettingJudge&) const = default;

 private:
  std::vector<core::OddSetting> refused_, unknown_;
};

// The odd settings of a model: from the two attributes, and from attributes that come from config.json ("hf.KEY").
SettingJudge check_settings(const Model&);

}  // namespace weighbridge::huggingface
