// SPDX-License-Identifier: Apache-2.0
// What the corpus cannot show: names, values, bytes and attributes, sharing of bytes, bounds of work and memory, and
// what detection accepts. Files of h5py and Keras are read in tests/interop.
#include <gtest/gtest.h>

#include <algorithm>

#include "formats/hdf5/format.h"
#include "formats/hdf5/types.h"
#include "formats/hdf5/walk.h"
#include "support/format_testing.h"
#include "support/hdf5_blocks.h"
#include "support/hdf5_structures.h"
#include "support/thrown.h"

namespace weighbridge::hdf5 {
namespace {

using test::walk;

std::string case_bytes(std::string_view name) {
  static const auto all = hdf5_cases();
  return test::case_of(all, name).bytes;
}
Model model_of(std::string_view name) { return walk(kHdf5, case_bytes(name)).model; }

core::Probe probe(const std::string& bytes, std::string_view extension = {}) {
  return {.head = std::as_bytes(std::span(bytes)).first(std::min<std::size_t>(bytes.size(), 4096)),
          .tail = {},
          .size = bytes.size(),
          .extension = extension};
}

TEST(Hdf5, ADatasetIsATensorNamedByItsPath) {
  const Model model = model_of("valid-groups");
  EXPECT_EQ(model.version(), "superblock 2");
  ASSERT_EQ(model.size(), 1U);
  EXPECT_EQ(model.name(0), "g/h/w");
  EXPECT_EQ(model[0].dtype(), DType::f32);
  EXPECT_EQ(test::logical_bytes(model[0].main()), build::counting(16));
  const Attributes attributes = model.attributes();
  EXPECT_EQ(attributes.find("note")->as_text(), "root");
  EXPECT_EQ(attributes.find("hdf5.comment")->as_text(), "c");
  EXPECT_EQ(attributes.find("g/h@note")->as_text(), "inner");
}

TEST(Hdf5, AStoredDatasetIsARangeOfTheFileAndAliasesShareIt) {
  const Model model = model_of("valid-aliases");
  ASSERT_EQ(model.size(), 2U);
  EXPECT_EQ(model[0].main().encoding(), Encoding::raw);
  EXPECT_EQ(model[0].main().extent()->offset, model[1].main().extent()->offset);
  EXPECT_EQ(model_of("valid-userblock")[0].main().extent()->offset, 512U + 48U);
}

// The offset of the finding was once past the end of the file: a node with too many records and an undefined address.
TEST(Hdf5, ANodeOutsideOfTheFileIsReportedInsideOfIt) {
  std::string bytes = case_bytes("valid-tree-2-inner");
  const std::size_t node = bytes.find("BTIN"), pointer = node + 39, checksum = node + 48;
  ASSERT_LT(checksum + 4, bytes.size());
  bytes.replace(pointer + 5, 4, "\xFF\xFF\xFF\xFF");  // the address, and the number of records there
  bytes.replace(checksum, 4, build::n32(lookup3(bytes.substr(node, checksum - node))));
  const auto out = walk(kHdf5, bytes);
  ASSERT_FALSE(out.report.valid());
  EXPECT_EQ(out.report.first_error()->rule, "hdf5/address");
  EXPECT_LE(*out.report.first_error()->offset, bytes.size());
}

TEST(Hdf5, TypesKeepTheirByteOrder) {
  const Model model = model_of("valid-types");
  const std::pair<const char*, DType> expected[] = {{"i1", DType::i8},
                                                    {"u1-big", DType::u8},
                                                    {"u2", DType::u16},
                                                    {"i2-big", DType::i16},
                                                    {"i4", DType::i32},
                                                    {"u8-big", DType::u64},
                                                    {"f16", DType::f16},
                                                    {"bf16", DType::bf16},
                                                    {"f64", DType::f64},
                                                    {"bool", DType::boolean},
                                                    {"complex64", DType::complex64},
                                                    {"complex64-new", DType::complex64}};
  for (const auto& [name, dtype] : expected) EXPECT_EQ(model[name].dtype(), dtype) << name;
  EXPECT_EQ(test::logical_bytes(model["f32-big"].main()), std::string("\3\2\1\0\7\6\5\4", 8));
}

// Chunks of 2 x 2 over a shape of 3 x 3, of which one was never written.
TEST(Hdf5, ChunksAreRowMajorWithTheFillValueBetween) {
  const Tensor tensor = model_of("valid-chunks")[0];
  EXPECT_EQ(tensor.main().encoding(), Encoding::computed);
  const std::string c = build::counting(16), fill = "\7\7\7\7";
  const auto element = [&](std::size_t i) { return c.substr(4 * i, 4); };
  EXPECT_EQ(test::logical_bytes(tensor.main()),
            element(0) + element(1) + element(0) + element(2) + element(3) + element(2) + fill + fill + element(0));
  std::vector<std::byte> one(4);
  tensor.main().read_range(8, 1, one);
  const std::string first = element(0);
  EXPECT_TRUE(std::ranges::equal(one, std::as_bytes(std::span(first))));
}

TEST(Hdf5, FiltersAreUndoneInReverseAndOnlyThoseThatWereApplied) {
  const std::string c = build::counting(16);
  EXPECT_EQ(test::logical_bytes(model_of("valid-filters")[0].main()), c + c.substr(0, 4));
  EXPECT_EQ(test::logical_bytes(model_of("valid-checksum-first")[0].main()), c);
  const Model single = model_of("valid-single-chunk");
  EXPECT_EQ(test::logical_bytes(single["a"].main()), c.substr(0, 12));
  EXPECT_EQ(test::logical_bytes(single["b"].main()), c);
  EXPECT_EQ(single["b"].main().encoding(), Encoding::raw);
  EXPECT_EQ(test::logical_bytes(single["c"].main()), c.substr(0, 12));
}

TEST(Hdf5, ChunksOfLzfAreRead) {
  EXPECT_EQ(test::logical_bytes(model_of("valid-lzf")[0].main()), std::string(400, '\0'));
}

TEST(Hdf5, ACommittedDatatypeOfTheFirstVersionIsFound) {
  EXPECT_EQ(test::logical_bytes(model_of("valid-shared-type-1")[0].main()), build::counting(16));
}

TEST(Hdf5, FloatsOf8And16BitsAreNumbersInDatasetsAndAttributes) {
  const Model model = model_of("valid-small-floats");
  EXPECT_EQ(model["e4m3"].dtype(), DType::f8_e4m3);
  EXPECT_EQ(model["e5m2"].dtype(), DType::f8_e5m2);
  EXPECT_EQ(model.attribute("f16")->to_text(), "[1.0,-3.0]");
  EXPECT_EQ(model.attribute("bf16")->to_text(), "0.5");
  EXPECT_EQ(model.attribute("f8")->to_text(), "[1.0,-3.0]");
}

TEST(Keras, OpaqueElementsAreBf16WhereAnAttributeSaysSo) {
  const Tensor named = model_of("valid-opaque-bf16")["w"];
  EXPECT_EQ(named.dtype(), DType::bf16);
  EXPECT_EQ(test::logical_bytes(named.main()), build::n16(0x3F80) + build::n16(0xC040));
  EXPECT_EQ(opaque_dtype("bfloat16", 4), DType::unknown);
  EXPECT_EQ(opaque_dtype("float32", 4), DType::unknown);
}

TEST(Hdf5, ShortTextsAreAttributesNamedByTheirPath) {
  const Model model = model_of("valid-texts");
  ASSERT_EQ(model.size(), 1U);
  EXPECT_EQ(model.attribute("g/s")->as_text(), "ab");
  EXPECT_EQ(model.attribute("g/s@note")->as_text(), "n");
  EXPECT_EQ(model.attribute("t")->to_text(), R"(["a","bc"])");
  EXPECT_EQ(model_of("text-matrix").size(), 1U);
}

TEST(Hdf5, NamesThatAreNotUtf8AreSpelledInHexadecimal) {
  const auto out = walk(kHdf5, case_bytes("name-utf8"));
  EXPECT_TRUE(out.report.valid());
  ASSERT_EQ(out.model.size(), 1U);
  EXPECT_EQ(out.model.name(0), "\\xff");
  EXPECT_EQ(walk(kHdf5, case_bytes("name-bytes-twice")).model.size(), 1U);
}

TEST(Hdf5, ALargeDatasetThatWasNeverWrittenIsListed) {
  const std::uint64_t count = std::uint64_t{1} << 30;
  build::Builder b;
  const std::uint64_t large =
                          b.dataset(build::dataspace({count}), build::f32(), build::contiguous(kUndefined, 4 * count)),
                      small = b.simple();
  const auto out = walk(kHdf5, b.finish(b.group({build::link("obs", large), build::link("w", small)})));
  EXPECT_TRUE(out.report.valid());
  ASSERT_EQ(out.model.size(), 2U);
  const Tensor obs = out.model["obs"];
  EXPECT_EQ(obs.shape()[0], count);
  EXPECT_EQ(test::logical_bytes(out.model["w"].main()), build::counting(16));
  std::uint64_t got = 0;
  const auto read = [&](std::uint64_t work) {
    Context context;
    context.limits.work = work;
    obs.main().stream(context, [&](std::span<const std::byte> piece) {
      got += piece.size();
      return got < piece.size() * 2;  // one piece shows that it can be read
    });
  };
  EXPECT_EQ(test::thrown([&] { read(0); }).rule, "limit/work");
  EXPECT_EQ(got, 0U);
  read(4 * count);
  EXPECT_GT(got, 0U);
}

TEST(Hdf5, EveryIndexFindsItsChunks) {
  const std::string c = build::counting(48), eight = c.substr(0, 8);
  EXPECT_EQ(test::logical_bytes(model_of("valid-implicit-chunks")[0].main()), c.substr(0, 12));
  for (const char* name : {"valid-fixed-array", "valid-fixed-array-pages"})
    EXPECT_EQ(test::logical_bytes(model_of(name)[0].main()), eight + std::string(8, '\0') + eight) << name;
  std::string six;
  for (int i = 0; i < 6; ++i) six += eight;
  EXPECT_EQ(test::logical_bytes(model_of("valid-extensible-array")[0].main()), six);
  for (const char* name : {"valid-tree-2", "valid-tree-2-inner"})
    EXPECT_EQ(test::logical_bytes(model_of(name)[0].main()), eight + eight + eight) << name;
}

TEST(Hdf5, AttributesKeepTheirTypes) {
  const Model model = model_of("valid-attributes");
  const Tensor tensor = model[0];
  const auto all = tensor.attributes();
  EXPECT_EQ(*all.find("i8"), Value::integer(std::int64_t{-1}, DType::i8));
  EXPECT_EQ(*all.find("u64"), Value::integer(UINT64_MAX));
  EXPECT_EQ(*all.find("f16"), Value::real(1.5, DType::f16));
  EXPECT_EQ(*all.find("f32"), Value::real(1, DType::f32));
  EXPECT_EQ(*all.find("bool"), Value::boolean(true));
  EXPECT_EQ(all.find("spaces")->as_text(), "a");
  EXPECT_EQ((*all.find("zeros")->texts())[1], "cdef");
  EXPECT_EQ(all.find("i16-big")->to_text(), "[1,-1]");
  EXPECT_EQ(all.find("f64")->to_text(), R"({"shape":[2,1],"values":[0.0,1.0]})");
  EXPECT_EQ(all.find("null")->kind(), Value::Kind::null);
  const Tensor dense = model_of("valid-dense-attributes")[0];
  const auto kept = dense.attributes();
  EXPECT_EQ(kept.find("small")->as_i64(), 7);
  EXPECT_EQ(kept.find("large")->bytes().size(), 300U);
  const Tensor texts = model_of("valid-variable-texts")[0];
  const auto of_texts = texts.attributes();
  EXPECT_EQ(of_texts.find("t")->to_text(), R"(["abc","","x"])");
}

TEST(Hdf5, AValueThatIsNotInterpretedKeepsItsBytes) {
  const Model model = walk(kHdf5, case_bytes("attribute-type")).model;
  const Tensor tensor = model[0];
  const auto all = tensor.attributes();
  const Value* const value = all.find("a");
  ASSERT_NE(value, nullptr);
  EXPECT_EQ(value->grammar(), "hdf5");
  EXPECT_NE(std::string(reinterpret_cast<const char*>(value->bytes().data()), value->bytes().size()).find("abc"),
            std::string::npos);
}

// Chunks that do not fit into the memory allowed are refused when the file is opened, and rows of chunks that do not
// are made in several passes.
TEST(Hdf5, TheBytesDoNotDependOnTheMemoryAllowed) {
  build::Builder b;
  std::string node =
      "TREE" + build::n8(1) + build::n8(0) + build::n16(4) + build::n64(UINT64_MAX) + build::n64(UINT64_MAX);
  for (std::uint64_t i = 0; i < 4; ++i) {
    const std::uint64_t at = b.add(std::string(64 * 16, static_cast<char>('a' + i)));
    node += build::n32(64 * 16) + build::n32(0) + build::n64(i / 2 * 64) + build::n64(i % 2 * 16) + build::n64(0) +
            build::n64(at);
  }
  node += std::string(32, '\0');
  const std::string layout = build::n8(3) + build::n8(2) + build::n8(3) + build::n64(b.add(node)) + build::n32(64) +
                             build::n32(16) + build::n32(1);
  const std::string file = build::one(b, b.dataset(build::dataspace({100, 20}), build::integer(1, false), layout));
  const std::string expected = test::logical_bytes(walk(kHdf5, file).model[0].main());
  EXPECT_EQ(expected.substr(0, 20), std::string(16, 'a') + std::string(4, 'b'));
  EXPECT_EQ(expected.substr(20 * 99), std::string(16, 'c') + std::string(4, 'd'));
  for (const std::uint64_t memory : {100'000U, 4'000U, 200U}) {
    Context context;
    context.limits.memory = memory;
    std::string got;
    walk(kHdf5, file).model[0].main().stream(context, [&](std::span<const std::byte> piece) {
      got.append(reinterpret_cast<const char*>(piece.data()), piece.size());
      return true;
    });
    EXPECT_EQ(got, expected) << memory;
  }
}

TEST(Hdf5, AFileIsFoundByItsSuperblockAndAnArchiveByItsMembers) {
  EXPECT_TRUE(kHdf5.matches(probe(case_bytes("valid-one"))));
  EXPECT_TRUE(kHdf5.matches(probe(case_bytes("valid-userblock"))));
  EXPECT_FALSE(kHdf5.matches(probe("\x89HDX\r\n\x1a\n")));
  static const auto all = keras_cases();
  const std::string keras = test::case_of(all, "valid-one").bytes;
  EXPECT_TRUE(kKeras.matches(probe(keras)));
  EXPECT_TRUE(kKeras.matches(probe(test::case_of(all, "valid-weights-only").bytes)));
  EXPECT_FALSE(kHdf5.matches(probe(keras)));
  EXPECT_FALSE(kKeras.matches(probe("PK\3\4 other")));
  EXPECT_TRUE(kKeras.matches(probe("PK\3\4 other", "keras")));
}

TEST(Keras, TheConfigurationIsAnAttributeAndTheWeightsAreRangesOfTheArchive) {
  static const auto all = keras_cases();
  const std::string bytes = test::case_of(all, "valid-one").bytes;
  const Model model = walk(kKeras, bytes).model;
  EXPECT_EQ(model.version(), "3.15.1");
  const Attributes attributes = model.attributes();
  EXPECT_EQ(attributes.find("keras.config")->as_text(), R"({"class_name": "Sequential"})");
  EXPECT_EQ(bytes.substr(model[0].main().extent()->offset, 16), build::counting(16));
}

TEST(Keras, ALambdaLayerIsFoundAtAnyDepthAndInAnySpelling) {
  EXPECT_TRUE(has_lambda(R"({"a": [{"class_name": "Lambda"}]})", 64));
  EXPECT_TRUE(has_lambda(R"({"class\u005fname": "__lamb\u0064a__"})", 64));
  EXPECT_FALSE(has_lambda(R"({"class_name": "Dense", "name": "Lambda"})", 64));
  EXPECT_FALSE(has_lambda(R"({"class_name": )", 64));
}

// RFC 1950, and the checksums of small texts by other implementations (Jenkins' lookup3.c, libhdf5).
TEST(Hdf5, Checksums) {
  EXPECT_EQ(lookup3(""), 0xDEADBEEFU);
  EXPECT_EQ(lookup3("Four score and seven years ago"), 0x17770551U);
  EXPECT_EQ(fletcher32(std::string("\xD0\x01", 2)), 0xD001D001U);
}

}  // namespace
}  // namespace weighbridge::hdf5
