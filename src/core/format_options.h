// SPDX-License-Identifier: Apache-2.0
// The options that some containers take and others refuse: one table for each struct of Options, by which they are
// named in FormatInfo::options, set from words and judged.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "core/words.h"
#include "weighbridge/convert.h"

namespace weighbridge::core {

inline constexpr std::string_view kSwitch[] = {"true", "false"};

struct FormatOption {
  std::string_view name;                                   // of the command's flag as well
  bool is_switch;                                          // takes one of kSwitch, else any text
  bool (*given)(const Options&);                           // it is not what it is by default
  void (*set)(Options&, std::string_view text) = nullptr;  // a switch: text is one of kSwitch
};

namespace detail {
inline void assign(bool& to, std::string_view text) { to = text == kSwitch[0]; }
inline void assign(std::string& to, std::string_view text) { to = text; }
// As huggingface_hub reads it: "5GB" is 5 * 10^9 bytes, "500MB", "200KB", or plain bytes. Error{misuse}.
void assign(std::uint64_t& to, std::string_view text);
}  // namespace detail

// `Group` is a member of Options, `Member` one of that.
template <auto Group, auto Member> constexpr FormatOption format_option(std::string_view name) {
  using Type = std::remove_cvref_t<decltype((std::declval<const Options&>().*Group).*Member)>;
  return {name, std::is_same_v<Type, bool>, [](const Options& options) { return (options.*Group).*Member != Type{}; },
          [](Options& options, std::string_view text) { detail::assign((options.*Group).*Member, text); }};
}

inline constexpr FormatOption kSlmOptions[] = {
    format_option<&Options::slm, &SlmOptions::keep_gqa>("keep-gqa"),
    format_option<&Options::slm, &SlmOptions::quantize_norms>("quantize-norms"),
};
inline constexpr FormatOption kZt0Options[] = {
    format_option<&Options::zt0, &Zt0Options::omit_layout_field>("omit-layout-field"),
};
inline constexpr FormatOption kMetadataOptions[] = {
    format_option<&Options::metadata, &MetadataOptions::created_at>("created-at"),
    format_option<&Options::metadata, &MetadataOptions::model_name>("model-name"),
    format_option<&Options::metadata, &MetadataOptions::model_version>("model-version"),
};
inline constexpr FormatOption kShardOptions[] = {
    format_option<&Options::shards, &ShardOptions::max_size>("max-shard-size"),
};
inline constexpr std::span<const FormatOption> kFormatOptions[] = {kSlmOptions, kZt0Options, kMetadataOptions,
                                                                   kShardOptions};

// What a format that takes the options of a table says in FormatInfo::options.
template <std::size_t N> constexpr std::array<std::string_view, N> names_of(const FormatOption (&table)[N]) {
  std::array<std::string_view, N> out{};
  for (std::size_t i = 0; i < N; ++i) out[i] = table[i].name;
  return out;
}

// Null: no container has it.
constexpr const FormatOption* find_format_option(std::string_view name) noexcept {
  for (const std::span<const FormatOption> table : kFormatOptions)
    for (const FormatOption& option : table)
      if (option.name == name) return &option;
  return nullptr;
}

}  // namespace weighbridge::core
