// SPDX-License-Identifier: Apache-2.0
// For reading files of a folder again without reporting errors, which the walk reports.
#pragma once
#include <memory>
#include <utility>

#include "formats/huggingface/format.h"
#include "formats/huggingface/json_file.h"
#include "weighbridge/error.h"

namespace weighbridge::huggingface {

// A Reading that discards its findings.
class Quiet {
 public:
  Quiet(std::shared_ptr<const Place> place, const Limits& limits)
      : place_(std::move(place)),
        limits_(limits),
        findings_(report_, core::Findings::Mode::all),
        reading(*place_, limits_, findings_, kJsonRules) {}
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;
  bool sound() const noexcept { return report_.errors() == 0; }

 private:
  static constexpr core::JsonRules kJsonRules{
      .syntax = rules::kJson, .root = rules::kJsonRoot, .duplicate_key = rules::kDuplicateKey};
  const std::shared_ptr<const Place> place_;
  const Limits limits_;
  Report report_;
  core::Findings findings_;

 public:
  Reading reading;
};

}  // namespace weighbridge::huggingface
