// SPDX-License-Identifier: Apache-2.0
// The list of formats, and how paths are opened.
#include "registry/registry.h"

#include <gtest/gtest.h>

#include <set>

#include "support/temporary_folder.h"
#include "support/thrown.h"
#include "weighbridge/formats.h"
#include "weighbridge/open.h"
#include "weighbridge/verify.h"

namespace weighbridge {
namespace {

using namespace std::string_literals;

const std::string kEmptySafetensors = "\x08\0\0\0\0\0\0\0{}      "s;

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

}  // namespace
}  // namespace weighbridge
