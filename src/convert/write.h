// SPDX-License-Identifier: Apache-2.0
// Writes the bytes of a WriteLayout into a file: prefix, head, payloads, tail. Owns the order and the threads; leaves
// publishing to io::AtomicFile and verifying to read_back.h.
#pragma once
#include "convert/hashing.h"
#include "convert/rep.h"
#include "core/progress.h"
#include "io/atomic_file.h"
#include "weighbridge/context.h"

namespace weighbridge::convert {

// [reads] The bytes depend only on the layout and the level, not on threads or budgets. Where payloads are encoded,
// memory stays below about half of limits.memory; otherwise it is a few megabytes a thread. Throws Error{io},
// Cancelled, and what reading throws.
Record write(const core::WriteLayout&, int level, io::AtomicFile&, const Context&, core::Progress&);

}  // namespace weighbridge::convert
