// SPDX-License-Identifier: Apache-2.0
// Odd settings as JSON, and back.
#include "core/reading/encoder_settings.h"

#include <algorithm>

#include "base/fail.h"
#include "core/model/words.h"
#include "wire/json_reader.h"
#include "wire/json_writer.h"

namespace weighbridge::core {
namespace {

constexpr std::size_t kMaxListed = 2000;  // bytes of a message, so that it fits a screen

}  // namespace

std::string text_of(std::span<const OddSetting> settings) {
  if (settings.empty()) return {};
  JsonWriter out;
  out.begin_array();
  for (const OddSetting& each : settings) {
    out.begin_array();
    for (const std::string* text : {&each.file, &each.key, &each.value, &each.why}) out.string(*text);
    out.end_array();
  }
  out.end_array();
  return out.take();
}

std::vector<OddSetting> parse_odd_settings(std::string_view text) {
  std::vector<OddSetting> out;
  wire::JsonReader in(text);
  std::string scratch;
  if (!in.enter_array()) return out;
  while (in.next_element()) {
    OddSetting each;
    if (!in.enter_array()) return out;
    bool whole = true;
    for (std::string* field : {&each.file, &each.key, &each.value, &each.why}) {
      wire::JsonString part;
      whole = whole && in.next_element() && in.read_string(part);
      if (whole) *field = wire::json_text(part, scratch);
    }
    if (!whole || in.next_element()) return out;
    out.push_back(std::move(each));
  }
  return out;
}

bool passes(std::span<const std::string> ignored, const OddSetting& setting) {
  return std::ranges::any_of(ignored, [&](const std::string& asked) {
    return asked == setting.key || asked == setting.file + ":" + setting.key;
  });
}

void note_unmatched(std::span<const std::string> ignored, std::span<const OddSetting> settings,
                    std::vector<std::string>& notes) {
  for (const std::string& asked : ignored) {
    const auto is_of = [&](std::string_view part) { return asked.starts_with(part); };
    if (std::ranges::any_of(settings,
                            [&](const OddSetting& each) {
                              return passes({&asked, 1}, each);
                            }) ||
        is_of("normalizer") || is_of("pre_tokenizer") || is_of("post_processor") || is_of("tokenizer.json:"))
      continue;
    notes.push_back("no setting is refused by the name " + quoted(excerpt(asked)) + ": there is nothing to ignore");
  }
}

std::string setting_text(const OddSetting& setting) {
  if (setting.value.empty()) return setting.file + " has its own " + quoted(setting.key);
  return setting.file + " says " + quoted(setting.key) + " is " + setting.value;
}

std::string note_of(const OddSetting& unknown) {
  return setting_text(unknown) + ": " + (unknown.why.empty() ? "unknown, and not followed" : unknown.why);
}

std::vector<std::string> require_tokenizer_settings(const Model& model, std::span<const std::string> ignored,
                                                    std::string_view rule) {
  const auto settings = [&](std::string_view key) {
    const Value* const text = model.attribute(key);
    std::vector<OddSetting> out = text == nullptr ? std::vector<OddSetting>{} : parse_odd_settings(text->to_text());
    std::erase_if(out, [](const OddSetting& each) { return each.file.find("token") == std::string::npos; });
    return out;
  };
  std::vector<std::string> out;
  std::string all, first;
  const std::vector<OddSetting> refused = settings(kSettingsRefused), unknown = settings(kSettingsUnknown);
  for (const OddSetting& each : refused) {
    if (passes(ignored, each)) {
      out.push_back(setting_text(each) + ": ignored as asked");
      continue;
    }
    if (first.empty()) first = each.key;
    if (all.size() < kMaxListed)
      all += (all.empty() ? "" : "; ") + setting_text(each) + (each.why.empty() ? "" : " (" + each.why + ")");
  }
  if (!all.empty()) {
    Finding finding;
    finding.rule = rule;
    finding.kind = Kind::unsupported;
    finding.message = "this build does not follow a setting of the tokenizer: " + all;
    finding.hint = base::option_hint("ignore-setting", first);
    throw Error(std::move(finding));
  }
  for (const OddSetting& each : unknown) out.push_back(note_of(each));
  note_unmatched(ignored, refused, out);
  return out;
}

}  // namespace weighbridge::core
