// SPDX-License-Identifier: Apache-2.0
// Fields, from their tags to the end of their content.
#include "wire/protobuf_reader.h"

#include <algorithm>

#include "base/checked.h"
#include "base/endian.h"

namespace weighbridge::wire {
namespace {

constexpr std::uint64_t kMaxNumber = (std::uint64_t{1} << 29) - 1;  // the largest field number of Protocol Buffers
constexpr unsigned kGroupStart = 3, kGroupEnd = 4;

}  // namespace

const std::byte* read_varint(const std::byte* from, const std::byte* end, std::uint64_t& out) noexcept {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (from == end) {
      out = 0;
      return nullptr;
    }
    const auto byte = std::to_integer<std::uint64_t>(*from++);
    value |= (byte & 0x7F) << shift;
    if (byte < 0x80) {
      if (shift == 63 && byte > 1) break;
      out = value;
      return from;
    }
  }
  out = 1;
  return nullptr;
}

ProtobufMessage ProtobufReader::root() { return {*this, 0, 0, bytes_.size(), 1}; }
ProtobufMessage ProtobufReader::message(std::uint64_t begin, std::uint64_t end) {
  return {*this, begin, begin, end, 1};
}

bool ProtobufReader::fail(ProtobufErrorCode code, std::uint64_t offset, std::uint64_t needed) {
  if (ok()) error_ = {code, offset, needed};
  return false;
}

// The content of a field ends past the message.
bool ProtobufMessage::cut_short(std::uint64_t at, std::uint64_t needed) {
  if (depth_ == 1) return reader_->fail(ProtobufErrorCode::unexpected_end, end_, needed);
  return reader_->fail(ProtobufErrorCode::past_message, at, needed);
}

bool ProtobufMessage::next(ProtobufField& field) {
  if (!reader_->ok() || at_ == end_) return false;
  const auto minimum = static_cast<std::size_t>(std::min<std::uint64_t>(end_ - at_, 2 * kLongestVarint));
  std::span<const std::byte> bytes = reader_->bytes_.from(at_, minimum);
  if (bytes.size() > end_ - at_) bytes = bytes.first(static_cast<std::size_t>(end_ - at_));
  const std::byte* const begin = bytes.data();
  const std::byte* const end = begin + bytes.size();
  const auto number = [&](const std::byte* from, std::uint64_t& out) {
    const std::byte* const after = read_varint(from, end, out);
    if (after == nullptr && out == 0)
      cut_short(at_);
    else if (after == nullptr)
      reader_->fail(ProtobufErrorCode::bad_varint, at_ + static_cast<std::uint64_t>(from - begin));
    return after;
  };
  std::uint64_t tag = 0;
  const std::byte* const after = number(begin, tag);
  if (after == nullptr) return false;
  field.at = at_;
  field.begin = at_ + static_cast<std::uint64_t>(after - begin);
  field.number = static_cast<std::uint32_t>(tag >> 3);
  if (tag >> 3 == 0 || tag >> 3 > kMaxNumber) return reader_->fail(ProtobufErrorCode::bad_tag, at_);
  switch (tag & 7) {
    case static_cast<unsigned>(ProtobufWire::varint): {
      const std::byte* const done = number(after, field.value);
      if (done == nullptr) return false;
      field.end = at_ + static_cast<std::uint64_t>(done - begin);
      break;
    }
    case static_cast<unsigned>(ProtobufWire::fixed64):
      if (end - after < 8) return cut_short(at_, 8);
      field.value = base::load_le<std::uint64_t>(after);
      field.end = field.begin + 8;
      break;
    case static_cast<unsigned>(ProtobufWire::fixed32):
      if (end - after < 4) return cut_short(at_, 4);
      field.value = base::load_le<std::uint32_t>(after);
      field.end = field.begin + 4;
      break;
    case static_cast<unsigned>(ProtobufWire::bytes): {
      const std::byte* const done = number(after, field.value);
      if (done == nullptr) return false;
      field.begin = at_ + static_cast<std::uint64_t>(done - begin);
      if (!base::fits(field.begin, field.value, end_)) return cut_short(at_, field.value);
      field.end = field.begin + field.value;
      break;
    }
    case kGroupStart:
    case kGroupEnd: return reader_->fail(ProtobufErrorCode::group, at_);
    default: return reader_->fail(ProtobufErrorCode::bad_tag, at_);
  }
  field.wire = static_cast<ProtobufWire>(tag & 7);
  at_ = field.end;
  return true;
}

ProtobufMessage ProtobufMessage::inside(const ProtobufField& field) const {
  if (depth_ < reader_->max_depth_) return {*reader_, field.at, field.begin, field.end, depth_ + 1};
  reader_->fail(ProtobufErrorCode::too_deep, field.at);
  return {*reader_, field.at, field.end, field.end, depth_};
}

}  // namespace weighbridge::wire
