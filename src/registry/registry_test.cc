// SPDX-License-Identifier: Apache-2.0
// Detection, and the findings for files that are not tensor files.
#include "registry/registry.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <set>

#include "base/fail.h"
#include "core/reading/rules.h"
#include "io/forwarding_source.h"
#include "registry/detect.h"
#include "support/temporary_folder.h"
#include "support/thrown.h"
#include "support/tiny_folders.h"
#include "weighbridge/open.h"
#include "weighbridge/verify.h"

namespace weighbridge {
namespace {

using huggingface::testing::kEmptySafetensors;
using namespace std::string_literals;

std::shared_ptr<const Source> source(std::string text, std::string name = "<memory>") {
  const auto kept = std::make_shared<const std::string>(std::move(text));
  return memory_source({std::as_bytes(std::span(*kept)), kept}, std::move(name));
}

std::string rule_of(const std::string& text, const std::string& name = "<memory>") {
  return test::thrown([&] { open(source(text, name)); }).rule;
}

TEST(Registry, FindsByNameAndExtension) {
  for (const core::Format* format : registry::formats()) {
    EXPECT_EQ(registry::find(format->info.name), format);
    for (const std::string_view extension : format->info.extensions)
      EXPECT_EQ(registry::find_by_extension(extension), format) << extension;
  }
  EXPECT_EQ(registry::find("nothing"), nullptr);
  EXPECT_EQ(registry::find_by_extension(""), nullptr);
}

TEST(Detection, GoesByContentBeforeTheExtension) {
  EXPECT_EQ(verify(source(kEmptySafetensors, "model.zt")).format, "safetensors");
  EXPECT_EQ(verify(source(kEmptySafetensors)).format, "safetensors");
}

TEST(Detection, TheExtensionNamesTheSuspectWhereTheContentSaysNothing) {
  EXPECT_EQ(rule_of("\x08\0\0\0\0\0\0\0 {}     "s, "a/model.safetensors"), "safetensors/header-start");
  EXPECT_EQ(rule_of("\x08\0\0\0\0\0\0\0 {}     "s, "a/MODEL.SAFETENSORS"), "safetensors/header-start");
  EXPECT_EQ(rule_of("\x08\0\0\0\0\0\0\0 {}     "s, "a/model"), "file/unknown");
}

// Once, each of these was "ok", and a loader of pickles ran what it names.
TEST(Verify, AFileThatIsAlsoAPickleIsAnError) {
  const std::string code = "cos\nsystem\n(S'true'\ntR.";
  const auto polyglot = [&](const std::string& payload) {
    std::string header = R"({"w":{"dtype":"U8","shape":[)" + std::to_string(payload.size()) +
                         R"(],"data_offsets":[0,)" + std::to_string(payload.size()) + "]}";
    header.resize('V' - 2, ' ');  // the length is the opcode of a text, whose line ends in the white space
    return "V\0\0\0\0\0\0\0"s + header + "\n}" + payload;
  };
  const auto found = [](const std::string& bytes, const std::string& name) {
    const Verdict verdict = verify(source(bytes, name));
    const auto& findings = verdict.report.findings();
    const auto it = std::ranges::find(findings, "file/also-pickle", &Finding::rule);
    return it == findings.end() ? "no: " + std::string(verdict.format) : it->found;
  };
  EXPECT_EQ(found(polyglot(code), "model.safetensors"), "os.system");
  EXPECT_EQ(found(polyglot(code), "pytorch_model.bin"), "os.system");
  EXPECT_EQ(found(polyglot("0N."), "model.bin"), "no: safetensors") << "it names nothing";
  EXPECT_EQ(found(polyglot("cos\nsystem\n\xff"), "model.bin"), "os.system") << "it is imported before the error";
  EXPECT_EQ(found(polyglot("\xff" + code), "model.bin"), "no: safetensors") << "Python stops before";
  EXPECT_EQ(found(polyglot("I017\n" + code), "model.bin"), "os.system")
      << "a number that one of Python's readers takes";
  EXPECT_EQ(found(kEmptySafetensors, "model.bin"), "no: safetensors");
}

// Once, only the bytes that follow were an error, and none if they are a tensor's.
TEST(Verify, AFileThatEndsAsOneOfAnotherFormatIsAnError) {
  const auto with = [](const std::string& bytes) {
    std::string header = R"({"w":{"dtype":"U8","shape":[)" + std::to_string(bytes.size()) + R"(],"data_offsets":[0,)" +
                         std::to_string(bytes.size()) + "]}}";
    return std::string(1, static_cast<char>(header.size())) + "\0\0\0\0\0\0\0"s + header + bytes;
  };
  const auto found = [](const std::string& bytes) {
    const Verdict verdict = verify(source(bytes, "model.safetensors"));
    const auto& findings = verdict.report.findings();
    const auto it = std::ranges::find(findings, "file/also-another", &Finding::rule);
    return it == findings.end() ? std::string() : it->found;
  };
  const std::string directory = "PK\x01\x02" + std::string(42, '\0'),
                    end = "PK\x05\x06" + std::string(4, '\0') + "\1\0\1\0\x2E\0\0\0\0\0\0\0"s,
                    archive = directory + end + "\0\0"s;
  EXPECT_EQ(found(with(archive)), "a zip archive");
  EXPECT_EQ(found(with("") + archive), "a zip archive");
  EXPECT_EQ(found(with(directory + end + "\3\0and"s)), "a zip archive") << "with a comment";
  EXPECT_EQ(found(with(end + "\0\0"s)), "") << "without a directory";
  EXPECT_EQ(found(with("ZTEN1000")), "zTensor 1.x");
  EXPECT_EQ(found(with("ZTEN1000 ")), "");
}

TEST(Detection, AFormatThatTheCallerNamesIsNotDoubted) {
  const OpenOptions as{.format = "safetensors"};
  EXPECT_EQ(test::thrown([&] { open(source("PK\x03\x04 and more"), {}, as); }).rule, "safetensors/header-too-large");
  const Finding finding = test::thrown([&] { open(source(kEmptySafetensors), {}, {.format = "sft"}); });
  EXPECT_EQ(finding.kind, Kind::misuse);
  EXPECT_NE(finding.message.find("safetensors, gguf, zt"), std::string::npos) << finding.message;
}

TEST(Detection, SaysWhatIsNoTensorFile) {
  const std::string name = "model.safetensors";  // the content outweighs the name
  EXPECT_EQ(rule_of("", name), "file/empty");
  EXPECT_EQ(rule_of("<!DOCTYPE html><html>", name), "file/html");
  EXPECT_EQ(rule_of("\xEF\xBB\xBF\r\n <HTML lang=\"en\">", name), "file/html");
  EXPECT_EQ(rule_of("PK\x03\x04\x14\0"s, name), "file/zip");
  EXPECT_EQ(rule_of("\x1f\x8b\x08\0"s, name), "file/compressed");
  EXPECT_EQ(rule_of("\x28\xb5\x2f\xfd\0"s, name), "file/compressed");
  EXPECT_EQ(rule_of(std::string(257, 'x') + "ustar\0"s, name), "file/tar");
  EXPECT_EQ(rule_of("\x80\x04\x95\x05}."s, name), "pytorch/pickle");
  EXPECT_EQ(rule_of("\x89HDF\r\n\x1a\n"s, name), "hdf5/superblock");
  EXPECT_EQ(rule_of(std::string(4096, '\0'), name), "file/zeros");
  for (const std::string text : {"Entry not found", "404: Not Found", "Not Found\n", "{\"error\":\"Entry not found\"}",
                                 "Access to model x is restricted. You must be authenticated to access it."})
    EXPECT_EQ(rule_of(text, name), "file/error-text") << text;
  EXPECT_EQ(rule_of("hello, world\n", "notes"), "file/text");
  for (const std::string text : {"import os; x = 1\n", "/home/me/src\n", "./egg\n", "# a note\n"}) {
    EXPECT_EQ(rule_of(text, "easy-install.pth"), "file/python-path") << text;
    EXPECT_EQ(rule_of(text, "model.safetensors").find("file/python"), std::string::npos) << text;
  }
  EXPECT_EQ(rule_of("\x80\x04\x95\x05}."s, "model.pth"), "pytorch/pickle");
  EXPECT_EQ(rule_of("\x01\x02", "notes"), "file/unknown");
  EXPECT_NE(test::thrown([] { open(source("\x1c\0\0\0TFL3"s)); }).message.find("TensorFlow Lite"), std::string::npos);
  EXPECT_EQ(rule_of("\x89HDF\r\n\x1a\n"s, "x"), "hdf5/superblock");
}

TEST(Detection, AGitLfsPointerSaysWhatItPointsTo) {
  const Finding finding = test::thrown([] {
    open(source("version https://git-lfs.github.com/spec/v1\noid sha256:0123456789abcdef\nsize 90868376\n",
                "m.safetensors"));
  });
  EXPECT_EQ(finding.rule, "file/git-lfs-pointer");
  EXPECT_NE(finding.message.find("sha256:0123456789abcdef of 90868376 bytes"), std::string::npos) << finding.message;
}

TEST(Detection, EveryFileRuleIsReached) {
  std::set<std::string_view> seen;
  const std::string files[] = {"",
                               "version https://git-lfs.github.com/spec/v1\n",
                               "<html>",
                               "PK\x05\x06",
                               "BZh9",
                               std::string(257, 'x') + "ustar",
                               "\x80\x02.",
                               "\0\0\0\0TFL3"s,
                               std::string(512, '\0'),
                               "Entry not found",
                               "text",
                               "\x01"};
  std::vector<Verdict> verdicts;
  for (const std::string& text : files) {
    verdicts.push_back(verify(source(text)));
    ASSERT_EQ(verdicts.back().report.total(), 1U);
    EXPECT_EQ(verdicts.back().format, "");
    EXPECT_EQ(verdicts.back().model.size(), 0U);
    seen.insert(verdicts.back().report.findings()[0].rule);
  }
  std::size_t rules = 0;
  for (const Rule& rule : core::rules::kAll) {
    if (!rule.id.starts_with("file/") || rule.severity == Severity::warning) continue;
    // Of files with a format: AFileThatIsAlsoAPickleIsAnError, and the corpus.
    if (rule.id.starts_with("file/also-") || rule.id == "file/begins-again") continue;
    if (rule.id == "file/python-path") continue;  // shown by the name: SaysWhatIsNoTensorFile
    ++rules;
    EXPECT_TRUE(seen.contains(rule.id)) << rule.id;
  }
  EXPECT_EQ(seen.size(), rules);
}

// A safetensors with tensors of u8 whose sizes are given, and their bytes.
std::string safetensors_of(const std::vector<std::uint64_t>& sizes, const std::string& data) {
  std::string header = "{";
  std::uint64_t at = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i, at += sizes[i - 1])
    header += (i > 0 ? ",\"" : "\"") + std::string(1, static_cast<char>('a' + i)) + R"(":{"dtype":"U8","shape":[)" +
              std::to_string(sizes[i]) + R"(],"data_offsets":[)" + std::to_string(at) + "," +
              std::to_string(at + sizes[i]) + "]}";
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::string size(8, '\0');
  size[0] = static_cast<char>(header.size() & 0xFF);
  size[1] = static_cast<char>(header.size() >> 8);
  return size + header + data;
}

TEST(Verify, SaysThatItCheckedTheStructureOnly) {
  EXPECT_EQ(verify(source(safetensors_of({1}, "x"))).checked, "structure only: safetensors has no checksums");
  EXPECT_EQ(verify(source(safetensors_of({1}, ""))).checked, "");  // it is invalid
}

TEST(Verify, WarnsOfTensorsAtTheEndThatAreZeros) {
  const auto warned = [](const Verdict& verdict) {
    EXPECT_TRUE(verdict.report.valid());
    std::string out;
    for (const Finding& finding : verdict.report.findings())
      if (finding.rule == "file/zero-tail") out = finding.tensor + " " + std::to_string(*finding.offset);
    return out;
  };
  const auto data_at = [](const std::string& file) { return file.size() - 8192; };
  for (const auto& [data, tensor] : {std::pair<std::string, std::string>{"abcd"s + std::string(4, '\0'), "b"},
                                     {"abcdefg\0"s, ""},
                                     {"abc\0\0\0\0\0"s, "b"},  // a is not all zeros
                                     {std::string(8, '\0'), "a"}}) {
    std::string wide;
    for (const char c : data) wide.append(1024, c);
    const std::string file = safetensors_of({4096, 4096}, wide);
    EXPECT_EQ(warned(verify(source(file))),
              tensor.empty() ? "" : tensor + " " + std::to_string(data_at(file) + (tensor == "b" ? 4096 : 0)));
  }
  EXPECT_EQ(warned(verify(source(safetensors_of({4, 64}, "abcd"s + std::string(64, '\0'))))), "");  // a bias
  // A whole tensor larger than what is read: only a hole shows that.
  const test::TemporaryFolder folder;
  const std::uint64_t large = std::uint64_t{3} << 20;
  std::string file = safetensors_of({4, large}, "abcd");
  test::write_file(folder / "hole.safetensors", file);
  std::filesystem::resize_file(folder / "hole.safetensors", file.size() + large);
  test::write_file(folder / "zeros.safetensors", file + std::string(large, '\0'));
  if (open_file(folder / "hole.safetensors")->written_end() < file.size() + large - 4096) {
    EXPECT_EQ(warned(verify(folder / "hole.safetensors")), "b " + std::to_string(file.size()));
  }
  EXPECT_EQ(warned(verify(folder / "zeros.safetensors")), "");
}

TEST(Open, GivesWarningsToTheReportAndKeepsTheModel) {
  Report report;
  const std::string header = R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"x":1}})";
  const auto model =
      open(source(std::string(1, static_cast<char>(header.size())) + "\0\0\0\0\0\0\0"s + header + "a"), report);
  ASSERT_TRUE(model.has_value());
  EXPECT_EQ(report.warnings(), 1U);
  EXPECT_TRUE(report.valid());
}

TEST(Open, RefusesNoSourceAtAll) {
  EXPECT_EQ(test::thrown([&] { open(std::shared_ptr<const Source>()); }).kind, Kind::misuse);
  EXPECT_EQ(test::thrown([&] { verify(std::shared_ptr<const Source>()); }).kind, Kind::misuse);
}

// Counts the bytes read after the hook asked to stop.
class Watched final : public Source {
 public:
  explicit Watched(std::string bytes) : bytes_(std::move(bytes)) {}
  std::uint64_t size() const noexcept override { return bytes_.size(); }
  std::string_view name() const noexcept override { return "<watched>"; }
  void read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    if (stopped) after += out.size();
    std::memcpy(out.data(), bytes_.data() + offset, out.size());
  }
  bool stopped = false;
  mutable std::uint64_t after = 0;

 private:
  std::string bytes_;
};

// A header of 40 MiB: opening it stops within 16 MiB after the hook says so.
TEST(Open, StopsSoonWhenTheHookSaysSo) {
  const std::uint64_t length = std::uint64_t{40} << 20;
  std::string file(8 + length, ' ');
  for (int i = 0; i < 8; ++i) file[static_cast<std::size_t>(i)] = static_cast<char>(length >> (8 * i));
  file[8] = '{', file[9] = '}';
  const auto watched = std::make_shared<Watched>(std::move(file));
  EXPECT_EQ(open(watched).size(), 0U);
  Context context;
  context.progress = [&](std::uint64_t, std::uint64_t) {
    watched->stopped = true;
    return false;
  };
  EXPECT_THROW(open(watched, context), Cancelled);
  EXPECT_THROW(verify(watched, context), Cancelled);
  EXPECT_LE(watched->after, std::uint64_t{16} << 20);
}

// Forwards every read, then reports at the end that the file changed.
class ChangedSource final : public io::ForwardingSource {
 public:
  using ForwardingSource::ForwardingSource;
  void check_unchanged() const override { base::io_error("changed", "the file changed while it was read"); }
};

TEST(Verify, RefusesAShareThatIsNone) {
  for (const Share share : {Share{0, 0}, Share{1, 1}, Share{7, 7}, Share{0, 4097}})
    EXPECT_EQ(test::thrown([&] { verify(source(kEmptySafetensors), {}, {}, share); }).rule, "misuse/share");
}

TEST(Verify, AFormatThatIsNotDividedIsCheckedByTheFirst) {
  constexpr std::size_t kSize = 100'000;  // too long to be read together
  std::string header = R"({"a":{"dtype":"BOOL","shape":[100000],"data_offsets":[0,100000]},)"
                       R"("b":{"dtype":"BOOL","shape":[100000],"data_offsets":[100000,200000]}})";
  header.resize(192, ' ');
  const std::string length{static_cast<char>(header.size()), '\0', 0, 0, 0, 0, 0, 0};
  const std::string file = length + header + std::string(2 * kSize, '\7');
  const Verdict first = verify(source(file), {}, {}, {0, 2}), second = verify(source(file), {}, {}, {1, 2});
  EXPECT_EQ(first.shares, 1U);
  EXPECT_EQ(first.report.total(), 2U);
  EXPECT_EQ(second.report.total(), 0U);
}

TEST(Verify, AFileThatChangesMeanwhileIsAnIoError) {
  EXPECT_EQ(test::thrown([] { verify(std::make_shared<ChangedSource>(source(kEmptySafetensors))); }).rule,
            "io/changed");
}

}  // namespace
}  // namespace weighbridge
