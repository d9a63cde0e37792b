// SPDX-License-Identifier: Apache-2.0
// What the admission chain stands on: an artifact read once under the full validator, where its records lie, and the
// one way to check a record, which is to make it again and compare. Leaves what each record says to the steps.
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

namespace weighbridge::chain {

// Size and digest of a file, of one opening.
struct Stamp {
  std::uint64_t bytes = 0;
  std::string sha256{};  // 64 lower-case digits
};
Stamp stamp(const std::string& path, const Context&);

// An .slm that passed every rule. Digest, size and model are of the same open file.
struct Artifact : Stamp {
  std::string path, name;  // name: the path's last component
  std::shared_ptr<const Source> source;
  Model model;
  std::uint64_t parameters = 0;

  std::uint64_t header(std::string_view field) const;     // "vocab_size"
  std::string real_header(std::string_view field) const;  // "rope_theta"
  std::string_view checksum(std::string_view of) const;   // "file", "tokenizer", "tensor_layout"
};
// [reads] Error{malformed}: the validator's first error, or chain/artifact for another container. `expect` is asked
// before the validator, so that a file which was changed is named as that, not by the rule that the change happens to
// break.
Artifact read_artifact(const std::string& path, const Context&, const std::function<void(const Stamp&)>& expect = {});
// The container's own checksums under the keys that every record has for them: "checksum", "tokenizer_checksum" and
// "tensor_layout_checksum", each behind `prefix`.
void set_checksums(Record&, const std::string& prefix, const Artifact&);
// Error{malformed} chain/artifact where `path` has a folder or names none: records speak of files beside them.
std::string last_component(const std::string& path);

// Reads a record that a step has written, so that it is spelt as steps spell. Error{malformed} chain/missing-evidence:
// there is none, `how` says what writes it; chain/spelling: its lines are not in the table's order.
ReadRecord read_evidence(const Schema&, const std::string& path, std::string_view how);

// The last key of each record that a step writes: SHA-256 of all lines before it. What cannot be made again from the
// artifact (who decided, which source) is held by it.
inline constexpr std::string_view kSeal = "record_sha256";
inline constexpr Key kSealKey{.name = kSeal, .type = Type::digest, .about = "SHA-256 of all lines above"};
void seal(Record&);
// All its other keys, to be sealed anew.
Record without_seal(const Record&);

// `given` must say what `again` does, made from what is there now. Error{malformed} names the first key that differs,
// both values and the line: chain/stale for a digest of something else, chain/seal where only the seal is wrong,
// chain/recomputed for all else.
void compare(const ReadRecord& given, const Record& again);

// The chain's two kinds of source ("source_kind").
inline constexpr std::string_view kSmokeKind = "deterministic-smoke", kTrainedKind = "converted-trained";

}  // namespace weighbridge::chain
