// SPDX-License-Identifier: Apache-2.0
// Shared by the fuzz targets: the input as a source, and the formats to open it as. tests/support/hostile.h has the
// checks.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/hostile.h"
#include "weighbridge/formats.h"
#include "weighbridge/source.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace weighbridge::fuzz {

using namespace hostile;

// The input as a source of exactly its size, so that a sanitizer sees a read past either end.
inline std::shared_ptr<const Source> source_of(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::make_shared<std::vector<std::byte>>(size);
  if (size != 0) std::memcpy(bytes->data(), data, size);
  bytes->shrink_to_fit();
  return memory_source({std::span<const std::byte>(*bytes), bytes});
}

// "" (detect by content), then every readable single-file format, so that every walker sees files that detection
// rejects.
inline std::vector<std::string> doors() {
  std::vector<std::string> out{""};
  for (const FormatInfo& format : formats())
    if (format.reads && !format.folder) out.emplace_back(format.name);
  return out;
}

// Whether the program shall break on an input that the fuzzer has to find, so that a target that reaches nothing does
// not go unnoticed: with WEIGHBRIDGE_PLANTED_BUG in the environment.
inline bool is_planted() {
  static const bool out = std::getenv("WEIGHBRIDGE_PLANTED_BUG") != nullptr;
  return out;
}

// For the planted bugs: characters that are in no seed's names (# occurs in hashes, @ in attributes of HDF5), so that a
// fuzzer must change one byte to reach them.
inline bool has_forbidden_sign(std::string_view name) {
  return name.find_first_of("!$%&*+;<=>?GHJKQXY`{|}~") != std::string_view::npos;
}

}  // namespace weighbridge::fuzz
