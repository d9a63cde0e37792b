// SPDX-License-Identifier: Apache-2.0
// Parsing of options: what is accepted, what is refused and with which message, and that every encoding and digest that
// a container holds is an accepted value.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/writing/options.h"
#include "support/option_samples.h"
#include "support/thrown.h"
#include "weighbridge/convert.h"
#include "weighbridge/formats.h"
#include "weighbridge/open.h"
#include "weighbridge/view.h"

namespace weighbridge {
namespace {

using test::sample_of;
using test::thrown;
using Kinds = std::vector<LossKind>;

bool is_word(std::string_view option, std::string_view text) {
  const auto words = Options::words(option);
  return std::ranges::find(words, text) != words.end();
}

TEST(Options, AreSetByName) {
  Options options;
  options.set("allow", "dtype,attribute-type");
  options.set("allow", "name");
  EXPECT_EQ(options.allow, (Kinds{LossKind::dtype, LossKind::attribute_type, LossKind::name}));
  options.set("cast", "bf16");
  options.set("encoding", "zstd");
  options.set("digest", "none");
  options.set("quantize", "q4_0");
  EXPECT_EQ(options.cast, DType::bf16);
  EXPECT_EQ((std::vector{options.encoding, options.digest, options.quantize}),
            (std::vector<std::string>{"zstd", "none", "q4_0"}));
}

TEST(Options, ThatOneContainerTakesAreSetByTheNamesThatItSays) {
  for (const FormatInfo& format : formats())
    for (const std::string_view name : format.options) {
      const auto words = Options::words(name);
      Options options;
      const bool size = name == "max-shard-size" || name == "reserve", share = name == "sparse-density",
                 file = name == "into" || name == "imatrix" || name == "base";
      const auto own = [&] {
        return std::tie(options.slm, options.zt, options.zt0, options.metadata, options.gguf, options.onnx,
                        options.shards, options.header, options.base);
      };
      const auto none = std::tuple(SlmOptions{}, ZtOptions{}, Zt0Options{}, MetadataOptions{}, GgufOptions{},
                                   OnnxOptions{}, ShardOptions{}, HeaderOptions{}, std::shared_ptr<const Source>());
      options.set(name, size            ? "5GB"
                        : file          ? "/proc/self/exe"
                        : share         ? "0.25"
                        : words.empty() ? "2026-05-04"
                                        : words[0]);
      EXPECT_NE(own(), none) << name;
      if (size || share || file || name == "sparse" || name == "naming" || name == "tensor-type" ||
          name == "ignore-setting")
        continue;  // these have no text for the default
      EXPECT_NO_THROW(options.set(name, words.empty() ? "" : words[1]));
      EXPECT_EQ(own(), none) << name;
    }
  Options options;
  options.set("keep-gqa", "true");
  EXPECT_TRUE(options.slm.keep_gqa && !options.slm.quantize_norms);
  options.set("model-version", "3");
  EXPECT_EQ(options.metadata, (MetadataOptions{.model_version = "3"}));
  EXPECT_EQ(thrown([&] { options.set("keep-gqa", "yes"); }).message,
            "keep-gqa cannot be \"yes\": it is one of true false");
}

// Issue 16, A.8.
TEST(Options, SparseTensorsNeedALayoutAndAShare) {
  for (const char* wrong : {"0", "-0.5", "1.01", "nan", "inf", "", "half", "0.5x"})
    EXPECT_EQ(thrown([&] { Options().set("sparse-density", wrong); }).kind, Kind::misuse) << wrong;
  EXPECT_EQ(thrown([] { Options().set("sparse", "ccs"); }).kind, Kind::misuse);
  Builder builder;
  const Model model = builder.build();
  const auto refused = [&](const char* to, const Options& options) {
    return thrown([&] { plan(model, to, options); }).kind == Kind::misuse;
  };
  EXPECT_NO_THROW(plan(model, "zt", {.zt = {.sparse = "csr", .sparse_density = 1}}));
  EXPECT_TRUE(refused("zt", {.zt = {.sparse = "ccs"}}));
  EXPECT_TRUE(refused("zt", {.zt = {.sparse_density = 0.5}}));
  EXPECT_TRUE(refused("zt", {.zt = {.sparse = "csr", .sparse_density = 2}}));
  EXPECT_TRUE(refused("zt", {.cast = DType::f16, .zt = {.sparse = "csr"}}));
  for (const char* other : {"safetensors", "zt0", "stb", "slm", "hf"})
    EXPECT_TRUE(refused(other, {.zt = {.sparse = "coo"}})) << other;
}

TEST(Options, SizesOfShardsAreDecimalUnlessTheirUnitIsBinary) {
  const std::pair<const char*, std::uint64_t> sizes[] = {{"5GB", 5'000'000'000},
                                                         {"0.5MB", 500'000},
                                                         {"1KB", 1000},
                                                         {"2TB", 2'000'000'000'000},
                                                         {"40K", 40'000},
                                                         {"40k", 40'000},
                                                         {"3m", 3'000'000},
                                                         {"5gb", 5'000'000'000},
                                                         {"2G", 2'000'000'000},
                                                         {"40KiB", 40 << 10},
                                                         {"1.5mib", 3 << 19},
                                                         {"5GIB", std::uint64_t{5} << 30},
                                                         {"1TiB", std::uint64_t{1} << 40},
                                                         {"7B", 7},
                                                         {"1", 1},
                                                         {"9223372036854775809", 9223372036854775809U}};
  for (const auto& [text, bytes] : sizes) {
    Options options;
    options.set("max-shard-size", text);
    EXPECT_EQ(options.shards.max_size, bytes) << text;
  }
  for (const char* text : {"", "0", "GB", "5 GB", "-1", "1e3", "0KB", "99999999999TB", ".5GB", "1.2.3", "5Gi", "5iB",
                           "5KK", "5BB", "1.5.", "5EB"}) {
    Options options;
    EXPECT_EQ(thrown([&] { options.set("max-shard-size", text); }).rule, "misuse/shard-size") << text;
  }
}

TEST(Options, TakeEachOfTheirWords) {
  for (const char* const option : {"allow", "cast", "encoding", "digest", "quantize"}) {
    EXPECT_GE(Options::words(option).size(), 2U) << option;
    for (const std::string_view word : Options::words(option)) {
      Options options;
      EXPECT_NO_THROW(options.set(option, word)) << option << " " << word;
    }
  }
}

TEST(Options, NameTheWordsThatTheyCanBe) {
  Options options;
  const auto said = [&](std::string_view option, std::string_view text) {
    const Finding finding = thrown([&] { options.set(option, text); });
    EXPECT_EQ(finding.kind, Kind::misuse);
    EXPECT_EQ(finding.rule, "misuse/option");
    return finding.message;
  };
  EXPECT_EQ(said("encoding", "lzma"), "encoding cannot be \"lzma\": it is one of raw zstd deflate zstd-seekable");
  EXPECT_EQ(said("digest", "md5\n"), "digest cannot be \"md5\n\": it is one of none sha256 crc32c xxh3");
  EXPECT_EQ(
      said("quantize", ""),
      "quantize cannot be \"\": it is one of q8_0 q4_0 q4_1 q5_0 q5_1 q2_k q2_k_s q3_k_s q3_k_m q3_k_l q4_k_s q4_k_m "
      "q5_k_s q5_k_m q6_k iq4_nl iq4_xs iq3_xs iq3_s iq3_m iq3_xxs iq2_xxs iq2_xs iq2_s iq2_m tq1_0 tq2_0 "
      "mxfp4_moe mxfp4 f16 bf16 q3_k q4_k q5_k");
  EXPECT_NE(said("cast", "i32").find(" f16 "), std::string::npos);
  EXPECT_NE(said("allow", "dtype,everything").find("\"everything\": it is one of attribute "), std::string::npos);
  EXPECT_NE(said("allow", "dtype,").find("\"\""), std::string::npos);
  EXPECT_EQ(said("level", "20"), "level is a whole number from 1 to 19, not \"20\"");
  EXPECT_EQ(said("level", "high"), "level is a whole number from 1 to 19, not \"high\"");
  EXPECT_EQ(said("max_shard_size", "5GB"), "there is no option \"max_shard_size\"; the nearest is \"max-shard-size\"");
  EXPECT_TRUE(Options::words("level").empty());
}

TEST(Options, HaveAWordForWhateverAContainerHolds) {
  for (const FormatInfo& format : formats()) {
    if (!format.writes) continue;
    for (const Encoding encoding : format.holds.encodings) EXPECT_TRUE(is_word("encoding", name(encoding)));
    for (const std::string_view digest : format.holds.digests) EXPECT_TRUE(is_word("digest", digest)) << digest;
  }
}

TEST(OptionTable, HasEachNameOnceAndWhatItsTypeNeeds) {
  OptionOf last{};
  for (const OptionInfo& option : all_options()) {
    SCOPED_TRACE(option.name);
    EXPECT_GE(option.of, std::exchange(last, option.of)) << "those of one kind are together";
    EXPECT_EQ(find_option(option.of, option.name), &option);
    EXPECT_EQ(option.value.empty(), option.type == OptionType::toggle);
    const bool is_word = option.type == OptionType::word || option.type == OptionType::dtype;
    EXPECT_EQ(words(option).empty(), !is_word && option.type != OptionType::toggle);
    EXPECT_FALSE(option.help.empty() || option.help.ends_with('.'));
    EXPECT_LT(option.range.minimum, option.range.maximum);
  }
  for (std::size_t kind = 0; kind < kOptionOfCount; ++kind)
    EXPECT_FALSE(options_of(static_cast<OptionOf>(kind)).empty());
}

TEST(OptionTable, EachLimitIsSetByItsNameWithinItsRange) {
  Limits limits;
  for (const OptionInfo& limit : options_of(OptionOf::limit)) set_limit(limits, limit.name, 1000);
  EXPECT_EQ(limits.memory + limits.header + limits.tensors + limits.decoded + limits.work + limits.output, 6000U);
  EXPECT_EQ(limits.depth, 1000U);
  const auto said = [&](std::string_view name, std::uint64_t value) {
    const Finding finding = thrown([&] { set_limit(limits, name, value); });
    EXPECT_EQ(finding.rule, "misuse/limit");
    return finding.message;
  };
  EXPECT_EQ(said("depth", 1025), "depth is a whole number from 1 to 1024, not \"1025\"");
  EXPECT_EQ(said("memory", 0), "memory is a size above 0 such as 5GB, 500M, 200KiB or a number of bytes, not \"0\"");
  EXPECT_EQ(said("tensors", 1ULL << 32), "tensors is a whole number from 1 to 4294967295, not \"4294967296\"");
  EXPECT_EQ(said("patience", 1),
            "there is no limit \"patience\"; the limits are memory, header, tensors, decoded, work, output, depth");
  EXPECT_EQ(limits.depth, 1000U) << "a refused number changes nothing";
  EXPECT_NO_THROW(set_limit(limits, "work", 0));
}

// Each default is stated in the table and in the struct.
TEST(OptionTable, DefaultsOfLimitsAreThoseOfTheStruct) {
  const Limits standard;
  Options size;
  for (const OptionInfo& limit : options_of(OptionOf::limit)) {
    std::string text(limit.standard);
    std::erase(text, ' ');
    if (text == "0") continue;
    size.set("reserve", text);
    Limits same = standard;
    set_limit(same, limit.name, size.header.reserve);
    EXPECT_EQ(std::tuple(same.memory, same.header, same.tensors, same.decoded, same.depth),
              std::tuple(standard.memory, standard.header, standard.tensors, standard.decoded, standard.depth))
        << limit.name;
  }
}

TEST(OptionTable, EachOfAConversionIsSetByItsName) {
  for (const OptionInfo& option : options_of(OptionOf::convert)) {
    Options options;
    EXPECT_NO_THROW(options.set(option.name, sample_of(option))) << option.name;
    const std::vector<const OptionInfo*> given = core::given_options(options);
    EXPECT_EQ(given, std::vector{&option}) << option.name;
  }
  test::set_each<OpenOptions>(OptionOf::open);
  test::set_each<ViewOptions>(OptionOf::view);
}

TEST(OptionTable, OptionsOfOneTargetAreThoseThatTheTargetNames) {
  for (const OptionInfo& option : options_of(OptionOf::convert)) {
    std::string takers;
    for (const FormatInfo& format : formats())
      if (std::ranges::find(format.options, option.name) != format.options.end())
        takers += " " + std::string(format.name) + " ";
    for (const FormatInfo& format : formats())
      EXPECT_EQ(takers.find(" " + std::string(format.name) + " ") != std::string::npos,
                core::is_one_of(format.name, option.formats))
          << option.name << " " << format.name;
  }
}

}  // namespace
}  // namespace weighbridge
