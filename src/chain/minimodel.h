// SPDX-License-Identifier: Apache-2.0
// MiniModel manifest v0, as published: its keys, its signed form, and checking an artifact against it. Signatures are
// kept but not verified: how to find keys is not published.
#pragma once
#include "chain/evidence.h"

namespace weighbridge::chain {

const Schema& minimodel_schema();

struct MiniModel {
  ReadRecord manifest;
  std::string signed_form;  // keys sorted, without signature keys, LF
  bool has_signature = false;
};
// Throws Error{malformed}: chain/active-content for commands, scripts, callbacks and addresses; chain/comment for a
// comment in a signed manifest; chain/placeholder; what parse_record() throws.
MiniModel read_minimodel(const std::string& path);
// Error{malformed} chain/artifact-mismatch names the key by which the manifest does not speak of this artifact: bytes,
// SHA-256, what it says of the header.
void check_artifact(const Artifact&, const MiniModel&);
// [reads] The artifact, which the manifest speaks of: bytes, SHA-256, every rule of .slm, what the manifest says of the
// header.
Artifact read_verified_artifact(const std::string& path, const MiniModel&, const Context&);

std::string tagged(std::string_view lower_hex);  // "sha256:" and upper-case digits

}  // namespace weighbridge::chain
