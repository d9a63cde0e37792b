// SPDX-License-Identifier: Apache-2.0
// Checks an object of the manifest, and makes a tensor or findings of it. Has the rules of sections II.2, II.3 and III.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>

#include "base/checked.h"
#include "core/payload/probe.h"
#include "formats/ztensor/cbor_judge.h"
#include "formats/ztensor/v1/entry.h"
#include "weighbridge/context.h"

namespace weighbridge::ztensor1 {

class Judge : private ztensor::CborJudge {
 public:
  Judge(const Source& source, const Context& context, core::Findings& findings, core::Draft& draft,
        std::uint64_t manifest_begin)
      : CborJudge(context, findings, draft, "component"), end_(manifest_begin), probe_(source, context) {}

  // Adds the object to the draft unless it is broken. Moves the values out of the entry.
  void judge(Entry&);
  // Fast path: adds an object that judge() would add without a finding. Does nothing and returns false for any other.
  bool add_usual(std::string_view name, const UsualObject&);

 private:
  void check_fields(Entry&);
  void check_dense_size(Entry&, Layout);
  void check_component(Entry&, Component&);
  void check_types(Entry&, Component&);
  DType lookup(std::string_view dtype);

  Component* need(Entry&, std::string_view role);
  bool demand(Entry&, Component&, std::optional<std::uint64_t> elements, const Rule& raw_rule);
  bool loose(Entry&, Component&);
  void loose_rest(Entry&, std::initializer_list<const Component*> known);

  void dense(Entry&);
  void csr(Entry&);
  void coo(Entry&);
  void quantized(Entry&);
  // The layout of a quantization of reading Y10. nullopt if the object does not match it, so that its format is
  // unknown.
  std::optional<Layout> scaled(Entry&);
  // Whether the component holds the object's elements as whole blocks of this type.
  bool whole_blocks(Entry&, const BlockTypeInfo&, Component& data);
  // The number of elements, from the length or uncompressed_length; nullopt if only decoding shows it, or if the object
  // is broken.
  std::optional<std::uint64_t> stated_count(Entry&, const Component&);
  std::optional<std::uint64_t> probed_count(Entry&, const Component&);

  void add(Entry&, Layout);
  void add_part(Entry&, Component&);

  const std::uint64_t end_;     // the start of the manifest, where components must end
  std::string_view last_name_;  // the cache of lookup()
  DType last_dtype_ = DType::unknown;
  core::SizeProbe probe_;
};

}  // namespace weighbridge::ztensor1
