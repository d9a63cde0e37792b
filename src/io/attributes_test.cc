// SPDX-License-Identifier: Apache-2.0
// What a file that replaces another one has beside its bytes.
#include "io/attributes.h"

#include <gtest/gtest.h>

#ifdef __linux__
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <string>

#include "base/endian.h"
#include "io/atomic_file.h"
#include "io/journal.h"
#include "support/state_home.h"
#include "support/temporary_folder.h"
#include "support/thrown.h"
#include "support/unprivileged.h"

namespace weighbridge::io {
namespace {

using test::read_file;
using test::TemporaryFolder;
using test::thrown;
using test::write_file;

constexpr const char* kList = "system.posix_acl_access";
constexpr const char* kListOfFolder = "system.posix_acl_default";

bool set_attribute(const std::string& path, const char* name, const std::string& value) {
  return ::setxattr(path.c_str(), name, value.data(), value.size(), 0) == 0;
}
std::optional<std::string> attribute_of(const std::string& path, const char* name) {
  std::string out(1000, '\0');
  const ssize_t length = ::getxattr(path.c_str(), name, out.data(), out.size());
  if (length < 0) return std::nullopt;
  out.resize(static_cast<std::size_t>(length));
  return out;
}
// A list that lets user 1234 read (acl(5)): entries of a tag, a mode and an id.
std::string list_for_1234() {
  std::string out(4 + 5 * 8, '\0');
  base::store_le<std::uint32_t>(out.data(), 2);
  std::size_t at = 4;
  const auto add = [&](std::uint16_t tag, std::uint16_t mode, std::uint32_t id) {
    base::store_le<std::uint16_t>(out.data() + at, tag);
    base::store_le<std::uint16_t>(out.data() + at + 2, mode);
    base::store_le<std::uint32_t>(out.data() + at + 4, id);
    at += 8;
  };
  constexpr std::uint32_t kNobody = 0xffffffff;
  add(0x01, 6, kNobody), add(0x02, 4, 1234), add(0x04, 0, kNobody), add(0x10, 4, kNobody), add(0x20, 0, kNobody);
  return out;
}
mode_t bits_of(const std::string& path) {
  struct stat there {};
  EXPECT_EQ(::stat(path.c_str(), &there), 0) << path;
  return there.st_mode & 0777U;
}
void replace_by_new(const std::string& path) {
  AtomicFile file(path, {.replace = true});
  file.write_whole(std::as_bytes(std::span("new", 3)));
  file.publish();
}

#define WB_NEEDS_ATTRIBUTES(folder)                               \
  write_file((folder) / "probe", "");                             \
  if (!set_attribute((folder) / "probe", "user.probe", "x") ||    \
      !set_attribute((folder) / "probe", kList, list_for_1234())) \
  GTEST_SKIP() << "the filesystem of " << (folder).path() << " has no user attributes or no access control lists"

// The mode's group bits are the mask of a list: without the list, they opened the file to its group.
TEST(Attributes, OfAReplacedFileAndItsAccessListAreKept) {
  const TemporaryFolder folder;
  WB_NEEDS_ATTRIBUTES(folder);
  write_file(folder / "a", "old");
  ASSERT_TRUE(set_attribute(folder / "a", "user.origin", std::string("made by\0me", 10)));
  ASSERT_TRUE(set_attribute(folder / "a", "user.empty", ""));
  ASSERT_TRUE(set_attribute(folder / "a", kList, list_for_1234()));
  ASSERT_EQ(bits_of(folder / "a"), 0640U);
  {
    AtomicFile file(folder / "a", {.replace = true});
    EXPECT_EQ(bits_of(file.temporary_path()), 0600U) << "the list's mask admits nobody while it is written";
  }
  replace_by_new(folder / "a");
  EXPECT_EQ(read_file(folder / "a"), "new");
  EXPECT_EQ(attribute_of(folder / "a", "user.origin"), std::string("made by\0me", 10));
  EXPECT_EQ(attribute_of(folder / "a", "user.empty"), "");
  EXPECT_EQ(attribute_of(folder / "a", kList), list_for_1234());
  EXPECT_EQ(bits_of(folder / "a"), 0640U);
}

TEST(Attributes, OfAFileThatIsReplacedThroughALinkAreKept) {
  const TemporaryFolder folder;
  WB_NEEDS_ATTRIBUTES(folder);
  write_file(folder / "a", "old");
  ASSERT_TRUE(set_attribute(folder / "a", "user.origin", "me"));
  std::filesystem::create_symlink("a", folder / "link");
  replace_by_new(folder / "link");
  EXPECT_EQ(attribute_of(folder / "a", "user.origin"), "me");
}

TEST(Attributes, OfFilesThatAreReplacedTogetherAreKept) {
  const test::StateHome home;
  for (const bool aside : {false, true}) {
    const TemporaryFolder folder;
    WB_NEEDS_ATTRIBUTES(folder);
    const std::string stage = ".s.weighbridge-00000000000000aa.tmp/a";
    std::filesystem::create_directory(folder / ".s.weighbridge-00000000000000aa.tmp");
    write_file(folder / "a", "old");
    write_file(folder / stage, "new");
    ASSERT_TRUE(set_attribute(folder / "a", "user.origin", "me"));
    ASSERT_TRUE(set_attribute(folder / "a", kList, list_for_1234()));
    Journal journal(folder.path(), {{"a", stage}});
    if (aside) journal.set_aside();
    ASSERT_EQ(journal.move(0), 0);
    journal.commit();
    EXPECT_EQ(read_file(folder / "a"), "new");
    EXPECT_EQ(attribute_of(folder / "a", "user.origin"), "me");
    EXPECT_EQ(attribute_of(folder / "a", kList), list_for_1234());
    EXPECT_EQ(bits_of(folder / "a"), 0640U);
  }
}

TEST(Attributes, AListOfTheFolderOpensNoFileThatHadNone) {
  const TemporaryFolder folder;
  WB_NEEDS_ATTRIBUTES(folder);
  write_file(folder / "a", "old");
  ASSERT_EQ(::chmod((folder / "a").c_str(), 0640), 0);
  ASSERT_TRUE(set_attribute(folder.path(), kListOfFolder, list_for_1234()));
  replace_by_new(folder / "a");
  EXPECT_EQ(attribute_of(folder / "a", kList), std::nullopt);
  EXPECT_EQ(bits_of(folder / "a"), 0640U);
  AtomicFile new_file(folder / "b");
  EXPECT_NE(attribute_of(new_file.temporary_path(), kList), std::nullopt) << "a new file is as the folder says";
}

// A label of a security module that does not run here: as from a disk of another system.
TEST(Attributes, LabelsThatOnlyTheSystemMaySetDoNotBlockAReplacement) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can set an attribute that others cannot";
  const test::StateHome home;
  const TemporaryFolder folder;
  WB_NEEDS_ATTRIBUTES(folder);
  ASSERT_EQ(::chmod(folder.path().c_str(), 0777), 0);
  write_file(folder / "a", "old");
  if (!set_attribute(folder / "a", "security.weighbridge", "label")) GTEST_SKIP() << "no security attributes here";
  replace_by_new(folder / "a");
  EXPECT_EQ(attribute_of(folder / "a", "security.weighbridge"), "label") << "who may set it keeps it";
  {
    const test::Unprivileged nobody;
    if (!test::Unprivileged::holds()) GTEST_SKIP() << "root cannot be dropped";
    replace_by_new(folder / "a");
  }
  EXPECT_EQ(read_file(folder / "a"), "new");
  EXPECT_EQ(attribute_of(folder / "a", "security.weighbridge"), std::nullopt);
}

// Rights of a program, and sums of its bytes.
TEST(Attributes, ThatAreAboutTheOldBytesAreNotKept) {
  const TemporaryFolder folder;
  write_file(folder / "a", "old");
  std::string rights(20, '\0');  // VFS_CAP_REVISION_2 of <linux/capability.h>, with none
  base::store_le<std::uint32_t>(rights.data(), 0x02000000);
  if (!set_attribute(folder / "a", "security.capability", rights))
    GTEST_SKIP() << "only root can give a file capabilities";
  replace_by_new(folder / "a");
  EXPECT_EQ(attribute_of(folder / "a", "security.capability"), std::nullopt);
}

}  // namespace
}  // namespace weighbridge::io
#endif
