// SPDX-License-Identifier: Apache-2.0
// What follows the admission of an artifact: MiniModel's manifest and its receipt, the selector, and the ledger of
// promotions. chain.h declares what writes and checks them.
#pragma once
#include <filesystem>

#include "chain/evidence.h"
#include "chain/record.h"

namespace weighbridge::chain::internal {

// MiniModel manifest v0, as published: its keys, its signed form, and checking an artifact against it. Signatures are
// kept but not verified: how to find keys is not published.

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

// NAME.minimodel-receipt: its table, for tests and documentation, and checking one against an artifact that was read
// already. chain.h declares what writes and checks one.

const Schema& receipt_schema();
// Throws Error{malformed} naming the first wrong statement of the receipt or the manifest.
void check_receipt(const Artifact&, const MiniModel&, const std::string& receipt);

// The table of selector.registry, for tests and documentation. chain.h declares what makes and checks one.

const Schema& selector_schema();

// promotion.ledger: append-only. Each entry has the digest of the previous one, and the head that of the last.

const Schema& ledger_schema();
// The ledger at `path`, with its links checked. Throws Error{malformed} chain/ledger for the first broken one.
ReadRecord read_ledger(const std::string& path);
// The folder that its paths are relative to, with links resolved.
std::filesystem::path folder_of_record(const std::string& path);
// The key prefix of an entry, for example "entry.3."
std::string entry_row(std::uint64_t entry);
// [reads] The kind of an adapter package that fits `base`, for example "adp1". Throws Error{malformed} if it is invalid
// or does not fit. Callers stamp the same open file: another one may lie at its path by then.
std::string check_adapter(const Artifact& base, const std::shared_ptr<const Source>& file, const Context&);

}  // namespace weighbridge::chain::internal
