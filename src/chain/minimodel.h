// SPDX-License-Identifier: Apache-2.0
// MiniModel manifest v0, as published: its keys, its signed form, and checking an artifact against it. Signatures are
// kept but not verified: how to find keys is not published.
#pragma once
#include "chain/evidence.h"

namespace weighbridge::chain::internal {

const Schema& minimodel_schema();

struct MiniModel {
  ReadRecord manifest;
  std::string signed_form;  // keys sorted, without signature keys, LF
  bool has_signature = false;
};
// Throws Error{malformed}: chain/active-content for commands, scripts, callbacks and addresses; chain/comment for a
// comment in a signed manifest; chain/placeholder; what parse_record() throws.
MiniModel read_minimodel(const std::string& path);
// Compares the artifact with the manifest: bytes, SHA-256 and header fields. Throws Error{malformed}
// chain/artifact-mismatch naming the first key that differs.
void check_artifact(const Artifact&, const MiniModel&);
// [reads] The artifact of the manifest, after checking bytes, SHA-256, every rule of .slm and header fields.
Artifact read_verified_artifact(const std::string& path, const MiniModel&, const Context&);

std::string tagged(std::string_view lower_hex);  // "sha256:" and upper-case digits

}  // namespace weighbridge::chain::internal
