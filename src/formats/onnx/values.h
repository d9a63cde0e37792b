// SPDX-License-Identifier: Apache-2.0
// The elements of a field of numbers: float_data, int32_data and the like of a TensorProto, floats and ints of an
// AttributeProto. Streams them as the bytes of a dtype. Opening the file has reported errors in them.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "weighbridge/dtype.h"
#include "weighbridge/source.h"
#include "wire/protobuf_reader.h"

namespace weighbridge::onnx {

struct Range {
  std::uint64_t begin = 0, end = 0;
  std::uint64_t size() const noexcept { return end - begin; }
  bool operator==(const Range&) const = default;
};

// Calls visit(number) for each varint of a packed field until it returns false. Returns the offset of a malformed one.
std::optional<std::uint64_t> each_varint(wire::ProtobufBytes&, Range content,
                                         const std::function<bool(std::uint64_t)>& visit);

// The numbers of one field of a message, counted in a walk over it.
struct Numbers {
  std::uint64_t count = 0;
  std::uint64_t records = 0;  // fields with this number
  std::uint64_t at = 0;       // of the first one's tag
  Range first{}, all{};       // the first one's content; from the first tag to the end of the last
  bool packed = false;        // the first one is

  // Whether all of them are adjacent in the file.
  bool contiguous() const noexcept { return records == 1 && packed; }
  // Adds a field. Returns the offset of a malformed number among packed ones.
  std::optional<std::uint64_t> add(const wire::ProtobufField&, unsigned width, wire::ProtobufBytes&);
};

// Where the numbers are, and which dtype they become.
struct NumberField {
  Range message{};           // the message that contains them
  std::uint32_t number = 0;  // of the field
  unsigned width = 0;        // 4 or 8 bytes if fixed; 0: varints
  DType dtype = DType::unknown;
  std::uint64_t count = 0;  // of numbers
};

// [reads] Passes the bytes of the elements to the sink, in pieces of any length, until it returns false. If the file
// has changed, they may be fewer or more than expected.
void stream_numbers(const Source&, const NumberField&, const std::function<bool(std::span<const std::byte>)>& sink);

// The first number of varints that its dtype cannot hold.
struct Misfit {
  std::uint64_t index = 0;
  std::int64_t value = 0;
};
std::optional<Misfit> find_misfit(const Source&, const NumberField&);

// [reads] The coordinates of sparse values, dimension by dimension, as i64, from indices that are stored as i64: one
// number per value, or `rank` of them if `per_dimension`.
struct Coordinates {
  std::vector<std::uint64_t> shape;
  bool per_dimension = false;
  // [reads] Streams the indices.
  std::function<void(const std::function<bool(std::span<const std::byte>)>&)> indices;

  void stream(const std::function<bool(std::span<const std::byte>)>& sink) const;
};

}  // namespace weighbridge::onnx
