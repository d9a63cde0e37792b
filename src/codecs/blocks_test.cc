// SPDX-License-Identifier: Apache-2.0
// The table of block types: range() returns the bytes that decode() needs, wherever a tensor is split.
#include "codecs/blocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "support/random.h"

namespace weighbridge::codecs {
namespace {

using test::noise;

// Parts of the sizes that the form requires; parts of real numbers hold finite values.
std::vector<std::vector<std::byte>> parts_of(const BlockForm& form) {
  std::vector<std::vector<std::byte>> parts;
  for (std::size_t i = 0; i < form.type->roles.size(); ++i) {
    parts.push_back(noise(block_part_size(form, i), static_cast<unsigned>(i) + 1));
    for (std::size_t at = 0; form.dtypes[i] == DType::f32 && at < parts[i].size(); at += sizeof(float)) {
      const float value = 0.25F + static_cast<float>(at % 97) / 64;
      std::memcpy(parts[i].data() + at, &value, sizeof value);
    }
  }
  return parts;
}

std::vector<float> decoded(const BlockForm& form, const std::vector<std::vector<std::byte>>& parts, std::uint64_t first,
                           std::uint64_t count) {
  std::vector<std::span<const std::byte>> needed;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const ByteRange range = form.type->codec->range(form, i, first, count);
    needed.push_back(
        std::span(parts[i]).subspan(static_cast<std::size_t>(range.offset), static_cast<std::size_t>(range.length)));
  }
  std::vector<float> out(static_cast<std::size_t>(count));
  form.type->codec->decode(form, first, count, needed, out.data());
  return out;
}

// One form for each row of the table.
std::vector<BlockForm> forms() {
  const auto of = [](const char* id) { return find_block_type(id); };
  std::vector<BlockForm> out{
      {of("slm.q8_0"), 2, 5, 12, 12, 0, {}, {DType::i8, DType::f32}, 12},
      {of("slm.q4_0"), 3, 4, 24, 6, 0, {}, {DType::u8, DType::f32}, 12},
      {of("zt.group"), 2, 12, 5, 6, 4, {8, DType::i32}, {DType::i32, DType::f32, DType::u8}, 5},
      {of("zt.quant"), 2, 3, 24, 6, 4, {8, DType::u32}, {DType::u32, DType::f32}, 24, true, 8},
      {of("zt.quant_zeros"), 3, 2, 24, 4, 2, {4, DType::u8}, {DType::u8, DType::f32, DType::i8}, 12},
      {of("zt.mx"), 2, 3, 24, 6, 0, {}, {DType::f4, DType::f8_e8m0}, 24}};
  for (const BlockTypeInfo& row : all_block_types())  // the types that keep whole blocks in one part
    if (row.block_bytes != 0)
      out.push_back({&row, 3, 3, 4 * row.block_elements, 0, 0, {}, {DType::u8}, 2 * row.block_elements});
  return out;
}

TEST(BlockTypes, HaveIdsOfTheirOwnWithANamespace) {
  std::set<std::string_view> ids;
  std::set<std::pair<Layout, std::string_view>> identified_by;
  for (const BlockTypeInfo& row : all_block_types()) {
    SCOPED_TRACE(row.id);
    EXPECT_TRUE(ids.insert(row.id).second);
    EXPECT_TRUE(identified_by.insert({row.layout, row.type_attribute}).second);
    EXPECT_NE(row.id.find('.'), std::string_view::npos);
    EXPECT_TRUE(is_quantized(row.layout));
    EXPECT_FALSE(row.name.empty() || row.reference.empty() || row.roles.empty());
    EXPECT_LE(row.roles.size(), kMaxRoles);
    EXPECT_NE(row.codec, nullptr);
    EXPECT_EQ(find_block_type(row.id), &row);
    EXPECT_EQ(find_block_type(row.layout, row.type_attribute), &row);
    EXPECT_EQ(row.can_encode, row.codec->scaled != nullptr || row.codec->encode != nullptr);
  }
  EXPECT_EQ(find_block_type("q4_0"), nullptr);  // ambiguous without a namespace
  EXPECT_EQ(find_block_type("gguf.q4_0"), nullptr);
  EXPECT_EQ(find_block_type(Layout::quantized_block, "q8_0"), nullptr);
  EXPECT_EQ(find_block_type(Layout::quantized_block, "q4_0"), find_block_type("slm.q4_0"));
  EXPECT_EQ(find_block_type(Layout::quantized_block, "ggml.q4_0"), find_block_type("ggml.q4_0"));
  EXPECT_EQ(find_block_type(Layout::dense, ""), nullptr);
  EXPECT_EQ(find_block_type(Layout::quantized_group, "whatever"), find_block_type("zt.group"));
}

TEST(BlockTypes, DecodeTheSameWhereverTheyAreCut) {
  ASSERT_EQ(forms().size(), all_block_types().size());
  for (const BlockForm& form : forms()) {
    SCOPED_TRACE(form.type->id);
    ASSERT_EQ(block_problem(form), "");
    const auto parts = parts_of(form);
    const std::vector<float> whole = decoded(form, parts, 0, form.elements());
    const std::uint64_t step = form.type->codec->step(form);
    ASSERT_GT(step, 0U);
    for (std::uint64_t first = 0; first < form.elements(); first += step)
      for (std::uint64_t end = first + step; end < form.elements() + step; end += step) {
        const std::uint64_t count = std::min(end, form.elements()) - first;
        const std::vector<float> piece = decoded(form, parts, first, count);
        ASSERT_EQ(std::memcmp(piece.data(), whole.data() + first, piece.size() * sizeof(float)), 0)
            << first << " " << count;
      }
  }
}

TEST(BlockTypes, DecodeToCodeTimesScale) {
  const BlockForm q8 = forms()[0], q4 = forms()[1];
  const auto parts8 = parts_of(q8), parts4 = parts_of(q4);
  const std::vector<float> values8 = decoded(q8, parts8, 0, q8.elements()),
                           values4 = decoded(q4, parts4, 0, q4.elements());
  const auto scale = [](const std::vector<std::byte>& scales, std::size_t i) {
    float out;
    std::memcpy(&out, scales.data() + i * sizeof out, sizeof out);
    return out;
  };
  for (std::size_t i = 0; i < values8.size(); ++i)
    ASSERT_EQ(values8[i], static_cast<float>(static_cast<std::int8_t>(parts8[0][i])) * scale(parts8[1], i / 12)) << i;
  for (std::size_t i = 0; i < values4.size(); ++i) {
    const int nibble = std::to_integer<int>(parts4[0][i / 2]) >> (i % 2 * 4) & 15;
    ASSERT_EQ(values4[i], static_cast<float>(nibble < 8 ? nibble : nibble - 16) * scale(parts4[1], i / 6)) << i;
  }
}

TEST(BlockTypes, SayWhatKeepsThemFromBeingRead) {
  const auto problem = [](std::size_t which, auto change) {
    BlockForm form = forms()[which];
    change(form);
    return block_problem(form);
  };
  EXPECT_EQ(problem(0, [](BlockForm& f) { f.group = 6; }), "its block size 6 is not the length 12 of a row");
  EXPECT_EQ(problem(0, [](BlockForm& f) { f.dtypes[0] = DType::u8; }), "its codes are u8, not i8");
  EXPECT_EQ(problem(0, [](BlockForm& f) { f.rank = 0; }), "a scalar has no rows that could share a scale");
  EXPECT_EQ(problem(1, [](BlockForm& f) { f.group = 5; }), "its block size 5 does not divide the length 24 of a row");
  EXPECT_NE(problem(1, [](BlockForm& f) { f.group = 0; }), "");
  EXPECT_EQ(problem(1, [](BlockForm& f) { f.dtypes[1] = DType::f16; }), "its scales are f16, not f32");
  EXPECT_EQ(problem(2, [](BlockForm& f) { f.rank = 3; }), "the shape does not have two dimensions");
  EXPECT_EQ(problem(2, [](BlockForm& f) { f.dtypes[0] = DType::u32; }), "its words are u32, not i32");
  EXPECT_EQ(problem(2, [](BlockForm& f) { f.group = 5; }), "the group size 5 does not divide the 12 rows");
  EXPECT_EQ(problem(6, [](BlockForm& f) { f.rank = 0; }), "a scalar has no rows of blocks");
  EXPECT_EQ(problem(6, [](BlockForm& f) { f.dtypes[0] = DType::i8; }), "its blocks are i8, not u8");
  EXPECT_EQ(problem(6, [](BlockForm& f) { f.row = 16; }), "its rows of 16 elements do not divide into blocks of 32");
  for (std::size_t i = 0; i < forms().size(); ++i)
    EXPECT_EQ(problem(i, [](BlockForm& f) { f.rows = std::uint64_t{1} << 60; }), "the shape has no size in bytes");
}

}  // namespace
}  // namespace weighbridge::codecs
