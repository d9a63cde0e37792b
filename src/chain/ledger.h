// SPDX-License-Identifier: Apache-2.0
// promotion.ledger: append-only. Each entry has the digest of the previous one, and the head that of the last.
#pragma once
#include <filesystem>

#include "chain/evidence.h"

namespace weighbridge::chain::internal {

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
