// SPDX-License-Identifier: Apache-2.0
// What the corpus cannot show: names, orders and strides, what detection accepts, deflated arrays in Fortran order, and
// headers with every byte changed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "codecs/codec.h"
#include "core/archive/zip.h"
#include "formats/numpy/format.h"
#include "formats/numpy/header.h"
#include "formats/numpy/layout.h"
#include "support/format_testing.h"

namespace weighbridge::numpy {
namespace {

using test::Outcome;
using test::walk;

std::string npy_case(std::string_view name) {
  static const auto all = npy_cases();
  return test::case_of(all, name).bytes;
}
std::string npz_case(std::string_view name) {
  static const auto all = npz_cases();
  return test::case_of(all, name).bytes;
}

core::Probe probe(const std::string& bytes, std::string_view extension = {}) {
  return {.head = std::as_bytes(std::span(bytes)).first(std::min<std::size_t>(bytes.size(), 4096)),
          .tail = {},
          .size = bytes.size(),
          .extension = extension};
}

TEST(Numpy, AnArrayIsOneTensorInTheBytesThatFollowTheHeader) {
  const Model model = walk(kNpy, npy_case("valid-one")).model;
  ASSERT_EQ(model.size(), 1U);
  EXPECT_EQ(model.name(0), "array");
  EXPECT_EQ(model.version(), "1.0");
  const Model third = walk(kNpy, npy_case("valid-version-3")).model;
  EXPECT_EQ(third.version(), "3.0");
  const Tensor tensor = model[0];
  EXPECT_EQ(tensor.dtype(), DType::u8);
  EXPECT_EQ(tensor.main().extent()->offset, 128U);
  EXPECT_EQ(test::logical_bytes(tensor.main()), "\1\2\3\4");
  const Tensor big = walk(kNpy, npy_case("valid-big-endian")).model[0];
  EXPECT_EQ(big.main().order(), Order::big);
  EXPECT_EQ(test::logical_bytes(big.main()), std::string("\3\2\1\0\7\6\5\4", 8));
}

TEST(Numpy, FortranOrderIsStrides) {
  const Tensor tensor = walk(kNpy, npy_case("valid-fortran-order")).model[0];
  const std::vector<std::int64_t> expected = {1, 2};
  const Part part = tensor.main();
  EXPECT_TRUE(std::ranges::equal(part.strides(), expected));
  EXPECT_EQ(test::logical_bytes(part), std::string("\0\1\4\5\10\11\2\3\6\7\12\13", 12));
  for (const char* same : {"valid-fortran-order-one-dimension", "valid-fortran-order-empty", "valid-one"}) {
    const Part plain = walk(kNpy, npy_case(same)).model[0].main();
    EXPECT_TRUE(plain.strides().empty()) << same;
  }
}

TEST(Numpy, AMemberIsNamedWithoutItsEnding) {
  const Model model = walk(kNpz, npz_case("valid-several")).model;
  ASSERT_EQ(model.size(), 3U);
  EXPECT_EQ(model.name(0), "a");
  EXPECT_EQ(model.name(1), "layers/0/b");
  EXPECT_EQ(model.name(2), "");
  EXPECT_TRUE(walk(kNpz, npz_case("valid-without-extension")).model.find("a").has_value());
}

TEST(Numpy, ADeflatedMemberReadsAsAStoredOne) {
  const Model model = walk(kNpz, npz_case("valid-deflate-fortran-order")).model;
  EXPECT_EQ(model["a"].main().encoding(), Encoding::deflate);
  EXPECT_EQ(model["b"].main().encoding(), Encoding::raw);
  EXPECT_EQ(test::logical_bytes(model["a"].main()), test::logical_bytes(model["b"].main()));
  EXPECT_EQ(test::dense_bytes(model["a"]), test::dense_bytes(model["b"]));
  EXPECT_EQ(model["a"].why_no_view(DType::i16), NoView::encoded);
  std::vector<std::byte> some(6), other(6);
  model["a"].main().read_range(17, 3, some);
  model["b"].main().read_range(17, 3, other);
  EXPECT_EQ(some, other);
}

// Of what numpy.save() wrote (2.4): the text, the spaces after it, and the length of all. Where the text and its room
// end one byte before a multiple of 64, there are 64 spaces of padding, not none.
TEST(Numpy, HeadersAreThoseOfNumpySaveNearEachMultipleOf64) {
  const auto ones = [](std::uint64_t first, std::size_t count) {
    std::vector<std::uint64_t> out(count + 1, 1);
    out[0] = first;
    return out;
  };
  const std::uint64_t large = 9'999'999'999'999'999'999U;
  const struct {
    std::string_view type;
    std::vector<std::uint64_t> shape;
    std::string_view end;  // of the text, after "'shape': "
    std::size_t spaces, size;
  } cases[] = {
      {"<f4", {}, "(), }", 62, 128},
      {"|u1", {7}, "(7,), }", 60, 128},
      {"<f4", {0, 3}, "(0, 3), }", 58, 128},
      {"<f4", {123'456'789'012'345'678U}, "(123456789012345678,), }", 43, 128},
      {"<c16", {2, 1'000'000'000'000'000U, large}, "(2, 1000000000000000, 9999999999999999999), }", 21, 128},
      {"<c16", {2, 10'000'000'000'000'000U, large}, "(2, 10000000000000000, 9999999999999999999), }", 84, 192},
      {"<f4", {2, 100'000'000'000'000'000U, large}, "(2, 100000000000000000, 9999999999999999999), }", 84, 192},
      {"<c16", {2, 100'000'000'000'000'000U, large}, "(2, 100000000000000000, 9999999999999999999), }", 83, 192},
      {"<f4", ones(5, 13), "(5, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1), }", 22, 128},
      {"<f4", ones(2, 35), {}, 84, 256},
      {"<c16", ones(2, 56), {}, 84, 320},
      {"<f4", ones(2, 63), {}, 64, 320},
  };
  for (const auto& c : cases) {
    std::string text = "{'descr': '" + std::string(c.type) + "', 'fortran_order': False, 'shape': ";
    if (c.end.empty()) {
      text += "(" + std::to_string(c.shape[0]);
      for (std::size_t i = 1; i < c.shape.size(); ++i) text += ", 1";
      text += "), }";
    } else {
      text += c.end;
    }
    std::string expected("\x93NUMPY\x01\x00", 8);
    expected += static_cast<char>((c.size - 10) % 256);
    expected += static_cast<char>((c.size - 10) / 256);
    expected += text + std::string(c.spaces, ' ') + "\n";
    EXPECT_EQ(expected.size(), c.size) << text;
    EXPECT_EQ(write_header(c.type, c.shape), expected) << text;
  }
}

// A deflated array in Fortran order is transposed tile by tile: these need one tile, several, and tiles inside of rows.
TEST(Numpy, ALargeDeflatedArrayInFortranOrderReadsRowMajor) {
  for (const std::vector<std::uint64_t>& shape :
       {std::vector<std::uint64_t>{300, 7, 11}, {1000, 9000}, {2, 3, 1'500'000}}) {
    std::uint64_t count = 1;
    for (const std::uint64_t dim : shape) count *= dim;
    std::string dims;
    for (const std::uint64_t dim : shape) dims += std::to_string(dim) + ", ";
    std::string bytes = write_header("<c16", shape);
    bytes.replace(bytes.find("False"), 5, "True ");
    std::vector<std::uint64_t> elements(2 * count);
    for (std::uint64_t i = 0; i < count; ++i) elements[2 * i] = i;
    bytes.append(reinterpret_cast<const char*>(elements.data()), count * 16);
    core::ZipOut out{.name = "a.npy", .size = bytes.size(), .method = core::zip::kDeflated};
    const auto stored = codecs::encode(codecs::kDeflate, std::as_bytes(std::span(bytes)), 1);
    out.stored = stored.size();
    out.crc32 = codecs::crc32(std::as_bytes(std::span(bytes)));
    std::string file = core::zip_local_header(out);
    file.append(reinterpret_cast<const char*>(stored.data()), stored.size());
    file += core::zip_directory({&out, 1}, file.size());
    const Outcome read = walk(kNpz, file);
    ASSERT_EQ(read.report.total(), 0U);
    std::uint64_t place = 0, wrong = 0;
    std::vector<std::uint64_t> index(shape.size());
    read.model[0].main().stream({}, [&](std::span<const std::byte> piece) {
      for (std::size_t at = 0; at < piece.size(); at += 16, ++place) {
        std::uint64_t found = 0;
        std::memcpy(&found, piece.data() + at, sizeof found);
        std::uint64_t expected = 0, step = 1;
        for (std::size_t d = 0; d < shape.size(); step *= shape[d++]) expected += index[d] * step;
        wrong += found != expected ? 1U : 0U;
        for (std::size_t d = shape.size(); d-- > 0;) {
          if (++index[d] < shape[d]) break;
          index[d] = 0;
        }
      }
      return true;
    });
    EXPECT_EQ(place, count);
    EXPECT_EQ(wrong, 0U) << dims;
  }
}

TEST(Numpy, DetectionTellsAnNpzFromOtherArchives) {
  EXPECT_TRUE(kNpy.matches(probe(npy_case("valid-one"))));
  EXPECT_TRUE(kNpz.matches(probe(npz_case("valid-several"))));
  EXPECT_TRUE(kNpz.matches(probe(npz_case("valid-no-member"), "npz")));
  EXPECT_FALSE(kNpz.matches(probe(npz_case("valid-no-member"), "zip")));
  std::string pt = npz_case("valid-several");
  pt.replace(30, 5, "a/pkl");
  EXPECT_FALSE(kNpz.matches(probe(pt, "pt")));
  EXPECT_TRUE(kNpz.matches(probe(pt, "npz")));
  for (const char* extension : {"", "npy", "npz"}) {
    EXPECT_FALSE(kNpz.matches(probe("PK", extension)));
    EXPECT_FALSE(kNpy.matches(probe("PK\x03\x04", extension)));
  }
}

// Object arrays are pickles: their bytes are listed, and nothing in them is looked at.
TEST(Numpy, AnObjectArrayIsOneUnsupportedTensorBesideOthers) {
  const Outcome out = walk(kNpz, npz_case("array-object"));
  EXPECT_TRUE(out.report.valid());
  ASSERT_EQ(out.model.size(), 1U);
  const Tensor tensor = out.model[0];
  ASSERT_NE(tensor.unsupported(), nullptr);
  EXPECT_EQ(tensor.unsupported()->rule, "npz/object");
  EXPECT_EQ(tensor.type_name(), "|O");
  EXPECT_EQ(walk(kNpz, npz_case("method-beside-another")).model.size(), 2U);
}

// Changing any byte of a header gives a finding or an array within the file, never anything else.
TEST(Numpy, TheBracketThatIsMissingIsNamedAsACharacter) {
  const Outcome outcome = walk(kNpy, npy_case("header-brackets"));
  ASSERT_FALSE(outcome.report.findings().empty());
  EXPECT_EQ(outcome.report.findings()[0].expected, ")");
}

TEST(Numpy, BrokenHeadersAreFindings) {
  std::size_t broken = 0;
  for (const char* name : {"valid-one", "valid-fortran-order", "valid-big-endian", "structured"}) {
    const std::string good = npy_case(name);
    for (std::size_t at = 0; at < good.size(); ++at)
      for (const char with : {'\0', ' ', '(', ')', '\'', '9', ',', '{', '}', '\\', '\xff', 'L', '>'}) {
        std::string changed = good;
        changed[at] = with;
        const Outcome out = walk(kNpy, changed);
        broken += out.report.valid() ? 0U : 1U;
        EXPECT_EQ(out.model.size(), out.report.valid() ? 1U : 0U);
        for (const Tensor& tensor : out.model)
          if (tensor.unsupported() == nullptr) test::logical_bytes(tensor.main());
      }
    for (std::size_t size = 0; size < 128; ++size) EXPECT_FALSE(walk(kNpy, good.substr(0, size)).report.valid());
  }
  EXPECT_GT(broken, 1000U);
}

TEST(Numpy, BrokenArchivesAreFindings) {
  for (const char* name : {"valid-several", "valid-deflate", "valid-zip64", "valid-descriptor"}) {
    const std::string good = npz_case(name);
    for (std::size_t at = 0; at < good.size(); ++at) {
      for (const char with : {'\0', '\1', '\x7f', '\xff'}) {
        std::string changed = good;
        changed[at] = with;
        const Outcome out = walk(kNpz, changed);
        for (const Tensor& tensor : out.model)
          if (out.report.valid() && tensor.unsupported() == nullptr) test::logical_bytes(tensor.main());
      }
      EXPECT_FALSE(walk(kNpz, good.substr(0, at)).report.valid());
    }
  }
}

}  // namespace
}  // namespace weighbridge::numpy
