// SPDX-License-Identifier: Apache-2.0
// One list of fields gives size, offsets, bytes and rows.
#include "base/record.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace weighbridge::base {
namespace {

WB_RECORD(Sample, (char[4], magic), (u8, version), (u16, flags, hex), (u64, length, "length of the rest"),
          (u32[2], dims), (float, scale), (std::int32_t, shift), (std::byte[3], reserved), (u32, sum, hex, "CRC-32"));
static_assert(record_size<Sample>() == 4 + 1 + 2 + 8 + 8 + 4 + 4 + 3 + 4);
static_assert(offset_of(&Sample::magic) == 0 && offset_of(&Sample::flags) == 5 && offset_of(&Sample::dims) == 15 &&
              offset_of(&Sample::reserved) == 31 && offset_of(&Sample::sum) == 34);

TEST(Record, IsLittleEndianWithoutPadding) {
  Sample sample{.version = 1, .flags = 0x0203, .length = 0x0405060708090A0B, .scale = 1, .shift = -2};
  std::ranges::copy(std::string_view("WBTS"), sample.magic);
  sample.dims[1] = 0x0C0D0E0F;
  sample.reserved[2] = std::byte{0xFF};
  sample.sum = 0x10203040;
  const std::string bytes = store_record(sample);
  EXPECT_EQ(bytes, std::string("WBTS\x01\x03\x02\x0B\x0A\x09\x08\x07\x06\x05\x04\0\0\0\0\x0F\x0E\x0D\x0C\0\0\x80\x3F"
                               "\xFE\xFF\xFF\xFF\0\0\xFF\x40\x30\x20\x10",
                               38));
  EXPECT_EQ(load_record<Sample>(bytes.data()), sample);
  sample.dims[0] = 1;
  EXPECT_NE(load_record<Sample>(bytes.data()), sample);
}

TEST(Record, HasARowForEachField) {
  const std::vector<FieldRow> rows = rows_of<Sample>();
  ASSERT_EQ(rows.size(), 9U);
  EXPECT_EQ(rows[0].form, FieldForm::text);
  EXPECT_EQ(rows[0].size, 4U);
  EXPECT_EQ(rows[2].form, FieldForm::hex);
  EXPECT_EQ(rows[3].name, "length of the rest");
  EXPECT_EQ(rows[4].count, 2U);
  EXPECT_EQ(rows[4].size, 4U);
  EXPECT_EQ(rows[5].form, FieldForm::real);
  EXPECT_EQ(rows[6].form, FieldForm::signed_number);
  EXPECT_EQ(rows[7].size, 3U);
  EXPECT_EQ(rows[8].name, "CRC-32");
}

}  // namespace
}  // namespace weighbridge::base
