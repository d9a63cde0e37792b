// SPDX-License-Identifier: Apache-2.0
// Settings of an encoder's folder that this program does not follow, or does not know: two attributes, so that they
// travel with the model and every program that runs it sees them. The reader of Hugging Face folders makes them; the
// runtimes refuse the first and warn about the second.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weighbridge/model.h"

namespace weighbridge::core {

inline constexpr std::string_view kSettingsRefused = "settings_refused", kSettingsUnknown = "settings_unknown";

struct OddSetting {
  std::string file, key, value;  // the value as JSON, shortened
  std::string why{};             // a clause, or empty
  bool operator==(const OddSetting&) const = default;
};

// Compact JSON; empty if there are none.
std::string text_of(std::span<const OddSetting>);
// Leaves out what text_of() does not make.
std::vector<OddSetting> parse_odd_settings(std::string_view);

// Whether a caller passes the setting by name: "KEY" or "FILE:KEY".
bool passes(std::span<const std::string> ignored, const OddSetting&);
// What a setting says, and what becomes of it if nobody refuses it: a sentence.
std::string told(const OddSetting&);
std::string note_of(const OddSetting& unknown);
// Throws Error{unsupported} with the rule `rule` that names every refused setting of the model's tokenizer that is not
// passed. Returns a sentence for each that is passed or unknown.
std::vector<std::string> require_tokenizer_settings(const Model&, std::span<const std::string> ignored,
                                                    std::string_view rule);

}  // namespace weighbridge::core
