// SPDX-License-Identifier: Apache-2.0
/// \file
/// Results as JSON text, the same that `weighbridge --json` prints; docs/schemas/ has a schema for each.
///
/// Compact, UTF-8, no line end. Each object carries "schema": 1, which grows when a member changes its meaning or goes
/// away. Exact: strings have JSON escapes only (a byte that is no UTF-8 becomes U+FFFD), 64-bit integers all their
/// digits, NaN and infinities are the texts "nan", "inf", "-inf", bytes are base64.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weighbridge/convert.h"
#include "weighbridge/dtype.h"
#include "weighbridge/error.h"
#include "weighbridge/extract.h"
#include "weighbridge/hash.h"
#include "weighbridge/json_writer.h"
#include "weighbridge/model.h"
#include "weighbridge/stats.h"
#include "weighbridge/tokenize.h"
#include "weighbridge/value.h"
#include "weighbridge/verify.h"

namespace weighbridge {

inline constexpr unsigned kJsonSchema = 2;  ///< the member "schema" of every object

/// What inspect says of a file that opens. Everything referred to must outlive the call.
struct Inspection {
  std::string_view path;                   ///< as the caller named the file
  const Model& model;                      ///< opened from it
  std::uint64_t file_size = 0;             ///< bytes
  std::span<const std::uint32_t> tensors;  ///< indices into the model, in the order to list them
  std::span<const Stats> stats{};          ///< one for each of `tensors`, or none at all
  const Report* report = nullptr;          ///< remarks that opening made, if any
};
/// In pieces of some 100 KiB, so that a listing of any length needs no memory of its size.
void to_json(const Inspection&, const std::function<void(std::string_view piece)>& sink);
std::string to_json(const Inspection&);  ///< The same in one text.

std::string to_json(std::string_view path, const Verdict&);  ///< What verify() said of `path`.

/// A conversion of `path` into `output`, planned or, when `written`, done; then `written_size` is the bytes of the
/// output, where they are known better than by the plan.
std::string to_json(std::string_view path, std::string_view output, const Plan&, bool written,
                    std::optional<std::uint64_t> written_size = {});
/// The same members in an object that the caller has begun.
void add_members(JsonWriter&, std::string_view path, std::string_view output, const Plan&, bool written,
                 std::optional<std::uint64_t> written_size = {});

/// Which digest.
enum class DigestKind : std::uint8_t {
  content,                ///< content_digest()
  content_without_names,  ///< content_digest() without names
  file                    ///< file_sha256()
};
std::string_view name(DigestKind) noexcept;  ///< "content", "content-without-names", "file-sha256"
/// A digest of `path`, a file of `format`.
std::string to_json(std::string_view path, std::string_view format, DigestKind, const Digest&);
/// The digest that was `expected` of `path`, and the one that was found.
std::string to_json(std::string_view path, std::string_view format, DigestKind, const Digest& expected,
                    const Digest& found);

/// Tensors that were extracted.
std::string to_json(std::string_view path, std::string_view format, std::span<const Extracted>);

/// Every format of this build and what it holds.
std::string formats_to_json();

/// A completion script for a shell.
std::string completion_to_json(std::string_view shell, std::string_view script);

/// Which build this is, and the way through the processor that each of its parts takes.
std::string version_to_json();

/// The object of a verb that could not do its work on `path`: "format" is the one whose rule was broken, else null.
std::string failure_to_json(std::string_view path, const Report&);
/// The same members in an object that the caller has begun.
void add_failure_members(JsonWriter&, std::string_view path, const Report&);

/// A text as ids, for programs. "offsets" stands there when it was asked for, "replaced" when it is not 0.
std::string to_json(const TokenizedText&);

/// A text as a vector: one line of embed's output.
struct EmbeddedText {
  std::uint64_t index = 0;           ///< of the text, from 0
  std::uint64_t tokens = 0;          ///< that were used
  std::uint64_t replaced = 0;        ///< invalid sequences of UTF-8
  bool truncated = false;            ///< the text had more
  std::span<const float> embedding;  ///< Embedder::dimension() floats
};
std::string to_json(const EmbeddedText&);  ///< without a line end

/// Texts with scores, best first: what search and similarity print.
struct Scored {
  std::uint64_t index = 0;  ///< of the text, from 0
  double score = 0;         ///< cosine similarity
  std::string_view text;    ///< as it was read
};
std::string to_json(std::string_view query, std::span<const Scored> results);  ///< The answers to `query`.

/// A benchmark of sentence pairs.
struct Correlation {
  double spearman = 0;      ///< rank correlation with the people's scores, -1 to 1
  double pearson = 0;       ///< linear correlation, -1 to 1
  double seconds = 0;       ///< for all of it
  std::uint64_t pairs = 0;  ///< scored
};
std::string to_json(std::string_view path, const Correlation&);  ///< of the pairs in `path`

/// What a language model added to a prompt.
struct GeneratedText {
  std::uint64_t prompt_tokens = 0;        ///< with BOS
  std::span<const std::uint32_t> tokens;  ///< generated, EOS not among them
  std::string_view text;                  ///< of the tokens
  std::string_view stopped;               ///< name(Stopped)
  double tokens_per_second = 0;           ///< of generating, the prompt left out
};
std::string to_json(const GeneratedText&);  ///< what generate prints

/// How well a language model foresees a text.
struct Likelihood {
  std::uint64_t tokens = 0;  ///< scored
  double mean_nll = 0;       ///< negative log likelihood a token, natural logarithm
  double perplexity = 0;     ///< e^mean_nll
  double seconds = 0;        ///< for all of it
};
std::string to_json(std::string_view path, const Likelihood&);  ///< of the text in `path`

/// One thing found, as it stands in the other objects' "findings".
std::string to_json(const Finding&);
/// As inspect --stats has it in a tensor.
std::string to_json(const Stats&);
std::string to_json(const Histogram&);  ///< likewise

/// A metadata value, in the JSON type that is nearest to it.
std::string to_json(const Value&);

}  // namespace weighbridge
