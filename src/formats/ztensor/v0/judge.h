// SPDX-License-Identifier: Apache-2.0
// Checks a tensor's map, and makes a tensor or findings of it. Has the rules of sections 3.2, 4 and 5, and of reading
// Z1.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "core/payload/part_digest.h"
#include "core/payload/probe.h"
#include "formats/ztensor/cbor_entry.h"
#include "formats/ztensor/cbor_judge.h"
#include "formats/ztensor/v0/layout.h"
#include "weighbridge/context.h"

namespace weighbridge::ztensor0 {

// One tensor's map as it is read, before it is checked.

struct Entry : ztensor::CborEntry {
  std::string_view dtype, encoding, endianness, checksum;
  std::string_view layout;  // one of the three known texts; any other value becomes an attribute
  std::uint64_t offset = 0, size = 0;
  bool has_offset = false, has_size = false, has_dtype = false, has_encoding = false, has_endianness = false,
       has_checksum = false, has_layout = false;

  Entry() noexcept {}  // as the base's
  void clear() {
    CborEntry::clear();
    name = endianness = checksum = {};
    layout = kDense;
    has_name = has_offset = has_size = has_dtype = has_encoding = has_endianness = has_checksum = has_layout = false;
  }
};

// A checksum as it is written in the index. The specification leaves its spelling to producers and consumers, so
// "crc32c:" needs no "0x" here (reading Z2).
core::DigestText parse_checksum(std::string_view text) noexcept;

class Judge : private ztensor::CborJudge {
 public:
  // The data of tensors must end at index_begin or before.
  Judge(const Source& source, const Context& context, core::Findings& findings, core::Draft& draft,
        std::uint64_t index_begin)
      : CborJudge(context, findings, draft, {}), end_(index_begin), probe_(source, context) {}

  using CborJudge::check_rest;
  // Adds the tensor to the draft unless it is broken. Moves the values out of the entry.
  void judge(Entry&);

 private:
  // At the start of its map.
  bool reject(const Rule&, Entry&, const core::Said& detail = {}, const core::Said& expected = {},
              const core::Said& found = {});
  void check_texts(Entry&);
  // The number of logical bytes; of stored bytes if the former is unknown. check_size() also reports sizes that do not
  // match.
  struct Size {
    std::uint64_t bytes = 0;
    bool known = false;
  };
  Size check_size(Entry&, DType);
  DType lookup(std::string_view dtype) noexcept;
  void add(Entry&, DType, Size);
  // The bytes to which the blob of a sparse tensor decodes; nullopt if the tensor is broken.
  std::optional<std::uint64_t> blob_size(Entry&);
  void add_sparse(Entry&, DType);

  const std::uint64_t end_;
  std::string_view last_name_;  // the cache of lookup()
  DType last_dtype_ = DType::unknown;
  core::SizeProbe probe_;
};

}  // namespace weighbridge::ztensor0
