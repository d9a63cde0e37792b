// SPDX-License-Identifier: Apache-2.0
// Checks an object of the manifest, and makes a tensor or findings of it. Has the rules of 3.3 to 3.5, 4 and 5, and
// those of the registered layout profiles. profiles.h maps their attributes to the model's.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

#include "core/payload/extents.h"
#include "formats/ztensor/cbor_entry.h"
#include "formats/ztensor/cbor_judge.h"
#include "formats/ztensor/v2/layout.h"
#include "formats/ztensor/v2/shards.h"
#include "weighbridge/context.h"

namespace weighbridge::ztensor2 {

// One object of the manifest as it is read, before it is checked. All texts are slices of the manifest, which is
// deterministic: each is in one piece.

struct PartEntry : ztensor::CborPart {
  PartEntry() noexcept {}  // as the base's
  std::string_view shard;
  bool has_blob = false, has_encoding = false, has_shard = false;
  std::uint32_t shard_index = 0;  // in the table; set while it is checked, if has_shard
};
using Entry = ztensor::CborObject<PartEntry>;

class Judge : private ztensor::CborJudge {
 public:
  // `end`: where blobs of the file itself must end.
  Judge(const Context& context, core::Findings& findings, core::Draft& draft, Shards& shards, std::uint64_t end)
      : CborJudge(context, findings, draft, "part"), shards_(shards), end_(end) {}

  // Adds the object to the draft unless it is broken. Moves the values out of the entry.
  void judge(Entry&);
  // Reports blobs that overlap each other or the manifest; returns the tensors to leave out, ascending.
  std::vector<std::uint32_t> overlaps(std::uint64_t manifest_offset, std::uint64_t manifest_length);

 private:
  void check_fields(Entry&);
  void check_part(Entry&, PartEntry&);
  void check_types(Entry&, PartEntry&);
  void check_encoding(Entry&, PartEntry&);
  void check_blob(Entry&, PartEntry&);

  // The rules of a layout. Each returns the layout of the tensor; if an object breaks them, it is marked as broken or
  // unsupported.
  Layout check_layout(Entry&);
  void dense(Entry&);
  void csr(Entry&);
  void coo(Entry&);
  Layout quantized(Entry&);
  Layout mx(Entry&);
  Layout gguf(Entry&, std::string_view type);
  Layout own_blocks(Entry&);
  void check_blocks(Entry&);

  bool exactly(Entry&, std::initializer_list<std::string_view> roles);
  bool plain_index(Entry&, const PartEntry&);
  // Requires that the part holds this many elements of its type, if that is known.
  bool demand(Entry&, PartEntry&, std::optional<std::uint64_t> elements, const Rule&);
  bool demand_bytes(Entry&, PartEntry&, std::optional<std::uint64_t> bytes, const Rule&);
  std::optional<std::uint64_t> natural(Entry&, std::string_view key, bool required);
  bool takes_attribute(Entry&, bool good, std::string_view key, const core::Said& expected);
  void set_count(PartEntry&) noexcept;

  void add(Entry&, Layout);
  void add_part(Entry&, PartEntry&);

  Shards& shards_;
  const std::uint64_t end_;
  const BlockTypeInfo* block_type_ = nullptr;
  std::vector<core::Range> ranges_;  // of all parts; the source is 0 for the file, or 1 and the index of the shard
};

}  // namespace weighbridge::ztensor2
