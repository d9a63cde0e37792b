// SPDX-License-Identifier: Apache-2.0
// Reviewed weights: a safetensors file or a Hugging Face folder as the source chain sees it, with what a filled-in
// source.manifest says of it. Owns what is read from it; leaves judging to review.cc.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "chain/record.h"
#include "weighbridge/context.h"
#include "weighbridge/convert.h"
#include "weighbridge/model.h"

namespace weighbridge::chain {

struct CandidateFile {
  std::string name;
  std::uint64_t bytes = 0;
  std::string sha256;
};
struct License {
  std::string source, key, value;
};

struct Candidate {
  Model model;                       // with the manifest's shape and tokenizer where there is one
  std::vector<CandidateFile> files;  // by name
  std::vector<std::string> paths;    // of these files and of the manifest
  std::string sha256;                // of "SHA256  NAME\n" of each
  std::vector<License> licenses;     // as found
  std::optional<ReadRecord> manifest;
  Report contradictions;  // between manifest and candidate
};
// [reads] `manifest` is the path of a source.manifest, or empty. Errors: open()'s, chain/candidate (another container).
Candidate read_candidate(const std::string& path, const std::string& manifest, const Context&);

// How the chain converts: what a run of the model does not need may be left out, no name and no shape may be lost.
Options chain_options(const std::string& dtype, bool replace);

// One pass over a tensor's values as f32.
struct Values {
  std::uint64_t elements = 0, zeros = 0, nonfinite = 0, above = 0;
  double largest = 0;  // of the finite ones
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
// What is wrong with a tensor of these values.
void object_to_values(Report&, std::string_view tensor, const Values&, double bound);

// Sums over tensors, and the verdict, as kVerdictKeys has them.
struct Totals {
  std::uint64_t tensors = 0, parameters = 0, nonfinite = 0, above = 0, all_zero = 0;
  double largest = 0;
  void add(const Values&);
};
void set_verdict(Record&, const Totals&, double bound, const Report&);

}  // namespace weighbridge::chain
