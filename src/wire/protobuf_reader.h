// SPDX-License-Identifier: Apache-2.0
// A pull parser for the wire format of protocol buffers. Checks varints, lengths, wire types and nesting depth; callers
// know the messages. The bytes need not be in memory: a field's content is a range of offsets, so that a large one is
// skipped without being read.
//
// Usage:
//   ProtobufReader in(bytes, limits.depth);
//   ProtobufMessage message = in.root();
//   for (ProtobufField field; message.next(field);)
//     if (field.number == 7 && field.wire == ProtobufWire::bytes) { ProtobufMessage inner = message.inside(field); ...
//     }
//   if (!in.ok()) report(in.error());
//
// next() returns false at the end of the message or on a fault, after which every message of the reader returns false.
// A length that exceeds its message is a fault before it is used, so that the content of every field lies in its
// message. A message is a range and may be walked several times. Time is linear in what is walked; nothing is
// allocated.
//
// Source: protobuf.dev/programming-guides/encoding. Groups, which proto2 deprecated, are refused.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace weighbridge::wire {

// Where the bytes are.
class ProtobufBytes {
 public:
  virtual ~ProtobufBytes() = default;
  virtual std::uint64_t size() const noexcept = 0;
  // The bytes from `offset` on: at least `minimum`, which lie within size(), and more if they are available. Valid
  // until the next call.
  virtual std::span<const std::byte> from(std::uint64_t offset, std::size_t minimum) = 0;
};

// Bytes in memory.
class ProtobufSpan final : public ProtobufBytes {
 public:
  explicit ProtobufSpan(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::uint64_t size() const noexcept override { return bytes_.size(); }
  std::span<const std::byte> from(std::uint64_t offset, std::size_t) override {
    return bytes_.subspan(static_cast<std::size_t>(offset));
  }

 private:
  std::span<const std::byte> bytes_;
};

enum class ProtobufWire : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

enum class ProtobufErrorCode : std::uint8_t {
  none,
  unexpected_end,  // the outermost message ends inside a field; offset is that end
  past_message,    // offset of the field whose content exceeds its message
  bad_varint,      // offset of a number of more than 64 bits
  bad_tag,         // offset of a tag with the field number 0, a number above 2^29 - 1 or an undefined wire type
  group,           // offset of a tag that starts or ends a group
  too_deep,        // offset of the field whose message exceeds max_depth
};

struct ProtobufError {
  ProtobufErrorCode code = ProtobufErrorCode::none;
  std::uint64_t offset = 0;
  std::uint64_t needed = 0;  // unexpected_end, past_message: bytes of the content; 0 if it has no length
};

struct ProtobufField {
  std::uint32_t number = 0;
  ProtobufWire wire = ProtobufWire::varint;
  std::uint64_t at = 0;     // of the tag
  std::uint64_t value = 0;  // of a varint or fixed number; of bytes: their number
  std::uint64_t begin = 0;  // of the content: of the bytes, or of the number
  std::uint64_t end = 0;    // of the content, and of the field

  std::uint64_t size() const noexcept { return end - begin; }
};

class ProtobufMessage;

// Parses a varint of at most `maximum` bytes at `from`, which is before `end`. Returns the first byte after it; null if
// there is none before `end` (`out` is then 0) or the number has more than 64 bits (`out` is then 1).
const std::byte* read_varint(const std::byte* from, const std::byte* end, std::uint64_t& out) noexcept;
// No varint is longer.
inline constexpr std::size_t kLongestVarint = 10;

class ProtobufReader {
 public:
  // max_depth: maximum number of nested messages, the outermost included.
  ProtobufReader(ProtobufBytes& bytes, std::uint32_t max_depth) : bytes_(bytes), max_depth_(max_depth) {}

  ProtobufMessage root();  // all of the bytes
  // A message that was found in an earlier walk.
  ProtobufMessage message(std::uint64_t begin, std::uint64_t end);
  bool ok() const noexcept { return error_.code == ProtobufErrorCode::none; }
  const ProtobufError& error() const noexcept { return error_; }

 private:
  friend class ProtobufMessage;
  bool fail(ProtobufErrorCode code, std::uint64_t offset, std::uint64_t needed = 0);
  ProtobufBytes& bytes_;
  std::uint32_t max_depth_;
  ProtobufError error_{};
};

// A message, at one of its fields.
class ProtobufMessage {
 public:
  std::uint64_t begin() const noexcept { return begin_; }
  std::uint64_t end() const noexcept { return end_; }
  // Of the tag of the field that it is the content of; its own begin, if it is in no field.
  std::uint64_t field_at() const noexcept { return field_at_; }

  // The next field.
  bool next(ProtobufField&);
  // Before the first field again.
  void rewind() noexcept { at_ = begin_; }
  // The message in the field's bytes; without fields, after a fault, if it would be nested too deep.
  ProtobufMessage inside(const ProtobufField&) const;

 private:
  friend class ProtobufReader;
  ProtobufMessage(ProtobufReader& reader, std::uint64_t field_at, std::uint64_t begin, std::uint64_t end,
                  std::uint32_t depth)
      : reader_(&reader), field_at_(field_at), begin_(begin), end_(end), at_(begin), depth_(depth) {}
  bool cut_short(std::uint64_t at, std::uint64_t needed = 0);

  ProtobufReader* reader_;
  std::uint64_t field_at_, begin_, end_, at_;
  std::uint32_t depth_;
};

}  // namespace weighbridge::wire
