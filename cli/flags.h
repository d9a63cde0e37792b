// SPDX-License-Identifier: Apache-2.0
// Owns the tables of verbs, actions and flags. Each is one row (verb_rows.def, action_rows.def, flag_rows.def), and
// identifiers, parsing, help, completion, the manual, docs/command.md and tests are made from the rows. To add one, add
// its row. actions.h answers questions about actions, parse.cc reads the command line, and each verb has its own file.
#pragma once
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "weighbridge/options.h"

namespace weighbridge::cli {

// Identifiers, in the order of the rows. `none` ends each list.
#define WB_VERB(id, ...) id,
enum class VerbId : std::uint8_t {
#include "verb_rows.def"
  none
};
#undef WB_VERB
#define WB_ACTION(verb, id, ...) verb##_##id,
enum class ActionId : std::uint8_t {
#include "action_rows.def"
  none
};
#undef WB_ACTION
#define WB_FLAG(id, ...) id,
enum class FlagId : std::uint8_t {
#include "flag_rows.def"
  none
};
#undef WB_FLAG
inline constexpr std::size_t kVerbCount = static_cast<std::size_t>(VerbId::none),
                             kActionCount = static_cast<std::size_t>(ActionId::none),
                             kFlagCount = static_cast<std::size_t>(FlagId::none);

// A set of verbs and actions.
class Where {
 public:
  constexpr Where() = default;
  constexpr explicit Where(VerbId id) { add(static_cast<std::size_t>(id)); }
  constexpr explicit Where(ActionId id) { add(kVerbCount + static_cast<std::size_t>(id)); }
  constexpr bool has(VerbId id) const { return has(static_cast<std::size_t>(id)); }
  constexpr bool has(ActionId id) const { return has(kVerbCount + static_cast<std::size_t>(id)); }
  constexpr bool empty() const { return *this == Where(); }
  constexpr Where operator|(const Where& other) const {
    Where out = *this;
    for (std::size_t i = 0; i < kWords; ++i) out.bits_[i] |= other.bits_[i];
    return out;
  }
  constexpr bool overlaps(const Where& other) const {
    for (std::size_t i = 0; i < kWords; ++i)
      if ((bits_[i] & other.bits_[i]) != 0) return true;
    return false;
  }
  constexpr bool operator==(const Where&) const = default;

 private:
  constexpr void add(std::size_t at) { bits_[at / 64] |= std::uint64_t{1} << (at % 64); }
  constexpr bool has(std::size_t at) const { return (bits_[at / 64] >> (at % 64) & 1) != 0; }
  static constexpr std::size_t kWords = (kVerbCount + kActionCount + 63) / 64;
  std::uint64_t bits_[kWords]{};
};

// Gives the allowed values of a flag, if the library knows them.
using WordList = std::vector<std::string_view> (*)();

inline constexpr std::string_view kGeneral = "General";  // the heading of flags that most verbs take

// A set of flags.
class FlagSet {
 public:
  constexpr FlagSet() = default;
  constexpr FlagSet(std::initializer_list<FlagId> ids) {
    for (const FlagId id : ids) given_[static_cast<std::size_t>(id)] = true;
  }
  constexpr bool has(FlagId id) const { return given_[static_cast<std::size_t>(id)]; }

 private:
  bool given_[kFlagCount]{};
};

// Groups of verbs, in the order in which help lists them.
enum class Group : std::uint8_t { files, models, specialist, shell };
inline constexpr std::size_t kGroupCount = 4;
std::string_view title_of(Group) noexcept;

// What an exit status means for a verb.
struct ExitStatus {
  int status = 0;
  std::string_view says{};
};

// Help wraps the texts of a row. A '\n' ends a paragraph.
struct Verb {
  VerbId id{};
  std::string_view name{};
  Group group{};
  std::string_view operands{};       // as the usage line shows them: "FILE...", "MODEL [TEXT...]"
  std::string_view operand_words{};  // allowed first operands, separated by blanks; empty: any
  std::string_view aliases{};        // its other names, separated by blanks
  std::string_view also{};           // other words that people type for it, separated by blanks
  bool writes = false;               // it always writes files; see Flag::writes
  bool lists_files = false;          // its JSON is a list of files, also for one
  std::string_view summary{};        // one line, lower case, no full stop
  std::string_view about{};          // the text below the usage line of its help
  ExitStatus exits[4]{};             // 0, 1 and 3, if the verb has them; 2, 4 and 130 are common unless it has its own
  std::string_view examples{};       // one per line
};

struct Action {
  ActionId id{};
  VerbId verb{};
  std::string_view group{};         // heading in the help of its verb
  std::string_view name{}, step{};  // the words after the verb: "quality-gate" "runtime-smoke"; most have no step
  std::string_view operands{}, operand_words{};  // as for a verb
  std::string_view summary{}, about{};           // as for a verb
  bool lists_files = false;                      // as for a verb
  std::string_view output{};    // what -o names; the action takes --output and --overwrite. Empty: it writes nothing
  std::string_view examples{};  // one per line
};

enum class Type : std::uint8_t {
  text,
  number,    // a whole number within `range`
  fraction,  // a number within `range`
  size,      // a number of bytes within `range`, with a unit if need be
  time,      // 2026-01-31T12:00:00Z
  limit,     // NAME=N, where NAME is one of `words`
  file,
  word  // one of `words` or `listed`
};
enum class Given : std::uint8_t {
  once,
  optional,  // once, and the value may be missing
  list,      // repeatable, and commas separate values
  again,     // repeatable, commas are part of the value
  files      // repeatable; existing files that follow a value are values too, as a shell's glob gives them
};
using Range = OptionRange;
// What particular verbs and actions have in place of the row's own help, default and words: texts, or those of an
// option of the library of the same name.
struct Own {
  Where where{};
  std::string_view help{};
  std::string_view standard{};
  std::optional<OptionOf> of{};
  const OptionInfo* info = nullptr;  // found by `of`
  std::string_view words{};          // in place of `words` and `listed`
};
struct Needed {
  Where where{};
  FlagId flag = FlagId::none;
};

// Whether a flag may be given more than once.
constexpr bool is_repeatable(Given given) noexcept {
  return given == Given::list || given == Given::again || given == Given::files;
}

struct Flag {
  FlagId id{};
  std::string_view name{};   // without the dashes
  std::string_view group{};  // heading in help; empty: that of the formats of its option, or none
  char letter = 0;           // 0: none
  std::string_view also{};   // other names that are accepted but not listed, separated by blanks: British, and former
  std::optional<OptionOf> of{};  // it is an option of the library
  std::string_view option{};     // that option's name, if it is another
  std::string_view sets{};       // what the flag without a value sets that option to; empty: "true"
  Where where{};                 // the verbs and actions that take it
  Where required{};              // the verbs and actions that require it
  std::string_view value{};      // as help shows it: "FORMAT"; empty: the flag takes no value
  Type type = Type::text;
  Given given = Given::once;
  bool may_be_empty = false;  // whether its value may be empty
  Range range{};
  std::string_view words{};     // allowed values of Type::word and Type::limit, separated by blanks
  WordList listed = nullptr;    // the same, from the library
  std::string_view standard{};  // the default, as help shows it in parentheses; Arguments::number() reads it
  bool writes = false;          // with it, the verb writes files
  Needed needs[3]{};            // the flag that must be given for this one to have an effect
  FlagSet excludes{};           // flags that cannot be used together with it
  std::string_view help{};      // a verb phrase or a noun phrase: one line, lower case, no full stop
  Own own[7]{};
  const OptionInfo* info = nullptr;  // found by `of`
};

std::span<const Verb> verbs() noexcept;
std::span<const Action> actions() noexcept;
std::span<const Flag> flags() noexcept;
const Verb& verb(VerbId) noexcept;
const Flag& flag(FlagId) noexcept;
// The statuses that every verb shares: 2, 4 and 130.
std::span<const ExitStatus> common_statuses() noexcept;

// Whether the verb, or any of its actions, takes the flag.
bool takes_flag(VerbId, const Flag&) noexcept;
// The allowed values of a flag; empty if any value is.
std::vector<std::string_view> words(const Flag&);
// Splits at single blanks.
std::vector<std::string_view> split_words(std::string_view words);

// The name of operand number `place`, from 0, in "MODEL [TEXT...]"; a repeated operand stands for all that follow.
// Empty if there is none.
std::string_view operand_name(std::string_view operands, std::size_t place) noexcept;
// Whether an operand of this name is a file or a folder; completion offers those.
bool operand_is_file(std::string_view name) noexcept;
// How many operands the usage line allows.
struct OperandCount {
  std::size_t minimum = 0, maximum = 0;
};
inline constexpr std::size_t kAny = static_cast<std::size_t>(-1);
OperandCount operand_count(std::string_view operands) noexcept;

}  // namespace weighbridge::cli
