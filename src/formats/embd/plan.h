// SPDX-License-Identifier: Apache-2.0
// What the two halves of the writer share: where they name blockers, losses and changes, and what the metadata half
// finds out for the tensors.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/format.h"
#include "formats/embd/layout.h"
#include "formats/embd/metadata.h"

namespace weighbridge::embd {

inline std::string indexed(std::string_view what, std::string_view key) {
  return std::string(what) + "[\"" + std::string(key) + "\"]";
}

class Ledger {
 public:
  explicit Ledger(core::WriteLayout& out) : out_(out) {}
  void block(LossKind kind, std::string subject, std::string from, std::string to) {
    out_.blockers.push_back({kind, std::move(subject), std::move(from), std::move(to)});
  }
  void lose(LossKind kind, std::string subject, std::string from, std::string to) {
    out_.losses.push_back({kind, std::move(subject), std::move(from), std::move(to)});
  }
  void change(LossKind kind, std::string subject, std::string from, std::string to) {
    out_.changes.push_back({kind, std::move(subject), std::move(from), std::move(to)});
  }

 private:
  core::WriteLayout& out_;
};

struct MetadataPlan {
  std::vector<std::pair<std::string, std::string>> entries;  // the required keys first
  std::optional<Numbers> numbers;                            // none: a key is missing, which has been named
  std::uint32_t flags = kTensorsAligned | kChecksumEnabled;  // but for VOCAB_EMBEDDED
  std::uint16_t version_minor = kVersionMinor;
};

// Throws Error{misuse} for options that the metadata cannot hold.
MetadataPlan plan_metadata(const Model&, const Options&, Ledger);

}  // namespace weighbridge::embd
