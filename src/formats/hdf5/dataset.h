// SPDX-License-Identifier: Apache-2.0
// A dataset: its elements' type, its shape, and where its bytes are. Specification IV.A.2.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "formats/hdf5/chunks.h"
#include "formats/hdf5/object_header.h"
#include "formats/hdf5/types.h"

namespace weighbridge::hdf5 {

struct Dataset {
  Datatype type{};
  Dataspace space{};
  std::uint64_t size = 0;  // bytes of all elements
  enum class Storage : std::uint8_t { stored, filled, chunked, elsewhere } storage = Storage::stored;
  std::uint64_t at = 0;                     // stored: of the elements in the source
  std::string fill{};                       // filled: an element; empty: zeros
  std::shared_ptr<const Chunked> chunks{};  // chunked
  const Rule* unsupported = nullptr;        // why the elements cannot be read
  std::uint64_t unsupported_at = 0;
  std::string unsupported_found{};
};

bool is_dataset(const ObjectHeader&) noexcept;
// `at` is where the header is in the source. Throws Broken.
Dataset read_dataset(File&, const ObjectHeader&, std::uint64_t at);

}  // namespace weighbridge::hdf5
