// SPDX-License-Identifier: Apache-2.0
#include "support/rounds.h"
#include "wire/protobuf_reader.h"

#include <gtest/gtest.h>

#include <algorithm>

#include <random>
#include <string>
#include <vector>

namespace weighbridge::wire {
namespace {

using Code = ProtobufErrorCode;

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

// Gives as few bytes as it may, in memory of exactly that size, so that a sanitizer sees a read past them.
class Sparing final : public ProtobufBytes {
 public:
  explicit Sparing(std::string_view text) : text_(text) {}
  std::uint64_t size() const noexcept override { return text_.size(); }
  std::span<const std::byte> from(std::uint64_t offset, std::size_t minimum) override {
    EXPECT_LE(offset, text_.size());
    EXPECT_LE(minimum, text_.size() - offset);
    const auto all = bytes_of(text_).subspan(offset, minimum);
    held_.assign(all.begin(), all.end());
    held_.shrink_to_fit();
    return held_;
  }

 private:
  std::string text_;
  std::vector<std::byte> held_;
};

struct Walked {
  std::vector<ProtobufField> fields;
  ProtobufError error;
};
Walked walk(ProtobufBytes& bytes) {
  Walked out;
  ProtobufReader in(bytes, 4);
  ProtobufMessage message = in.root();
  for (ProtobufField field; message.next(field);) out.fields.push_back(field);
  out.error = in.error();
  return out;
}
Walked walk(std::string_view text) {
  Sparing bytes(text);
  return walk(bytes);
}
using namespace std::string_view_literals;

TEST(Protobuf, FieldsOfEveryWireType) {
  const Walked all =
      walk("\x08\x96\x01\x11\x01\x02\x03\x04\x05\x06\x07\x08\x1a\x02hi\x25\xff\x00\x00\x80\xf8\xff\xff\xff\x0f\x01"sv);
  ASSERT_EQ(all.error.code, Code::none);
  ASSERT_EQ(all.fields.size(), 5U);
  EXPECT_EQ(all.fields[0].number, 1U);
  EXPECT_EQ(all.fields[0].value, 150U);
  EXPECT_EQ(all.fields[1].wire, ProtobufWire::fixed64);
  EXPECT_EQ(all.fields[1].value, 0x0807060504030201U);
  EXPECT_EQ(all.fields[2].wire, ProtobufWire::bytes);
  EXPECT_EQ(all.fields[2].at, 12U);
  EXPECT_EQ(all.fields[2].begin, 14U);
  EXPECT_EQ(all.fields[2].end, 16U);
  EXPECT_EQ(all.fields[3].wire, ProtobufWire::fixed32);
  EXPECT_EQ(all.fields[3].value, 0x800000FFU);
  EXPECT_EQ(all.fields[4].number, (1U << 29) - 1);
  EXPECT_TRUE(walk("").fields.empty());
}

TEST(Protobuf, VarintsHaveAtMost64Bits) {
  EXPECT_EQ(walk("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"sv).fields.at(0).value, UINT64_MAX);
  EXPECT_EQ(walk("\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00"sv).fields.at(0).value, 0U);  // longer than needed
  for (const auto text :
       {"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"sv, "\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00"sv}) {
    const Walked all = walk(text);
    EXPECT_EQ(all.error.code, Code::bad_varint);
    EXPECT_EQ(all.error.offset, 1U);
  }
}

TEST(Protobuf, TagsThatNoFieldHas) {
  EXPECT_EQ(walk("\x00\x00"sv).error.code, Code::bad_tag);
  EXPECT_EQ(walk("\x80\x80\x80\x80\x10\x00"sv).error.code, Code::bad_tag);  // the number 2^29
  EXPECT_EQ(walk("\x0e"sv).error.code, Code::bad_tag);
  EXPECT_EQ(walk("\x0f"sv).error.code, Code::bad_tag);
  EXPECT_EQ(walk("\x08\x01\x0b\x0c"sv).error.code, Code::group);
  EXPECT_EQ(walk("\x08\x01\x0c"sv).error.offset, 2U);
}

TEST(Protobuf, EveryCutIsAnUnexpectedEnd) {
  const std::string whole("\x08\x96\x01\x11\x01\x02\x03\x04\x05\x06\x07\x08\x1a\x02hi\x25\xff\x00\x00\x80", 21);
  const auto ends = {0U, 3U, 12U, 16U, 21U};
  for (std::size_t n = 0; n <= whole.size(); ++n) {
    const Walked all = walk(std::string_view(whole).substr(0, n));
    const bool complete = std::ranges::find(ends, n) != ends.end();
    EXPECT_EQ(all.error.code, complete ? Code::none : Code::unexpected_end) << n;
    if (!complete) {
      EXPECT_EQ(all.error.offset, n);
    }
  }
}

TEST(Protobuf, LengthsStayInTheirMessage) {
  EXPECT_EQ(walk("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"sv).error.code, Code::unexpected_end);
  EXPECT_EQ(walk("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"sv).error.needed, UINT64_MAX);
  // The inner length leads past the inner message, but not past the bytes.
  Sparing bytes("\x0a\x02\x0a\x01\x08\x01"sv);
  ProtobufReader in(bytes, 4);
  ProtobufMessage message = in.root();
  ProtobufField field, inner;
  ASSERT_TRUE(message.next(field));
  EXPECT_FALSE(message.inside(field).next(inner));
  EXPECT_EQ(in.error().code, Code::past_message);
  EXPECT_EQ(in.error().offset, 2U);
  EXPECT_FALSE(message.next(field));  // nothing goes on after a fault
}

TEST(Protobuf, DepthIsBounded) {
  std::string text;
  for (int i = 0; i < 10; ++i) text = "\x0a" + std::string(1, static_cast<char>(text.size())) + text;
  ProtobufSpan bytes(bytes_of(text));
  ProtobufReader in(bytes, 4);
  ProtobufMessage message = in.root();
  unsigned depth = 1;
  for (ProtobufField field; message.next(field); ++depth) message = message.inside(field);
  EXPECT_EQ(depth, 5U);
  EXPECT_EQ(in.error().code, Code::too_deep);
}

TEST(Protobuf, AMessageCanBeWalkedAgain) {
  ProtobufSpan bytes(bytes_of("\x08\x01\x10\x02"));
  ProtobufReader in(bytes, 1);
  ProtobufMessage message = in.root();
  for (int pass = 0; pass < 2; ++pass, message.rewind()) {
    std::uint64_t sum = 0;
    for (ProtobufField field; message.next(field);) sum += field.value;
    EXPECT_EQ(sum, 3U);
  }
}

TEST(Protobuf, RandomBytesNeverReadPastTheEnd) {
  std::mt19937 random(7);
  for (int i = test::rounds(20'000); i > 0; --i) {
    std::string text(random() % 24, '\0');
    for (char& c : text) c = static_cast<char>(random() % 3 == 0 ? random() % 24 : random());
    const Walked all = walk(text);
    std::uint64_t end = 0;
    for (const ProtobufField& field : all.fields) {
      EXPECT_EQ(field.at, end);
      EXPECT_TRUE(field.at < field.begin && field.begin <= field.end && field.end <= text.size());
      end = field.end;
    }
    EXPECT_EQ(all.error.code == Code::none, end == text.size());
  }
}

}  // namespace
}  // namespace weighbridge::wire
