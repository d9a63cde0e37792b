// SPDX-License-Identifier: Apache-2.0
// The options that only some containers take. Each struct of Options has a table, which names its options for
// FormatInfo::options, sets them from text and checks whether a format takes them.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "core/words.h"
#include "weighbridge/convert.h"
#include "weighbridge/source.h"

namespace weighbridge::core {

inline constexpr std::string_view kSwitch[] = {"true", "false"};

struct FormatOption {
  std::string_view name;                                   // also of the command's flag
  bool is_switch;                                          // takes one of kSwitch; else any text
  bool (*given)(const Options&);                           // whether it differs from the default
  void (*set)(Options&, std::string_view text) = nullptr;  // a switch: text is one of kSwitch
};

namespace detail {
inline void assign(bool& to, std::string_view text) { to = text == kSwitch[0]; }
inline void assign(std::string& to, std::string_view text) { to = text; }
// Opens the file. Error{io}, Error{misuse}.
inline void assign(std::shared_ptr<const Source>& to, std::string_view text) { to = open_file(std::string(text)); }
// "5GB" and "5G" are 5 * 10^9 bytes, as in huggingface_hub; "5GiB" is 5 * 2^30. Also K, M, T, or plain bytes, in
// letters of either case. Error{misuse}.
void assign(std::uint64_t& to, std::string_view text);
// A share above 0 and at most 1. Error{misuse}.
void assign(double& to, std::string_view text);
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
inline constexpr std::string_view kSparseLayouts[] = {"csr", "coo"};
inline constexpr FormatOption kZtOptions[] = {
    format_option<&Options::zt, &ZtOptions::sparse>("sparse"),
    format_option<&Options::zt, &ZtOptions::sparse_density>("sparse-density"),
};
inline constexpr FormatOption kZt0Options[] = {
    format_option<&Options::zt0, &Zt0Options::omit_layout_field>("omit-layout-field"),
};
inline constexpr FormatOption kMetadataOptions[] = {
    format_option<&Options::metadata, &MetadataOptions::created_at>("created-at"),
    format_option<&Options::metadata, &MetadataOptions::model_name>("model-name"),
    format_option<&Options::metadata, &MetadataOptions::model_version>("model-version"),
};
inline constexpr std::string_view kNamings[] = {"llama"};
inline constexpr FormatOption kGgufOptions[] = {
    format_option<&Options::gguf, &GgufOptions::naming>("naming"),
};
inline constexpr FormatOption kOnnxOptions[] = {
    format_option<&Options::onnx, &OnnxOptions::into>("into"),
};
inline constexpr FormatOption kShardOptions[] = {
    format_option<&Options::shards, &ShardOptions::max_size>("max-shard-size"),
};
inline constexpr FormatOption kHeaderOptions[] = {
    format_option<&Options::header, &HeaderOptions::reserve>("reserve"),
};
inline constexpr std::span<const FormatOption> kFormatOptions[] = {
    kSlmOptions, kZtOptions, kZt0Options, kMetadataOptions, kGgufOptions, kOnnxOptions, kShardOptions, kHeaderOptions};

// The names of a table's options, for FormatInfo::options.
template <std::size_t N> constexpr std::array<std::string_view, N> names_of(const FormatOption (&table)[N]) {
  std::array<std::string_view, N> out{};
  for (std::size_t i = 0; i < N; ++i) out[i] = table[i].name;
  return out;
}

// The option with this name; null if no container has it.
constexpr const FormatOption* find_format_option(std::string_view name) noexcept {
  for (const std::span<const FormatOption> table : kFormatOptions)
    for (const FormatOption& option : table)
      if (option.name == name) return &option;
  return nullptr;
}

}  // namespace weighbridge::core
