// SPDX-License-Identifier: Apache-2.0
// NAME.slm.manifest: the provenance of one artifact. Every field but the source's digest comes from the file and is
// made again whenever the manifest is read.
#pragma once
#include "chain/evidence.h"

namespace weighbridge::chain {

const Schema& slm_manifest_schema();

struct SourceOf {
  std::string kind;    // kSmokeKind or kTrainedKind
  std::string sha256;  // of the record of its conversion; empty for a smoke model
};
Record make_slm_manifest(const Artifact&, const SourceOf&);

// The record at `path` of the conversion that made the artifact; its digest. Error{malformed}: it speaks of another.
std::string check_conversion(const Artifact&, const std::string& path);

struct Provenance {
  Artifact artifact;
  ReadRecord manifest;
  bool trained() const { return manifest.record.get("source_kind") == kTrainedKind; }
};
// [reads] The artifact and its manifest, which fit. A smoke model whose manifest claims more is chain/smoke-claim.
Provenance read_provenance(const Evidence&, const Context&);

}  // namespace weighbridge::chain
