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

std::shared_ptr<const Source> unnamed(const std::string& text, const std::string& name = "<memory>") {
  const auto held = std::make_shared<const std::string>(text);
  return memory_source({std::as_bytes(std::span(*held)), held}, name);
}

// The name of bytes in memory was taken for a path: a journal beside that file, or the file itself, stood for them.
TEST(Places, ANameInMemoryIsNoPath) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "m.safetensors";
  test::write_file(path, kEmptySafetensors);
  test::write_file(folder / ".m.safetensors.weighbridge-edit.journal", "x");
  EXPECT_EQ(test::rules_of(verify(path).report), std::vector<std::string>{"io/unfinished-edit"});
  EXPECT_EQ(test::rules_of(verify(unnamed(kEmptySafetensors, path)).report), std::vector<std::string>{});
}

// Of two files of one name, the first got the findings of both, and also those of a file that is none of the model's.
TEST(Places, FindingsAreThoseOfTheirFileNotOfItsName) {
  const std::string first = "model-00001-of-00002.safetensors", second = "model-00002-of-00002.safetensors";
  const auto shard = [](const std::string& tensor, const std::string& more) {
    return unnamed(huggingface::testing::safetensors({{tensor, {2}}}, more));
  };
  std::map<std::string, std::shared_ptr<const Source>, std::less<>> files{
      {first, shard("a", R"({"format":"pt"})")},
      {second, shard("b", R"({"format":"tf"})")},
      {"model.safetensors.index.json",
       unnamed(R"({"metadata":{"total_size":16},"weight_map":{"a":")" + first + R"(","b":")" + second + "\"}}")}};
  const Verdict verdict = verify(folder_of(files));
  ASSERT_EQ(test::rules_of(verdict.report), std::vector<std::string>{"safetensors/metadata-conflict"});
  const FileRef& file = verdict.report.findings()[0].file;
  ASSERT_TRUE(file.source.has_value());
  EXPECT_EQ(verdict.model.sources()[*file.source], files[second]);
  files["evil.pkl"] = unnamed(
      "\x80\x02"
      "cos\nsystem\nU\x01x\x85R.");
  const Verdict of_evil = verify(folder_of(files));
  const Finding* const evil = of_evil.report.first_error();
  ASSERT_NE(evil, nullptr);
  EXPECT_EQ(evil->file.name, "<memory>");
  EXPECT_FALSE(evil->file.source.has_value()) << "no source of the model";
}

// The name of a folder in memory was made absolute, so that it could be that of the working directory.
TEST(Places, TheWorkingDirectoryIsNotTheNameOfAModelInMemory) {
  std::map<std::string, std::shared_ptr<const Source>, std::less<>> files;
  for (const auto& [name, bytes] : huggingface::testing::tiny()) files.emplace(name, unnamed(bytes));
  const auto name_of = [](const std::shared_ptr<const Place>& place) {
    const Model model = open(place);
    return std::string(model.attribute("model_name")->as_text().value_or("none"));
  };
  EXPECT_EQ(name_of(folder_of(files, ".")), ".");
  EXPECT_EQ(name_of(folder_of(files)), "<memory>");
  const test::TemporaryFolder folder;
  std::filesystem::create_directory(folder / "bert");
  huggingface::testing::write_files(folder / "bert", huggingface::testing::tiny());
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder / "bert");
  const auto place = place_at(".");
  std::filesystem::current_path(before);
  EXPECT_EQ(name_of(place), "bert");
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
