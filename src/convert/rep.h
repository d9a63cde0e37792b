// SPDX-License-Identifier: Apache-2.0
// The content of a Plan, its only friend, and the constants that writing and reading back share.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/payload/elements.h"
#include "core/reading/format.h"
#include "core/writing/layout.h"
#include "weighbridge/convert.h"

namespace weighbridge::convert {

struct PlanRep {
  core::WriteLayout layout;
  const core::Format* format = nullptr;
  std::vector<Model> models;       // the input; for an append, the target, then the models to append
  std::uint32_t kept_tensors = 0;  // append: tensors of the target, which the new file also has
  // Filled in by PlanMaker::make(): see Plan.
  Options options{};
  std::string from{};
  bool names_unasked = false;  // of llama.cpp, because the folder is of a known architecture
  bool names_kept = false;     // that folder keeps its own
  std::uint64_t output_size = 0, payload_size = 0;
  std::uint32_t tensors = 0;
};

// Payload is read, hashed, written and compared in segments of this many bytes: small enough to stay in a second-level
// cache from the read to the write, large enough to make the cost of a call negligible.
inline constexpr std::uint64_t kSegment = core::kPayloadRange;
// Payloads up to this size share one write.
inline constexpr std::uint64_t kSmall = kSegment / 4;

constexpr std::uint64_t segments(std::uint64_t bytes) noexcept {
  return bytes / kSegment + (bytes % kSegment != 0 ? 1 : 0);
}

// The only friend of Plan: lets convert fill a plan and read it back.

// A model whose content is checked before it is copied must be copied as it was checked: it reads through sources that
// remember what they read.
Model as_checked(const Model&);

class PlanMaker {
 public:
  static Plan make(std::shared_ptr<PlanRep>, const Model& from, const Options&);
  static const PlanRep* rep(const Plan& plan) noexcept { return plan.rep_.get(); }
};

}  // namespace weighbridge::convert
