// SPDX-License-Identifier: Apache-2.0
// Files on disk against a manifest of them: every way in which they can differ, links, ranges, and what is remembered.
#include "weighbridge/manifest.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "manifest/files.h"
#include "support/option_samples.h"
#include "support/signing_keys.h"
#include "support/temporary_folder.h"
#include "weighbridge/convert.h"
#include "weighbridge/hash.h"
#include "weighbridge/open.h"

namespace weighbridge {
namespace {

namespace fs = std::filesystem;
using test::read_file;
using test::write_file;
using What = FileDifference::What;

std::shared_ptr<const Source> text_source(const std::string& text) {
  auto held = std::make_shared<std::string>(text);
  return memory_source(Bytes{std::as_bytes(std::span(*held)), held});
}

class ManifestOfFiles : public testing::Test {
 protected:
  ManifestOfFiles() {
    fs::create_directories(folder / "m/sub");
    fs::create_directories(folder / "m/.git");
    write_file(folder / "m/config.json", "{}");
    write_file(folder / "m/weights.bin", std::string(100000, 'w'));
    write_file(folder / "m/sub/a.txt", "a");
    write_file(folder / "m/empty", "");
    write_file(folder / "m/.git/HEAD", "ref");
  }
  std::string model() const { return folder / "m"; }
  std::string unsigned_manifest(const ManifestOptions& options = {}) const {
    return write_manifest(list_files(model(), options));
  }
  ManifestVerdict check(const std::string& manifest, const ManifestCheck& how = {}) const {
    return verify_manifest(model(), text_source(manifest), how);
  }
  // "missing a, changed b"
  static std::string differences(const ManifestVerdict& verdict) {
    std::string out;
    for (const FileDifference& each : verdict.differences)
      out += (out.empty() ? "" : ", ") + std::string(name(each.what)) + " " + each.file;
    return out;
  }
  static bool has(const Report& report, std::string_view rule) {
    return std::any_of(report.findings().begin(), report.findings().end(),
                       [&](const Finding& f) { return f.rule == rule; });
  }
  test::TemporaryFolder folder;
};

std::string rule_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.finding().rule;
  }
  return "";
}

TEST_F(ManifestOfFiles, ListsFilesInOrderAndLeavesGitOut) {
  const Manifest list = list_files(model());
  std::string names;
  for (const ManifestEntry& entry : list.entries) names += entry.file + " ";
  EXPECT_EQ(names, "config.json empty sub/a.txt weights.bin ");
  EXPECT_EQ(list.name, "m");
  EXPECT_EQ(list.note("weights.bin")->size, 100000U);
  // sha256sum of nothing
  EXPECT_EQ(list.entries[1].sha256.hex(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST_F(ManifestOfFiles, MissingAdditionalAndChangedFilesAreNamed) {
  const std::string manifest = unsigned_manifest();
  EXPECT_TRUE(check(manifest).valid());
  EXPECT_TRUE(has(check(manifest).report, "manifest/unsigned"));
  write_file(folder / "m/sub/new", "");
  fs::remove(folder / "m/empty");
  write_file(folder / "m/config.json", "{ }");                          // another size
  write_file(folder / "m/weights.bin", std::string(99999, 'w') + "v");  // the same size
  const ManifestVerdict found = check(manifest);
  EXPECT_FALSE(found.valid());
  EXPECT_EQ(differences(found), "changed config.json, missing empty, additional sub/new, changed weights.bin");
  EXPECT_EQ(found.report.errors(), 4U);
  EXPECT_NE(found.report.findings().at(1).message.find("3 bytes, not 2"), std::string::npos);
  ManifestCheck lenient{.ignore_unsigned = true};
  EXPECT_EQ(differences(check(manifest, lenient)), "changed config.json, missing empty, changed weights.bin");
  lenient = {.ignore = {"s*"}};
  EXPECT_EQ(differences(check(manifest, lenient)), "changed config.json, missing empty, changed weights.bin");
}

TEST_F(ManifestOfFiles, OneFileAgainstTheManifestOfItsFolderIsNoMissingFile) {
  const std::string manifest = unsigned_manifest(), file = folder / "m/weights.bin";
  const ManifestVerdict found = verify_manifest(file, text_source(manifest));
  EXPECT_EQ(differences(found), "missing config.json, missing empty, missing sub/a.txt");
  const Finding* const first = found.report.first_error();
  EXPECT_EQ(first->message.find("not there"), std::string::npos) << first->message;
  EXPECT_EQ(first->hint.name, "only");
  EXPECT_TRUE(verify_manifest(file, text_source(manifest), {.only_file = {"weights.bin"}}).valid());
}

TEST_F(ManifestOfFiles, OnlyPartOfItCanBeChecked) {
  const std::string manifest = unsigned_manifest({.range_size = 30000});
  EXPECT_TRUE(check(manifest).valid());
  std::string bytes = read_file(folder / "m/weights.bin");
  bytes[70000] = 'x';
  write_file(folder / "m/weights.bin", bytes);
  const ManifestVerdict all = check(manifest);
  ASSERT_EQ(differences(all), "changed weights.bin");
  EXPECT_EQ(all.differences[0].ranges, std::vector<std::string>{"weights.bin:60000:90000"});
  EXPECT_TRUE(check(manifest, {.only_file = {"weights.bin:0:*"}}).valid());
  EXPECT_FALSE(check(manifest, {.only_file = {"weights.bin:60000:90000"}}).valid());
  EXPECT_TRUE(check(manifest, {.only_file = {"config.json"}}).valid());
  EXPECT_EQ(rule_of([&] { check(manifest, {.only_file = {"nothing"}}); }), "misuse/only");
  // Longer and shorter files.
  write_file(folder / "m/weights.bin", std::string(100001, 'w'));
  EXPECT_EQ(differences(check(manifest)), "changed weights.bin");
  write_file(folder / "m/weights.bin", std::string(50000, 'w'));
  const ManifestVerdict cut = check(manifest);
  EXPECT_EQ(
      cut.differences.at(0).ranges,
      (std::vector<std::string>{"weights.bin:30000:60000", "weights.bin:60000:90000", "weights.bin:90000:100000"}));
}

TEST_F(ManifestOfFiles, WhatIsLeftOutIsRecordedByName) {
  const Manifest list = list_files(model(), {.ignore = {"s*", "config.json", "later"}});
  EXPECT_EQ(list.files(), 2U);
  EXPECT_EQ(list.ignored, (std::vector<std::string>{".git", ".gitattributes", ".github", ".gitignore", "config.json",
                                                    "later", "sub"}));
  write_file(folder / "m/sub/new", "n");
  write_file(folder / "m/later", "n");
  EXPECT_TRUE(check(write_manifest(list)).valid());
  write_file(folder / "m/sub2", "n");  // matches the glob, but came later
  EXPECT_FALSE(check(write_manifest(list)).valid());
  for (const char* path : {"/etc", "../x", "a/../../b", ""})
    EXPECT_EQ(rule_of([&] { list_files(model(), {.ignore = {path}}); }), "misuse/ignore") << path;
  EXPECT_EQ(list_files(model(), {.ignore = {"no*"}}).files(), 7U);  // a script may name what is not there
  EXPECT_EQ(rule_of([&] { list_files(model(), {.ignore = {"*"}}); }), "misuse/no-files");
}

TEST_F(ManifestOfFiles, ASubfoldersGitIsListed) {
  fs::create_directories(folder / "m/sub/.git");
  write_file(folder / "m/sub/.git/hook", "x");
  EXPECT_EQ(list_files(model()).files(), 5U);
}

TEST_F(ManifestOfFiles, SymbolicLinksAreErrorsUnlessAllowed) {
  const std::string before = unsigned_manifest();
  fs::create_symlink("config.json", folder / "m/link");
  EXPECT_EQ(rule_of([&] { list_files(model()); }), "misuse/link");
  EXPECT_TRUE(has(check(before).report, "manifest/link"));
  EXPECT_FALSE(check(before).valid());
  const std::string followed = unsigned_manifest({.allow_symlinks = true});
  EXPECT_TRUE(check(followed).valid());
  // A file that became a link to the same bytes is another file.
  fs::rename(folder / "m/weights.bin", folder / "elsewhere");
  fs::create_symlink(folder / "elsewhere", folder / "m/weights.bin");
  EXPECT_FALSE(check(before).valid());
  EXPECT_EQ(rule_of([&] { list_files(model(), {.allow_symlinks = true}); }), "io/outside");
  fs::remove(folder / "m/weights.bin");
  fs::create_symlink("sub", folder / "m/folder-link");
  EXPECT_EQ(rule_of([&] { list_files(model(), {.allow_symlinks = true}); }), "misuse/link");
  fs::remove(folder / "m/folder-link");
  ASSERT_EQ(::mkfifo((folder / "m/pipe").c_str(), 0600), 0);
  EXPECT_EQ(rule_of([&] { list_files(model(), {.allow_symlinks = true}); }), "misuse/link");
}

TEST_F(ManifestOfFiles, NamesThatAManifestCannotHold) {
  write_file(folder / "m/b\\c", "x");
  EXPECT_EQ(rule_of([&] { list_files(model()); }), "misuse/file-name");
  fs::rename(folder / "m/b\\c", folder / "m/\xff");
  EXPECT_EQ(rule_of([&] { list_files(model()); }), "misuse/file-name");
  EXPECT_EQ(rule_of([&] { list_files(folder / "absent"); }), "io/open");
  EXPECT_EQ(rule_of([&] {
              verify_manifest(folder / "absent",
                              text_source(write_manifest({.name = "m", .entries = {{.file = "f"}}})));
            }),
            "io/open");
}

TEST_F(ManifestOfFiles, OneFileIsAModelToo) {
  const std::string path = folder / "m/weights.bin";
  const Manifest list = list_files(path);
  EXPECT_EQ(list.entries.at(0).file, "weights.bin");
  EXPECT_EQ(list.name, "weights.bin");
  EXPECT_TRUE(verify_manifest(path, text_source(write_manifest(list))).valid());
  EXPECT_FALSE(verify_manifest(folder / "m/config.json", text_source(write_manifest(list))).valid());
}

TEST_F(ManifestOfFiles, TheTensorsThatChangedAreNamed) {
  const auto save_with = [&](float first, float second, const std::string& note) {
    Builder builder;
    const std::vector<float> a(1000, first), b(1000, second);
    builder.attribute("note", Value::text(note));
    builder.tensor("a", DType::f32, {1000}, {std::as_bytes(std::span(a)), nullptr});
    builder.tensor("b", DType::f32, {1000}, {std::as_bytes(std::span(b)), nullptr});
    Options options;
    options.replace = true;
    save(builder.build(), folder / "m/model.safetensors", options);
  };
  save_with(1, 2, "x");
  const std::string manifest = unsigned_manifest({.per_tensor = true});
  const Manifest list = list_files(model(), {.per_tensor = true});
  EXPECT_EQ(list.note("model.safetensors")->tensors.size(), 2U);
  EXPECT_EQ(list.note("config.json")->format, "");
  save_with(1, 3, "x");
  ManifestVerdict found = check(manifest);
  ASSERT_EQ(differences(found), "changed model.safetensors");
  EXPECT_TRUE(found.differences[0].compared);
  EXPECT_EQ(found.differences[0].tensors, std::vector<std::string>{"b"});
  EXPECT_TRUE(has(found.report, "manifest/tensor"));
  save_with(1, 2, "y");  // the same size, and only the metadata differs
  found = check(manifest);
  ASSERT_EQ(differences(found), "changed model.safetensors");
  EXPECT_TRUE(found.differences[0].compared && found.differences[0].tensors.empty());
  write_file(folder / "m/model.safetensors", "no model");
  EXPECT_FALSE(check(manifest).differences.at(0).compared);
}

#ifdef __linux__
// What this process has read with system calls.
std::uint64_t bytes_read() {
  const std::string text = read_file("/proc/self/io");
  return text.starts_with("rchar: ") ? std::stoull(text.substr(7)) : 0;
}

// Tensors of many sizes around that of a leaf, in two shards with an index; every digest is that of the ordinary
// reader.
TEST_F(ManifestOfFiles, OnePassGivesTheDigestsOfFilesRangesAndTensors) {
  if (bytes_read() == 0) GTEST_SKIP() << "the system does not count what a process reads";
  std::string index = "{\"weight_map\":{";
  std::uint64_t payload = 0;
  for (int shard = 1; shard <= 2; ++shard) {
    Builder builder;
    const std::string file = "model-0000" + std::to_string(shard) + "-of-00002.safetensors";
    for (const std::uint64_t size : {1U, 65535U, 65536U, 65537U, 5U, 0U, 3U << 20, 200000U, 7U, (2U << 20) + 13}) {
      const std::string name = std::to_string(shard) + "." + std::to_string(size);
      std::string bytes(size, '\0');
      for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 31 + i / 251 + size);
      const auto held = std::make_shared<std::string>(std::move(bytes));
      builder.tensor(name, DType::u8, {size}, {std::as_bytes(std::span(*held)), held});
      index += (payload == 0 ? "\"" : ",\"") + name + "\":\"" + file + "\"";
      payload += size;
    }
    save(builder.build(), folder / ("m/" + file));
  }
  write_file(folder / "m/model.safetensors.index.json", index + "}}");
  const Model whole = open(model());
  const ContentDigests expected = content_digests(whole);
  std::map<std::string, Digest, std::less<>> digest_of;
  for (std::uint32_t i = 0; i < whole.size(); ++i) digest_of.emplace(whole.name(i), expected.tensors[i]);
  for (const bool threads : {false, true})
    for (const std::uint64_t range : {0U, 30000U, 65536U, 1000000U, 100000000U}) {
      Context context;
      if (threads) context.executor = thread_executor(3);
      const std::uint64_t before = bytes_read();
      const Manifest list = list_files(model(), {.per_tensor = true, .range_size = range}, context);
      const std::uint64_t read = bytes_read() - before;
      EXPECT_LT(read, range == 0 || range > 65536 ? payload * 11 / 10 + 2000000 : payload * 2) << range;
      EXPECT_EQ(list.content_digest, expected.model);
      std::size_t tensors = 0;
      for (const ManifestNote& note : list.notes)
        for (const auto& [name, digest] : note.tensors) {
          ++tensors;
          EXPECT_EQ(digest, digest_of.at(name)) << name << " in ranges of " << range;
        }
      EXPECT_EQ(tensors, whole.size());
      const Manifest plain = list_files(model(), {.range_size = range}, context);
      ASSERT_EQ(plain.entries.size(), list.entries.size());
      for (std::size_t i = 0; i < plain.entries.size(); ++i) EXPECT_EQ(plain.entries[i].sha256, list.entries[i].sha256);
    }
}
#endif

TEST_F(ManifestOfFiles, SignaturesAreCheckedFirst) {
  const test::Key key("P-384"), other("P-384");
  const std::string manifest = write_manifest(list_files(model()), {.key = key.private_pem()});
  ManifestVerdict found = check(manifest, {.trust = {.key = key.public_pem()}});
  EXPECT_TRUE(found.valid());
  EXPECT_EQ(found.signature, SignatureState::valid);
  EXPECT_EQ(found.method, SigningMethod::key);
  found = check(manifest);
  EXPECT_TRUE(found.valid());
  EXPECT_EQ(found.signature, SignatureState::unchecked);
  found = check(manifest, {.trust = {.key = other.public_pem()}});
  EXPECT_EQ(found.signature, SignatureState::invalid);
  EXPECT_EQ(found.files, 0U);
  EXPECT_TRUE(has(found.report, "manifest/key"));
  EXPECT_TRUE(has(check(unsigned_manifest(), {.trust = {.key = key.public_pem()}}).report, "manifest/unsigned"));
  EXPECT_FALSE(check(unsigned_manifest(), {.trust = {.key = key.public_pem()}}).valid());
  EXPECT_EQ(rule_of([&] { check(manifest, {.trust = {.key = "nonsense"}}); }), "misuse/key");
}

// Each letter of the payload and of the signature counts.
TEST_F(ManifestOfFiles, AChangedBundleHasNoValidSignature) {
  const test::Key key;
  const std::string manifest = write_manifest(list_files(model()), {.key = key.private_pem()});
  const ManifestCheck how{.trust = {.key = key.public_pem()}};
  for (const char* member : {"\"payload\":\"", "\"sig\":\"", "\"hint\":\""}) {
    const std::size_t begin = manifest.find(member) + std::string_view(member).size(), end = manifest.find('"', begin);
    for (std::size_t at = begin; at < end; at += 37) {
      std::string other = manifest;
      other[at] = other[at] == 'a' ? 'b' : 'a';
      EXPECT_FALSE(check(other, how).valid()) << member << at - begin;
    }
  }
}

// DSSE accepts an envelope if one of its signatures is by a key that the reader knows.
TEST_F(ManifestOfFiles, OneOfSeveralSignaturesIsEnough) {
  const test::Key key;
  std::string manifest = write_manifest(list_files(model()), {.key = key.private_pem()});
  const std::string before = "\"signatures\":[";
  manifest.insert(manifest.find(before) + before.size(), R"({"sig":"AAAA"},)");
  EXPECT_EQ(check(manifest, {.trust = {.key = key.public_pem()}}).signature, SignatureState::valid);
  std::string many;
  for (int i = 0; i < 20; ++i) many += R"({"sig":"AAAA"},)";
  manifest.insert(manifest.find(before) + before.size(), many);
  EXPECT_EQ(check(manifest, {.trust = {.key = key.public_pem()}}).signature, SignatureState::invalid);
}

TEST_F(ManifestOfFiles, CertificatesLeadToTheRoots) {
  const test::Chain chain, stranger;
  const std::string manifest =
      write_manifest(list_files(model()),
                     {.key = chain.key.private_pem(), .certificate = chain.leaf.pem(), .chain = {chain.between.pem()}});
  ManifestVerdict found = check(manifest, {.trust = {.roots = chain.root.pem()}});
  EXPECT_TRUE(found.valid());
  EXPECT_EQ(found.signature, SignatureState::valid);
  EXPECT_EQ(found.signer, "CN=signer");
  EXPECT_EQ(check(manifest, {.trust = {.roots = stranger.root.pem()}}).signature, SignatureState::invalid);
  EXPECT_EQ(check(manifest).signature, SignatureState::unchecked);
  EXPECT_EQ(check(manifest, {.trust = {.key = chain.key.public_pem()}}).signature, SignatureState::unchecked);
  const test::Chain old({.from = -2, .to = -1});
  const std::string expired = write_manifest(
      list_files(model()), {.key = old.key.private_pem(), .certificate = old.leaf.pem(), .chain = {old.between.pem()}});
  found = check(expired, {.trust = {.roots = old.root.pem()}});
  EXPECT_TRUE(found.valid());
  EXPECT_TRUE(has(found.report, "manifest/expired"));
}

class Remembered : public ManifestOfFiles {
 protected:
  Remembered() { how.cache = folder / "state/file.json"; }
  // The state after a check of the files as they are, made `later` seconds from now.
  void remember(std::int64_t later) {
    Report report;
    signing::Memory memory(how.cache, {}, report);
    for (const ManifestEntry& entry : list_files(model()).entries) {
      const auto stamp = signing::stamp_of(folder / ("m/" + entry.file));
      memory.add(entry.file, *stamp, 0, stamp->size, entry.sha256, ::time(nullptr) + later);
    }
    memory.write(how.cache);
  }
  ManifestCheck how;
};

TEST_F(Remembered, AFileThatHasNotChangedIsNotRead) {
  const std::string manifest = unsigned_manifest();
  remember(100);
  EXPECT_EQ(check(manifest, how).remembered, 4U);
  EXPECT_EQ(check(manifest, {}).remembered, 0U);  // it is asked for
}

// A file that changes once more within the exactness of the clock would have the same times.
TEST_F(Remembered, AFileThatHasJustChangedIsNotRemembered) {
  const std::string manifest = unsigned_manifest();
  EXPECT_EQ(check(manifest, how).remembered, 0U);
  EXPECT_EQ(check(manifest, how).remembered, 0U);
  remember(1);
  EXPECT_EQ(check(manifest, how).remembered, 0U);
}

TEST_F(Remembered, OtherBytesWithTheOldSizeAndTimeAreSeen) {
  const std::string manifest = unsigned_manifest(), path = folder / "m/weights.bin";
  remember(100);
  struct stat before {};
  ASSERT_EQ(::stat(path.c_str(), &before), 0);
  write_file(path, std::string(100000, 'x'));
  const timespec times[2] = {before.st_atim, before.st_mtim};
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  const ManifestVerdict found = check(manifest, how);
  EXPECT_EQ(found.remembered, 3U);
  EXPECT_EQ(differences(found), "changed weights.bin");
}

TEST_F(Remembered, ACheckOfOneFileForgetsNoOther) {
  const std::string manifest = unsigned_manifest();
  remember(100);
  ManifestCheck one = how;
  one.only_file = {"config.json"};
  EXPECT_EQ(check(manifest, one).remembered, 1U);
  EXPECT_GE(check(manifest, how).remembered, 3U);  // this file has just changed, as the others have
}

TEST_F(Remembered, ADigestIsComparedWithTheManifestLikeAnyOther) {
  Manifest other = list_files(model());
  remember(100);
  other.entries[3].sha256.bytes[0] ^= std::byte{1};
  const ManifestVerdict found = check(write_manifest(other), how);
  EXPECT_EQ(found.remembered, 4U);
  EXPECT_EQ(differences(found), "changed weights.bin");
}

TEST_F(Remembered, AFileThatIsNoCacheWasOverwritten) {
  const std::string manifest = unsigned_manifest();
  fs::create_directories(folder / "state");
  for (const std::string text : {"a model", "[]", R"({"mediaType":"of a manifest"})"}) {
    write_file(how.cache, text);
    EXPECT_THROW(check(manifest, how), Error);
    EXPECT_EQ(fs::file_size(how.cache), text.size());
  }
}

TEST_F(Remembered, ABrokenStateIsNoState) {
  const std::string manifest = unsigned_manifest();
  fs::create_directories(folder / "state");
  for (const char* text : {"", R"({"schema":"weighbridge digests 1","files":{"a":[1]}})",
                           R"({"schema":"weighbridge digests 2","files":{}})"}) {
    write_file(how.cache, text);
    const ManifestVerdict found = check(manifest, how);
    EXPECT_TRUE(found.valid());
    EXPECT_TRUE(has(found.report, "manifest/state")) << text;
    EXPECT_EQ(found.remembered, 0U);
    EXPECT_FALSE(has(check(manifest, how).report, "manifest/state"));  // replaced
  }
  how.cache = folder / "m/config.json/state";  // below a file
  EXPECT_TRUE(check(manifest, how).valid());
}

// It was "not 0": the size was looked up by the file's own name.
TEST_F(ManifestOfFiles, TheSizeOfTheOnlyFileIsThatOfItsRanges) {
  Manifest list;
  list.name = "weights.bin";
  list.shard_size = 100000;
  const Manifest whole = list_files(folder / "m/weights.bin", {.range_size = 100000});
  ASSERT_EQ(whole.entries.size(), 1U);
  list.entries = {{.file = ".", .begin = 0, .end = 100000, .sha256 = whole.entries[0].sha256}};
  const std::string manifest = write_manifest(list);
  EXPECT_TRUE(verify_manifest(folder / "m/weights.bin", text_source(manifest)).valid());
  write_file(folder / "m/weights.bin", std::string(100001, 'w'));
  const ManifestVerdict longer = verify_manifest(folder / "m/weights.bin", text_source(manifest));
  ASSERT_EQ(differences(longer), "changed weights.bin");
  const Finding* const found = longer.report.first_error();
  ASSERT_NE(found, nullptr);
  EXPECT_NE(found->message.find("it has 100001 bytes, not 100000"), std::string::npos) << found->message;
}

TEST_F(ManifestOfFiles, AnExecutorChangesNothing) {
  Context threads;
  threads.executor = thread_executor(4);
  const ManifestOptions ranges{.range_size = 1000};
  EXPECT_EQ(write_manifest(list_files(model(), ranges)), write_manifest(list_files(model(), ranges, threads)));
  EXPECT_TRUE(verify_manifest(model(), text_source(unsigned_manifest(ranges)), {}, threads).valid());
}

TEST(Manifest, EachOptionOfTheTableIsSetByItsName) {
  test::set_each<ManifestOptions>(OptionOf::manifest);
  test::set_each<ManifestCheck>(OptionOf::check);
}

}  // namespace
}  // namespace weighbridge
