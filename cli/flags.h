// SPDX-License-Identifier: Apache-2.0
// The command's verbs and flags, each defined once: what parsing, help, completion and the man page are made of.
// Owns the tables; leaves reading an argument vector to parse.cc and doing the work to one file per verb.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace weighbridge::cli {

inline constexpr std::string_view kShells[] = {"bash", "zsh", "fish"};
inline constexpr std::string_view kEvaluations[] = {"sts"};
inline constexpr std::string_view kSlmActions[] = {"fixture",
                                                   "adapter",
                                                   "adapt",
                                                   "source-template",
                                                   "review-safetensors-candidate",
                                                   "extract-safetensors-source",
                                                   "validate-source",
                                                   "convert-trained",
                                                   "convert-safetensors-trained",
                                                   "manifest",
                                                   "validate-manifest",
                                                   "runtime-smoke",
                                                   "eval-template",
                                                   "eval",
                                                   "quality-gate",
                                                   "admission-record",
                                                   "promotion-ledger",
                                                   "selector-registry",
                                                   "minimodel-template",
                                                   "verify-manifest",
                                                   "verify-artifact",
                                                   "write-import-receipt",
                                                   "import-receipt"};
inline constexpr std::string_view kKhlnaryActions[] = {"run", "verify", "disassemble", "assemble", "pack"};

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

struct Verb {
  VerbId id;
  std::string_view name;
  std::string_view operands;                  // as the usage line shows them: "FILE..."
  std::uint8_t least, most;                   // how many operands; kAny: no upper bound
  std::string_view summary;                   // one line, lower case, no full stop
  std::string_view about;                     // what its help says below the usage line
  std::string_view examples;                  // one a line
  std::span<const std::string_view> first{};  // what the first operand must be one of; empty: a file
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
  quantise,
  quantise_norms,
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
  help
};
inline constexpr std::size_t kFlagCount = 78;

enum class Takes : std::uint8_t {
  nothing,
  value,
  optional_value,
  values,
  each
};  // values: may be given again, and with commas; each: may be given again, each as it is
// What a value can be, for checking and completion.
enum class Choice : std::uint8_t {
  any,
  number,
  file,
  format,
  dtype,
  real,
  loss,
  order,
  encoding,
  digest,
  quantisation,
  stored,
  adapter,
  source_kind,
  decision,
  text_form,
  vector_form,
  pooling,
  precision
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

std::span<const Verb> verbs() noexcept;
std::span<const Flag> flags() noexcept;
const Verb& verb(VerbId) noexcept;
const Flag& flag(FlagId) noexcept;
bool takes_flag(VerbId, const Flag&) noexcept;
// The words that a value of this choice must be one of; empty where any will do.
std::vector<std::string_view> words(Choice);

}  // namespace weighbridge::cli
