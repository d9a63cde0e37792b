// SPDX-License-Identifier: Apache-2.0
// NAME.slm.manifest: the provenance of one artifact. All fields except the source's digest come from the artifact and
// are recomputed whenever the manifest is read.
#pragma once
#include "chain/evidence.h"

namespace weighbridge::chain::internal {

const Schema& slm_manifest_schema();

struct SourceOf {
  std::string kind;    // kSmokeKind or kTrainedKind
  std::string sha256;  // of the record of its conversion; empty for a smoke model
};
Record make_slm_manifest(const Artifact&, const SourceOf&);

// Checks that the conversion record at `path` describes this artifact, and returns its digest. Throws Error{malformed}
// if it describes another.
std::string check_conversion(const Artifact&, const std::string& path);

struct Provenance {
  Artifact artifact;
  ReadRecord manifest;
  bool trained() const { return manifest.record.get("source_kind") == kTrainedKind; }
};
// [reads] The artifact and its manifest, which must match. Throws chain/smoke-claim for a smoke model whose manifest
// claims more.
Provenance read_provenance(const Evidence&, const Context&);

}  // namespace weighbridge::chain::internal
