// SPDX-License-Identifier: Apache-2.0
// The rows of the option table at compile time, and how an option's text gets into its member. A struct of options
// binds its rows with WB_BOUND, in their order.
#pragma once
#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/fail.h"
#include "core/model/words.h"
#include "weighbridge/convert.h"
#include "weighbridge/options.h"
#include "weighbridge/source.h"
#include "weighbridge/view.h"

namespace weighbridge::core {

std::vector<std::string_view> checksum_form_names(), loss_kind_names(), real_dtype_names(), quantization_names();

inline constexpr OptionInfo kOptions[] = {
#define WB_OPEN_OPTION(MEMBER, ...) {.of = OptionOf::open, __VA_ARGS__},
#define WB_CONVERT_OPTION(MEMBER, ...) {.of = OptionOf::convert, __VA_ARGS__},
#define WB_VIEW_OPTION(MEMBER, ...) {.of = OptionOf::view, __VA_ARGS__},
#define WB_INPUTS_OPTION(MEMBER, ...) {.of = OptionOf::inputs, .c = false, __VA_ARGS__},
#define WB_EMBED_OPTION(MEMBER, ...) {.of = OptionOf::embed, .c = false, __VA_ARGS__},
#define WB_GENERATOR_OPTION(MEMBER, ...) {.of = OptionOf::generator, .c = false, __VA_ARGS__},
#define WB_GENERATE_OPTION(MEMBER, ...) {.of = OptionOf::generate, .c = false, __VA_ARGS__},
#define WB_LIMIT_OPTION(MEMBER, ...) \
  {.of = OptionOf::limit, .c = false, .command = false, .python = false, __VA_ARGS__},
#define WB_DIFF_OPTION(MEMBER, ...) {.of = OptionOf::diff, __VA_ARGS__},
#define WB_EDIT_OPTION(MEMBER, ...) {.of = OptionOf::edit, __VA_ARGS__},
#define WB_RECOVER_OPTION(MEMBER, ...) {.of = OptionOf::recover, .c = false, __VA_ARGS__},
#define WB_HASH_OPTION(MEMBER, ...) {.of = OptionOf::hash, .c = false, __VA_ARGS__},
#define WB_MANIFEST_OPTION(MEMBER, ...) {.of = OptionOf::manifest, __VA_ARGS__},
#define WB_SIGN_OPTION(MEMBER, ...) {.of = OptionOf::sign, __VA_ARGS__},
#define WB_CHECK_OPTION(MEMBER, ...) {.of = OptionOf::check, __VA_ARGS__},
#define WB_TRUST_OPTION(MEMBER, ...) {.of = OptionOf::trust, __VA_ARGS__},
#include "core/writing/option_rows.def"
};

constexpr bool is_one_of(std::string_view word, std::string_view words) {
  while (!words.empty()) {
    const std::size_t end = std::min(words.find(' '), words.size());
    if (words.substr(0, end) == word) return true;
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return false;
}
// The names of the options that only some targets take, this one among them: FormatInfo::options.
constexpr std::size_t count_of_format(std::string_view format) {
  std::size_t out = 0;
  for (const OptionInfo& each : kOptions) out += is_one_of(format, each.formats) ? 1U : 0U;
  return out;
}
template <std::size_t N> constexpr std::array<std::string_view, N> names_of_format(std::string_view format) {
  std::array<std::string_view, N> out{};
  std::size_t count = 0;
  for (const OptionInfo& each : kOptions)
    if (is_one_of(format, each.formats)) out[count++] = each.name;
  return out;
}

// What an option's text means for a member of this type. Error{misuse}: the text is not what the row allows.
void assign(const OptionInfo&, std::string_view text, bool& to);  // the one word of a row that has words is true
void assign(const OptionInfo&, std::string_view text, std::string& to);
void assign(const OptionInfo&, std::string_view text, std::vector<std::string>& to);  // adds
void assign(const OptionInfo&, std::string_view text, std::vector<LossKind>& to);     // adds; commas separate several
void assign(const OptionInfo&, std::string_view text, DType& to);
void assign(const OptionInfo&, std::string_view text, std::optional<DType>& to);  // the first word: unknown
void assign(const OptionInfo&, std::string_view text, double& to);
void assign(const OptionInfo&, std::string_view text, std::uint64_t& to);
void assign(const OptionInfo&, std::string_view text, std::shared_ptr<const Source>& to);  // opens it. Error{io}
// KEY=VALUE: adds the two.
void assign(const OptionInfo&, std::string_view text, std::vector<std::pair<std::string, std::string>>& to);
// FROM=TO, or s/PATTERN/REPLACEMENT/, which is one of the patterns.
void assign_renaming(const OptionInfo&, std::string_view text, std::vector<Renaming>& to,
                     std::vector<std::string>& patterns);
// Which of the row's words it is.
std::size_t index_of_word(const OptionInfo&, std::string_view text);
template <class T>
  requires std::is_enum_v<T>
void assign(const OptionInfo& row, std::string_view text, T& to) {  // the words are in the order of the enumerators
  to = static_cast<T>(index_of_word(row, text));
}
template <std::integral T> void assign(const OptionInfo& row, std::string_view text, T& to) {
  std::uint64_t number = 0;
  assign(row, text, number);
  to = static_cast<T>(number);
}
template <class T> void assign(const OptionInfo& row, std::string_view text, std::optional<T>& to) {
  T value{};
  assign(row, text, value);
  to = std::move(value);
}

// Names change by whole names or by patterns, which are two members.
template <class Struct, class T> void assign_in(Struct&, const OptionInfo& row, std::string_view text, T& to) {
  assign(row, text, to);
}
template <class Struct>
void assign_in(Struct& all, const OptionInfo& row, std::string_view text, std::vector<Renaming>& to) {
  assign_renaming(row, text, to, all.patterns);
}

template <class Struct> struct Bound {
  void (*set)(Struct&, const OptionInfo&, std::string_view text);
  bool (*given)(const Struct&);  // whether it differs from the default
};
#define WB_BOUND(STRUCT, MEMBER)                                                                                \
  {[](STRUCT& to, const OptionInfo& row, std::string_view text) { core::assign_in(to, row, text, to.MEMBER); }, \
   [](const STRUCT& in) { return in.MEMBER != STRUCT{}.MEMBER; }},

// The option with this name. Error{misuse}: there is none.
const OptionInfo& option_named(OptionOf, std::string_view name);
template <class Struct>
void set(Struct& to, OptionOf of, std::span<const Bound<Struct>> bound, std::string_view name, std::string_view text) {
  const OptionInfo& row = option_named(of, name);
  bound[static_cast<std::size_t>(&row - options_of(of).data())].set(to, row, text);
}

// The options of a conversion that differ from their defaults.
std::vector<const OptionInfo*> given_options(const Options&);

}  // namespace weighbridge::core
