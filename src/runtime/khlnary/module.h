// SPDX-License-Identifier: Apache-2.0
// A module as it is held: its words, and its sidecar where it has one. Leaves judging the words to check_words() and
// what the words name to bin_files.h.
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

// Each reports and, in mode all, goes on with what could be read.
std::vector<std::uint32_t> read_words(const Source&, const Limits&, core::Findings&);
// The source of the sidecar where none is given: null when there is none.
std::shared_ptr<const Source> find_sidecar(const Source& module);
// What is wrong with each word, then with the function table. Nothing else of a module may be looked at before this.
void check_words(const Module::Rep&, unsigned authority, core::Findings&);
// Error{misuse}: no authority class.
void require_authority(unsigned authority);

}  // namespace weighbridge::khlnary
