// SPDX-License-Identifier: Apache-2.0
// Vectors as a stream of Arrow (arrow.apache.org/docs/format/Columnar.html, "Encapsulated message format"): one column
// of fixed-size lists of f32. Owns the messages, whose metadata is in flatbuffers; so few messages need no library.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <utility>

namespace weighbridge::cli {

// The message that begins a stream. `metadata` are keys and values of the schema.
std::string arrow_schema(std::string_view column, std::uint64_t width,
                         std::span<const std::pair<std::string, std::string>> metadata);
// The message before the elements of `count` vectors. They follow row by row, and after them zero bytes to a multiple
// of 8.
std::string arrow_batch(std::uint64_t count, std::uint64_t width);
// The end of a stream.
std::string arrow_end();

}  // namespace weighbridge::cli
