// SPDX-License-Identifier: Apache-2.0
// What loading a pickle with Python would import and call: the globals that it names, compared with a list of those
// that are known to do harm. Nothing is imported, looked up or run.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/findings.h"
#include "wire/pickle.h"

namespace weighbridge::core {

// Whether a function or class runs code, starts processes, reaches files or the network, or leads to what does. Also
// true for names that climb through attributes to such a one ("os.system" in a module that imports os).
bool is_dangerous_global(std::string_view module, std::string_view name) noexcept;

// Whether it is harmless and belongs to Python's library, to NumPy, or to a package whose plain values people keep in
// files. Each format has its own further names (PyTorch's own classes).
bool is_harmless_global(std::string_view module, std::string_view name) noexcept;

// Whether a global of a pickle has names that could be Python's, which those of other bytes seldom have.
bool could_be_global(const wire::Pickle&, wire::Pickle::Ref);

// Whether bytes without the number of a protocol are a pickle by what it does: it is whole and names a global, or it
// calls one that does harm before its reading ends.
bool does_something(const wire::Pickle&);

// The rules of a format that has pickles.
struct PickleRules {
  const Rule& dangerous;  // an error
  const Rule& unknown;    // a warning: neither dangerous nor one of `known`
  const Rule& unread;     // a warning: a pickle in a pickle, or what may be one, that was not looked into
  const Rule& malformed;  // an error: a pickle that Python would refuse
  bool (*known)(std::string_view module, std::string_view name) noexcept;
};

// Appends a finding for each global that is not known, once for each pair of names, up to a thousand of each rule; one
// more says how many are left. `base` is where the pickle's input
// begins in the file; if it is not in the file as it is, findings have the offset `at`. Of a malformed pickle, only
// globals count whose names could be Python's. Returns how many could be.
std::size_t judge_globals(const wire::Pickle&, const PickleRules&, std::optional<std::uint64_t> base, std::uint64_t at,
                          std::string_view where, std::vector<Finding>& out);

}  // namespace weighbridge::core
