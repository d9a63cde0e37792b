// SPDX-License-Identifier: Apache-2.0
// The command's verbs and flags, each defined once: what parsing, help, completion and the man page are made of.
// Owns the tables; leaves the actions of some verbs to actions.h, reading an argument vector to parse.cc and doing the
// work to one file per verb.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

namespace weighbridge::cli {

enum class VerbId : std::uint8_t {
  inspect,
  verify,
  convert,
  append,
  extract,
  hash,
  khlnary,
  slm,
  embed,
  similarity,
  search,
  tokenize,
  evaluate,
  generate,
  perplexity,
  formats,
  completion
};
inline constexpr std::size_t kVerbCount = 17;

// What verbs are for, in the order in which they are listed.
inline constexpr std::string_view kGroups[] = {"read files", "write files", "texts, vectors", "language models",
                                               "modules, build"};

// Running text has no line breaks of its own: help wraps it. A '\n' ends a paragraph.
struct Verb {
  VerbId id;
  std::string_view name;
  std::string_view operands;  // as the usage line shows them: "FILE..."
  std::uint8_t least, most;   // how many operands; kAny: no upper bound. Of a verb with actions: see actions.h
  std::string_view group;     // one of kGroups
  std::string_view also;      // words that people type for it, one blank between them
  std::string_view summary;   // one line, lower case, no full stop
  std::string_view about;     // what its help says below the usage line
  std::string_view examples;  // one a line
};
inline constexpr std::uint8_t kAny = 255;

enum class FlagId : std::uint8_t {
  sort,
  filter,
  stats,
  no_check,
  sha256,
  to,
  allow,
  cast,
  encoding,
  level,
  digest,
  zt_version,
  quantize,
  quantize_norms,
  keep_gqa,
  tokenizer,
  omit_layout_field,
  created_at,
  model_name,
  model_version,
  dry_run,
  force,
  output,
  part,
  dense,
  glob,
  raw,
  no_names,
  sidecar,
  trace,
  max_steps,
  max_stack,
  authority,
  without,
  slm_dtype,
  source_kind,
  decision,
  decided_by,
  stated_at,
  byte_budget,
  check,
  kind,
  manifest,
  review,
  validation,
  safety_bound,
  input,
  input_format,
  output_format,
  pooling,
  normalize,
  no_normalize,
  max_length,
  precision,
  batch_tokens,
  vocab,
  heads,
  no_special,
  offsets,
  corpus,
  top,
  vectors,
  prompt,
  max_tokens,
  temperature,
  top_k,
  top_p,
  seed,
  stop,
  adapter,
  context,
  no_prefix_space,
  file,
  threads,
  limit,
  quiet,
  json,
  color,
  help
};
inline constexpr std::size_t kFlagCount = 79;

// Flags of the table, by their identifiers.
class FlagSet {
 public:
  constexpr FlagSet() = default;
  constexpr FlagSet(std::initializer_list<FlagId> ids) {
    for (const FlagId id : ids) bits_[place(id)] |= bit(id);
  }
  constexpr bool has(FlagId id) const { return (bits_[place(id)] & bit(id)) != 0; }

 private:
  static constexpr std::size_t place(FlagId id) { return static_cast<std::size_t>(id) / 64; }
  static constexpr std::uint64_t bit(FlagId id) { return std::uint64_t{1} << (static_cast<unsigned>(id) % 64); }
  std::uint64_t bits_[(kFlagCount + 63) / 64]{};
};

enum class Takes : std::uint8_t {
  nothing,
  value,
  optional_value,
  values,
  each
};  // values: may be given again, and with commas; each: may be given again, each as it is
// What a value or an operand can be, for checking and completion.
enum class Choice : std::uint8_t {
  any,
  number,    // a whole one, of range_of
  fraction,  // a number, of range_of
  time,      // 2026-01-31T12:00:00Z
  limit,     // NAME=N
  file,
  format,
  dtype,
  real,
  loss,
  order,
  encoding,
  digest,
  quantization,
  stored,
  adapter,
  source_kind,
  decision,
  text_form,
  vector_form,
  pooling,
  precision,
  zt_version,
  color,
  fixture,
  shell
};

struct Flag {
  FlagId id;
  std::string_view name;  // without the dashes
  char letter;            // 0: none
  Takes takes;
  std::string_view value;  // as help shows it: "FORMAT"
  Choice choice;
  std::uint32_t verbs;    // bit set of VerbId
  std::string_view help;  // one line, lower case, no full stop
};

// Of a number: from `least`, or from above it, to `most`.
struct Range {
  double least, most;
  bool above = false;
};

std::span<const Verb> verbs() noexcept;
std::span<const Flag> flags() noexcept;
const Verb& verb(VerbId) noexcept;
const Flag& flag(FlagId) noexcept;
bool takes_flag(VerbId, const Flag&) noexcept;
// What the flag does there: its help, or what the verb has of its own to say of it.
std::string_view help_of(const Flag&, VerbId) noexcept;
// What a number given by the flag must be within.
Range range_of(FlagId) noexcept;
// The other flag without which this one says nothing in that verb; the flag itself where it stands by itself.
FlagId beside(FlagId, VerbId) noexcept;
// The words that a value of this choice must be one of; empty where any will do.
std::vector<std::string_view> words(Choice);

// The name of the operand at `place` in "MODEL [TEXT...]", whose last one may stand for all that follow; empty where
// there is none. And what such an operand can be.
std::string_view operand_name(std::string_view operands, std::size_t place) noexcept;
Choice operand_choice(std::string_view name) noexcept;

}  // namespace weighbridge::cli
