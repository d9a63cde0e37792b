// SPDX-License-Identifier: Apache-2.0
// weighbridge/json.h: results as JSON text, the same that `weighbridge --json` prints; docs/schemas/ has a schema for
// each.
//
// Compact, UTF-8, no line end. Each object carries "schema": 1, which grows when a member changes its meaning or goes
// away. Exact: strings have JSON escapes only (a byte that is no UTF-8 becomes U+FFFD), 64-bit integers all their
// digits, NaN and infinities are the texts "nan", "inf", "-inf", bytes are base64.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weighbridge/convert.h"
#include "weighbridge/dtype.h"
#include "weighbridge/error.h"
#include "weighbridge/hash.h"
#include "weighbridge/model.h"
#include "weighbridge/stats.h"
#include "weighbridge/value.h"
#include "weighbridge/verify.h"

namespace weighbridge {

inline constexpr unsigned kJsonSchema = 1;

// What inspect says of a file that opens. Everything referred to must outlive the call.
struct Inspection {
  std::string_view path;
  const Model& model;
  std::uint64_t file_size = 0;
  std::span<const std::uint32_t> tensors;  // indices into the model, in the order to list them
  std::span<const Stats> stats{};          // one for each of `tensors`, or none at all
  const Report* report = nullptr;          // remarks that opening made, if any
};
// In pieces of some 100 KiB, so that a listing of any length needs no memory of its size.
void to_json(const Inspection&, const std::function<void(std::string_view piece)>& sink);
std::string to_json(const Inspection&);

std::string to_json(std::string_view path, const Verdict&);

// A conversion of `path` into `output`, planned or, when `written`, done.
std::string to_json(std::string_view path, std::string_view output, const Plan&, bool written);

enum class DigestKind : std::uint8_t { content, content_without_names, file };
std::string_view name(DigestKind) noexcept;  // "content", "content-without-names", "file-sha256"
std::string to_json(std::string_view path, std::string_view format, DigestKind, const Digest&);

// One tensor that was extracted.
struct Extracted {
  std::string tensor, part;  // part: the role, or empty for the dense form
  DType dtype = DType::unknown;
  std::vector<std::uint64_t> shape;
  std::uint64_t bytes = 0;  // logical bytes, a .npy header not counted
  std::string output;
};
std::string to_json(std::string_view path, std::string_view format, std::span<const Extracted>);

// Every format of this build and what it holds.
std::string formats_to_json();

// A completion script for a shell.
std::string completion_to_json(std::string_view shell, std::string_view script);

// Which build this is, and the way through the processor that each of its parts takes.
std::string version_to_json();

// The object of a verb that could not do its work on `path`: "format" is the one whose rule was broken, else null.
std::string failure_to_json(std::string_view path, const Report&);

// A text as ids, for programs. `offsets` is empty or as long as the ids; `replaced` stands there when it is not 0.
struct TokenizedText {
  std::span<const std::uint32_t> ids;
  std::span<const std::string_view> tokens;
  std::span<const std::pair<std::uint64_t, std::uint64_t>> offsets{};
  bool truncated = false;
  std::uint64_t replaced = 0;
};
std::string to_json(const TokenizedText&);

// A text as a vector: one line of embed's output.
struct EmbeddedText {
  std::uint64_t index = 0, tokens = 0, replaced = 0;
  bool truncated = false;
  std::span<const float> embedding;
};
std::string to_json(const EmbeddedText&);

// Texts with scores, best first: what search and similarity print.
struct Scored {
  std::uint64_t index = 0;
  double score = 0;
  std::string_view text;
};
std::string to_json(std::string_view query, std::span<const Scored> results);

// A benchmark of sentence pairs.
struct Correlation {
  double spearman = 0, pearson = 0, seconds = 0;
  std::uint64_t pairs = 0;
};
std::string to_json(std::string_view path, const Correlation&);

// What a language model added to a prompt.
struct GeneratedText {
  std::uint64_t prompt_tokens = 0;
  std::span<const std::uint32_t> tokens;
  std::string_view text, stopped;
  double tokens_per_second = 0;
};
std::string to_json(const GeneratedText&);

// How well a language model foresees a text.
struct Likelihood {
  std::uint64_t tokens = 0;
  double mean_nll = 0, perplexity = 0, seconds = 0;
};
std::string to_json(std::string_view path, const Likelihood&);

// One thing found, as it stands in the other objects' "findings".
std::string to_json(const Finding&);
// As inspect --stats has it in a tensor.
std::string to_json(const Stats&);
std::string to_json(const Histogram&);

// A metadata value, in the JSON type that is nearest to it.
std::string to_json(const Value&);

}  // namespace weighbridge
