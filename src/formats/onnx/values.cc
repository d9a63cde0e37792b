// SPDX-License-Identifier: Apache-2.0
#include "formats/onnx/values.h"

#include <algorithm>

#include "base/endian.h"
#include "codecs/cast.h"
#include "formats/onnx/window.h"

namespace weighbridge::onnx {
namespace {

constexpr std::size_t kPiece = 4096;  // numbers; a multiple of 4

// Calls visit(number) for each number of the content until it returns false. Returns the offset of a malformed varint.
template <class Visit>
std::optional<std::uint64_t> each_packed(wire::ProtobufBytes& bytes, Range content, unsigned width, Visit visit) {
  for (std::uint64_t at = content.begin; at < content.end;) {
    const auto minimum = static_cast<std::size_t>(
        std::min<std::uint64_t>(content.end - at, std::max<std::size_t>(width, wire::kLongestVarint)));
    std::span<const std::byte> there = bytes.from(at, minimum);
    if (there.size() > content.end - at) there = there.first(static_cast<std::size_t>(content.end - at));
    const std::byte* from = there.data();
    const std::byte* const end = from + there.size();
    while (from < end) {
      std::uint64_t value = 0;
      const std::byte* next = from;
      if (width == 0) {
        // The window may end inside a number, but always contains its first number completely.
        next = wire::read_varint(from, end, value);
        if (next == nullptr && value == 0 && from > there.data()) break;
        if (next == nullptr) return at + static_cast<std::uint64_t>(from - there.data());
      } else {
        if (static_cast<std::size_t>(end - from) < width) {
          if (from > there.data()) break;
          return at;
        }
        value = width == 4 ? base::load_le<std::uint32_t>(from) : base::load_le<std::uint64_t>(from);
        next = from + width;
      }
      if (!visit(value)) return std::nullopt;
      from = next;
    }
    at += static_cast<std::uint64_t>(from - there.data());
  }
  return std::nullopt;
}

template <class Visit> void each_number(const Source& source, const NumberField& field, Visit visit) {
  Window window(source), packed(source);
  wire::ProtobufReader reader(window, 1);
  wire::ProtobufMessage message = reader.message(field.message.begin, field.message.end);
  bool more = true;
  for (wire::ProtobufField f; more && message.next(f);) {
    if (f.number != field.number) continue;
    if (f.wire == wire::ProtobufWire::bytes)
      each_packed(packed, {f.begin, f.end}, field.width, [&](std::uint64_t value) { return more = visit(value); });
    else
      more = visit(f.value);
  }
}

// Collects numbers as elements.
class Pieces {
 public:
  Pieces(const NumberField& field, const std::function<bool(std::span<const std::byte>)>& sink)
      : sink_(sink), dtype_(field.dtype), bits_(info(field.dtype).bits) {
    // One number holds one byte with several elements of 4 or 2 bits, or one component of a complex element.
    width_ = field.width != 0 ? field.width : bits_ < 8 ? 1 : bits_ / 8;
    bytes_.reserve(kPiece * width_);
  }

  bool add(std::uint64_t value) {
    if (dtype_ == DType::boolean) value = static_cast<std::uint32_t>(value) != 0 ? 1 : 0;
    for (unsigned i = 0; i < width_; ++i) bytes_.push_back(static_cast<std::byte>(value >> (8 * i)));
    return bytes_.size() < kPiece * width_ || flush();
  }
  bool flush() {
    if (bytes_.empty()) return true;
    bool more = false;
    if (bits_ == 6) {
      std::vector<std::byte> packed((bytes_.size() * 6 + 7) / 8);
      codecs::pack_codes(6, bytes_, packed);
      more = sink_(packed);
    } else {
      more = sink_(bytes_);
    }
    bytes_.clear();
    return more;
  }

 private:
  const std::function<bool(std::span<const std::byte>)>& sink_;
  const DType dtype_;
  const unsigned bits_;
  unsigned width_ = 0;
  std::vector<std::byte> bytes_;
};

}  // namespace

std::optional<std::uint64_t> each_varint(wire::ProtobufBytes& bytes, Range content,
                                         const std::function<bool(std::uint64_t)>& visit) {
  return each_packed(bytes, content, 0, visit);
}

std::optional<std::uint64_t> Numbers::add(const wire::ProtobufField& field, unsigned width,
                                          wire::ProtobufBytes& bytes) {
  if (records++ == 0) {
    at = all.begin = field.at;
    first = {field.begin, field.end};
    packed = field.wire == wire::ProtobufWire::bytes;
  }
  all.end = field.end;
  if (field.wire != wire::ProtobufWire::bytes) {
    ++count;
    return std::nullopt;
  }
  if (width != 0) {
    count += field.size() / width;
    if (field.size() % width != 0) return field.end - field.size() % width;
    return std::nullopt;
  }
  return each_packed(bytes, {field.begin, field.end}, 0, [&](std::uint64_t) {
    ++count;
    return true;
  });
}

void stream_numbers(const Source& source, const NumberField& field,
                    const std::function<bool(std::span<const std::byte>)>& sink) {
  Pieces pieces(field, sink);
  bool more = true;
  each_number(source, field, [&](std::uint64_t value) { return more = pieces.add(value); });
  if (more) pieces.flush();
}

std::optional<Misfit> find_misfit(const Source& source, const NumberField& field) {
  const DTypeInfo& type = info(field.dtype);
  // int32_data of 4 or 2 bits has whole bytes.
  const std::uint32_t bits = field.dtype == DType::boolean ? 1 : type.bits < 8 && type.bits != 6 ? 8 : type.bits;
  const bool is_signed = type.kind == DTypeKind::signed_integer && type.bits >= 8;
  if (field.width != 0 || bits >= 64) return std::nullopt;
  const std::int64_t low = is_signed ? -(std::int64_t{1} << (bits - 1)) : 0;
  const std::int64_t high = (std::int64_t{1} << (is_signed ? bits - 1 : bits)) - 1;
  std::optional<Misfit> out;
  std::uint64_t index = 0;
  each_number(source, field, [&](std::uint64_t value) {
    const auto number = static_cast<std::int64_t>(value);
    if (number < low || number > high) out = Misfit{index, number};
    ++index;
    return !out;
  });
  return out;
}

void Coordinates::stream(const std::function<bool(std::span<const std::byte>)>& sink) const {
  constexpr std::size_t kWidth = 8;
  std::vector<std::byte> out;
  out.reserve(kPiece * kWidth);
  std::uint64_t step = 1;  // linear index of the next element in this dimension
  std::vector<std::uint64_t> steps(shape.size());
  for (std::size_t d = shape.size(); d-- > 0;) {
    steps[d] = step;
    step *= shape[d];  // the product of all dimensions was checked
  }
  bool more = true;
  for (std::size_t d = 0; more && d < shape.size(); ++d) {
    std::size_t turn = 0;
    indices([&](std::span<const std::byte> piece) {
      for (; more && piece.size() >= kWidth; piece = piece.subspan(kWidth)) {
        std::uint64_t value = base::load_le<std::uint64_t>(piece.data());
        if (per_dimension) {
          const bool mine = turn == d;
          turn = turn + 1 == shape.size() ? 0 : turn + 1;
          if (!mine) continue;
        } else if (static_cast<std::int64_t>(value) >= 0 && steps[d] != 0) {
          // An index past the end stays out of range in the first dimension, and a negative one in all dimensions.
          value /= steps[d];
          if (d > 0 && shape[d] != 0) value %= shape[d];
        }
        const std::size_t at = out.size();
        out.resize(at + kWidth);
        base::store_le(out.data() + at, value);
        if (out.size() < kPiece * kWidth) continue;
        more = sink(out);
        out.clear();
      }
      return more;
    });
  }
  if (more && !out.empty()) sink(out);
}

}  // namespace weighbridge::onnx
