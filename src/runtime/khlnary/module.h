// SPDX-License-Identifier: Apache-2.0
// The contents of an open module: its words, and its sidecar if it has one. Leaves judging the words to check_words()
// and the files they name to bin_files.h.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/findings.h"
#include "formats/stb/sidecar.h"
#include "weighbridge/khlnary.h"

namespace weighbridge::khlnary {

struct Module::Rep {
  std::shared_ptr<const Source> source;
  std::vector<std::uint32_t> words;
  std::shared_ptr<const Source> sidecar_source;  // null: there is no sidecar, and `sidecar` is empty
  stb::Sidecar sidecar;
};

namespace internal {

// These report to the findings; in mode `all` they continue with what could be read.
std::vector<std::uint32_t> read_words(const Source&, const Limits&, core::Findings&);
// The default sidecar beside a module; null if there is none.
std::shared_ptr<const Source> find_sidecar(const Source& module);
// Checks each word, then the function table. Must run before anything else looks at the module.
void check_words(const Module::Rep&, unsigned authority, core::Findings&);
// Throws Error{misuse} if it is no authority class.
void require_authority(unsigned authority);

}  // namespace internal
}  // namespace weighbridge::khlnary
