// SPDX-License-Identifier: Apache-2.0
// The pass over the payload: its findings, one read for all aliases, progress and cancellation.
#include "core/payload/content.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>

#include "codecs/checksum.h"
#include "codecs/codec.h"
#include "core/model/draft.h"

namespace weighbridge::core {
namespace {

constexpr Rule kDigest{"test/digest", Rule::Reach::tensor, Severity::error, "T", "wrong digest"};
constexpr Rule kBool{"test/bool", Rule::Reach::tensor, Severity::error, "T", "not a bool"};
constexpr Rule kZstd{"test/zstd", Rule::Reach::tensor, Severity::error, "T", "broken frame"};

// Bytes in memory that count reads.
class Counting : public Source {
 public:
  explicit Counting(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}
  std::uint64_t size() const noexcept override { return bytes_.size(); }
  void read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    read += out.size();
    ++reads;
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
  }
  std::string_view name() const noexcept override { return "<counting>"; }
  std::span<const std::byte> range(std::uint64_t offset, std::uint64_t length) const {
    return std::span(bytes_).subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(length));
  }
  mutable std::atomic<std::uint64_t> read{0}, reads{0};

 private:
  std::vector<std::byte> bytes_;
};

std::shared_ptr<Counting> counting(std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 131 >> 7);
  return std::make_shared<Counting>(std::move(bytes));
}

struct Part8 {
  std::uint64_t offset, length;
  DType dtype = DType::u8;
};

Model model_of(const std::shared_ptr<const Source>& source, const std::vector<Part8>& parts) {
  Draft draft;
  draft.add_source(source);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::uint64_t shape[] = {parts[i].length};
    draft.add_tensor("t" + std::to_string(i), Layout::dense, parts[i].dtype, shape);
    draft.add_part("data", parts[i].dtype, shape, Encoding::raw, {0, parts[i].offset, parts[i].length},
                   parts[i].length);
  }
  return draft.finish();
}

// Jobs for every tensor, with correct digests.
struct Jobs {
  std::vector<std::string> digests;
  std::vector<PartJob> jobs;
};
Jobs jobs_of(const Model& model, const Counting& source, PartDigest digest) {
  Jobs out;
  out.digests.reserve(model.size());
  for (std::uint32_t i = 0; i < model.size(); ++i) {
    PartJob job;
    job.tensor = model[i];
    job.part = model[i].main();
    const auto bytes = source.range(job.part.extent()->offset, job.part.extent()->length);
    out.digests.push_back(digest == PartDigest::sha256 ? codecs::to_hex(codecs::sha256(bytes))
                                                       : codecs::to_hex(codecs::crc32c(bytes)));
    for (char& c : out.digests.back()) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    job.digest = digest;
    job.expected = out.digests.back();
    job.digest_rule = &kDigest;
    out.jobs.push_back(job);
  }
  return out;
}

Context threads(unsigned n) {
  Context context;
  context.executor = thread_executor(n);
  return context;
}

TEST(CheckParts, FindsTheWrongDigestsOfPartsOfEverySize) {
  const auto source = counting(40'000'000);
  const Model model =
      model_of(source, {{0, 5}, {5, 0}, {64, 65536}, {70'000, 65537}, {200'000, 262'145}, {500'000, 39'000'001}});
  for (const PartDigest digest : {PartDigest::sha256, PartDigest::crc32c}) {
    for (const unsigned n : {1U, 3U}) {
      Jobs made = jobs_of(model, *source, digest);
      std::vector<Finding> found;
      check_parts(made.jobs, threads(n), found);
      EXPECT_TRUE(found.empty());
      for (std::string& text : made.digests) text[0] = text[0] == '0' ? '1' : '0';
      for (std::size_t i = 0; i < made.jobs.size(); ++i) made.jobs[i].expected = made.digests[i];
      check_parts(made.jobs, threads(n), found);
      sort_findings(found);
      ASSERT_EQ(found.size(), model.size());
      EXPECT_EQ(found[0].offset, 0U);
      EXPECT_EQ(found[5].tensor, "t5");
    }
  }
}

TEST(CheckParts, SharesReadEachRunOnceWhateverTheirThreads) {
  const auto source = counting(60'000'000);
  const Model model = model_of(source, {{0, 5},
                                        {64, 65536},
                                        {65'600, 65536},
                                        {200'000, 262'145},
                                        {500'000, 19'000'001},
                                        {20'000'000, 20'000'000},
                                        {20'000'000, 20'000'000},
                                        {40'000'000, 19'000'000}});
  for (const PartDigest digest : {PartDigest::sha256, PartDigest::crc32c}) {
    Jobs made = jobs_of(model, *source, digest);
    for (std::string& text : made.digests) text[0] = text[0] == '0' ? '1' : '0';
    for (std::size_t i = 0; i < made.jobs.size(); ++i) made.jobs[i].expected = made.digests[i];
    std::vector<Finding> alone, together;
    source->read = 0;
    check_parts(made.jobs, {}, alone);
    const std::uint64_t all = source->read.exchange(0);
    for (std::uint32_t index = 0; index < 3; ++index) {
      const Context context = threads(index + 1);
      const std::uint64_t before = source->read;
      Progress progress(context, stored_bytes(made.jobs));
      check_parts(made.jobs, context, progress, together, {index, 3});
      EXPECT_LE(source->read - before, 21'000'000U) << "share " << index << " is far more than a third";
    }
    EXPECT_EQ(source->read, all);
    sort_findings(alone);
    sort_findings(together);
    EXPECT_EQ(alone.size(), model.size());
    EXPECT_EQ(together, alone);
  }
}

// Long parts of similar length are hashed in lanes, the others alone; findings must not depend on it.
TEST(CheckParts, FindsTheWrongDigestsAmongManyLongParts) {
  const auto source = counting(30'000'000);
  std::vector<Part8> parts{{3, 5'000'000}};
  for (std::uint64_t i = 0; i < 37; ++i) parts.push_back({i * 400'000, 65'537 + i % 5 * 64'000});
  for (std::uint64_t i = 0; i < 20; ++i) parts.push_back({16'000'001 + i * 300'000, 262'144});
  for (std::uint64_t i = 0; i < 9; ++i) parts.push_back({23'000'000 + i * 70'000, 65'536 - i});
  const Model model = model_of(source, parts);
  for (const unsigned n : {1U, 2U, 3U, 16U}) {
    Jobs made = jobs_of(model, *source, PartDigest::sha256);
    std::vector<Finding> found;
    check_parts(made.jobs, threads(n), found);
    EXPECT_TRUE(found.empty());
    std::vector<std::uint64_t> wrong;
    for (std::size_t i = 0; i < made.jobs.size(); i += 3) {
      made.digests[i].back() = made.digests[i].back() == '0' ? '1' : '0';
      made.jobs[i].expected = made.digests[i];
      wrong.push_back(parts[i].offset);
    }
    check_parts(made.jobs, threads(n), found);
    sort_findings(found);
    std::ranges::sort(wrong);
    ASSERT_EQ(found.size(), wrong.size());
    for (std::size_t i = 0; i < wrong.size(); ++i) EXPECT_EQ(found[i].offset, wrong[i]);
  }
}

TEST(CheckParts, ChecksEverythingElseOfPartsThatAreHashedSideBySide) {
  std::vector<std::byte> bytes(6'400'000, std::byte{1});
  for (std::size_t i = 0; i < 16; ++i) bytes[i * 400'000 + 1] = static_cast<std::byte>(i % 2);
  bytes[5 * 400'000 + 250'000] = std::byte{9};
  const auto source = std::make_shared<Counting>(std::move(bytes));
  std::vector<Part8> parts;
  for (std::uint64_t i = 0; i < 32; ++i) parts.push_back({i / 2 * 400'000, 400'000, DType::boolean});
  const Model model = model_of(source, parts);
  Jobs made = jobs_of(model, *source, PartDigest::sha256);
  const Jobs sums = jobs_of(model, *source, PartDigest::crc32c);
  const std::string wrong = "00000000";
  for (std::size_t i = 0; i < 32; ++i) {  // tensors share bytes in pairs: one has a SHA-256, the other a CRC
    if (i % 2 == 1) made.jobs[i] = sums.jobs[i];
    made.jobs[i].bool_rule = i % 2 == 0 ? &kBool : nullptr;
  }
  made.jobs[7].expected = wrong;
  std::vector<Finding> found;
  check_parts(made.jobs, {}, found);
  sort_findings(found);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].tensor, "t7");
  EXPECT_EQ(found[0].rule, "test/digest");
  EXPECT_EQ(found[1].tensor, "t10");
  EXPECT_EQ(found[1].rule, "test/bool");
  EXPECT_EQ(found[1].offset, 2'250'000U);
  EXPECT_EQ(source->read, 6'400'000U);
}

TEST(CheckParts, StopsAmongPartsThatAreHashedSideBySide) {
  const auto source = counting(16'000'000);
  std::vector<Part8> parts;
  for (std::uint64_t i = 0; i < 16; ++i) parts.push_back({i * 1'000'000, 1'000'000});
  const Model model = model_of(source, parts);
  const Jobs made = jobs_of(model, *source, PartDigest::sha256);
  Context context;
  std::uint64_t last = 0;
  context.progress = [&](std::uint64_t done, std::uint64_t total) {
    EXPECT_EQ(total, 16'000'000U);
    EXPECT_GE(done, last);
    last = done;
    return true;
  };
  std::vector<Finding> found;
  check_parts(made.jobs, context, found);
  EXPECT_EQ(last, 16'000'000U);
  EXPECT_TRUE(found.empty());
  source->read = 0;
  context.progress = [](std::uint64_t done, std::uint64_t) { return done < 2'000'000; };
  EXPECT_THROW(check_parts(made.jobs, context, found), Cancelled);
  EXPECT_LE(source->read, 3'000'000U);
  EXPECT_TRUE(found.empty());
}

TEST(CheckParts, NamesTheFirstByteThatIsNoBool) {
  std::vector<std::byte> bytes(20'000'000, std::byte{1});
  bytes[17'000'001] = std::byte{2};
  bytes[18'000'000] = std::byte{3};
  const auto source = std::make_shared<Counting>(std::move(bytes));
  const Model model = model_of(source, {{1, 19'999'999, DType::boolean}});
  PartJob job;
  job.tensor = model[0U];
  job.part = model[0U].main();
  job.bool_rule = &kBool;
  std::vector<Finding> found;
  check_parts({&job, 1}, threads(2), found);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].offset, 17'000'001U);
  EXPECT_EQ(found[0].found, "2");
  EXPECT_EQ(found[0].message, "not a bool: component \"data\", element 17000000 (expected 0 or 1, found 2)");
}

TEST(CheckParts, ReadsAliasesOnceAndSmallNeighborsTogether) {
  const auto source = counting(4'000'000);
  std::vector<Part8> parts(50, {0, 1'000'000});
  for (std::uint64_t i = 0; i < 10'000; ++i) parts.push_back({1'000'000 + i * 256, 200});
  const Model model = model_of(source, parts);
  const Jobs made = jobs_of(model, *source, PartDigest::crc32c);
  std::vector<Finding> found;
  check_parts(made.jobs, {}, found);
  EXPECT_TRUE(found.empty());
  EXPECT_LE(source->read, 3'600'000U);
  EXPECT_LE(source->reads, 20U);
}

TEST(CheckParts, HandsBackWhyAFrameDoesNotDecode) {
  const std::vector<std::byte> data(300'000, std::byte{7}), frame = codecs::encode(codecs::kZstd, data);
  const std::size_t size = frame.size();
  const auto source = std::make_shared<Counting>(frame);
  Draft draft;
  draft.add_source(source);
  const std::uint64_t right[] = {300'000}, wrong[] = {300'001};
  draft.add_tensor("right", Layout::dense, DType::u8, right);
  draft.add_part("data", DType::u8, right, Encoding::zstd, {0, 0, size}, 300'000);
  draft.add_tensor("wrong", Layout::dense, DType::u8, wrong);
  draft.add_part("data", DType::u8, wrong, Encoding::zstd, {0, 0, size}, 300'001);
  const Model model = draft.finish();
  std::vector<PartJob> jobs(2);
  for (std::uint32_t i = 0; i < 2; ++i) {
    jobs[i].tensor = model[i];
    jobs[i].part = model[i].main();
    jobs[i].encoding_rule = &kZstd;
  }
  std::vector<Finding> found;
  check_parts(jobs, {}, found);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].tensor, "wrong");
}

TEST(CheckParts, TellsProgressAndStops) {
  const auto source = counting(10'000'000);
  const Model model = model_of(source, {{0, 9'000'000}, {9'000'000, 100}});
  const Jobs made = jobs_of(model, *source, PartDigest::sha256);
  Context context;
  std::uint64_t last = 0;
  context.progress = [&](std::uint64_t done, std::uint64_t total) {
    EXPECT_EQ(total, 9'000'100U);
    EXPECT_GE(done, last);
    last = done;
    return true;
  };
  std::vector<Finding> found;
  check_parts(made.jobs, context, found);
  EXPECT_EQ(last, 9'000'100U);
  context.progress = [](std::uint64_t done, std::uint64_t) { return done < 1'000'000; };
  EXPECT_THROW(check_parts(made.jobs, context, found), Cancelled);
  EXPECT_TRUE(found.empty());
}

}  // namespace
}  // namespace weighbridge::core
