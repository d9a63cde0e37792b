// SPDX-License-Identifier: Apache-2.0
// Verifies the written file: opens it with the ordinary reader and compares it with the layout and the hashes taken
// while writing.
#pragma once
#include <memory>
#include <string_view>

#include "convert/hashing.h"
#include "convert/rep.h"
#include "core/progress.h"
#include "io/atomic_file.h"
#include "weighbridge/context.h"

namespace weighbridge::convert {

// What the file must be. `format` is the file's, in the spelling of OpenOptions::format.
struct Expected {
  const core::WriteLayout& layout;
  std::string_view format;
  std::uint32_t kept_tensors = 0;  // see PlanRep
};
inline Expected expected(const PlanRep& rep) { return {rep.layout, rep.format->info.name, rep.kept_tensors}; }
// [reads] Syncs the file (io::AtomicFile::sync) and compares it, in parallel where the executor has threads. Throws
// io/read-back at the first difference: in the prefix, head or tail, in a tensor's name, layout, dtype or shape, or in
// a part's offset, length, dtype, encoding or logical bytes.
void sync_and_read_back(const Expected&, const Record&, io::AtomicFile&, const Context&, core::Progress&);

}  // namespace weighbridge::convert
