// SPDX-License-Identifier: Apache-2.0
// The basis of the admission chain: an artifact read once under the full validator, the places of its records, and the
// only way to check a record: make it again and compare. Leaves the content of each record to its step.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "chain/record.h"
#include "weighbridge/chain.h"
#include "weighbridge/context.h"
#include "weighbridge/model.h"
#include "weighbridge/source.h"

namespace weighbridge::chain::internal {

// Size and digest of a file, taken from one opening.
struct Stamp {
  std::uint64_t bytes = 0;
  std::string sha256{};  // 64 lower-case digits
};
// [reads] Throws Error{io} if the file has changed since it was opened.
Stamp stamp(const Source&, const Context&);

// An .slm that passed every rule. Digest, size and model are from the same open file.
struct Artifact : Stamp {
  std::string path, name;  // name: the path's last component
  std::shared_ptr<const Source> source;
  Model model;
  std::uint64_t parameters = 0;

  std::uint64_t header(std::string_view field) const;     // "vocab_size"
  std::string real_header(std::string_view field) const;  // "rope_theta"
  std::string_view checksum(std::string_view of) const;   // "file", "tokenizer", "tensor_layout"
};
// [reads] Throws Error{malformed}: the validator's first error, or chain/artifact for another container. Calls `expect`
// before the validator, so that a changed file is reported as changed, not by a rule that it happens to break.
Artifact read_artifact(const std::string& path, const Context&, const std::function<void(const Stamp&)>& expect = {});
// Sets the container's own checksums under the keys that every record uses, each with `prefix`: "checksum",
// "tokenizer_checksum" and "tensor_layout_checksum".
void set_checksums(Record&, const std::string& prefix, const Artifact&);
// Throws Error{malformed} chain/artifact if `path` contains a folder or no file name: records refer to files beside
// them.
std::string last_component(const std::string& path);

// Reads a record that a step wrote, which must have the exact form that steps write. Throws Error{malformed}
// chain/missing-evidence if there is none (`how` says what writes it), and chain/spelling if its lines are not in the
// table's order.
ReadRecord read_evidence(const Schema&, const std::string& path, std::string_view how);

// The last key of each record that a step writes: SHA-256 of all lines before it. It protects values that cannot be
// made again from the artifact (who decided, which source).
inline constexpr std::string_view kSeal = "record_sha256";
inline constexpr Key kSealKey{.name = kSeal, .type = Type::digest, .about = "SHA-256 of all lines above"};
void seal(Record&);
// All other keys, to be sealed anew.
Record without_seal(const Record&);

// Compares `given` with `again`, which was made from the current files. Throws Error{malformed} naming the first key
// that differs, both values and the line: chain/stale for a digest of something else, chain/seal if only the seal is
// wrong, chain/recomputed for all else.
void compare(const ReadRecord& given, const Record& again);

// The two kinds of source in the chain ("source_kind").
inline constexpr std::string_view kSmokeKind = "deterministic-smoke", kTrainedKind = "converted-trained";

}  // namespace weighbridge::chain::internal
