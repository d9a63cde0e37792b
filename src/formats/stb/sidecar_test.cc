// SPDX-License-Identifier: Apache-2.0
// The sidecar by itself: what is read, where findings point, which file a sidecar speaks of, and that what is written
// reads back. The rules one by one are the corpus's.
#include "formats/stb/sidecar.h"

#include <gtest/gtest.h>

#include <ctime>

#include "support/sanitized.h"

namespace weighbridge::stb {
namespace {

struct Parsed {
  Report report;
  std::optional<Sidecar> sidecar;
};

Parsed parse(std::string_view text, core::Findings::Mode mode = core::Findings::Mode::all) {
  Parsed out;
  core::Findings findings(out.report, mode);
  out.sidecar = parse_sidecar(text, {}, findings);
  return out;
}

Sidecar sample() {
  Sidecar out;
  out.module = "m.knu";
  out.files = {{.id = 3, .path = "a.stb"}, {.id = 200, .path = "b/\xC3\xA9.stb", .mmap_required = true, .size = 64}};
  out.shapes = {{1, 2, 3, UINT32_MAX}, {}, {0, UINT64_MAX}};
  out.functions = {{.id = 0, .name = "main \"f\"", .offset = 7}, {.id = 255, .name = "", .offset = UINT64_MAX}};
  out.tensors = {{3, 0, "w"}, {200, 0, "", std::vector<std::uint64_t>{4, 5}}};
  return out;
}

TEST(StbSidecar, WhatIsWrittenReadsBack) {
  const std::string text = write_sidecar(sample());
  const auto [report, read] = parse(text);
  ASSERT_TRUE(read.has_value()) << report.first_error()->message;
  EXPECT_EQ(report.total(), 0U);
  EXPECT_EQ(write_sidecar(*read), text);
  EXPECT_EQ(read->module, "m.knu");
  ASSERT_EQ(read->files.size(), 2U);
  EXPECT_EQ(read->files[1].path, "b/\xC3\xA9.stb");
  EXPECT_TRUE(read->files[1].mmap_required);
  EXPECT_FALSE(read->files[0].mmap_required);
  EXPECT_EQ(read->files[1].size, 64U);
  EXPECT_FALSE(read->files[0].size.has_value());
  EXPECT_EQ(*read->shapes, *sample().shapes);
  EXPECT_EQ(read->functions[1].offset, UINT64_MAX);
  EXPECT_EQ(read->tensors[1].shape, (std::vector<std::uint64_t>{4, 5}));
  EXPECT_FALSE(read->tensors[0].shape.has_value());
}

TEST(StbSidecar, LooksUpByIds) {
  const Sidecar sidecar = sample();
  EXPECT_EQ(sidecar.file(200), &sidecar.files[1]);
  EXPECT_EQ(sidecar.file(1), nullptr);
  EXPECT_EQ(sidecar.function(255), &sidecar.functions[1]);
  EXPECT_EQ(sidecar.function(1), nullptr);
  EXPECT_EQ(sidecar.tensor(200, 0), &sidecar.tensors[1]);
  EXPECT_EQ(sidecar.tensor(200, 1), nullptr);
}

TEST(StbSidecar, NoShapeTableIsNotAnEmptyOne) {
  EXPECT_FALSE(parse(R"({"schema":1,"files":[]})").sidecar->shapes.has_value());
  EXPECT_TRUE(parse(R"({"schema":1,"files":[],"shapes":[]})").sidecar->shapes.has_value());
}

TEST(StbSidecar, FindingsSayThatTheirOffsetIsTheSidecars) {
  const std::string text = R"({"schema":1,"files":[{"id":0,"path":"../a.stb"}]})";
  const auto [report, read] = parse(text);
  EXPECT_FALSE(read.has_value());
  ASSERT_EQ(report.total(), 1U);
  const Finding& finding = report.findings()[0];
  EXPECT_EQ(finding.rule, "stb/sidecar-path");
  EXPECT_EQ(finding.offset, text.find("\"../"));
  EXPECT_EQ(finding.message,
            "a path in the sidecar is not a relative path without .., backslash, NUL or drive letter: files[0].path "
            "(found ../a.stb)");
}

TEST(StbSidecar, AllErrorsAreListedAndTheFirstOneStops) {
  const std::string text = R"({"schema":2,"files":[{"id":-1},{"path":7,"id":0,"x":0}]})";
  EXPECT_EQ(parse(text).report.errors(), 5U);
  EXPECT_THROW(parse(text, core::Findings::Mode::first_error), core::Stop);
}

TEST(StbSidecar, PathsStayBelow) {
  for (const char* good : {"a", "a.stb", "a/b.stb", "./a", "a/..b", "a/b..", "...", "ab:c", "1:b", "\xC3\xA9", "a//b"})
    EXPECT_TRUE(is_sidecar_path(good)) << good;
  for (const char* bad : {"", "/", "/a", "..", "../a", "a/..", "a/../b", "a\\b", "c:", "C:a", "z:/a", "a/"})
    EXPECT_FALSE(is_sidecar_path(bad)) << bad;
  EXPECT_FALSE(is_sidecar_path(std::string_view("a\0b", 3)));
}

TEST(StbSidecar, KnowsWhichFileItSpeaksOf) {
  Sidecar sidecar;
  EXPECT_EQ(sidecar.file_named("a.stb"), nullptr);
  sidecar.files = {{.id = 0, .path = "a.stb"}};
  EXPECT_EQ(sidecar.file_named("/x/other.stb"), &sidecar.files[0]);  // the only one
  sidecar.files = {{.id = 0, .path = "a.stb"}, {.id = 1, .path = "x/b.stb"}, {.id = 2, .path = "./y/b.stb"}};
  EXPECT_EQ(sidecar.file_named("/m/a.stb"), &sidecar.files[0]);
  EXPECT_EQ(sidecar.file_named("/m/x/b.stb"), &sidecar.files[1]);
  EXPECT_EQ(sidecar.file_named("/m/y/b.stb"), &sidecar.files[2]);
  EXPECT_EQ(sidecar.file_named("/m/z/b.stb"), nullptr);  // two are called so
  EXPECT_EQ(sidecar.file_named("/m/yy/b.stb"), nullptr);
  EXPECT_EQ(sidecar.file_named("/m/other.stb"), nullptr);
  sidecar.files.pop_back();
  EXPECT_EQ(sidecar.file_named("/m/z/b.stb"), &sidecar.files[1]);  // moved, and the only one that is called so
}

TEST(StbSidecar, IsCalledAsTheFileItLiesBeside) {
  EXPECT_EQ(sidecar_name("/a/b.c/w.x.stb"), "w.x.khm.json");
  EXPECT_EQ(sidecar_name("/a/b.c/weights"), "weights.khm.json");
  EXPECT_EQ(sidecar_name(".stb"), ".stb.khm.json");
}

// Reading G13: arrays without end cost no more than their text.
TEST(StbSidecar, MillionsOfEntriesAreRefusedAtOnce) {
  for (const std::string_view entry : {"[],", "0,", "{},", R"({"id":0,"path":"a"},)"}) {
    for (const std::string_view key : {"files", "shapes", "functions", "tensors", "x"}) {
      SCOPED_TRACE(std::string(key) + " " + std::string(entry));
      std::string text = R"({"schema":1,")" + std::string(key) + "\":[";
      while (text.size() < 4'000'000) text += entry;
      text.back() = ']';
      const std::clock_t start = std::clock();
      const auto [report, read] = parse(text + "}");
      EXPECT_FALSE(read.has_value());
      EXPECT_LE(report.findings().size(), Report::kMaxFindings);
      if (!test::kSanitized) {
        EXPECT_LT(std::clock() - start, CLOCKS_PER_SEC);
      }
    }
  }
}

}  // namespace
}  // namespace weighbridge::stb
