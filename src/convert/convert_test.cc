// SPDX-License-Identifier: Apache-2.0
// Conversions between real containers: same content, same bytes, and nothing published after a refusal, a cancellation
// or damage.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "codecs/checksum.h"
#include "core/payload/compare.h"
#include "io/forwarding_source.h"
#include "support/convert_testing.h"
#include "support/failing_source.h"
#include "support/items.h"
#include "support/last_call.h"
#include "support/temporary_folder.h"
#include "support/thrown.h"
#include "weighbridge/formats.h"
#include "weighbridge/hash.h"
#include "weighbridge/verify.h"

namespace weighbridge {
namespace {

using convert::testing::keep;
using convert::testing::pattern;
using convert::testing::threads;
using test::read_file;
using test::write_file;
using Folder = test::TemporaryFolder;
using Names = std::set<std::string>;

bool holds(std::string_view format, DType dtype) {
  const auto list = find_format(format)->holds.dtypes;
  return std::ranges::find(list, dtype) != list.end();
}

// One tensor of each dtype that all of these formats hold, scalars, empty tensors, and sizes around that of a segment.
Model sample(std::initializer_list<std::string_view> formats = {"safetensors", "zt"}) {
  Builder builder;
  for (const DTypeInfo& type : all_dtypes()) {
    if (!std::ranges::all_of(formats, [&](std::string_view f) { return holds(f, type.dtype); })) continue;
    const std::uint64_t size = *packed_size(type.dtype, 8 * 25);
    builder.tensor("dtype." + std::string(type.name), type.dtype, {8, 25},
                   pattern(size, type.bits, type.dtype == DType::boolean));
  }
  std::uint64_t seed = 100;
  for (const std::uint64_t size :
       {0U, 1U, 63U, 64U, 65U, 262143U, 262144U, 262145U, 1048575U, 1048576U, 1048577U, 3145729U})
    builder.tensor("size." + std::to_string(size), DType::u8, {size}, pattern(size, ++seed));
  builder.tensor("scalar", DType::f32, {}, pattern(4, 9));
  builder.tensor("empty", DType::f64, {3, 0, 2}, Bytes{});
  builder.tensor("naïve/\xe9\x87\x8d \"quoted\"", DType::u8, {2}, pattern(2, 11));
  builder.attribute("format", Value::text("pt"));
  return builder.build();
}

// A tensor that a callback generates in small, uneven pieces.
Model computed(std::uint64_t size, std::uint64_t claimed) {
  Builder builder;
  builder.tensor("c", DType::u8, {claimed}, [size](std::uint64_t offset, std::span<std::byte> out) {
    const std::size_t n = static_cast<std::size_t>(std::min<std::uint64_t>({out.size(), size - offset, 100003}));
    for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<std::byte>((offset + i) * 7 >> 3);
    return n;
  });
  return builder.build();
}

template <class Call> std::string rule_of(Call call) { return test::thrown(call).rule; }

TEST(Convert, KeepsEverythingThroughBothContainersAndBack) {
  const Folder folder;
  const Model model = sample();
  const std::string first = folder / "a.safetensors", zt = folder / "a.zt", second = folder / "b.safetensors";
  save(model, first);
  save(open(first), zt);
  save(open(zt), second);
  EXPECT_EQ(read_file(first), read_file(second));
  const Digest digest = content_digest(model);
  for (const std::string& path : {first, zt, second}) {
    EXPECT_EQ(content_digest(open(path)), digest) << path;
    EXPECT_TRUE(verify(path).report.valid()) << path;
    EXPECT_TRUE(core::compare(model, open(path)).empty()) << path;
  }
}

TEST(Convert, EveryDTypeOfAFormatComesBack) {
  for (const std::string_view format : {"safetensors", "zt"}) {
    const Folder folder;
    const Model model = sample({format});
    const std::string path = folder / "all";
    plan(model, format).execute(path);
    for (const Item& item : core::compare(model, open(path)))
      ADD_FAILURE() << format << ": " << item.subject << ", " << item.from << " -> " << item.to;
  }
}

TEST(Convert, SameBytesForAnyNumberOfThreadsAndAnyBudget) {
  const Folder folder;
  save(sample(), folder / "in.safetensors");
  const Model model = open(folder / "in.safetensors");
  for (const std::string encoding : {"raw", "zstd"}) {
    for (const std::string digest : {"none", "sha256", "crc32c"}) {
      Options options;
      options.encoding = encoding;
      options.digest = digest;
      options.replace = true;
      std::string expected;
      for (const unsigned n : {0U, 1U, 2U, 5U}) {
        Context context = threads(n);
        if (n == 5) context.limits.memory = 3 << 20;
        plan(model, "zt", options).execute(folder / "out.zt", context);
        const std::string bytes = read_file(folder / "out.zt");
        if (expected.empty()) expected = bytes;
        EXPECT_TRUE(bytes == expected) << encoding << " " << digest << " " << n << " threads";
      }
      const Verdict verdict = verify(folder / "out.zt");
      EXPECT_EQ(verdict.report.total(), 0U) << encoding << " " << digest;
      EXPECT_EQ(content_digest(verdict.model), content_digest(model)) << encoding << " " << digest;
      const Part part = verdict.model["size.3145729"].main();
      EXPECT_EQ(name(part.encoding()), encoding);
      EXPECT_EQ(part.digest().substr(0, 6), digest == "none" ? "" : digest);
    }
  }
}

TEST(Convert, DigestsAreOfTheStoredBytes) {
  const Folder folder;
  for (const std::string encoding : {"raw", "zstd"}) {
    Options options;
    options.encoding = encoding;
    options.replace = true;
    options.digest = "sha256";
    plan(sample(), "zt", options).execute(folder / "s.zt", threads(2));
    options.digest = "crc32c";
    plan(sample(), "zt", options).execute(folder / "c.zt", threads(2));
    const Model sha = open(folder / "s.zt"), crc = open(folder / "c.zt");
    for (const Tensor& tensor : sha) {
      const Part part = tensor.main();
      EXPECT_EQ(part.digest(), "sha256:" + codecs::to_hex(codecs::sha256(part.stored().span))) << tensor.name();
    }
    for (const Tensor& tensor : crc) {
      const Part part = tensor.main();
      EXPECT_EQ(part.digest(), "crc32c:0x" + codecs::to_hex(codecs::crc32c(part.stored().span))) << tensor.name();
    }
  }
}

// Threads take turns at the SHA-256 of a tensor of 64 MiB and more.
// Bytes that change once the content was checked, with the same size and times, as stores to a mapping do.
class ChangingSource final : public io::InterposedSource {
 public:
  using InterposedSource::InterposedSource;
  void read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    of().read_at(offset, out);
    if (armed && offset <= at && at < offset + out.size() && ++reads > 1) out[at - offset] ^= std::byte{1};
  }
  bool armed = false;
  std::uint64_t at = 0;
  mutable std::atomic<int> reads = 0;
};

TEST(Convert, WhatChangesBetweenTheCheckAndTheCopyIsNotWritten) {
  const Folder folder;
  for (const std::string encoding : {"raw", "zstd"})
    for (const std::uint64_t size : {100U, 300'000U, 5'000'000U}) {
      Builder builder;
      builder.tensor("w", DType::u8, {size}, pattern(size));
      Options options;
      options.encoding = encoding;
      options.digest = "sha256";
      options.replace = true;
      plan(builder.build(), "zt", options).execute(folder / "in.zt", threads(0));
      const auto source = std::make_shared<ChangingSource>(open_file(folder / "in.zt"));
      const Model model = open(source);
      const Extent extent = *model[0U].main().extent();
      source->at = extent.offset + extent.length / 2;
      source->armed = true;
      for (const std::string to : {"safetensors", "zt"}) {
        source->reads = 0;
        const std::string out = folder / ("out." + to);
        std::string rule;
        try {
          plan(model, to).execute(out, threads(2));
        } catch (const Error& error) {
          rule = error.finding().rule;
        }
        if (rule.empty()) {  // a small file is not read again
          EXPECT_EQ(size, 100U);
          EXPECT_EQ(content_digest(open(out)).text(), content_digest(open(folder / "in.zt")).text());
          std::filesystem::remove(out);
        }
        EXPECT_TRUE(rule.empty() || rule == "io/changed") << rule << " " << encoding << " " << size << " " << to;
        EXPECT_FALSE(std::filesystem::exists(out));
      }
    }
}

TEST(Convert, ALargeTensorHasTheSameDigestFromOneThreadAndFromSeveral) {
  const Folder folder;
  constexpr std::uint64_t kSize = (std::uint64_t{64} << 20) + 12345;
  Builder builder;
  builder.tensor("large", DType::u8, {kSize}, pattern(kSize));
  const Model model = builder.build();
  Options options;
  options.digest = "sha256";
  options.replace = true;
  plan(model, "zt", options).execute(folder / "out.zt", threads(3));
  const auto written_digest = [&] {
    const Part part = open(folder / "out.zt")[0U].main();
    return std::string(part.digest());
  };
  const std::string several = written_digest();
  EXPECT_EQ(several, "sha256:" + codecs::to_hex(codecs::sha256(model[0U].main().view().span)));
  plan(model, "zt", options).execute(folder / "out.zt");
  EXPECT_EQ(several, written_digest());
}

TEST(Convert, ManySmallTensorsEqualTheirInput) {
  const Folder folder;
  Builder builder;
  for (std::uint32_t i = 0; i < 20000; ++i)
    builder.tensor("layer." + std::to_string(i), DType::u8, {i % 257}, pattern(i % 257, i));
  const Model model = builder.build();
  save(model, folder / "a.safetensors", {}, threads(2));
  save(open(folder / "a.safetensors"), folder / "a.zt", {}, threads(2));
  EXPECT_EQ(content_digest(open(folder / "a.zt")), content_digest(model));
}

TEST(Convert, PartsThatOnlyStreamAreWrittenToo) {
  const Folder folder;
  const Model model = computed(5000000, 5000000);
  for (const std::string encoding : {"raw", "zstd"}) {
    Options options;
    options.encoding = encoding;
    options.replace = true;
    plan(model, "zt", options).execute(folder / "c.zt", threads(2));
    EXPECT_TRUE(core::compare(model, open(folder / "c.zt")).empty()) << encoding;
  }
}

TEST(Convert, ACallbackThatGivesTooLittleIsMisuseAndLeavesNothing) {
  const Folder folder;
  EXPECT_EQ(test::thrown([&] { save(computed(1000, 1001), folder / "c.zt"); }).kind, Kind::misuse);
  EXPECT_EQ(folder.entries(), Names{});
}

TEST(Convert, ThePlanStatesTheSizeAndKeepsIt) {
  const Folder folder;
  for (const std::string_view format : {"safetensors", "zt"}) {
    const Plan p = plan(sample(), format);
    EXPECT_TRUE(p.output_size_exact());
    EXPECT_EQ(p.to(), format);
    EXPECT_EQ(p.tensors(), sample().size());
    p.execute(folder / std::string(format));
    EXPECT_EQ(read_file(folder / std::string(format)).size(), p.output_size());
  }
  Options options;
  options.encoding = "zstd";
  const Plan bound = plan(sample(), "zt", options);
  EXPECT_FALSE(bound.output_size_exact());
  bound.execute(folder / "z.zt");
  EXPECT_LE(read_file(folder / "z.zt").size(), bound.output_size());
}

TEST(Convert, LossesNeedConsent) {
  const Folder folder;
  Builder builder;
  builder.object(
      "q", Layout::sparse_coo, {2, 2}, {},
      {{"values", DType::f32, {1}, pattern(4)}, {"coords", DType::u64, {2}, keep(std::vector<std::byte>(16))}});
  const Model model = builder.build();
  const Plan p = plan(model, "safetensors");
  ASSERT_FALSE(p.losses().empty());
  EXPECT_FALSE(p.possible());
  const Finding finding = test::thrown([&] { p.execute(folder / "q.safetensors"); });
  EXPECT_EQ(finding.rule, "misuse/loss");
  EXPECT_NE(finding.message.find("tensors[\"q\"]"), std::string::npos) << finding.message;
  EXPECT_EQ(folder.entries(), Names{});
  const Plan allowed = plan(model, "safetensors", {.allow = test::every_loss()});
  EXPECT_TRUE(allowed.possible());
  allowed.execute(folder / "q.safetensors");
  const Model out = open(folder / "q.safetensors");
  EXPECT_EQ(out["q"].layout(), Layout::dense);
}

TEST(Convert, CastingIsTheConsentToWhatItLoses) {
  const Folder folder;
  Builder builder;
  builder.tensor("f", DType::f32, {2},
                 keep({std::byte{0}, std::byte{0}, std::byte{0x80}, std::byte{0x3f}, std::byte{0}, std::byte{0},
                       std::byte{0}, std::byte{0xc0}}));
  builder.tensor("i", DType::i32, {1}, pattern(4));
  Options options;
  options.cast = DType::bf16;
  options.allow = {LossKind::dtype, LossKind::precision};
  for (const std::string encoding : {"", "zstd"}) {
    options.encoding = encoding;
    options.replace = true;
    Builder same;
    same.tensor("f", DType::f32, {2},
                keep({std::byte{0}, std::byte{0}, std::byte{0x80}, std::byte{0x3f}, std::byte{0}, std::byte{0},
                      std::byte{0}, std::byte{0xc0}}));
    plan(same.build(), "zt", options).execute(folder / "c.zt");
    const Model out = open(folder / "c.zt");
    EXPECT_EQ(out["f"].dtype(), DType::bf16);
    const Array array = out["f"].to_dense();
    const std::uint16_t expected[] = {0x3f80, 0xc000};
    EXPECT_EQ(std::memcmp(array.data.get(), expected, 4), 0);
  }
}

TEST(Convert, CastThatOverflowsIsCountedAndPublishesNothing) {
  const Folder folder;
  const float large[] = {1, 70000, -1e30F, 1e-9F}, fine[] = {0.1F, 2};
  Builder builder;
  builder.tensor("fine", DType::f32, {2}, Bytes{std::as_bytes(std::span(fine)), {}});
  builder.tensor("large", DType::f32, {4}, Bytes{std::as_bytes(std::span(large)), {}});
  const Model model = builder.build();
  for (const std::string encoding : {"", "zstd"}) {
    Options options;
    options.cast = DType::f16;
    options.encoding = encoding;
    const Plan refused = plan(model, "zt", options);
    EXPECT_TRUE(refused.possible());  // a plan reads no payload
    const Finding finding = test::thrown([&] { refused.execute(folder / "h.zt"); });
    EXPECT_EQ(finding.rule, "convert/overflow");
    EXPECT_EQ(finding.kind, Kind::malformed);
    EXPECT_EQ(finding.tensor, "large");
    EXPECT_EQ(finding.message, "2 values of 1 tensor are too large for f16; nothing was written");
    EXPECT_EQ(finding.hint, (Hint{Hint::What::option, "cast", "bf16"}));
    EXPECT_TRUE(folder.entries().empty());
    options.allow = {LossKind::overflow};
    options.replace = true;
    const Written written = plan(model, "zt", options).execute(folder / "h.zt");
    ASSERT_EQ(written.casts.size(), 1U);
    const Cast& cast = written.casts[0];
    EXPECT_TRUE(cast.from == DType::f32 && cast.to == DType::f16);
    EXPECT_EQ(cast.tensors, 2U);
    EXPECT_EQ(cast.values, 6U);
    EXPECT_EQ(cast.overflowed, 2U);
    EXPECT_EQ(cast.flushed, 1U);
    EXPECT_NEAR(cast.largest_error, 2.4e-5, 1e-6);
    std::filesystem::remove(folder / "h.zt");
  }
}

TEST(Convert, CastReadsItsInputOnce) {
  const Folder folder;
  constexpr std::uint64_t kSize = std::uint64_t{9} << 20;
  std::uint64_t pulled = 0;
  Builder builder;
  builder.tensor("c", DType::f32, {kSize / 4}, [&](std::uint64_t offset, std::span<std::byte> out) {
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), kSize - offset));
    std::memset(out.data(), 0, n);
    pulled += n;
    return n;
  });
  plan(builder.build(), "safetensors", {.cast = DType::f16}).execute(folder / "h.safetensors");
  EXPECT_EQ(pulled, kSize);
}

TEST(Convert, RefusesOptionsThatTheTargetLacks) {
  const Model model = sample();
  Options options;
  EXPECT_EQ(rule_of([&] { plan(model, "nonsense"); }), "misuse/unknown-format");
  EXPECT_NE(test::thrown([&] { plan(model, "nonsense"); }).message.find("known are safetensors, "), std::string::npos);
  options.encoding = "zstd";
  EXPECT_EQ(rule_of([&] { plan(model, "safetensors", options); }), "misuse/encoding");
  options = {};
  options.digest = "sha256";
  EXPECT_EQ(rule_of([&] { plan(model, "safetensors", options); }), "misuse/digest");
  options = {};
  options.level = 3;
  EXPECT_EQ(rule_of([&] { plan(model, "zt", options); }), "misuse/level");
  options.encoding = "zstd";
  options.level = 23;
  EXPECT_EQ(rule_of([&] { plan(model, "zt", options); }), "misuse/level");
  options = {};
  options.cast = DType::i32;
  EXPECT_EQ(rule_of([&] { plan(model, "zt", options); }), "misuse/cast");
  options.cast = DType::f4;
  EXPECT_EQ(rule_of([&] { plan(model, "zt", options); }), "misuse/cast");
  options = {};
  options.quantize = "q8_0";
  EXPECT_EQ(rule_of([&] { plan(model, "safetensors", options); }), "misuse/quantize");
  EXPECT_EQ(rule_of([&] { save(model, "x.unknown"); }), "misuse/unknown-extension");
  EXPECT_EQ(rule_of([&] { save(model, "folder.zt/x"); }), "misuse/unknown-extension");
  EXPECT_EQ(rule_of([&] { Plan().execute("x.zt"); }), "misuse/empty-plan");
}

TEST(Convert, ReplacesAnExistingFileOnlyWhenTold) {
  const Folder folder;
  write_file(folder / "a.zt", "old");
  EXPECT_EQ(rule_of([&] { save(sample(), folder / "a.zt"); }), "misuse/output-exists");
  EXPECT_EQ(read_file(folder / "a.zt"), "old");
  Options options;
  options.replace = true;
  save(sample(), folder / "a.zt", options);
  EXPECT_EQ(open(folder / "a.zt").size(), sample().size());
  EXPECT_EQ(folder.entries(), Names{"a.zt"});
}

TEST(Convert, RefusesItsInputAsOutputByAnyLink) {
  const Folder folder;
  const std::string input = folder / "in.zt";
  save(sample(), input);
  const std::string before = read_file(input);
  ASSERT_EQ(::symlink("in.zt", (folder / "soft.zt").c_str()), 0);
  ASSERT_EQ(::link(input.c_str(), (folder / "hard.zt").c_str()), 0);
  Options options;
  options.replace = true;
  for (const char* name : {"in.zt", "soft.zt", "hard.zt", "./in.zt"}) {
    EXPECT_EQ(rule_of([&] { save(open(input), folder / name, options); }), "misuse/output-is-input") << name;
    Builder builder;
    const Model model = open(input);
    builder.tensor("adopted", model[0U]);
    EXPECT_EQ(rule_of([&] { save(builder.build(), folder / name, options); }), "misuse/output-is-input") << name;
  }
  EXPECT_EQ(read_file(input), before);
}

TEST(Convert, RefusesToReplaceTheSidecarOfItsInput) {
  const Folder folder;
  Builder builder;
  builder.tensor("w", DType::f32, {2}, pattern(8, 1));
  save(builder.build(), folder / "in.stb");
  const std::string before = read_file(folder / "in.khm.json");
  ASSERT_EQ(::link((folder / "in.khm.json").c_str(), (folder / "hard.khm.json").c_str()), 0);
  const Names there = folder.entries();
  Options options;
  options.replace = true;
  const Plan stb = plan(open(folder / "in.stb"), "stb", options), zt = plan(open(folder / "in.stb"), "zt", options);
  // Its own name beside another output, a hard link to it, and the output path itself.
  EXPECT_EQ(rule_of([&] { stb.execute(folder / "in.bin"); }), "misuse/output-is-input");
  EXPECT_EQ(rule_of([&] { stb.execute(folder / "hard.stb"); }), "misuse/output-is-input");
  EXPECT_EQ(rule_of([&] { zt.execute(folder / "in.khm.json"); }), "misuse/output-is-input");
  EXPECT_EQ(read_file(folder / "in.khm.json"), before);
  EXPECT_EQ(folder.entries(), there);
}

// An output whose names and shapes need no sidecar removes an existing one, which would describe another file.
TEST(Convert, RefusesToRemoveTheSidecarOfItsInput) {
  const Folder folder;
  Builder builder;
  builder.tensor("0", DType::f32, {2}, pattern(8, 1));
  save(builder.build(), folder / "a.stb");
  write_file(folder / "a.khm.json", R"({"schema":1,"files":[{"id":0,"path":"a.stb"}]})");
  const Names there = folder.entries();
  Options options;
  options.replace = true;
  const Plan stb = plan(open(folder / "a.stb"), "stb", options);
  EXPECT_EQ(rule_of([&] { stb.execute(folder / "a.bin"); }), "misuse/output-is-input");
  EXPECT_EQ(folder.entries(), there);
}

TEST(Convert, ProgressGrowsToItsTotal) {
  const Folder folder;
  for (const unsigned n : {0U, 3U}) {
    Context context = threads(n);
    std::uint64_t last = 0, total = 0, calls = 0;
    std::atomic<int> inside{0};
    context.progress = [&](std::uint64_t done, std::uint64_t all) {
      EXPECT_EQ(inside.fetch_add(1), 0);
      EXPECT_GE(done, last);
      EXPECT_LE(done, all);
      last = done;
      total = all;
      ++calls;
      inside.fetch_sub(1);
      return true;
    };
    Options options;
    options.replace = true;
    const Plan p = plan(sample(), "zt", options);
    p.execute(folder / "a.zt", context);
    EXPECT_EQ(last, total);
    EXPECT_EQ(total, 2 * p.payload_size());
    EXPECT_GT(calls, 4U);
  }
}

TEST(Convert, StoppingAtAnyMomentLeavesTheFolderAsItWas) {
  const Folder folder;
  for (const unsigned n : {0U, 2U}) {
    for (const std::string encoding : {"raw", "zstd"}) {
      for (std::uint64_t stop_at = 0;; ++stop_at) {
        Context context = threads(n);
        std::uint64_t calls = 0;
        context.progress = [&](std::uint64_t, std::uint64_t) { return calls++ < stop_at; };
        Options options;
        options.encoding = encoding;
        bool cancelled = false;
        try {
          plan(sample(), "zt", options).execute(folder / "out.zt", context);
        } catch (const Cancelled&) {
          cancelled = true;
        }
        EXPECT_EQ(folder.entries(), cancelled ? Names{} : Names{"out.zt"});
        std::filesystem::remove(folder / "out.zt");
        if (!cancelled) break;
        stop_at += stop_at / 4;
      }
    }
  }
}

// Written and read back, but not published: a conversion can be stopped in the last call, when other jobs are done.
TEST(Convert, CanBeStoppedUntilItPublishes) {
  const Folder folder;
  std::uint64_t calls = 0;
  const auto job = [&](const Context& context) { plan(sample(), "zt").execute(folder / "out.zt", context); };
  Context context = test::stopped_at_the_last_call(job, calls);
  std::filesystem::remove(folder / "out.zt");
  EXPECT_THROW(job(context), Cancelled);
  EXPECT_GT(calls, 4U);
  EXPECT_EQ(folder.entries(), Names{});
}

// The hook runs between writing and reading back. Damage done there must be found.
TEST(Convert, DamageBetweenWritingAndReadingBackIsFound) {
  Builder builder;
  for (int i = 0; i < 3; ++i)
    builder.tensor("t" + std::to_string(i), DType::u8, {70000}, pattern(70000, static_cast<std::uint64_t>(i)));
  const Model model = builder.build();
  for (const std::string encoding : {"raw", "zstd"}) {
    Options options;
    options.encoding = encoding;
    const Folder reference;
    plan(model, "zt", options).execute(reference / "good.zt");
    const std::string good = read_file(reference / "good.zt");
    std::set<std::string> messages;
    for (std::size_t at = 0; at < good.size(); at += 1 + good.size() / 60) {
      const Folder folder;
      Context context;
      context.progress = [&](std::uint64_t done, std::uint64_t total) {
        if (done * 2 == total) {  // all payload is written: flip a bit
          const Names names = folder.entries();
          EXPECT_EQ(names.size(), 1U);
          std::fstream file(folder / *names.begin(), std::ios::in | std::ios::out | std::ios::binary);
          file.seekp(static_cast<std::streamoff>(at));
          file.put(static_cast<char>(good[at] ^ 4));
        }
        return true;
      };
      // Bytes between payloads belong to no tensor, and the index is written later.
      const Model expected = open(reference / "good.zt");
      bool owned = at < 8;
      for (std::uint32_t i = 0; i < expected.size(); ++i) {
        const Extent extent = *expected[i].main().extent();
        owned = owned || (at >= extent.offset && at < extent.offset + extent.length);
      }
      if (!owned) continue;
      const Finding finding = test::thrown([&] { plan(model, "zt", options).execute(folder / "out.zt", context); });
      EXPECT_EQ(finding.rule, "io/read-back") << at << ": " << finding.message;
      EXPECT_EQ(folder.entries(), Names{}) << at;
      messages.insert(finding.message);
    }
    EXPECT_GE(messages.size(), 3U);
  }
}

TEST(Convert, AnInputThatChangesMeanwhileIsAnIoErrorAndNothingIsPublished) {
  const Folder folder;
  save(sample(), folder / "in.safetensors");
  const Model model = open(folder / "in.safetensors");
  Context context;
  bool touched = false;
  context.progress = [&](std::uint64_t, std::uint64_t) {
    if (!std::exchange(touched, true)) {
      struct timespec times[2] = {{1, 0}, {1, 0}};
      EXPECT_EQ(::utimensat(AT_FDCWD, (folder / "in.safetensors").c_str(), times, 0), 0);
    }
    return true;
  };
  EXPECT_EQ(test::thrown([&] { save(model, folder / "out.zt", {}, context); }).kind, Kind::io);
  EXPECT_EQ(folder.entries(), Names{"in.safetensors"});
}

// Reads everything until armed, because opening also reads the end of a file.
class LaterFailing final : public io::InterposedSource {
 public:
  LaterFailing(std::shared_ptr<const Source> inner, std::uint64_t good)
      : InterposedSource(inner), failing_(inner, good) {}
  void read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    armed ? failing_.read_at(offset, out) : of().read_at(offset, out);
  }
  bool armed = false;

 private:
  test::FailingSource failing_;
};

TEST(Convert, ASourceThatFailsLeavesNothing) {
  const Folder folder, elsewhere;
  save(sample(), elsewhere / "in.safetensors");
  const auto whole = open_file(elsewhere / "in.safetensors");
  for (const unsigned n : {0U, 2U}) {
    for (const std::uint64_t good : {whole->size() - 1, whole->size() / 2, std::uint64_t{20000}}) {
      const auto source = std::make_shared<LaterFailing>(whole, good);
      const Model model = open(source);
      source->armed = true;
      for (const std::string digest : {"none", "sha256"}) {
        Options options;
        options.digest = digest;
        EXPECT_EQ(rule_of([&] { save(model, folder / "out.zt", options, threads(n)); }), "io/injected");
        EXPECT_EQ(folder.entries(), Names{});
      }
    }
  }
}

TEST(Convert, StoredBytesGoOverVerbatimFromZtToZt) {
  const Folder folder;
  Options options;
  options.encoding = "zstd";
  options.digest = "sha256";
  plan(sample(), "zt", options).execute(folder / "a.zt");
  save(open(folder / "a.zt"), folder / "b.zt", {}, threads(2));
  const Model a = open(folder / "a.zt"), b = open(folder / "b.zt");
  for (std::uint32_t i = 0; i < a.size(); ++i) {
    const Part before = a[i].main(), after = b[a.name(i)].main();
    EXPECT_EQ(after.encoding(), before.encoding());
    EXPECT_EQ(after.digest(), before.digest());
    EXPECT_TRUE(std::ranges::equal(after.stored().span, before.stored().span)) << a.name(i);
  }
  EXPECT_EQ(b["size.3145729"].main().encoding(), Encoding::zstd);
}

TEST(Append, PutsTensorsBehindTheOldBytes) {
  const Folder folder;
  save(sample(), folder / "old.zt");
  Builder builder;
  builder.tensor("new.1", DType::f32, {700000}, pattern(2800000, 5));
  builder.tensor("new.2", DType::u8, {3}, pattern(3, 6));
  const Model more = builder.build(), old = open(folder / "old.zt");
  for (const unsigned n : {0U, 2U}) {
    Options options;
    options.replace = true;
    const Plan p = plan_append(old, more, options);
    EXPECT_EQ(p.tensors(), old.size() + more.size());
    p.execute(folder / "new.zt", threads(n));
    const Verdict verdict = verify(folder / "new.zt");
    EXPECT_EQ(verdict.report.errors(), 0U);
    ASSERT_EQ(verdict.model.size(), old.size() + more.size());
    std::uint64_t end = 0;
    for (std::uint32_t i = 0; i < old.size(); ++i) {
      const Tensor same = verdict.model[old.name(i)];
      EXPECT_EQ(same.main().extent(), old[i].main().extent());
      EXPECT_EQ(content_digest(same), content_digest(old[i]));
      end = std::max(end, old[i].main().extent()->offset + old[i].main().extent()->length);
    }
    EXPECT_EQ(read_file(folder / "new.zt").substr(0, end), read_file(folder / "old.zt").substr(0, end));
    for (std::uint32_t i = 0; i < more.size(); ++i)
      EXPECT_EQ(content_digest(verdict.model[more.name(i)]), content_digest(more[i]));
  }
}

TEST(Append, RefusesANameThatBothHaveAndAContainerThatCannotGrow) {
  const Folder folder;
  save(sample(), folder / "old.zt");
  save(sample(), folder / "old.safetensors");
  Builder builder;
  builder.tensor("scalar", DType::u8, {1}, pattern(1));
  const Model more = builder.build();
  const Plan p = plan_append(open(folder / "old.zt"), more);
  ASSERT_EQ(p.blockers().size(), 1U);
  EXPECT_FALSE(p.possible());
  EXPECT_EQ(rule_of([&] { p.execute(folder / "new.zt"); }), "misuse/blocked");
  EXPECT_EQ(rule_of([&] { plan_append(open(folder / "old.safetensors"), more); }), "misuse/append");
}

TEST(LossKind, NamesReadBack) {
  std::set<std::string_view> seen;
  for (std::size_t i = 0; i < kLossKindCount; ++i) {
    const auto kind = static_cast<LossKind>(i);
    EXPECT_EQ(loss_kind_from_name(name(kind)), kind);
    seen.insert(name(kind));
  }
  EXPECT_EQ(seen.size(), kLossKindCount);
  EXPECT_EQ(name(LossKind::attribute_type), "attribute-type");
  EXPECT_EQ(loss_kind_from_name("Attribute"), std::nullopt);
}

// It was asked of the file system, which does not know it of a folder.
TEST(Convert, WrittenHasTheSizeOfTheOutputAlsoOfAFolderAndWithAnEncoding) {
  const Folder folder;
  const Model model = sample();
  const auto size = [](const std::string& path) {
    if (!std::filesystem::is_directory(path)) return std::filesystem::file_size(path);
    std::uint64_t out = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path))
      out += entry.is_regular_file() ? entry.file_size() : 0;
    return out;
  };
  Options packed, divided;
  packed.encoding = "zstd";
  divided.shards.max_size = 1 << 20;
  const std::uint64_t saved = save(model, folder / "a.safetensors").size;
  EXPECT_EQ(saved, size(folder / "a.safetensors"));
  const Plan plans[] = {plan(model, "zt", packed), plan(model, "safetensors", divided)};
  EXPECT_FALSE(plans[0].output_size_exact());
  EXPECT_GT(plans[1].files(), 1U);
  const std::string paths[] = {folder / "a.zt", folder / "shards/"};
  for (std::size_t i = 0; i < std::size(plans); ++i) {
    const std::uint64_t written = plans[i].execute(paths[i]).size;
    EXPECT_EQ(written, size(paths[i])) << paths[i];
  }
}

}  // namespace
}  // namespace weighbridge
