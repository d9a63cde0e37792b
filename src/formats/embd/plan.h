// SPDX-License-Identifier: Apache-2.0
// What the metadata half of the writer passes to the tensor half.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/plan_items.h"
#include "formats/embd/layout.h"
#include "formats/embd/metadata.h"

namespace weighbridge::embd {

struct MetadataPlan {
  std::vector<std::pair<std::string, std::string>> entries;  // the required keys first
  std::optional<Numbers> numbers;                            // nullopt: a key is missing, which has been reported
  std::uint32_t flags = kTensorsAligned | kChecksumEnabled;  // without VOCAB_EMBEDDED
  std::uint16_t version_minor = kVersionMinor;
};

// Throws Error{misuse} for options that the metadata cannot hold.
MetadataPlan plan_metadata(const Model&, const Options&, core::Ledger);

}  // namespace weighbridge::embd
