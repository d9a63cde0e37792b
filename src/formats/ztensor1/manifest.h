// SPDX-License-Identifier: Apache-2.0
// The manifest of a file that is being written: everything but offsets, lengths and digests is known when it is
// planned. Owns the order of keys (reading Y6); leaves what goes into the file to write.cc.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/format.h"

namespace weighbridge::ztensor1 {

struct OutComponent {
  std::string_view role;
  Part part;  // of the input; its digest and unknown keys, where it goes over verbatim
  std::uint32_t payload = 0;
  DType dtype = DType::unknown;       // unknown: as part.dtype_name() says
  Encoding encoding = Encoding::raw;  // unknown: as part.encoding_name() says
  std::uint64_t size = 0;             // logical bytes
  bool keep_extra = false, keep_digest = false;
};

struct OutObject {
  std::string_view name, format;
  Tensor from;  // shape, attributes, unknown keys
  std::uint32_t first_component = 0, component_count = 0;
};

struct Manifest {
  std::string version;
  bool keys_of_1_2 = false;
  std::string attributes;                                  // the CBOR item; empty: none
  std::vector<std::pair<std::string, std::string>> extra;  // unknown root keys and their items
  std::vector<std::pair<std::string_view, std::string_view>>
      kept;                              // append: names of old objects by bytes, and their items
  std::vector<OutObject> objects;        // by the bytes of their names
  std::vector<OutComponent> components;  // of an object: by the bytes of their roles
  std::shared_ptr<const void> keep;

  // Manifest, its size and the magic number.
  std::string tail(std::span<const core::Stored>) const;
};

// Attributes as one CBOR map, keys sorted, with "weighbridge.types" where reading needs it (see types.h). `judge` is
// told of each entry that is lost ("dropped") or changes its type. Empty when nothing is left.
std::string encode_attributes(std::span<const Value::Entry>, bool as_text,
                              const std::function<void(LossKind, const Value::Entry&, std::string_view to)>& judge);

}  // namespace weighbridge::ztensor1
