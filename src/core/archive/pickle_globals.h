// SPDX-License-Identifier: Apache-2.0
// What loading a pickle with Python would import and call: the globals that it names, compared with lists of harmful
// and harmless ones. Nothing is imported, looked up or run.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/reading/findings.h"
#include "wire/pickle.h"

namespace weighbridge::core {

// Whether a function or class runs code, starts processes, reaches files or the network, or gives access to one that
// does. Also true for names that reach such a one through attributes ("os.system" in a module that imports os).
bool is_dangerous_global(std::string_view module, std::string_view name) noexcept;

// Whether it is known to be harmless: plain values of Python's library, NumPy and packages whose values people keep in
// files. Formats add names of their own (PyTorch's classes).
bool is_harmless_global(std::string_view module, std::string_view name) noexcept;

// Whether the global's names could be names in Python. In bytes that are not a pickle, they seldom could.
bool could_be_global(const wire::Pickle&, wire::Pickle::Ref);

// Whether bytes that state no protocol act as a pickle: they are complete and name a global, or they call a harmful one
// before parsing ends.
bool does_something(const wire::Pickle&);

// The rules of a format that has pickles.
struct PickleRules {
  const Rule& dangerous;  // an error
  const Rule& unknown;    // a warning: neither dangerous nor one of `known`
  const Rule& unread;     // a warning: a pickle inside a pickle, or possibly one, that was not checked
  const Rule& malformed;  // an error: a pickle that Python would refuse
  bool (*known)(std::string_view module, std::string_view name) noexcept;
};

// Appends a finding for each global that is not known to be harmless, once for each pair of names, at most a thousand
// for each rule and then one with the number of the others. `base` is where the pickle's input begins in the file;
// without it, findings have the offset `at`. In a malformed pickle, counts only globals whose names could be Python's.
// Returns the number of those.
std::size_t check_globals(const wire::Pickle&, const PickleRules&, std::optional<std::uint64_t> base, std::uint64_t at,
                          std::string_view where, std::vector<Finding>& out);

}  // namespace weighbridge::core
