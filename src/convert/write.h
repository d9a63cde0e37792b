// SPDX-License-Identifier: Apache-2.0
// Puts a WriteLayout's bytes into a file: prefix, head, payloads, tail. Owns who writes what when; leaves publishing to
// io::AtomicFile and proving what was written to read_back.h.
#pragma once
#include "convert/hashing.h"
#include "convert/rep.h"
#include "core/progress.h"
#include "io/atomic_file.h"
#include "weighbridge/context.h"

namespace weighbridge::convert {

// [reads] The bytes depend on the layout and the level only, not on threads or budgets. Memory is at most about half of
// limits.memory where payloads are encoded, else some megabytes a thread. Throws Error{io}, Cancelled, and what reading
// throws.
Record write(const core::WriteLayout&, int level, io::AtomicFile&, const Context&, core::Progress&);

}  // namespace weighbridge::convert
