// SPDX-License-Identifier: Apache-2.0
// The manifest of a file to write. The plan knows everything except offsets, lengths and digests. Decides the order of
// keys (reading Y6); write.cc decides what goes into the file. Also reads the envelope around it.
#pragma once
#include <cstdint>
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

namespace weighbridge::ztensor1 {

struct OutComponent {
  std::string_view role;
  Part part;  // of the input; gives the digest and unknown keys if it is copied verbatim
  std::uint32_t payload = 0;
  DType dtype = DType::unknown;       // unknown: part.dtype_name()
  Encoding encoding = Encoding::raw;  // unknown: part.encoding_name()
  std::uint64_t size = 0;             // logical bytes
  bool keep_extra = false, keep_digest = false;
};

struct OutObject {
  std::string_view name, format;
  Tensor from;  // gives shape, attributes, unknown keys
  std::uint32_t first_component = 0, component_count = 0;
};

struct Manifest {
  std::string version;
  bool keys_of_1_2 = false;
  std::string attributes;                                  // the CBOR item; empty: none
  std::vector<std::pair<std::string, std::string>> extra;  // unknown root keys and their items
  std::vector<std::pair<std::string_view, std::string_view>>
      kept;                              // append: names of old objects, sorted by bytes, and their items
  std::vector<OutObject> objects;        // sorted by the bytes of their names
  std::vector<OutComponent> components;  // those of an object are sorted by the bytes of their roles
  std::shared_ptr<const void> keep;

  // Manifest, its size and the magic number.
  std::string tail(std::span<const core::Stored>) const;
};

// Attributes as one CBOR map with sorted keys, and "weighbridge.types" if reading needs it (see
// formats/ztensor/cbor_value.h). Calls `judge` for each entry that is dropped or changes its type. Returns an empty
// string if no attribute is left.
std::string encode_attributes(std::span<const Value::Entry>, bool as_text,
                              const std::function<void(LossKind, const Value::Entry&, std::string_view to)>& judge);

// Reads the envelope of a zTensor 1.x file (I.1, IV.1): magic numbers, footer and manifest.

// The manifest, without the footer that follows it. nullopt if it cannot be read, which has been reported. Throws
// Error{io}, Stop.
std::optional<core::HeaderMemory> read_manifest(const Source&, const Context&, core::Findings&);

}  // namespace weighbridge::ztensor1
