// SPDX-License-Identifier: Apache-2.0
// Modules opened, verified and run: one for each rule (cases.cc), and the results of valid ones.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "runtime/khlnary/cases.h"
#include "runtime/khlnary/module.h"
#include "support/temporary_folder.h"
#include "support/thrown.h"
#include "weighbridge/source.h"

namespace weighbridge::khlnary {
using namespace internal;
namespace {

using test::TemporaryFolder;
using test::thrown;
using test::write_file;

Result run_case(const Case& c, RunOptions options = {}) {
  options.authority = c.authority;
  return run(Module::open(c.folder().open("m.knu")), options);
}

Case with(std::string_view text, std::optional<std::string> sidecar = {}) {
  return {"", "", stored(assemble(text)), std::move(sidecar)};
}

Case named(std::string_view name) {
  for (Case& c : cases())
    if (c.name == name) return c;
  throw std::logic_error("no such case");
}

Report verify_case(const Case& c) { return verify(c.folder().open("m.knu"), {}, c.authority); }

TEST(Cases, EachRuleHasOne) {
  std::set<std::string, std::less<>> rules;
  for (const Case& c : cases()) rules.insert(c.rule);
  for (const Rule& rule : rules::kAll)
    EXPECT_TRUE(rules.contains(rule.id) || rule.id == "khlnary/syntax" || rule.id.starts_with("khlnary/pack-"))
        << rule.id;  // those concern texts and models, not modules
}

TEST(Cases, RunRefusesWhatItComesTo) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    if (c.rule.empty() || c.found == Case::Found::by_verify) {
      EXPECT_NO_THROW(run_case(c));
      continue;
    }
    const Finding found = thrown([&] { run_case(c); });
    EXPECT_EQ(found.rule, c.rule);
    EXPECT_EQ(found.kind, Kind::malformed);
    EXPECT_EQ(found.offset, c.offset) << found.message;
  }
}

TEST(Cases, VerifyReportsWhatCanBeKnown) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    const Report report = verify_case(c);
    if (c.rule.empty() || c.found == Case::Found::by_run) {
      EXPECT_EQ(report.total(), 0U) << (report.first_error() ? report.first_error()->message : "");
      continue;
    }
    ASSERT_EQ(report.total(), 1U);
    const Finding& finding = report.findings()[0];
    EXPECT_EQ(finding.rule, c.rule);
    EXPECT_EQ(finding.offset, c.offset) << finding.message;
    EXPECT_EQ(report.valid(), finding.severity == Severity::unsupported);
  }
}

TEST(Run, ComputesAndReturns) {
  EXPECT_EQ(run_case(named("sound-empty")).value, std::nullopt);
  EXPECT_EQ(run_case(named("sound-function")).value, (Cell{.integer = 42}));
  EXPECT_EQ(run_case(with("CONST_I8 -128\nCONST_I8 127\nADD_I32\nRET\nCONST_I8 9")).value, (Cell{.integer = -1}));
  // 0 is popped and the jump skips the branch to the word at +2.
  const Result jumped = run_case(with("CONST_I8 7\nCONST_I8 0\nIFZ_JUMP8 +2\nCONST_I8 8\nNOP"));
  EXPECT_EQ(jumped.value, (Cell{.integer = 7}));
  EXPECT_EQ(jumped.steps, 4U);
  EXPECT_EQ(run_case(with("CONST_I8 7\nCONST_I8 1\nIFZ_JUMP8 +2\nCONST_I8 8\nNOP")).value, (Cell{.integer = 8}));
}

// A prefetch may do nothing, so the same program without its file ends the same way.
TEST(Run, APrefetchOfAMissingOrDamagedFileChangesNothing) {
  const std::string program = "PREFETCH_BIN file=0\nPREFETCH_BIN file=1\nCONST_I8 7\nRET";
  for (const std::string_view path : {"a.stb", "none.stb", "bad.stb", "sub", "link.stb"}) {
    const std::string files = R"({"schema":1,"files":[{"id":0,"path":")" + std::string(path) + R"("}]})";
    EXPECT_EQ(run_case(with(program, files)).value, (Cell{.integer = 7})) << path;
  }
  EXPECT_EQ(run_case(with(program)).value, (Cell{.integer = 7}));
}

TEST(Run, SumsWrap) {
  // Doubles 64 until it wraps: 64 << 26 is 0 modulo 2^32.
  std::string text = "FUNC_DEF 0\nADD_I32\nRET\nFUNC_END\nCONST_I8 64\n";
  for (int i = 0; i < 6; ++i) text += "CONST_I8 127\nADD_I32\n";
  EXPECT_EQ(run_case(with(text)).value, (Cell{.integer = 64 + 6 * 127}));
}

TEST(Run, FunctionsLeaveTheirResultOnTopAndTheRestBelow) {
  const std::string table = R"({"schema":1,"files":[],"functions":[{"id":0,"offset":1}]})";
  const Result result = run_case(with("CONST_I8 1\nFUNC_DEF 0\nCONST_I8 5\nCONST_I8 6\nRET\nFUNC_END\nCALL 0", table));
  EXPECT_EQ(result.stack, (std::vector<Cell>{{.integer = 1}, {.integer = 5}, {.integer = 6}}));
  EXPECT_EQ(result.steps, 6U);  // a definition reached in sequence is one step
}

TEST(Run, NestedDefinitionsAreSkippedWhole) {
  const Result result =
      run_case(with("FUNC_DEF 0\nFUNC_DEF 1\nRET\nFUNC_END\nFUNC_DEF 2\nRET\nFUNC_END\nRET\nFUNC_END\nCONST_I8 3"));
  EXPECT_EQ(result.value, (Cell{.integer = 3}));
  EXPECT_EQ(result.steps, 2U);
}

TEST(Run, LoadsTensorsOnceAndKeepsThemAlive) {
  const Case c =
      with("LOAD_BIN_TENSOR file=0 tensor=5\nLOAD_BIN_TENSOR file=0 tensor=0\nLOAD_BIN_TENSOR file=0 tensor=5",
           R"({"schema":1,"files":[{"id":0,"path":"a.stb"}],"tensors":[{"file":0,"id":0,"name":"w"}]})");
  const Result result = run_case(c);
  EXPECT_EQ(result.value, (Cell{.kind = Cell::Kind::tensor, .file = 0, .tensor = 5}));
  ASSERT_EQ(result.loaded.size(), 2U);
  EXPECT_EQ(result.loaded[0].id, 5);
  EXPECT_EQ(result.loaded[0].times, 2U);
  EXPECT_EQ(result.loaded[0].tensor.name(), "5");
  EXPECT_EQ(result.loaded[1].tensor.name(), "w");
  EXPECT_EQ(result.loaded[1].path, "a.stb");
  const std::vector<Value> first = first_values(result.loaded[1].tensor, 3);
  ASSERT_EQ(first.size(), 3U);
  EXPECT_EQ(first[2].to_text(), "3");
  EXPECT_EQ(first_values(result.loaded[0].tensor, 8)[0].to_text(), "-1");
}

TEST(Run, RegionsAreMappedWhereTheyCanBe) {
  const auto files = [](std::string_view name) {
    return R"({"schema":1,"files":[{"id":9,"path":")" + std::string(name) + "\"}]}";
  };
  const Result mapped = run_case(with("MMAP_BIN_REGION file=9\nMMAP_BIN_REGION file=9 arity=1", files("a.stb")));
  ASSERT_EQ(mapped.regions.size(), 1U);
  EXPECT_EQ(mapped.regions[0].bytes.span.size(), small_stb().size());
  EXPECT_EQ(mapped.stack, (std::vector<Cell>{{.kind = Cell::Kind::region, .file = 9}}));
  const Result read = run_case(with("MMAP_BIN_REGION file=9", files("unmappable.stb")));
  ASSERT_EQ(read.regions.size(), 1U);
  EXPECT_EQ(read.regions[0].bytes.keep, nullptr);
}

TEST(Run, AHandleMaySayThatItsTensorCannotBeRead) {
  const Result result = run_case(named("unsupported-tensor"));
  ASSERT_EQ(result.loaded.size(), 1U);
  EXPECT_FALSE(result.loaded[0].tensor.has_shape());
  EXPECT_NE(result.loaded[0].tensor.unsupported(), nullptr);
  EXPECT_TRUE(first_values(result.loaded[0].tensor, 4).empty());
}

TEST(Run, TheShapeTableIsTheModules) {
  const std::string table = R"({"schema":1,"files":[{"id":0,"path":"rank4.stb"}],"shapes":[[1,2,2,1]]})";
  const Result result = run_case(with("LOAD_BIN_TENSOR file=0 tensor=0", table));
  ASSERT_TRUE(result.loaded[0].tensor.has_shape());
  EXPECT_EQ(result.loaded[0].tensor.shape()[1], 2U);
}

// The file's own sidecar gives a shape of rank 4. A run did not take it, and verify said nothing of what a run lacked.
TEST(Run, ATensorHasTheSameShapeInAModuleAsInItsFile) {
  const auto files = [](std::string_view more) {
    return R"({"schema":1,"files":[{"id":3,"path":"rank4.stb"}])" + std::string(more) + "}";
  };
  const std::string program = "LOAD_BIN_TENSOR file=3 tensor=0";
  const auto shape_with = [&](const std::string& modules, const std::string& own) -> std::string {
    MemoryFolder folder = with(program, modules).folder();
    if (!own.empty()) folder.add("rank4.khm.json", own);
    const Report report = verify(folder.open("m.knu"));
    if (!report.valid()) return std::string(report.first_error()->rule);
    const Result result = run(Module::open(folder.open("m.knu")));
    const Tensor& tensor = result.loaded[0].tensor;
    EXPECT_EQ(report.unsupported(), tensor.has_shape() ? 0U : 1U);
    return tensor.has_shape() ? std::to_string(tensor.shape()[1]) + " " + std::string(tensor.name()) : "no shape";
  };
  const std::string table = R"(,"shapes":[[1,2,2,1]])",
                    entry = R"(,"tensors":[{"file":3,"id":0,"name":"w","shape":[1,4,1,1]}])",
                    named = R"(,"tensors":[{"file":3,"id":0,"name":"v"}])";
  EXPECT_EQ(shape_with(files(""), ""), "no shape");
  EXPECT_EQ(shape_with(files(""), files(table)), "2 0");
  EXPECT_EQ(shape_with(files(""), files(entry)), "4 w");
  EXPECT_EQ(shape_with(files(named), files(entry)), "4 v");
  EXPECT_EQ(shape_with(files(table), files(named)), "2 v");
  EXPECT_EQ(shape_with(files(table), files(entry)), "khlnary/shape-mismatch");
  EXPECT_EQ(shape_with(files(""), "{"), "khlnary/file");
}

TEST(Run, TwoIdsOfOnePathHaveTheirOwnNames) {
  const std::string table = R"({"schema":1,"files":[{"id":0,"path":"a.stb"},{"id":1,"path":"a.stb"}],)"
                            R"("tensors":[{"file":0,"id":0,"name":"zero"},{"file":1,"id":0,"name":"one"}]})";
  const Result result = run_case(with("LOAD_BIN_TENSOR file=1 tensor=0\nLOAD_BIN_TENSOR file=0 tensor=0", table));
  EXPECT_EQ(result.loaded[0].tensor.name(), "one");
  EXPECT_EQ(result.loaded[1].tensor.name(), "zero");
}

TEST(Run, LimitsAreTheCallers) {
  const Case three = with("CONST_I8 1\nCONST_I8 2\nCONST_I8 3");
  EXPECT_EQ(run_case(three, {.max_steps = 3}).steps, 3U);
  EXPECT_EQ(thrown([&] { run_case(three, {.max_steps = 2}); }).rule, "khlnary/step-limit");
  EXPECT_NO_THROW(run_case(three, {.max_stack = 3}));
  EXPECT_EQ(thrown([&] { run_case(three, {.max_stack = 2}); }).rule, "khlnary/stack-limit");
  EXPECT_EQ(thrown([&] { run_case(named("sound-function"), {.max_calls = 0}); }).rule, "khlnary/call-depth");
  for (const unsigned authority : {0U, 8U}) {
    Case wrong = three;
    wrong.authority = authority;
    EXPECT_EQ(thrown([&] { run_case(wrong); }).rule, "misuse/authority");
    EXPECT_EQ(thrown([&] { verify_case(wrong); }).rule, "misuse/authority");
  }
}

TEST(Run, AProgressHookStopsIt) {
  Context context;
  context.progress = [](std::uint64_t done, std::uint64_t) { return done == 0; };
  const Module module = Module::open(named("step-limit").folder().open("m.knu"));
  EXPECT_THROW(run(module, {}, context), Cancelled);
}

TEST(Run, TraceSeesEachWordWithTheStackThatItFinds) {
  RunOptions options;
  std::vector<std::string> seen;
  options.trace = [&](const Step& step) {
    std::string line = std::to_string(step.index) + " " + disassemble(step.word);
    for (const Cell& cell : step.stack) line += " | " + to_text(cell);
    seen.push_back(line);
  };
  run_case(named("sound-function"), options);
  EXPECT_EQ(seen, (std::vector<std::string>{"0 FUNC_DEF 1", "5 CONST_I8 40", "6 CALL 1 | 40", "1 CONST_I8 2 | 40",
                                            "2 ADD_I32 | 40 | 2", "3 RET | 42", "7 RET | 42"}));
}

TEST(Open, SidecarsAreJudgedByTheirOwnRules) {
  const Case broken = with("NOP", R"({"schema":2,"files":[]})");
  EXPECT_EQ(thrown([&] { run_case(broken); }).rule, "stb/sidecar-schema");
  EXPECT_EQ(verify_case(broken).first_error()->rule, "stb/sidecar-schema");
  const Case leaves = with("NOP", R"({"schema":1,"files":[{"id":0,"path":"../a.stb"}]})");
  EXPECT_EQ(thrown([&] { run_case(leaves); }).rule, "stb/sidecar-path");
}

TEST(Open, LargerThanTheLimitIsRefused) {
  Context context;
  context.limits.header = 8;
  const MemoryFolder folder = with("NOP\nNOP\nNOP").folder();
  EXPECT_EQ(thrown([&] { Module::open(folder.open("m.knu"), {}, context); }).rule, "limit/header");
  EXPECT_EQ(verify(folder.open("m.knu"), {}, kMaxAuthority, context).first_error()->rule, "limit/header");
}

TEST(Verify, GoesOnAfterAnError) {
  const Report report =
      verify_case(with("JUMP8 -1\nCALL 3\nLOAD_BIN_TENSOR file=2 tensor=0\nMMAP_BIN_REGION file=2\nFUNC_END"));
  std::vector<std::string> rules;
  for (const Finding& finding : report.findings()) rules.push_back(finding.rule);
  EXPECT_EQ(rules, (std::vector<std::string>{"khlnary/jump", "khlnary/function", "khlnary/file-id",
                                             "khlnary/stray-function-end"}));
}

TEST(Verify, FollowsEveryPathToAFunctionEnd) {
  const auto first = [](std::string_view text) {
    const Report report = verify_case(with(text));
    return report.first_error() ? report.first_error()->rule : "";
  };
  EXPECT_EQ(first("FUNC_DEF 0\nRET\nFUNC_END"), "");
  EXPECT_EQ(first("FUNC_DEF 0\nIFZ_JUMP8 +2\nRET\nFUNC_END"), "khlnary/no-return");
  EXPECT_EQ(first("FUNC_DEF 0\nJUMP8 +2\nNOP\nRET\nFUNC_END"), "");
  EXPECT_EQ(first("FUNC_DEF 0\nJUMP8 +0\nFUNC_END"), "");  // an endless loop never reaches the end
  EXPECT_EQ(first("FUNC_DEF 0\nFUNC_DEF 1\nRET\nFUNC_END\nFUNC_END"), "khlnary/no-return");
}

TEST(Files, StayBeneathTheSidecarsFolder) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "in");
  write_file(folder / "secret.stb", small_stb());
  write_file(folder / "in/a.stb", small_stb());
  std::filesystem::create_symlink("../secret.stb", folder / "in/link.stb");
  std::filesystem::create_symlink("a.stb", folder / "in/inside.stb");
  write_file(folder / "in/m.knu", stored(assemble("LOAD_BIN_TENSOR file=0 tensor=0")));
  const auto run_with = [&](std::string_view path) {
    write_file(folder / "in/m.khm.json",
               R"({"schema":1,"files":[{"id":0,"path":")" + std::string(path) + R"(","mmap_required":true}]})");
    return run(Module::open(open_file(folder / "in/m.knu"))).loaded.size();
  };
  EXPECT_EQ(run_with("a.stb"), 1U);
  EXPECT_EQ(run_with("inside.stb"), 1U);
  EXPECT_EQ(thrown([&] { run_with("link.stb"); }).rule, "khlnary/path");
  EXPECT_EQ(thrown([&] { run_with("none.stb"); }).rule, "khlnary/file-missing");
  EXPECT_EQ(thrown([&] { run_with("../secret.stb"); }).rule, "stb/sidecar-path");
}

TEST(Files, ABigTableOfBrokenFilesIsReadOnce) {
  // 60,000 words name one broken file, which is opened and reported once.
  std::string text;
  for (int i = 0; i < 60'000; ++i) text += "MMAP_BIN_REGION file=0\n";
  const Report report = verify_case(with(text, R"({"schema":1,"files":[{"id":0,"path":"bad.stb"}]})"));
  EXPECT_EQ(report.total(), 1U);
}

}  // namespace
}  // namespace weighbridge::khlnary
