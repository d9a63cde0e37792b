// SPDX-License-Identifier: Apache-2.0
// A manifest for components that stay where they are: each object keeps its entry byte for byte, under its new name.
// The manifest is the end of the file, so it may have any length.
#include <algorithm>
#include <deque>
#include <string>

#include "core/writing/layout.h"
#include "formats/ztensor/v1/format.h"
#include "formats/ztensor/v1/layout.h"
#include "formats/ztensor/v1/plan.h"

namespace weighbridge::ztensor1 {
namespace {

// The entry of an object with the digests of `now`, which are as long as those that it states.
void with_digests(std::string_view& item, const Tensor& before, const Tensor& now, std::deque<std::string>& renewed) {
  for (std::uint32_t i = 0; i < before.part_count(); ++i) {
    const Part old = before.part(i), part = now.part(i);
    const std::size_t at = old.digest() == part.digest() ? item.npos : item.rfind(old.digest());
    if (at == item.npos) continue;
    renewed.push_back(std::string(item).replace(at, old.digest().size(), part.digest()));
    item = renewed.back();
  }
}

}  // namespace

std::optional<core::NewHeader> new_header(const Model& original, const Model& edited,
                                          std::span<const std::uint32_t> kept) {
  const Options options;
  Planner planner(edited, options, std::string(original.version()));
  Manifest& manifest = planner.manifest();
  manifest.kept = old_objects(original);
  // `kept` is in the order of the bytes of the names, and so are the names of the model.
  std::deque<std::string> renewed;  // entries with other digests
  for (auto& [name, item] : manifest.kept) {
    const auto tensor = original.find(name);
    if (!tensor) return std::nullopt;
    const auto at = std::lower_bound(kept.begin(), kept.end(), tensor->index());
    const bool stays = at != kept.end() && *at == tensor->index();
    const auto place = static_cast<std::uint32_t>(at - kept.begin());
    if (stays) with_digests(item, *tensor, edited[place], renewed);
    name = stays ? edited.name(place) : std::string_view();
    if (!stays) item = {};
  }
  std::erase_if(manifest.kept, [](const auto& each) { return each.second.empty(); });
  std::sort(manifest.kept.begin(), manifest.kept.end());
  manifest.keep = std::make_shared<std::pair<Model, Model>>(original, edited);
  planner.place_root(nullptr);
  if (!planner.out().losses.empty() || !planner.out().blockers.empty()) return std::nullopt;
  const core::WriteLayout made = planner.finish();
  std::string tail = made.tail({});
  if (tail.size() > kMaxManifest) return std::nullopt;
  core::NewHeader out;
  out.room = core::retained_header(original).size() + kFooterSize;
  out.offset = original.sources()[0]->size() - out.room;
  out.minimum = tail.size();
  out.make = [tail = std::move(tail)](std::uint64_t length) { return length == tail.size() ? tail : std::string(); };
  return out;
}

}  // namespace weighbridge::ztensor1
