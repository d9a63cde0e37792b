// SPDX-License-Identifier: Apache-2.0
// The one layout that plan and writer share, for a new file (write.cc) and for an append (append.cc).
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/reading/format.h"
#include "core/writing/layout.h"
#include "formats/ztensor/planning.h"
#include "formats/ztensor/v1/manifest.h"

namespace weighbridge::ztensor1 {

class Planner : ztensor::Planning {
 public:
  // `version` is the version of the file, MAJOR.MINOR.PATCH.
  Planner(const Model& model, const Options& options, std::string version);

  core::WriteLayout& out() noexcept { return out_; }
  core::PlanItems plan_items() const noexcept { return plan_items_; }
  Manifest& manifest() noexcept { return *manifest_; }

  // Lays out the objects of the model from offset `begin` on. Lays out nothing if there is a blocker.
  void place_objects(std::uint64_t begin);
  // Fills the manifest's root. In an append, `target` is the file's old model, whose entries come first.
  void place_root(const Model* target);
  // Adds tail and size, which completes the layout.
  core::WriteLayout finish();

 private:
  struct PartPlan {
    core::Payload payload;
    OutComponent component;
  };
  bool judge(const Tensor&);
  bool check_parts(const Tensor&, DType cast);
  void check_metadata(const Tensor&);
  bool stores(const Tensor&, const Part&) const;
  bool may_compress(const Tensor&, const Part&) const;
  void widen(core::Payload&, OutComponent&);
  PartPlan plan_part(const Tensor&, std::uint32_t part, DType cast);
  void place(const Tensor&);
  bool place_part(const Tensor&, std::uint32_t part, DType cast);

  std::shared_ptr<Manifest> manifest_;
  bool from_zt_ = false;       // stored bytes may be copied verbatim
  std::uint32_t ordinal_ = 0;  // of the next part
};

// The names and CBOR items of a manifest's objects, sorted by the bytes of their names. The reader has accepted it.
std::vector<std::pair<std::string_view, std::string_view>> old_objects(const Model&);

}  // namespace weighbridge::ztensor1
