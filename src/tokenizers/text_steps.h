// SPDX-License-Identifier: Apache-2.0
// The steps of a WordPiece tokenizer around its model, as tokenizer.json spells them: normalizers, pre-tokenizers, and
// the ids before and after a text. The reader of folders and the tokenizers read them with the same code. Steps and
// settings that are not listed here are refused by name. Source: the crate tokenizers 0.23, src/normalizers,
// src/pre_tokenizers, src/processors.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weighbridge::tokenizers {

// An unsupported setting: its key ("normalizer.type"; steps of a sequence have the key of the sequence), its value as
// written, and the reason.
struct RefusedSetting {
  std::string key, value, why;
  bool operator==(const RefusedSetting&) const = default;
};

// Changes a text.
struct TextStep {
  enum class Kind : std::uint8_t { bert, lower_case, strip_accents, nfd, nfc, strip, replace, prepend };
  Kind kind = Kind::bert;
  bool clean = true, space_chinese = true, lower = true;  // bert
  std::optional<bool> accents{};                          // bert: strip them; unset: as `lower`
  bool left = true, right = true;                         // strip
  std::string from{}, to{};                               // replace; prepend has only `to`
  bool operator==(const TextStep&) const = default;
};

// Divides it.
struct SplitStep {
  enum class Kind : std::uint8_t { bert, words, spaces, punctuation, delimiter };
  enum class Behavior : std::uint8_t { removed, isolated, with_previous, with_next, contiguous };
  Kind kind = Kind::bert;
  Behavior behavior = Behavior::isolated;  // punctuation
  char32_t delimiter = 0;
  bool operator==(const SplitStep&) const = default;
};

// Ids around those of a text.
struct TextFrame {
  std::vector<std::uint32_t> before{}, after{};
  bool operator==(const TextFrame&) const = default;
};

// Each reads a value of tokenizer.json, which may be null. Appends refused settings to `refused`, and leaves them out
// of the result.
std::vector<TextStep> read_normalizer(std::string_view json, std::vector<RefusedSetting>& refused);
std::vector<SplitStep> read_pre_tokenizer(std::string_view json, std::vector<RefusedSetting>& refused);
TextFrame read_post_processor(std::string_view json, std::vector<RefusedSetting>& refused);

// The text that a JSON string stands for; nullopt for another value.
std::optional<std::string> json_string(std::string_view raw);

}  // namespace weighbridge::tokenizers
