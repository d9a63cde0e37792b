// SPDX-License-Identifier: Apache-2.0
// The manifest of a file to write. The plan knows everything except offsets, lengths and digests. Also reads the
// container around it.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/model/draft.h"
#include "core/reading/findings.h"
#include "core/reading/format.h"
#include "core/writing/layout.h"
#include "weighbridge/context.h"
#include "weighbridge/source.h"

namespace weighbridge::ztensor2 {

using Items = std::vector<std::pair<std::string, std::string>>;  // keys, and values as CBOR

struct OutPart {
  std::string_view name;
  std::uint32_t payload = 0;
  std::string shard{};                // the file that has it; empty: the manifest's own
  std::string dtype, type, encoding;  // as in the manifest; empty: absent
  std::uint64_t size = 0;             // decoded bytes
  std::string digest;                 // kept from the input; empty: that of the payload
  bool keeps_digest = false;
  Items extra;  // unknown keys
};

struct OutObject {
  std::string_view name;
  std::string layout;
  std::vector<std::uint64_t> shape;
  std::string attributes;  // a CBOR item; empty: none
  Items extra;
  std::vector<OutPart> parts;
};

struct OutShard {
  std::string name;
  std::uint64_t size = 0;
  std::string digest;  // of the whole file
};

struct Manifest {
  std::string attributes;  // a CBOR item; empty: none
  Items extra;             // unknown root keys
  std::vector<OutObject> objects;
  std::vector<OutShard> shards;  // if there are any, all blobs are in them
  std::shared_ptr<const void> keep;

  std::string cbor(std::span<const core::Stored>) const;
  // The padding before the manifest, the manifest and the footer.
  std::string tail(std::span<const core::Stored>) const;
};

// The entries of a map of an accepted manifest: keys and items, which are slices of it, in the order of the file, which
// is by the bytes of the keys. Entries whose keys are not text are left out.
using Entries = std::vector<std::pair<std::string_view, std::string_view>>;
Entries entries_of(std::string_view map);

// Attributes as one map, with "weighbridge.types" if reading needs it (formats/ztensor/cbor_value.h), in deterministic
// CBOR. `level` is the depth of the map. Calls `judge` for each entry that is dropped or changes its type. Empty if
// none is left.
std::string encode_attributes(std::span<const Value::Entry> entries, std::uint32_t level,
                              const std::function<void(LossKind, const Value::Entry&, std::string_view to)>& judge);
// A value at that depth; nullopt if the manifest cannot hold it.
std::optional<std::string> encode_value(const Value&, std::uint32_t level);

// Reads the container of a zTensor 2 file (section 2): magic numbers, footer and manifest.

struct Envelope {
  std::uint64_t manifest_offset = 0;
  core::HeaderMemory manifest;  // empty: a data shard, which has none
};
// nullopt if it cannot be read, which has been reported. Throws Error{io}, Stop.
std::optional<Envelope> read_envelope(const Source&, const Context&, core::Findings&);

// Whether a file of this size has the magic numbers and the version (7.3, first step).
bool is_container(const Source&);

}  // namespace weighbridge::ztensor2
