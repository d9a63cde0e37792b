// SPDX-License-Identifier: Apache-2.0
/// \file
/// The table of options. Every option that a call takes by name and text is one row of it: the command's flags, the C
/// header, the Python package and docs/options.md are made from the rows.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "weighbridge/context.h"

namespace weighbridge {

/// What takes an option.
enum class OptionOf : std::uint8_t {
  open,       ///< OpenOptions
  convert,    ///< Options
  view,       ///< ViewOptions
  inputs,     ///< join() and merge_lora(): the inputs of a conversion
  embed,      ///< EmbedOptions
  generator,  ///< GeneratorOptions
  generate,   ///< GenerateOptions
  limit,      ///< Limits
  diff,       ///< DiffOptions
  edit,       ///< EditOptions
  recover,    ///< undo_edit(), settle_edit() and recover_folder()
  hash,       ///< content_digest()
  manifest,   ///< ManifestOptions
  sign,       ///< SigningKey
  check,      ///< ManifestCheck
  trust       ///< Trust
};
inline constexpr std::size_t kOptionOfCount = 16;  ///< enumerators of OptionOf
std::string_view name(OptionOf) noexcept;          ///< "open", "convert", ...

/// What the text of an option must be.
enum class OptionType : std::uint8_t {
  toggle,    ///< "true" or "false"
  text,      ///< any text
  word,      ///< one of words()
  dtype,     ///< one of words(), which are names of dtypes
  number,    ///< a whole number within the range
  fraction,  ///< a number within the range
  size,      ///< bytes: a number with a unit of powers of 1000 (K, MB), of 1024 (KiB), or none
  file       ///< the path of a file
};
std::string_view name(OptionType) noexcept;  ///< "toggle", "text", ...

/// The numbers that an option takes: from `minimum` to `maximum`; `above` excludes `minimum` itself.
struct OptionRange {
  double minimum = 0;           ///< the lowest
  double maximum = 4294967295;  ///< the highest
  bool above = false;           ///< whether they are above `minimum`
};

/// One option.
struct OptionInfo {
  OptionOf of{};             ///< what takes it
  bool c = true;             ///< wb_options_set() takes it
  bool command = true;       ///< the command has a flag for it
  bool python = true;        ///< the Python package has an argument for it, with "_" in place of "-"
  std::string_view name{};   ///< "max-shard-size"
  std::string_view value{};  ///< what help calls its value: "SIZE"; empty for a toggle
  OptionType type{};         ///< what its text must be
  bool repeats = false;      ///< setting it again adds to it
  OptionRange range{};       ///< of a number or fraction
  std::string_view words{};  ///< the words that it can be, separated by blanks
  std::vector<std::string_view> (*listed)() = nullptr;  ///< gives the words, if the library computes them
  std::string_view standard{};  ///< the default, as help shows it; empty: the model's, none, or as `help` says
  std::string_view formats{};   ///< the only targets that take it, separated by blanks; empty: all
  std::string_view help{};      ///< one line: a verb phrase or a noun phrase, without a full stop
};

/// Every option, those of one kind together, in the order of OptionOf.
std::span<const OptionInfo> all_options() noexcept;
/// The options of one kind.
std::span<const OptionInfo> options_of(OptionOf) noexcept;
/// The option with this name; null if there is none.
const OptionInfo* find_option(OptionOf, std::string_view name) noexcept;
/// The words that an option can be; empty if it takes other texts too.
std::vector<std::string_view> words(const OptionInfo&);

/// Sets an option of a struct by its name and text, whether setting it is called set() or, where a member is, add().
template <class Struct> void set_option(Struct& to, std::string_view name, std::string_view text) {
  if constexpr (requires { to.add(name, text); })
    to.add(name, text);
  else
    to.set(name, text);
}

/// What the text of a number or a size means.
/// @throws Error misuse: it is none, or outside the option's range
std::uint64_t number_of(const OptionInfo&, std::string_view text);

/// Sets a member of Limits by its name, one of options_of(OptionOf::limit).
/// @throws Error misuse "misuse/limit": there is no such limit, or the number is outside its range
void set_limit(Limits&, std::string_view name, std::uint64_t value);

}  // namespace weighbridge
