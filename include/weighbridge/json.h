// SPDX-License-Identifier: Apache-2.0
/// \file
/// Results as JSON text, as `weighbridge --json` prints them; docs/schemas/ has a schema for each.
///
/// The JSON is compact UTF-8 without a final newline. An object has the member "schema" (kJsonSchema), which grows when
/// a member is removed or changes its meaning. What is marked [file] is an object without it: inspect, verify, hash and
/// doctor list these between kJsonFilesBegin and kJsonFilesEnd, for one file and for several. Values are exact: strings
/// have JSON escapes only (an invalid UTF-8 byte becomes U+FFFD), 64-bit integers have all their digits, NaN and
/// infinities are the strings "nan", "inf",
/// "-inf", and bytes are base64.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weighbridge/convert.h"
#include "weighbridge/delta.h"
#include "weighbridge/derivation.h"
#include "weighbridge/diff.h"
#include "weighbridge/doctor.h"
#include "weighbridge/dtype.h"
#include "weighbridge/edit.h"
#include "weighbridge/error.h"
#include "weighbridge/explain.h"
#include "weighbridge/extract.h"
#include "weighbridge/hash.h"
#include "weighbridge/json_writer.h"
#include "weighbridge/manifest.h"
#include "weighbridge/model.h"
#include "weighbridge/policy.h"
#include "weighbridge/recover.h"
#include "weighbridge/stats.h"
#include "weighbridge/tokenize.h"
#include "weighbridge/value.h"
#include "weighbridge/verify.h"
#include "weighbridge/version.h"

namespace weighbridge {

inline constexpr unsigned kJsonSchema = 3;  ///< the member "schema"
/// What stands before the [file] objects of a list, which commas separate.
inline constexpr std::string_view kJsonFilesBegin = R"({"schema":3,"files":[)";
inline constexpr std::string_view kJsonFilesEnd = "]}";  ///< what stands after them

/// The output of inspect for a file that opens. Everything referred to must outlive the call.
struct Inspection {
  std::string_view path;                   ///< as the caller named the file
  const Model& model;                      ///< the open file
  std::span<const std::uint32_t> tensors;  ///< indices into the model, in the order to list them
  std::span<const Stats> stats{};          ///< one for each of `tensors`, or none at all
  const Report* report = nullptr;          ///< warnings of opening, if any
};
/// [file] Written in pieces of about 128 KiB, so that memory does not grow with the listing.
void to_json(const Inspection&, const std::function<void(std::string_view piece)>& sink);
std::string to_json(const Inspection&);  ///< [file] The same as one string.

std::string to_json(std::string_view path, const Verdict&);  ///< [file] The result of verify() for `path`.

/// [file] The result of check() for `path`.
std::string to_json(std::string_view path, const Policy&, const PolicyVerdict&);
std::string to_json(std::string_view path, const Diagnosis&);    ///< [file] The result of diagnose() for `path`.
std::string to_json(std::string_view path, const CacheReport&);  ///< [file] The result of check_cache() for `path`.
/// [file] The result of recover_folder() for `path`.
std::string to_json(std::string_view path, const std::vector<LeftJournal>&);

/// The manifest of `path`, as it was written to `output`.
std::string to_json(std::string_view path, std::string_view output, const Manifest&, SigningMethod);
/// [file] The result of verify_manifest() for `path`.
std::string to_json(std::string_view path, std::string_view manifest, const ManifestVerdict&);

/// [file] The result of derive_again() for `path`; `source` is what it was made of.
std::string to_json(std::string_view path, std::string_view source, const Derivation&);

/// An edit of `path`, planned or, if `written`, done. `output` is empty if the file itself changes.
std::string to_json(std::string_view path, std::string_view output, const Edited&, bool written);
/// Patches that were applied to `path` in place, or, unless `written`, can be.
std::string to_json(std::string_view path, const Applied&, bool written);

std::string to_json(std::string_view path, const Explanation&);  ///< The result of explain() for `path`.

/// A patch that was made of `path` and written to `output`; empty: it was only read.
std::string to_json(std::string_view path, std::string_view output, const PatchInfo&);

/// A conversion of `path` to `output`, planned or, with what Plan::execute() returned, done.
std::string to_json(std::string_view path, std::string_view output, const Plan&, const Written* written = nullptr);
/// Adds the same members to an object that the caller has begun.
void add_members(JsonWriter&, std::string_view path, std::string_view output, const Plan&,
                 const Written* written = nullptr);

/// Which digest.
enum class DigestKind : std::uint8_t {
  content,                ///< content_digest()
  content_without_names,  ///< content_digest() without names
  file,                   ///< file_sha256()
  zt_content,             ///< zt_content_digest()
  data                    ///< data_sha256()
};
/// "content", "content-without-names", "file-sha256", "zt-content", "data-sha256".
std::string_view name(DigestKind) noexcept;
/// [file] A digest of `path`, a file of `format`.
std::string to_json(std::string_view path, std::string_view format, DigestKind, const Digest&);
/// [file] The expected digest of `path`, and the one found.
std::string to_json(std::string_view path, std::string_view format, DigestKind, const Digest& expected,
                    const Digest& found);

/// What diff() found between two files. Everything referred to must outlive the call.
struct Comparison {
  std::string_view path_a;            ///< as the caller named the files
  std::string_view path_b;            ///< likewise
  const Model& a;                     ///< the open files
  const Model& b;                     ///< likewise
  const Diff& found;                  ///< what differs
  std::uint64_t max_tensors = ~0ULL;  ///< tensors to list; the counts cover all
};
std::string to_json(const Comparison&);  ///< The result of diff.
/// {"rows", "columns", "high", "wide", "max_abs", "changed", "not_finite"}: the last three are lists with a number for
/// each block, row by row.
std::string to_json(const DifferenceMap&);
/// The tensors of a Diff in a good order to read, as indices into it: those whose values changed, the largest change
/// first; those that could not be compared; those that only the first model has, and only the second; those with equal
/// values under another name, in another type or in another order; and those that are equal.
std::vector<std::uint32_t> by_change(const Diff&);

/// The tensors extracted from `path`, and those that were left out because they hold texts or objects.
std::string to_json(std::string_view path, std::string_view format, std::span<const Extracted>,
                    std::span<const Tensor> left_out = {});

/// Every format of this build and what it holds.
std::string formats_to_json();

/// A completion script for a shell.
std::string completion_to_json(std::string_view shell, std::string_view script);

/// The build, its libraries, and the CPU path that each of its parts uses. `sandbox` says what confines the program,
/// empty if nothing does.
std::string version_to_json(std::string_view sandbox = {});

/// [file] The output of a verb that failed on `path`, as members of an object that the caller has begun. "format" is
/// the format whose rule was broken, else null.
void add_failure_members(JsonWriter&, std::string_view path, const Report&);

/// A tokenized text. Has "offsets" if they were requested, and "replaced" if it is not 0.
std::string to_json(const TokenizedText&);

/// A text as a vector: one line of embed's output.
struct EmbeddedText {
  std::uint64_t index = 0;           ///< of the text, from 0
  std::uint64_t tokens = 0;          ///< tokens used
  std::uint64_t replaced = 0;        ///< invalid sequences of UTF-8
  bool truncated = false;            ///< whether the text had more tokens
  std::span<const float> embedding;  ///< Embedder::dimension() floats
};
std::string to_json(const EmbeddedText&);  ///< without a line end

/// A text with its score, as search and similarity print it.
struct Scored {
  std::uint64_t index = 0;  ///< of the text, from 0
  double score = 0;         ///< cosine similarity
  std::string_view text;    ///< the text as read
  std::string_view file{};  ///< that it was read from, if there are several
  std::uint64_t line = 0;   ///< of the text in `file`, from 1; 0 without one
};
std::string to_json(std::string_view query, std::span<const Scored> results);  ///< The results for `query`, best first.

/// The result of a benchmark of sentence pairs.
struct Correlation {
  double spearman = 0;      ///< rank correlation with the human scores, -1 to 1
  double pearson = 0;       ///< linear correlation, -1 to 1
  double seconds = 0;       ///< for all of it
  std::uint64_t pairs = 0;  ///< scored
};
std::string to_json(std::string_view path, const Correlation&);  ///< of the pairs in `path`

/// The text that a language model generated.
struct GeneratedText {
  std::uint64_t prompt_tokens = 0;        ///< with BOS
  std::span<const std::uint32_t> tokens;  ///< generated, without EOS
  std::string_view text;                  ///< of the tokens
  std::string_view stopped;               ///< name(Stopped)
  double tokens_per_second = 0;           ///< of generation, without the prompt
  std::string_view precision = "exact";   ///< name(GeneratorPrecision)
};
std::string to_json(const GeneratedText&);  ///< the output of generate

/// The perplexity of a text under a language model.
struct Likelihood {
  std::uint64_t tokens = 0;              ///< scored
  double mean_nll = 0;                   ///< mean negative log-likelihood per token, natural logarithm
  double perplexity = 0;                 ///< e^mean_nll
  double seconds = 0;                    ///< for all of it
  std::string_view precision = "exact";  ///< name(GeneratorPrecision)
};
std::string to_json(std::string_view path, const Likelihood&);  ///< of the text in `path`

/// A finding, as in "findings" of the other objects.
std::string to_json(const Finding&);
/// The statistics of a tensor, as in the output of inspect --stats.
std::string to_json(const Stats&);
std::string to_json(const Histogram&);  ///< likewise

/// A metadata value, in the nearest JSON type.
std::string to_json(const Value&);

}  // namespace weighbridge
