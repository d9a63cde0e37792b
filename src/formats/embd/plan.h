// SPDX-License-Identifier: Apache-2.0
// What the two halves of the writer share: what the metadata half finds out for the tensors.
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
  std::optional<Numbers> numbers;                            // none: a key is missing, which has been named
  std::uint32_t flags = kTensorsAligned | kChecksumEnabled;  // but for VOCAB_EMBEDDED
  std::uint16_t version_minor = kVersionMinor;
};

// Throws Error{misuse} for options that the metadata cannot hold.
MetadataPlan plan_metadata(const Model&, const Options&, core::Ledger);

}  // namespace weighbridge::embd
