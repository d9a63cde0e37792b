// SPDX-License-Identifier: Apache-2.0
// CBOR that is none, as a finding: what both generations of zTensor say of theirs.
#pragma once
#include <cstdint>
#include <string>

#include "core/common_rules.h"
#include "core/findings.h"
#include "wire/cbor_reader.h"

namespace weighbridge::core {

// `begin`: where the CBOR stands in the file. `depth`: how deep it might have nested. Bytes behind the item break
// `trailing`, anything else `broken`.
inline void report_cbor(Findings& findings, const wire::CborError& error, std::uint64_t begin, std::uint32_t depth,
                        const Rule& trailing, const Rule& broken) {
  const At where{.offset = begin + error.offset};
  if (error.code == wire::CborErrorCode::too_deep)
    findings.report(rules::kLimitDepth, where, "at most " + std::to_string(depth));
  else if (error.code == wire::CborErrorCode::trailing_bytes)
    findings.report(trailing, where);
  else
    findings.report(broken, where, {}, {}, error.sentence);
}

}  // namespace weighbridge::core
