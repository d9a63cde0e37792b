// SPDX-License-Identifier: Apache-2.0
// Plans for models that no .zt file gives: parts with another byte order, stride or encoding, keys of other grammars,
// sums beyond 2^64; and what an append refuses or merges.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/checked.h"
#include "core/model/draft.h"
#include "core/writing/layout.h"
#include "formats/ztensor/v1/format.h"
#include "formats/ztensor/v1/layout.h"
#include "support/failing_source.h"
#include "support/format_testing.h"
#include "support/items.h"
#include "support/thrown.h"

namespace weighbridge::ztensor1 {
namespace {

using test::bytes_of;
using test::logical_bytes;
using test::render;
using test::walk;
using test::write;

Model reread(const Model& model, const Options& options = {}) {
  return walk(kFormat, write(kFormat, model, options)).model;
}

// The bytes of the tensor "w" in a file.
std::string bytes_in(std::string file) {
  const Model model = walk(kFormat, std::move(file)).model;
  return logical_bytes(model["w"].main());
}

Options encoded(std::string encoding, std::string version = {}) {
  Options options;
  options.encoding = std::move(encoding);
  options.version = std::move(version);
  return options;
}

using test::text_of;

// A dense tensor "w" of u16 [2, 1] over the bytes 01 02 03 04, changed by `edit`.
template <class Edit> Model crafted(std::string format, Edit edit) {
  core::Draft draft;
  draft.set_format(std::move(format));
  draft.add_source(memory_source(bytes_of("\x01\x02\x03\x04")));
  draft.add_tensor("w", Layout::dense, DType::u16, std::vector<std::uint64_t>{2, 1});
  draft.add_part(kData, DType::u16, std::vector<std::uint64_t>{2, 1}, Encoding::raw, {0, 0, 4}, 4);
  edit(draft);
  draft.index_names();
  return draft.finish();
}

TEST(ZtensorPlan, OptionsOfOtherFormatsAreMisuse) {
  const Model model = crafted("", [](core::Draft&) {});
  EXPECT_EQ(test::thrown([&] { core::check_written(kFormat, encoded("lz4")); }).rule, "misuse/encoding");
  Options options;
  options.digest = "md5";
  EXPECT_EQ(test::thrown([&] { core::check_written(kFormat, options); }).message, "the format zt has no digest 'md5'");
  options = {};
  options.cast = DType::f8_e8m0;  // a float, which zTensor lacks
  EXPECT_EQ(test::thrown([&] { core::check_written(kFormat, options); }).rule, "misuse/cast");
  options = {};
  options.digest = "none";
  EXPECT_TRUE(layout(model, options).blockers.empty());
}

TEST(ZtensorPlan, VersionsAreSpelledInTwoOrThreeParts) {
  const Model model = crafted("", [](core::Draft&) {});
  for (const auto& [given, version] :
       {std::pair{"", "1.1.0"}, {"1.1", "1.1.0"}, {"1.1.0", "1.1.0"}, {"1.2", "1.2.0"}, {"1.2.0", "1.2.0"}}) {
    const Model out = reread(model, encoded("", given));
    EXPECT_EQ(out.version(), version) << given;
  }
  const Model second = reread(reread(model, encoded("", "1.2")));
  EXPECT_EQ(second.version(), "1.2.0") << "a .zt file keeps its own";
}

TEST(ZtensorPlan, OtherOrderAndStridesAreRespelt) {
  const Model big = crafted("", [](core::Draft& d) { d.part(0).order(Order::big); });
  const core::WriteLayout swapped = layout(big, {});
  EXPECT_EQ(text_of(swapped.changes), "tensors[\"w\"].parts[\"data\"]: big-endian -> little-endian\n");
  EXPECT_EQ(bytes_in(render(swapped)), "\x02\x01\x04\x03");

  const Model strided = crafted("zt", [](core::Draft& d) { d.part(0).strides({1, 2}); });
  const core::WriteLayout straight = layout(strided, {});
  EXPECT_EQ(text_of(straight.changes), "tensors[\"w\"].parts[\"data\"]: strided -> row-major\n");
  EXPECT_EQ(bytes_in(render(straight)), "\x01\x02\x03\x04");

  const Model other = crafted("npz", [](core::Draft&) {});
  EXPECT_EQ(layout(other, {}).payloads[0].form, core::Payload::Form::logical) << "only a .zt has its bytes checked";
  EXPECT_EQ(layout(crafted("zt", [](core::Draft&) {}), {}).payloads[0].form, core::Payload::Form::stored);
}

TEST(ZtensorPlan, FramesOfOthersAreMadeAnew) {
  const std::vector<std::byte> frame = codecs::encode(codecs::kZstd, std::as_bytes(std::span("\x01\x02\x03\x04", 4)));
  const std::string stored(reinterpret_cast<const char*>(frame.data()), frame.size());
  const auto model = [&](std::string format) {
    core::Draft draft;
    draft.set_format(std::move(format));
    draft.add_source(memory_source(bytes_of(stored)));
    draft.add_tensor("w", Layout::dense, DType::u8, std::vector<std::uint64_t>{4});
    draft.add_part(kData, DType::u8, std::vector<std::uint64_t>{4}, Encoding::zstd, {0, 0, stored.size()}, 4);
    draft.part(0).extra("x-note", Value::text("kept"));
    draft.part(0).digest("crc32c:0x00000000");
    draft.index_names();
    return draft.finish();
  };
  const std::string part = "tensors[\"w\"].parts[\"data\"]";
  const std::string lost = part + ".extra[\"x-note\"]: kept -> dropped: the bytes are stored anew\n";
  const core::WriteLayout anew = layout(model("other"), encoded("zstd"));
  EXPECT_EQ(text_of(anew.losses), lost);
  EXPECT_EQ(text_of(anew.changes),
            part + ": crc32c:0x00000000 -> no digest\n" + part + ": zstd -> zstd, compressed anew\n");
  EXPECT_EQ(bytes_in(render(anew)), "\x01\x02\x03\x04");
  Options raw = encoded("raw");
  raw.digest = "sha256";
  const core::WriteLayout plain = layout(model("zt"), raw);
  EXPECT_EQ(text_of(plain.losses), lost);
  EXPECT_EQ(text_of(plain.changes),
            part + ": crc32c:0x00000000 -> a digest of the new bytes\n" + part + ": zstd -> raw\n");
  EXPECT_EQ(walk(kFormat, render(plain)).report.total(), 0U);
}

TEST(ZtensorPlan, WhatCannotBeSaidIsABlocker) {
  const auto blockers = [](std::string format, auto edit) {
    return text_of(layout(crafted(std::move(format), edit), {}).blockers);
  };
  EXPECT_EQ(blockers("other", [](core::Draft& d) { d.tensor(0).without_shape(); }),
            "tensors[\"w\"]: an unknown shape -> every object states its shape\n");
  const std::string name = blockers("other", [](core::Draft& d) { d.tensor(0).name("\xff"); });
  EXPECT_NE(name.find(": a name that is not UTF-8 -> names are UTF-8\n"), name.npos) << name;
  EXPECT_EQ(blockers("other",
                     [](core::Draft& d) {
                       d.part(0).encoding(Encoding::unknown);
                       d.part(0).encoding_name("lz4");
                     }),
            "tensors[\"w\"].parts[\"data\"]: lz4 -> an encoding that this build cannot undo\n");
  EXPECT_EQ(blockers("other",
                     [](core::Draft& d) {
                       Finding why;
                       why.message = "a layout of its own";
                       d.tensor(0).unsupported(why);
                     }),
            "tensors[\"w\"]: u16 -> a layout of its own\n");
}

TEST(ZtensorPlan, KeysThatAreTheFormatsOwnAreDropped) {
  const std::vector<std::byte> item{std::byte{'1'}};
  const Model model = crafted("other", [&](core::Draft& d) {
    for (const std::string_view key : {kShape, kFormatKey, kComponents, kAttributes})
      d.tensor(0).extra(key, Value::text("x"));
    d.tensor(0).extra("json", Value::foreign("json", item));
    d.tensor(0).extra("kept", Value::foreign("cbor", {std::byte{7}}));
    d.tensor(0).attribute("l", Value::list({Value::integer(std::uint64_t{1}, DType::u8)}));
    for (const std::string_view key : {kVersion, kObjects, kAttributes}) d.set_extra(key, Value());
    d.set_extra("json", Value::foreign("json", item));
    d.set_extra("z", Value::boolean(true));
    d.set_extra("a", Value::boolean(false));
  });
  const core::WriteLayout made = layout(model, {});
  EXPECT_EQ(made.losses.size(), 10U) << text_of(made.losses);
  EXPECT_TRUE(std::ranges::any_of(made.losses, [](const Item& loss) {
    return loss.subject == "tensors[\"w\"].attributes[\"l\"]" && loss.kind == LossKind::attribute_type &&
           loss.to == "a plain value";
  }));
  const auto [report, out] = walk(kFormat, render(made));
  EXPECT_EQ(report.total(), 0U);
  ASSERT_EQ(out["w"].extra().size(), 1U);
  EXPECT_EQ(out["w"].extra()[0], Value::Entry("kept", Value::integer(std::uint64_t{7})));
  ASSERT_EQ(out.extra().size(), 2U);
  EXPECT_EQ(out.extra()[0].first, "a");
}

TEST(ZtensorPlan, SharedBytesThatAreStoredInTwoWaysAreACopy) {
  const auto model = [](DType other) {
    return crafted("", [&](core::Draft& d) {
      d.add_tensor("x", Layout::dense, other, std::vector<std::uint64_t>{info(other).bits == 8 ? 4U : 2U});
      d.add_part(kData, other, std::vector<std::uint64_t>{info(other).bits == 8 ? 4U : 2U}, Encoding::raw, {0, 0, 4},
                 4);
    });
  };
  Options cast;
  cast.cast = DType::f32;
  const core::WriteLayout two = layout(model(DType::f16), cast);
  EXPECT_EQ(two.payloads.size(), 2U);
  EXPECT_NE(text_of(two.losses).find("tensors[\"x\"].parts[\"data\"]: the bytes of tensors[\"w\"] -> a copy of them\n"),
            std::string::npos)
      << text_of(two.losses);
  const core::WriteLayout one = layout(model(DType::u16), {});
  EXPECT_EQ(one.payloads.size(), 1U);
  EXPECT_TRUE(one.losses.empty());
}

TEST(ZtensorPlan, SumsPast2To64AreABlocker) {
  const auto none = [](std::uint64_t, std::span<std::byte>) -> std::size_t { return 0; };
  Builder builder;
  for (const char* name : {"a", "b", "c"}) builder.tensor(name, DType::u8, {std::uint64_t{1} << 63}, none);
  const core::WriteLayout made = layout(builder.build(), {});
  EXPECT_EQ(text_of(made.blockers), "tensors[\"b\"]: its size -> more than 2^64 - 1 bytes in all\n");
  Builder last;
  last.tensor("a", DType::u8, {UINT64_MAX}, none);
  EXPECT_EQ(layout(last.build(), {}).blockers.size(), 1U);
}

Tokenizer tokenizer_of(std::string_view token) {
  Tokenizer out;
  out.vocab_size = 1;
  out.tokens.push_back(token);
  return out;
}

TEST(ZtensorPlan, TheKeyOfTheTokenizerIsTheProgramsOwn) {
  Builder builder;
  builder.attribute("weighbridge.tokenizer", Value::text("mine")).tokenizer(tokenizer_of("t"));
  const core::WriteLayout made = layout(builder.build(), {});
  EXPECT_EQ(text_of(made.losses),
            "attributes[\"weighbridge.tokenizer\"]: mine -> dropped: the key is weighbridge's own\n");
  EXPECT_EQ(*walk(kFormat, render(made)).model.tokenizer(), tokenizer_of("t"));
}

TEST(ZtensorPlan, OnlyAZtFileGrowsAndItKeepsItsVersion) {
  const Model more = crafted("", [](core::Draft&) {});
  EXPECT_EQ(test::thrown([&] { append(more, more, {}); }).rule, "misuse/append");
  const Model target = reread(Builder().build());
  EXPECT_EQ(test::thrown([&] { append(target, more, encoded("", "1.2")); }).message,
            "a file that is appended to keeps its version, 1.1.0");
  EXPECT_EQ(test::thrown([&] { append(target, more, encoded("", "1.2.0")); }).rule, "misuse/version");
  for (const char* same : {"1.1", "1.1.0"}) {
    const Model out = walk(kFormat, render(append(target, more, encoded("", same)))).model;
    EXPECT_EQ(out.version(), "1.1.0");
  }
}

TEST(ZtensorPlan, AnAppendKeepsTokenizerAndKeysOfTheFile) {
  const auto model = [](std::string_view token, bool flag, std::string name) {
    return crafted("other", [&](core::Draft& d) {
      d.tensor(0).name(name);
      d.set_tokenizer(tokenizer_of(token));
      d.set_extra("same", Value::boolean(true));
      d.set_extra("differs", Value::boolean(flag));
      if (flag) d.set_extra("more", Value::boolean(true));
    });
  };
  const Model target = reread(model("old", false, "w"));
  const core::WriteLayout made = append(target, model("new", true, "x"), {});
  EXPECT_EQ(text_of(made.losses),
            "tokenizer: a tokenizer -> dropped: the file has another one\n"
            "extra[\"differs\"]: true -> dropped\n");
  const auto [report, out] = walk(kFormat, render(made));
  EXPECT_EQ(report.total(), 0U);
  EXPECT_EQ(*out.tokenizer(), tokenizer_of("old"));
  const Attributes extra = out.extra();
  EXPECT_EQ(*extra.find("differs"), Value::boolean(false));
  EXPECT_EQ(extra.size(), 3U);
  EXPECT_TRUE(append(target, model("old", false, "x"), {}).losses.empty());
}

// A name in chunks is joined in the model; its entry in the file stays unchanged.
TEST(ZtensorPlan, AnAppendKeepsNamesInChunks) {
  std::string bytes = write(kFormat, crafted("", [](core::Draft& d) { d.tensor(0).name("name"); }));
  bytes.replace(bytes.find("\x64name"), 5, "\x7f\x62na\x62me\xff");
  char& size = bytes[bytes.size() - 16];
  size = static_cast<char>(size + 3);
  const auto [before, target] = walk(kFormat, bytes);
  ASSERT_EQ(before.total(), 0U);
  const auto [report, out] = walk(kFormat, render(append(target, crafted("", [](core::Draft&) {}), {})));
  EXPECT_EQ(report.total(), 0U);
  ASSERT_EQ(out.size(), 2U);
  EXPECT_EQ(logical_bytes(out["name"].main()), "\x01\x02\x03\x04");
}

// Holes too far apart for one read are checked in several reads.
TEST(ZtensorContent, PaddingIsLookedAtInTheWholeFile) {
  Builder builder;
  for (int i = 0; i < 40; ++i)
    builder.tensor("t" + std::to_string(100 + i), DType::u8, {i == 20 ? 10'001U : 4'001U},
                   bytes_of(std::string(i == 20 ? 10'001 : 4'001, 'x')));
  const std::string sound = write(kFormat, builder.build());
  EXPECT_EQ(walk(kFormat, sound).report.total(), 0U);
  const Model model = walk(kFormat, sound).model;
  for (const std::uint32_t i : {0U, 15U, 17U, 20U, 38U}) {
    const Extent extent = *model[i].main().extent();
    const std::uint64_t at = extent.offset + extent.length + 3;
    std::string bytes = sound;
    bytes[base::to_size(at)] = 1;
    const Report report = walk(kFormat, bytes).report;
    ASSERT_EQ(report.total(), 1U) << i;
    EXPECT_EQ(report.findings()[0].rule, "zt/padding");
    EXPECT_GE(report.findings()[0].offset, extent.offset + extent.length);
    EXPECT_LE(report.findings()[0].offset, at);
  }
}

// A read error while indices are checked is an error, not a finding about the file.
TEST(ZtensorContent, ABrokenDiskIsNotAFault) {
  Builder builder;
  builder.object("s", Layout::sparse_csr, {1, 2}, {},
                 {{"values", DType::u8, {1}, bytes_of("v")},
                  {"indices", DType::u8, {1}, bytes_of("\1")},
                  {"indptr", DType::u8, {2}, bytes_of(std::string("\0\1", 2))}});
  const auto source = memory_source(bytes_of(write(kFormat, builder.build())));
  Report report;
  core::Findings findings(report, core::Findings::Mode::all);
  core::Draft draft;
  draft.add_source(std::make_shared<test::FailingSource>(source, 128));
  read(*source, {}, findings, draft);
  const Model model = draft.finish();
  EXPECT_EQ(report.total(), 0U);
  EXPECT_EQ(test::thrown([&] { kFormat.check_content(model, {}, findings); }).rule, "io/injected");
}

}  // namespace
}  // namespace weighbridge::ztensor1
