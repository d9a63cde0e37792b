// SPDX-License-Identifier: Apache-2.0
// The list of formats, and how paths are opened.
#include "registry/registry.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <memory>
#include <set>

#include "io/place.h"
#include "support/temporary_folder.h"
#include "support/thrown.h"
#include "support/tiny_folders.h"
#include "weighbridge/formats.h"
#include "weighbridge/open.h"
#include "weighbridge/place.h"
#include "weighbridge/verify.h"

namespace weighbridge {
namespace {

using huggingface::testing::kEmptySafetensors;
using namespace std::string_literals;

TEST(Formats, NamesAndExtensionsAreUnique) {
  std::set<std::string_view> names, extensions;
  for (const FormatInfo& format : formats()) {
    EXPECT_TRUE(names.insert(format.name).second) << format.name;
    EXPECT_TRUE(format.extensions.empty() || !format.folder) << format.name;
    for (const std::string_view extension : format.extensions)
      EXPECT_TRUE(extensions.insert(extension).second) << extension;
    EXPECT_EQ(find_format(format.name), &format);
    if (format.writes && !format.extensions.empty()) {
      EXPECT_EQ(format_for_extension(format.extensions.front()), &format);
    }
    EXPECT_EQ(registry::find(format.name)->info.name, format.name);
  }
  EXPECT_EQ(find_format("nothing"), nullptr);
  EXPECT_EQ(format_for_extension("nothing"), nullptr);
  EXPECT_EQ(registry::find(""), nullptr);
  ASSERT_NE(find_format("hf"), nullptr);
  EXPECT_TRUE(find_format("hf")->folder);
}

TEST(Places, AFileIsReadByTheRegistryAndAMissingOneIsIo) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "m.safetensors", kEmptySafetensors);
  const Model single = open(folder / "m.safetensors");
  EXPECT_EQ(single.format(), "safetensors");
  EXPECT_EQ(verify(folder / "m.safetensors").format, "safetensors");
  Report report;
  EXPECT_TRUE(open(folder / "m.safetensors", report).has_value());
  EXPECT_EQ(test::thrown([&] { open(folder / "absent"); }).kind, Kind::io);
}

TEST(Places, ADirectoryWithoutAModelSaysWhatWasLookedFor) {
  const test::TemporaryFolder folder;
  for (const OpenOptions& options : {OpenOptions{}, OpenOptions{.format = "hf"}}) {
    const Finding finding = test::thrown([&] { open(folder.path(), {}, options); });
    EXPECT_EQ(finding.kind, Kind::misuse);
    EXPECT_EQ(finding.rule, "misuse/not-a-file");
    EXPECT_NE(finding.message.find("config.json, model.safetensors"), std::string::npos) << finding.message;
    EXPECT_NE(finding.message.find("is a directory"), std::string::npos) << finding.message;
  }
  EXPECT_EQ(test::thrown([&] { verify(folder.path()); }).rule, "misuse/not-a-file");
}

TEST(Places, AFormatThatIsAskedForMustBeOfThatKind) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "m.safetensors", kEmptySafetensors);
  test::write_file(folder / "config.json", "{}");
  EXPECT_EQ(test::thrown([&] { open(folder.path(), {}, {.format = "safetensors"}); }).rule, "misuse/not-a-file");
  EXPECT_EQ(test::thrown([&] { open(folder / "m.safetensors", {}, {.format = "hf"}); }).rule, "misuse/not-a-folder");
}

// A pickle beside valid weights was a warning at most.
TEST(Places, EveryPickleOfAFolderIsJudged) {
  const auto evil = [] {
    const auto held = std::make_shared<const std::string>(
        "\x80\x02"
        "cos\nsystem\nU\x01x\x85R.");
    return memory_source({std::as_bytes(std::span(*held)), held}, "sub/evil");
  };
  const auto file = [](const std::string& text, const std::string& name) {
    const auto held = std::make_shared<const std::string>(text);
    return memory_source({std::as_bytes(std::span(*held)), held}, name);
  };
  std::map<std::string, std::shared_ptr<const Source>, std::less<>> files;
  files["config.json"] = file(R"({"model_type":"llama"})", "config.json");
  files["model.safetensors"] = file(kEmptySafetensors, "model.safetensors");
  EXPECT_TRUE(verify(folder_of(files)).report.valid());
  files["sub/evil"] = evil();
  const Verdict verdict = verify(folder_of(files));
  ASSERT_EQ(verdict.report.errors(), 1U);
  EXPECT_EQ(verdict.report.first_error()->rule, "pytorch/dangerous-global");
  EXPECT_EQ(verdict.report.first_error()->file.name, "sub/evil");
  files["sub/evil"] = file(
      "\x80\x02"
      "cmine\nThing\n.",
      "sub/unknown");
  EXPECT_EQ(verify(folder_of(files)).not_known_safe, (std::vector<std::string>{"mine.Thing"}));
}

TEST(Places, TheFilesBelowAFolderAreBounded) {
  const test::TemporaryFolder folder;
  std::filesystem::create_directories(folder / "a/b/c");
  for (const char* const name : {"a/b/c/1", "a/2", "3"}) test::write_file(folder / name, "x");
  std::filesystem::create_directory_symlink(".", folder / "a/loop");
  const auto place = place_at(folder.path());
  EXPECT_EQ(io::files_below(*place, 100, 8).names, (std::vector<std::string>{"3", "a/2", "a/b/c/1"}));
  EXPECT_EQ(io::files_below(*place, 100, 8).left_out, "");
  EXPECT_EQ(io::files_below(*place, 100, 2).left_out, "a/b/c");
  EXPECT_NE(io::files_below(*place, 1, 8).left_out, "");
}

}  // namespace
}  // namespace weighbridge
