// SPDX-License-Identifier: Apache-2.0
// Builds the tables from their rows.
#include "flags.h"

#include <algorithm>
#include <array>
#include <limits>

#include "weighbridge/dtype.h"
#include "weighbridge/formats.h"
#include "weighbridge/hash.h"

namespace weighbridge::cli {
namespace {

constexpr std::string_view kPackages = "Packages", kSource = "Source chain, from reviewed weights to an .slm",
                           kAdmission = "Admission chain, from an .slm to what may be offered",
                           kMiniModel = "MiniModel manifests";
constexpr std::string_view kAssembly =
    "A line is a glyph with its operand: NOP, CONST_I8 -5, ADD_I32, RET, IFZ_JUMP8 +3, JUMP8 -2, WHILE_HEAD, "
    "WHILE_TAIL, FUNC_DEF 1, FUNC_END, CALL 1, LOAD_BIN_TENSOR file=0 tensor=3 [shape_desc], MMAP_BIN_REGION file=0 "
    "[arity=1], PREFETCH_BIN file=0. It may add authority=N (default: 1), and payload=N where the glyph does not use "
    "its payload. .word 0x01234567 stands for any other word. A comment begins with ;";

constexpr Verb kVerbs[] = {
#define WB_VERB(ID, ...) {.id = VerbId::ID, .name = #ID, __VA_ARGS__},
#include "verb_rows.def"
#undef WB_VERB
};
constexpr Action kActions[] = {
#define WB_ACTION(VERB, ID, ...) {.id = ActionId::VERB##_##ID, .verb = VerbId::VERB, __VA_ARGS__},
#include "action_rows.def"
#undef WB_ACTION
};

// The verb and all of its actions.
constexpr Where everywhere_in(VerbId id) {
  Where out(id);
  for (const Action& action : kActions)
    if (action.verb == id) out = out | Where(action.id);
  return out;
}

namespace in {
#define WB_VERB(id, ...) constexpr Where id = everywhere_in(VerbId::id);
#include "verb_rows.def"
#undef WB_VERB
#define WB_ACTION(verb, id, ...) constexpr Where verb##_##id(ActionId::verb##_##id);
#include "action_rows.def"
#undef WB_ACTION
}  // namespace in

constexpr Where writing_actions() {
  Where out;
  for (const Action& action : kActions)
    if (!action.output.empty()) out = out | Where(action.id);
  return out;
}
constexpr Where every_verb() {
  Where out;
  for (const Verb& verb : kVerbs) out = out | everywhere_in(verb.id);
  return out;
}
constexpr Where kWritingActions = writing_actions(), kAll = every_verb();
constexpr Where kVectors = in::embed | in::similarity | in::search | in::evaluate;
constexpr Where kComputes = in::inspect | in::verify | in::check | in::convert | in::edit | in::append | in::extract |
                            in::hash | in::diff | in::apply | in::patch | in::doctor | in::manifest | in::explain |
                            in::khlnary | in::slm | kVectors | in::tokenize | in::generate | in::perplexity;

// Headings of --help.
constexpr std::string_view kSelection = "Tensors", kValues = "Values", kMetadata = "Metadata", kSlm = "For .slm";

constexpr double kNoLimit = Range{}.maximum, kLargest = std::numeric_limits<double>::max();

template <bool FormatInfo::*kCan> std::vector<std::string_view> formats_that() {
  std::vector<std::string_view> out;
  for (const FormatInfo& format : formats())
    if (format.*kCan) out.push_back(format.name);
  return out;
}
std::vector<std::string_view> every_dtype() {
  std::vector<std::string_view> out;
  for (const DTypeInfo& dtype : all_dtypes()) out.push_back(dtype.name);
  return out;
}

// "input" is the command's own: how much of standard input it keeps.
std::vector<std::string_view> limit_names() {
  std::vector<std::string_view> out{"input"};
  for (const OptionInfo& limit : options_of(OptionOf::limit)) out.push_back(limit.name);
  return out;
}

// Gives a flag what the row of its option says and its own row does not.
Flag completed(Flag flag) {
  const auto found = [&](std::optional<OptionOf> of) {
    return of ? find_option(*of, flag.option.empty() ? flag.name : flag.option) : nullptr;
  };
  for (Own& own : flag.own)
    if ((own.info = found(own.of)) != nullptr) own.help = own.info->help, own.standard = own.info->standard;
  flag.info = found(flag.of);
  if (flag.info == nullptr) return flag;
  const OptionInfo& option = *flag.info;
  if (flag.help.empty()) flag.help = option.help;
  if (!flag.sets.empty() || option.type == OptionType::toggle) return flag;
  flag.value = option.value;
  flag.range = option.range;
  flag.standard = option.standard;
  if (option.repeats && flag.given == Given::once)
    flag.given = option.type == OptionType::word ? Given::list : Given::again;
  switch (option.type) {
    case OptionType::number: flag.type = Type::number; break;
    case OptionType::fraction: flag.type = Type::fraction; break;
    case OptionType::file: flag.type = Type::file; break;
    case OptionType::word:
    case OptionType::dtype: flag.type = Type::word; break;
    case OptionType::toggle:
    case OptionType::size:
    case OptionType::text: break;
  }
  return flag;
}

const std::array<Flag, kFlagCount>& all_flags() {
  static const std::array<Flag, kFlagCount> all = {
#define WB_FLAG(ID, ...) completed(Flag{.id = FlagId::ID, __VA_ARGS__}),
#include "flag_rows.def"
#undef WB_FLAG
  };
  return all;
}

constexpr ExitStatus kCommonStatuses[] = {
    {2, "usage error: a wrong flag or operand, no such tensor, or an output that exists"},
    {4, "a file or standard output cannot be read or written"},
    {130, "interrupted by Ctrl-C; no temporary file is left"},
};

// Operands of any other name are files or folders.
constexpr std::string_view kTextOperands[] = {"KIND", "SHELL", "TEXT", "QUERY", "TENSOR", "WHERE"};

}  // namespace

std::string_view title_of(Group group) noexcept {
  static constexpr std::string_view kTitles[kGroupCount] = {"Files", "Models", "Specialist", "Shell"};
  return kTitles[static_cast<std::size_t>(group)];
}

std::span<const Verb> verbs() noexcept { return kVerbs; }
std::span<const Action> actions() noexcept { return kActions; }
std::span<const Flag> flags() noexcept { return all_flags(); }
std::span<const ExitStatus> common_statuses() noexcept { return kCommonStatuses; }
const Verb& verb(VerbId id) noexcept { return kVerbs[static_cast<std::size_t>(id)]; }
const Flag& flag(FlagId id) noexcept { return all_flags()[static_cast<std::size_t>(id)]; }

bool takes_flag(VerbId id, const Flag& flag) noexcept {
  const auto taken = [&](const Action& action) { return action.verb == id && flag.where.has(action.id); };
  return flag.where.has(id) || std::ranges::any_of(kActions, taken);
}

std::vector<std::string_view> split_words(std::string_view words) {
  std::vector<std::string_view> out;
  while (!words.empty()) {
    const std::size_t end = std::min(words.find(' '), words.size());
    out.push_back(words.substr(0, end));
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return out;
}

std::vector<std::string_view> words(const Flag& flag) {
  if (flag.listed != nullptr) return flag.listed();
  return flag.words.empty() && flag.type == Type::word ? words(*flag.info) : split_words(flag.words);
}

std::string_view operand_name(std::string_view operands, std::size_t place) noexcept {
  std::string_view last;
  for (std::size_t at = 0; !operands.empty(); ++at) {
    const std::size_t end = std::min(operands.find(' '), operands.size());
    last = operands.substr(0, end);
    operands.remove_prefix(std::min(end + 1, operands.size()));
    if (last.starts_with('[')) last = last.substr(1, last.size() - 2);
    const bool repeats = last.ends_with("...");
    if (repeats) last.remove_suffix(3);
    if (at == place || repeats) return last;
  }
  return {};
}

bool operand_is_file(std::string_view name) noexcept {
  return !name.empty() && std::ranges::find(kTextOperands, name) == std::end(kTextOperands);
}

OperandCount operand_count(std::string_view operands) noexcept {
  OperandCount out;
  while (!operands.empty()) {
    const std::size_t end = std::min(operands.find(' '), operands.size());
    const std::string_view one = operands.substr(0, end);
    operands.remove_prefix(std::min(end + 1, operands.size()));
    if (!one.starts_with('[')) ++out.minimum;
    if (out.maximum != kAny) out.maximum = one.find("...") != std::string_view::npos ? kAny : out.maximum + 1;
  }
  return out;
}

}  // namespace weighbridge::cli
