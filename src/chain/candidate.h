// SPDX-License-Identifier: Apache-2.0
// A candidate for the source chain: a safetensors file or a Hugging Face folder, with what a filled-in source.manifest
// states; and its review. Owns reading it.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "chain/record.h"
#include "weighbridge/context.h"
#include "weighbridge/convert.h"
#include "weighbridge/model.h"

namespace weighbridge::chain::internal {

struct CandidateFile {
  std::string name;
  std::uint64_t bytes = 0;
  std::string sha256;
};
struct License {
  std::string source, key, value;
};

struct Candidate {
  Model model;                       // with the manifest's shape and tokenizer, if there is a manifest
  std::vector<CandidateFile> files;  // sorted by name
  std::vector<std::string> paths;    // of these files and the manifest
  std::string sha256;                // of the lines "SHA256  NAME" of the files
  std::vector<License> licenses;     // as found
  std::optional<ReadRecord> manifest;
  Report contradictions;  // between manifest and candidate
};
// [reads] `manifest` is the path of a source.manifest, or empty. Throws what open() throws, and chain/candidate for
// another container.
Candidate read_candidate(const std::string& path, const std::string& manifest, const Context&);

// The options of the chain's conversions: data that running the model does not need may be dropped; names and shapes
// may not.
Options chain_options(const std::string& dtype, bool replace, bool quantize_norms = false);

// Counts of one pass over a tensor's values as f32.
struct Values {
  std::uint64_t elements = 0, zeros = 0, nonfinite = 0, above = 0;
  double largest = 0;  // of the finite values
  bool all_zero() const noexcept { return elements != 0 && zeros == elements; }
};
class ValueCounter {
 public:
  explicit ValueCounter(double bound) : bound_(bound) {}
  void update(std::span<const std::byte> little_endian);
  const Values& values() const noexcept { return values_; }

 private:
  double bound_;
  Values values_;
};
// Reports what is wrong with a tensor that has these values.
void object_to_values(Report&, std::string_view tensor, const Values&, double bound);

// Sums over tensors, and the verdict under the keys of kVerdictKeys.
struct Totals {
  std::uint64_t tensors = 0, parameters = 0, nonfinite = 0, above = 0, all_zero = 0;
  double largest = 0;
  void add(const Values&);
};
void set_verdict(Record&, const Totals&, double bound, const Report&);

// Reviews a candidate, and compares an existing review with a new one.

struct Review {
  Record record;
  Report report;
};
// [reads] Reads every value once.
Review review(const Candidate&, double bound, const Context&);

// The review record at `path`. It must equal a new review of the candidate and accept it. Throws what compare() throws,
// and chain/refused.
ReadRecord read_review(const std::string& path, const Candidate&, const Context&);

}  // namespace weighbridge::chain::internal
