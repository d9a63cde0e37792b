// SPDX-License-Identifier: Apache-2.0
// Proves what was written: the file as the ordinary reader opens it against the layout and the hashes taken while
// writing.
#pragma once
#include <memory>
#include <string_view>

#include "convert/hashing.h"
#include "convert/rep.h"
#include "core/progress.h"
#include "io/atomic_file.h"
#include "weighbridge/context.h"

namespace weighbridge::convert {

// [reads] Also waits for the disk (io::AtomicFile::sync), side by side with the comparison where the executor has
// threads. Throws Error io/read-back at the first difference: prefix, head, tail, the tensors' names, layouts, dtypes
// and shapes, each part's place, dtype, encoding and logical bytes.
// `format` is the file's, as OpenOptions::format takes it.
struct Expected {
  const core::WriteLayout& layout;
  std::string_view format;
  std::uint32_t kept_tensors = 0;  // as PlanRep has them
};
inline Expected expected(const PlanRep& rep) { return {rep.layout, rep.format->info.name, rep.kept_tensors}; }
void sync_and_read_back(const Expected&, const Record&, io::AtomicFile&, const Context&, core::Progress&);

}  // namespace weighbridge::convert
