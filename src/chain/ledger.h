// SPDX-License-Identifier: Apache-2.0
// promotion.ledger: append-only; each entry carries the digest of the one before, the head that of the last.
#pragma once
#include <filesystem>

#include "chain/evidence.h"

namespace weighbridge::chain {

const Schema& ledger_schema();
// The ledger at `path`, its links checked. Error{malformed} chain/ledger names the first broken one.
ReadRecord read_ledger(const std::string& path);
// The folder that its paths are relative to, links followed.
std::filesystem::path folder_of_record(const std::string& path);
// "entry.3."
std::string entry_row(std::uint64_t entry);
// [reads] The kind of an adapter package that fits `base`: "adp1", ... Error{malformed} what it breaks.
std::string check_adapter(const Artifact& base, const std::string& path, const Context&);

}  // namespace weighbridge::chain
