// SPDX-License-Identifier: Apache-2.0
// Appends to a file: the old bytes up to the manifest stay, then come new payloads and a manifest that lists old and
// new objects. Old objects keep their manifest entries byte for byte, and the file keeps its version.
#include <algorithm>
#include <string>

#include "base/fail.h"
#include "core/writing/layout.h"
#include "formats/ztensor/v1/format.h"
#include "formats/ztensor/v1/layout.h"
#include "formats/ztensor/v1/plan.h"
#include "wire/cbor_reader.h"

namespace weighbridge::ztensor1 {

std::vector<std::pair<std::string_view, std::string_view>> old_objects(const Model& target) {
  std::vector<std::pair<std::string_view, std::string_view>> out;
  wire::CborReader in(core::retained_header(target), UINT32_MAX);
  in.enter_map();
  while (in.next_entry()) {
    wire::CborString key;
    std::string scratch;
    const bool text = in.read_text(key);
    if (!text || wire::cbor_text(key, scratch) != kObjects) {
      in.skip_item();
      continue;
    }
    in.enter_map();
    // The model has the objects in the same order, and joins names that come in chunks.
    for (std::uint32_t i = 0; in.next_entry(); ++i) {
      std::string_view item;
      in.read_text(key);
      in.skip_item(item);
      out.emplace_back(key.indefinite ? target.name(i) : key.raw, item);
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

core::WriteLayout append(const Model& target, const Model& more, const Options& options) {
  if (target.format() != "zt" || target.sources().size() != 1)
    base::misuse("append", "only an open zTensor 1.x file can be appended to");
  if (!options.version.empty() &&
      has_keys_of_1_2(options.version.size() == 3 ? options.version + ".0" : options.version) !=
          has_keys_of_1_2(target.version()))
    base::misuse("version", "a file that is appended to keeps its version, " + std::string(target.version()));
  Planner planner(more, options, std::string(target.version()));
  core::WriteLayout& out = planner.out();
  out.prefix_source = target.sources()[0];
  out.prefix_length = out.prefix_source->size() - kFooterSize - core::retained_header(target).size();
  for (std::uint32_t i = 0; i < more.size(); ++i) {
    const std::string_view name = more.name(i);
    if (target.find(name))
      planner.plan_items().block(LossKind::name, "tensors[\"" + std::string(name) + "\"]", std::string(name),
                                 "the file has an object of this name");
  }
  planner.manifest().kept = old_objects(target);
  planner.manifest().keep = std::make_shared<std::pair<Model, Model>>(target, more);
  planner.place_root(&target);
  planner.place_objects(out.prefix_length);
  return planner.finish();
}

}  // namespace weighbridge::ztensor1
