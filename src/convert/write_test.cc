// SPDX-License-Identifier: Apache-2.0
// Writing and reading back in isolation: layouts that break their promises, bytes that change in between, and budgets
// and sources that run out.
#include "convert/write.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "core/writing/layout.h"
#include "support/convert_testing.h"
#include "support/temporary_folder.h"
#include "support/thrown.h"
#include "weighbridge/open.h"

namespace weighbridge::convert {
namespace {

using test::thrown;
using testing::pattern;

PlanRep rep_of(const Plan& plan) { return *PlanMaker::rep(plan); }

// Small tensors that share a write, one of several segments, and an empty one.
Model sample() {
  Builder builder;
  builder.tensor("a", DType::u8, {4}, pattern(4));
  builder.tensor("b", DType::f32, {2, 3}, pattern(24));
  builder.tensor("empty", DType::u8, {0}, Bytes{});
  builder.tensor("large", DType::u8, {kSegment + 5}, pattern(kSegment + 5));
  return builder.build();
}

// A file that is written but not yet published.
class Written {
 public:
  explicit Written(const PlanRep& rep, const Context& context = {})
      : context_(context), record(write(rep.layout, 0, file, context_, progress_)) {}
  void read_back(const PlanRep& rep) { sync_and_read_back(expected(rep), record, file, context_, progress_); }
  // The difference that read-back finds, without the rest of the message.
  std::string difference(const PlanRep& rep) {
    const Finding finding = thrown([&] { read_back(rep); });
    EXPECT_EQ(finding.rule, "io/read-back");
    const std::string begin = "what was written does not read back: ", end = "; the output was not published";
    EXPECT_TRUE(finding.message.starts_with(begin) && finding.message.ends_with(end)) << finding.message;
    return finding.message.substr(begin.size(), finding.message.size() - begin.size() - end.size());
  }
  void damage(std::uint64_t offset) {
    std::byte one{};
    file.reopen()->read_at(offset, std::span(&one, 1));
    one ^= std::byte{4};
    file.write_at(offset, std::span(&one, 1));
  }

 private:
  const test::TemporaryFolder folder_;
  const Context context_;
  core::Progress progress_{context_, 0};

 public:
  io::AtomicFile file{folder_ / "out"};
  Record record;
};

TEST(ReadBack, NamesWhateverIsNotAsTheLayoutHasIt) {
  const PlanRep rep = rep_of(plan(sample(), "zt"));
  using Change = std::function<void(PlanRep&, Record&)>;
  const std::pair<const char*, Change> cases[] = {
      {"the head", [](PlanRep& r, Record&) { r.layout.head.back() ^= 1; }},
      {"the tail", [](PlanRep&, Record& r) { r.tail.front() ^= 1; }},
      {"the file has 4 tensors instead of 5", [](PlanRep& r, Record&) { r.kept_tensors = 1; }},
      {"tensor \"absent\n\" is missing", [](PlanRep& r, Record&) { r.layout.tensors[0].name = "absent\n"; }},
      {"tensor \"a\" has the layout dense",
       [](PlanRep& r, Record&) { r.layout.tensors[0].layout = Layout::sparse_coo; }},
      {"tensor \"a\" has the dtype u8", [](PlanRep& r, Record&) { r.layout.tensors[0].dtype = DType::i8; }},
      {"tensor \"a\" has another shape",
       [](PlanRep& r, Record&) { r.layout.tensors[0].from = r.layout.tensors[1].from; }},
      {"tensor \"a\" has another number of parts", [](PlanRep& r, Record&) { r.layout.tensors[0].shared_parts = 1; }},
      {"tensor \"a\", part \"scales\": missing", [](PlanRep& r, Record&) { r.layout.payloads[0].role = "scales"; }},
      {"tensor \"a\", part \"data\": another dtype",
       [](PlanRep& r, Record&) { r.layout.payloads[0].dtype = DType::i8; }},
      {"tensor \"a\", part \"data\": another encoding",
       [](PlanRep& r, Record&) { r.layout.payloads[0].encoding = Encoding::zstd; }},
      {"tensor \"a\", part \"data\": another size", [](PlanRep& r, Record&) { r.layout.payloads[0].logical_size = 5; }},
      {"tensor \"b\", part \"data\": another place", [](PlanRep&, Record& r) { r.stored[1].offset += 64; }},
      {"tensor \"b\", part \"data\": another place", [](PlanRep&, Record& r) { r.stored[1].length += 1; }},
  };
  for (const auto& [expected, change] : cases) {
    Written written(rep);
    PlanRep other = rep;
    change(other, written.record);
    EXPECT_EQ(written.difference(other), expected);
  }
  Written same(rep);
  EXPECT_NO_THROW(same.read_back(rep));
}

TEST(ReadBack, AShapeMayDifferWhereTheLayoutSaysSo) {
  PlanRep rep = rep_of(plan(sample(), "zt"));
  rep.layout.tensors[0].from = rep.layout.tensors[1].from;
  rep.layout.tensors[0].same_shape = false;
  EXPECT_NO_THROW(Written(rep).read_back(rep));
}

// Bytes written as stored, as elements, and encoded.
TEST(ReadBack, FindsOneBitInWhicheverWayTheBytesWereWritten) {
  const test::TemporaryFolder folder;
  save(sample(), folder / "in.safetensors");
  const Model model = open(folder / "in.safetensors");
  for (const PlanRep& rep :
       {rep_of(plan(sample(), "zt")), rep_of(plan(model, "zt")), rep_of(plan(model, "zt", {.encoding = "zstd"}))}) {
    for (const std::size_t i : {0U, 1U, 3U}) {
      for (const unsigned n : {0U, 2U}) {
        Written written(rep, testing::threads(n));
        written.damage(written.record.stored[i].offset + written.record.stored[i].length - 1);
        const std::string difference = written.difference(rep);
        EXPECT_NE(difference.find(rep.layout.tensors[i].name), std::string::npos) << difference;
      }
    }
  }
}

TEST(ReadBack, FindsOneBitInWhatWasThereBeforeAnAppend) {
  const test::TemporaryFolder folder;
  save(sample(), folder / "old.zt");
  Builder more;
  more.tensor("more", DType::u8, {4}, pattern(4, 1));
  const PlanRep rep = rep_of(plan_append(open(folder / "old.zt"), more.build()));
  Written first(rep), second(rep);
  first.damage(rep.models[0][0U].main().extent()->offset);
  EXPECT_EQ(first.difference(rep), "the bytes that were there before, at offset 0");
  second.damage(kSegment);
  EXPECT_EQ(second.difference(rep), "the bytes that were there before, at offset " + std::to_string(kSegment));
}

TEST(ReadBack, BytesBehindTheEndAreCutOffAndMissingOnesAreFound) {
  const PlanRep rep = rep_of(plan(sample(), "zt"));
  Written longer(rep), shorter(rep);
  longer.damage(longer.record.size - 1);
  longer.damage(longer.record.size - 1);  // restore the last byte, without a sync
  longer.file.write_at(longer.record.size, std::as_bytes(std::span("behind", 6)));
  longer.read_back(rep);
  EXPECT_EQ(longer.file.reopen()->size(), longer.record.size);
  ASSERT_EQ(::truncate(shorter.file.temporary_path().c_str(), static_cast<off_t>(shorter.record.size / 2)), 0);
  EXPECT_FALSE(shorter.difference(rep).empty());
}

TEST(Write, ALayoutThatPromisedAnotherSizeIsAFaultOfTheProgram) {
  PlanRep rep = rep_of(plan(sample(), "zt"));
  ++rep.layout.size;
  EXPECT_THROW(Written{rep}, std::logic_error);
  rep.layout.size_exact = false;
  EXPECT_NO_THROW(Written{rep});
}

TEST(Write, AnOutputPastWhatOffsetsHoldIsAnIoErrorBeforeItsBytesAreWritten) {
  PlanRep rep = rep_of(plan(sample(), "zt"));
  rep.layout.payloads[0].form = core::Payload::Form::logical;
  rep.layout.payloads[0].stored_size = UINT64_MAX - 100;
  rep.layout.payloads[1].alignment = 256;
  const Finding finding = thrown([&] { Written{rep}; });
  EXPECT_EQ(finding.rule, "io/write");
  EXPECT_EQ(finding.message, "the output would be larger than a file can be");
}

TEST(Write, ASealChangesHeadAndTailAndWhatReadingBackExpects) {
  PlanRep rep = rep_of(plan(sample(), "zt"));
  rep.layout.finalize = [](const core::WrittenFile& file) {
    std::byte magic[8], last{};
    file.read(0, magic);
    file.write(0, magic);
    file.read(file.size - 1, std::span(&last, 1));
    last ^= std::byte{1};
    file.write(file.size - 1, std::span(&last, 1));
  };
  Written written(rep);
  EXPECT_EQ(written.record.sealed_head, rep.layout.head);
  std::string end(written.record.tail.size(), '\0');
  written.file.reopen()->read_at(written.record.tail_offset, std::as_writable_bytes(std::span(end)));
  EXPECT_EQ(end, written.record.tail);
  Written plain(rep_of(plan(sample(), "zt")));
  EXPECT_NE(end, plain.record.tail);
}

TEST(Write, ASealThatReachesIntoPayloadIsAFaultOfTheProgram) {
  const test::TemporaryFolder folder;
  save(sample(), folder / "old.zt");
  PlanRep new_plan = rep_of(plan(sample(), "zt"));
  Builder more;
  more.tensor("more", DType::u8, {4}, pattern(4, 1));
  PlanRep grown = rep_of(plan_append(open(folder / "old.zt"), more.build()));
  for (PlanRep* const rep : {&new_plan, &grown}) {
    const Record good = Written(*rep).record;
    // Across the end of the head or in the prefix, in a payload, across the end of the file.
    for (const std::uint64_t at : {std::uint64_t{7}, good.stored[0].offset, good.size - 1}) {
      rep->layout.finalize = [at](const core::WrittenFile& file) {
        file.write(at, std::as_bytes(std::span("two", 2)));
      };
      EXPECT_THROW(Written{*rep}, std::logic_error) << at;
    }
  }
}

// Encodes six payloads with two threads in this much memory. Returns the length of the file when each payload began to
// be made, and all of the file's bytes.
std::pair<std::vector<std::uint64_t>, std::string> encode_within(std::uint64_t memory) {
  constexpr std::size_t kSize = 300'000;
  const test::TemporaryFolder folder;
  io::AtomicFile file(folder / "out");
  std::vector<std::uint64_t> lengths(6);
  Builder builder;
  for (std::size_t i = 0; i < lengths.size(); ++i)
    builder.tensor(std::to_string(i), DType::u8, {kSize}, [&, i](std::uint64_t offset, std::span<std::byte> out) {
      if (offset == 0) lengths[i] = file.reopen()->size();
      const Bytes all = pattern(kSize, i);
      const auto piece = all.span.subspan(offset, std::min(out.size(), kSize - offset));
      std::ranges::copy(piece, out.begin());
      return piece.size();
    });
  const PlanRep rep = rep_of(plan(builder.build(), "zt", {.encoding = "zstd"}));
  Context context = testing::threads(2);
  context.limits.memory = memory;
  core::Progress progress(context, 0);
  write(rep.layout, 0, file, context, progress);
  return {lengths, test::read_file(file.temporary_path())};
}

TEST(Write, WhatABudgetHasNoRoomForWaitsUntilTheFileHasWhatCameBefore) {
  const auto [at_once, expected] = encode_within(std::uint64_t{256} << 20);
  const auto [lengths, bytes] = encode_within(1'400'000);  // half of it holds two payloads
  EXPECT_EQ(at_once, std::vector<std::uint64_t>(6, 8));    // only the magic number
  EXPECT_EQ((std::vector{lengths[0], lengths[1]}), (std::vector<std::uint64_t>{8, 8}));
  EXPECT_GT(lengths[2], 8U);
  EXPECT_EQ(lengths[2], lengths[3]);
  EXPECT_GT(lengths[4], lengths[2]);
  EXPECT_EQ(lengths[4], lengths[5]);
  EXPECT_TRUE(bytes == expected);
}

// A safetensors file with one tensor of 64 MiB, generated on reading. Reading its second MiB fails once a later one has
// been read.
class Breaking final : public Source {
 public:
  static constexpr std::uint64_t kPayload = std::uint64_t{64} << 20;
  std::uint64_t size() const noexcept override { return head_.size() + kPayload; }
  std::string_view name() const noexcept override { return "<breaking>"; }
  void read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    const std::uint64_t broken = head_.size() + kSegment;
    if (offset <= broken && broken < offset + out.size()) {
      std::unique_lock lock(mutex_);
      EXPECT_TRUE(read_.wait_for(lock, std::chrono::seconds(60), [this] { return later_; }));
      base::io_error("injected", "the second MiB cannot be read");
    }
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = offset + i < head_.size() ? static_cast<std::byte>(head_[offset + i]) : std::byte{};
    const std::lock_guard lock(mutex_);
    later_ = later_ || (offset > broken && out.size() == kSegment);  // ignores the glance at the ends on opening
    read_.notify_all();
  }

 private:
  static std::string head() {
    const std::string size = std::to_string(kPayload);
    const std::string json = R"({"w":{"dtype":"U8","shape":[)" + size + R"(],"data_offsets":[0,)" + size + "]}}";
    std::string out(8, '\0');
    out[0] = static_cast<char>(json.size());
    return out + json;
  }
  const std::string head_ = head();
  mutable std::mutex mutex_;
  mutable std::condition_variable read_;
  mutable bool later_ = false;
};

TEST(Write, AThreadThatFailsEndsTheWaitOfThoseThatHashAfterIt) {
  const test::TemporaryFolder folder;
  const Model model = open(std::make_shared<Breaking>());
  const Finding finding = thrown([&] { save(model, folder / "out.zt", {.digest = "sha256"}, testing::threads(3)); });
  EXPECT_EQ(finding.rule, "io/injected");
  EXPECT_EQ(folder.entries(), std::set<std::string>{});
}

}  // namespace
}  // namespace weighbridge::convert
