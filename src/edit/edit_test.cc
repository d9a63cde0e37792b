// SPDX-License-Identifier: Apache-2.0
// Edits of whole files: what changes, what stays, which way is taken, and what is refused. Every file is compared with
// what another path of the library makes of the same change.
#include "weighbridge/edit.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "edit/patched_file.h"
#include "support/option_samples.h"
#include "support/state_home.h"
#include "support/temporary_folder.h"
#include "support/thrown.h"
#include "weighbridge/convert.h"
#include "weighbridge/open.h"
#include "weighbridge/verify.h"

namespace weighbridge {
namespace {

namespace fs = std::filesystem;
using test::read_file;
using test::TemporaryFolder;
using test::thrown;
using test::write_file;
using Way = Edited::Way;

// Finite floats without a pattern.
Bytes floats(std::uint64_t count, unsigned first) {
  const auto data = std::make_shared<std::vector<std::byte>>(4 * count);
  for (std::size_t i = 0; i < data->size(); ++i)
    (*data)[i] = static_cast<std::byte>(i % 4 == 3 ? 0x3fU : (first + i * 7) & 0xffU);
  return {*data, data};
}

// A file of this format with two tensors, some metadata and `reserve` bytes to spare.
std::string make(const TemporaryFolder& folder, const std::string& format, std::uint64_t reserve = 0,
                 bool typed = false, const std::string& version = {}) {
  Builder builder;
  builder.attribute("author", Value::text("somebody"));
  if (typed) {
    builder.attribute("count", Value::integer(std::uint64_t{7}, DType::u32));
    builder.attribute("rate", Value::real(0.5, DType::f32));
  }
  builder.tensor("a.weight", DType::f32, {2000}, floats(2000, 1));
  builder.tensor("b.bias", DType::f32, {3}, floats(3, 9));
  const std::string path = folder / ("model." + format);
  Options options{.version = version};
  options.header.reserve = reserve;
  save(builder.build(), path, options);
  return path;
}

// A hash of the bytes of all tensors, whatever their names and their order.
std::size_t payload(const std::string& path) {
  std::size_t out = 0;
  const Model model = open(path);
  for (const Tensor& tensor : model) {
    const Array array = tensor.to_dense();
    out += std::hash<std::string_view>()(
        {reinterpret_cast<const char*>(array.data.get()), static_cast<std::size_t>(array.size)});
  }
  return out;
}

EditOptions options_of(std::initializer_list<std::pair<const char*, const char*>> all) {
  EditOptions out;
  for (const auto& [option, text] : all) out.add(option, text);
  return out;
}

std::string attribute(const std::string& path, std::string_view key) {
  const Model model = open(path);
  const Value* const value = model.attribute(key);
  return value ? value->to_text() : "none";
}

void require_sound(const std::string& path) {
  const Verdict verdict = verify(path);
  EXPECT_TRUE(verdict.report.findings().empty())
      << path << ": " << (verdict.report.findings().empty() ? "" : verdict.report.findings()[0].message);
}

TEST(Edit, ReplacesMetadataWhereItStands) {
  for (const std::string format : {"safetensors", "gguf", "zt"}) {
    const TemporaryFolder folder;
    const std::string path = make(folder, format, format == "zt" ? 0 : 256);
    const std::size_t before = payload(path);
    const std::string whole = read_file(path);
    struct stat old {
    }, now{};
    ::stat(path.c_str(), &old);
    const Edited done = edit(path, options_of({{"set", "author=me"}, {"set", "license=apache-2.0"}}));
    EXPECT_EQ(done.way, Way::in_place) << format;
    EXPECT_EQ(done.changes.size(), 2U);
    ::stat(path.c_str(), &now);
    EXPECT_EQ(old.st_ino, now.st_ino) << format;
    if (format != "zt") {
      EXPECT_EQ(old.st_size, now.st_size);
    }
    EXPECT_EQ(attribute(path, "author"), "me");
    EXPECT_EQ(attribute(path, "license"), "apache-2.0");
    EXPECT_EQ(payload(path), before) << format;
    require_sound(path);
    EXPECT_TRUE(fs::exists(done.undo));
    undo_edit(path);
    EXPECT_EQ(read_file(path), whole) << format << ": byte for byte";
    undo_edit(path);
    EXPECT_EQ(attribute(path, "author"), "me") << format << ": and back again";
  }
}

TEST(Edit, RenamesSwapsAndUnsets) {
  for (const std::string format : {"safetensors", "gguf", "zt"}) {
    const TemporaryFolder folder;
    const std::string path = make(folder, format);
    const Array a = open(path)["a.weight"].to_dense();
    const Edited done =
        edit(path, options_of({{"rename", "a.weight=b.bias"}, {"rename", "b.bias=a.weight"}, {"unset", "author"}}));
    EXPECT_EQ(done.way, Way::in_place) << format;
    const Model model = open(path);
    EXPECT_EQ(model.attribute("author"), nullptr);
    const Array b = model["b.bias"].to_dense();
    ASSERT_EQ(b.size, a.size);
    EXPECT_EQ(std::memcmp(a.data.get(), b.data.get(), static_cast<std::size_t>(a.size)), 0) << format;
    require_sound(path);
  }
}

TEST(Edit, KeepsTheTypeOfAValueAndTakesOthers) {
  for (const std::string format : {"gguf", "zt"}) {
    const TemporaryFolder folder;
    const std::string path = make(folder, format, format == "zt" ? 0 : 1024, true, format == "zt" ? "1.2" : "");
    edit(path, options_of({{"set", "count=12"},
                           {"set", "rate=0.1"},
                           {"set", "flag:bool=true"},
                           {"set", "list:json=[1,2,3]"},
                           {"set", "author:u64=18446744073709551615"}}));
    {
      const Model model = open(path);
      EXPECT_EQ(*model.attribute("count"), Value::integer(std::uint64_t{12}, DType::u32)) << format;
      EXPECT_EQ(*model.attribute("rate"), Value::real(static_cast<double>(0.1F), DType::f32));
      EXPECT_EQ(*model.attribute("flag"), Value::boolean(true));
      EXPECT_EQ(*model.attribute("author"), Value::integer(~std::uint64_t{0}, DType::u64));
      EXPECT_EQ(model.attribute("list")->to_text(), "[1,2,3]");
    }
    require_sound(path);
    for (const char* text : {"count=-1", "count=4294967296", "count=1.5", "count=x", "count=", "rate=1e39", "rate=0x1",
                             "flag=maybe", "a:u8=256", "a:i8=128", "a:json=[1,", "a:json={\"k\":1,\"k\":2}"}) {
      const std::string whole = read_file(path);
      const Finding found = thrown([&] { edit(path, options_of({{"set", text}})); });
      EXPECT_EQ(found.kind, Kind::misuse) << text;
      EXPECT_EQ(read_file(path), whole) << text;
    }
  }
}

TEST(Edit, SafetensorsHasOnlyText) {
  const TemporaryFolder folder;
  const std::string path = make(folder, "safetensors", 256);
  edit(path, options_of({{"set", "steps:u32=5"}, {"set", "list:json=[true, null]"}}));
  const Model model = open(path);
  EXPECT_EQ(*model.attribute("steps"), Value::text("5"));
  EXPECT_EQ(*model.attribute("list"), Value::text("[true,null]"));
  require_sound(path);
}

TEST(Edit, ReadsAJsonObject) {
  const TemporaryFolder folder;
  const std::string path = make(folder, "gguf", 1024, true);
  write_file(
      folder / "edit.json",
      R"({"author": null, "count": 8, "name": "new", "more": {"type": "u16", "value": 3}, "words": ["a", "b"]})");
  EditOptions options;
  options.add_json(*open_file(folder / "edit.json"));
  edit(path, options);
  const Model model = open(path);
  EXPECT_EQ(model.attribute("author"), nullptr);
  EXPECT_EQ(*model.attribute("count"), Value::integer(std::uint64_t{8}, DType::u32)) << "the type that it had";
  EXPECT_EQ(*model.attribute("more"), Value::integer(std::uint64_t{3}, DType::u16));
  EXPECT_EQ(model.attribute("words")->kind(), Value::Kind::texts);
  for (const char* text : {"", "[]", "{", "{\"a\":}", "{} x", "{\"a\": {\"b\": 1, \"b\": 2}}", "\"text\""}) {
    write_file(folder / "bad.json", text);
    EditOptions bad;
    EXPECT_EQ(thrown([&] { bad.add_json(*open_file(folder / "bad.json")); }).kind, Kind::misuse) << text;
  }
}

TEST(Edit, AHeaderThatDoesNotFitGetsANewFileThatReplacesTheOld) {
  for (const std::string format : {"safetensors", "gguf"}) {
    const TemporaryFolder folder;
    const std::string path = make(folder, format);
    ASSERT_EQ(::chmod(path.c_str(), 0640), 0);
    const std::size_t before = payload(path);
    const std::string text(5000, 'x');
    const EditOptions options = options_of({{"set", ("long=" + text).c_str()}});
    EXPECT_EQ(plan_edit(path, options).way, Way::copied);
    Way said = Way::nothing;
    const Edited done = edit(path, options, {}, [&](const Edited& plan) { said = plan.way; });
    EXPECT_EQ(said, Way::copied) << "before it is written";
    EXPECT_EQ(done.way, Way::copied);
    EXPECT_EQ(done.size_after, fs::file_size(path));
    EXPECT_EQ(attribute(path, "long"), text);
    EXPECT_EQ(payload(path), before);
    struct stat now {};
    ASSERT_EQ(::stat(path.c_str(), &now), 0);
    EXPECT_EQ(now.st_mode & 0777U, 0640U);
    EXPECT_EQ(folder.entries(), std::set<std::string>{fs::path(path).filename().string()});
    require_sound(path);
  }
}

TEST(Edit, ANewFileLeavesTheOldOne) {
  for (const std::string format : {"safetensors", "gguf", "zt", "pt"}) {
    const TemporaryFolder folder;
    const std::string path = make(folder, format, 0, false);
    const std::string whole = read_file(path);
    EditOptions options = options_of({{"rename", "a.weight=c"}});
    options.output = folder / ("out." + format);
    const Edited done = edit(path, options);
    EXPECT_EQ(done.way, format == "pt" ? Way::converted : Way::copied);
    EXPECT_EQ(read_file(path), whole);
    EXPECT_TRUE(open(options.output).find("c"));
    EXPECT_EQ(payload(options.output), payload(path));
    require_sound(options.output);
    EXPECT_EQ(thrown([&] { edit(path, options); }).rule, "misuse/output-exists");
    options.output = path;
    options.replace = true;
    EXPECT_EQ(thrown([&] { edit(path, options); }).rule, "misuse/output-is-input");
  }
}

TEST(Edit, ReservedBytesAreRoomForLaterEdits) {
  for (const std::string format : {"safetensors", "gguf"}) {
    const TemporaryFolder folder;
    const std::string path = make(folder, format);
    EditOptions options = options_of({{"set", "k=v"}});
    options.output = folder / ("out." + format);
    options.reserve = 10'000;
    edit(path, options);
    require_sound(options.output);
    const Edited later = plan_edit(options.output, options_of({{"set", ("long=" + std::string(9'900, 'y')).c_str()}}));
    EXPECT_EQ(later.way, Way::in_place) << format << " " << later.needed << " of " << later.header;
    EXPECT_EQ(open(options.output).attributes().size(), 2U) << "the room is no metadata";
  }
}

// In GGUF zeros fill less than the alignment, and a key the rest: every length of a value must fit.
TEST(Edit, EveryLengthOfAHeaderCanBeWritten) {
  const TemporaryFolder folder;
  const std::string path = make(folder, "gguf", 512);
  const auto size = fs::file_size(path);
  for (std::size_t n = 0; n < 200; ++n) {
    const Edited done = edit(path, options_of({{"set", ("k=" + std::string(n, 'z')).c_str()}}));
    ASSERT_EQ(done.way, Way::in_place) << n;
    ASSERT_EQ(fs::file_size(path), size);
    ASSERT_EQ(attribute(path, "k"), std::string(n, 'z'));
  }
  require_sound(path);
}

TEST(Edit, WhatDescribesTheFileIsNotEdited) {
  const TemporaryFolder folder;
  const std::string path = make(folder, "gguf", 64);
  for (const char* text : {"general.alignment:u32=64", "split.count:u16=3", "split.no:u16=0", "wb.padding=x"})
    EXPECT_EQ(thrown([&] { edit(path, options_of({{"set", text}})); }).rule, "misuse/structural-key") << text;
  const std::string zt = make(folder, "zt");
  EXPECT_EQ(thrown([&] { edit(zt, options_of({{"set", "weighbridge.tokenizer=x"}})); }).rule, "misuse/structural-key");
}

TEST(Edit, MistakesNameWhatIsNear) {
  const TemporaryFolder folder;
  for (const std::string format : {"safetensors", "gguf", "zt"}) {
    const std::string path = make(folder, format);
    const std::string whole = read_file(path);
    const auto refused = [&](std::initializer_list<std::pair<const char*, const char*>> all) {
      const Finding found = thrown([&] { edit(path, options_of(all)); });
      EXPECT_EQ(read_file(path), whole);
      return found;
    };
    EXPECT_NE(refused({{"unset", "authr"}}).message.find("author"), std::string::npos);
    EXPECT_NE(refused({{"rename", "a.wieght=x"}}).message.find("a.weight"), std::string::npos);
    EXPECT_EQ(refused({{"rename", "a.weight=b.bias"}}).rule, "misuse/duplicate-name");
    EXPECT_EQ(refused({{"rename", "a.weight=x"}, {"rename", "a.weight=y"}}).rule, "misuse/rename");
    EXPECT_EQ(refused({{"set", "k=1"}, {"set", "k=2"}}).rule, "misuse/duplicate-attribute");
    EXPECT_EQ(refused({{"set", "author=1"}, {"unset", "author"}}).rule, "misuse/duplicate-attribute");
    EXPECT_EQ(refused({{"without", "nothing*"}}).rule, "misuse/nothing-matches");
    EXPECT_EQ(refused({{"set", "k=\xff"}}).kind, Kind::misuse);
  }
  EXPECT_EQ(thrown([&] {
              edit(make(folder, "safetensors"), options_of({{"rename", "a.weight=__metadata__"}}));
            }).kind,
            Kind::misuse);
}

TEST(Edit, LeavingOutTensorsInPlaceKeepsTheirBytes) {
  for (const auto& [format, dropped, kept] : {std::tuple("zt", "a.*", "b.bias"), std::tuple("zt", "b.*", "a.weight"),
                                              std::tuple("gguf", "b.*", "a.weight")}) {
    const TemporaryFolder folder;
    const std::string path = make(folder, format);
    const std::string old = read_file(path);
    const Edited done = edit(path, options_of({{"without", dropped}, {"set", "author=me"}}));
    EXPECT_EQ(done.way, Way::in_place) << format;
    {
      const Model model = open(path);
      ASSERT_EQ(model.size(), 1U) << format;
      EXPECT_EQ(model.name(0), kept);
      EXPECT_EQ(*model.attribute("author"), Value::text("me"));
    }
    EXPECT_TRUE(verify(path).report.valid()) << format << dropped;
    undo_edit(path);
    EXPECT_EQ(read_file(path), old) << format << dropped;
    // A new file has only what is left.
    EditOptions options = options_of({{"without", dropped}});
    options.output = folder / ("new." + std::string(format));
    EXPECT_EQ(edit(path, options).way, Way::converted);
    EXPECT_EQ(open(options.output).size(), 1U);
  }
}

TEST(Edit, ATensorBetweenOthersNeedsANewFileInGguf) {
  const TemporaryFolder folder;
  const std::string path = make(folder, "gguf"), old = read_file(path);
  const Finding found = thrown([&] { edit(path, options_of({{"without", "a.*"}})); });
  EXPECT_EQ(found.rule, "misuse/new-file");
  EXPECT_NE(found.message.find("a hole between tensors"), std::string::npos) << found.message;
  EXPECT_EQ(found.hint.name, "output");
  EXPECT_EQ(read_file(path), old);
}

TEST(Edit, NamesCanBeChangedByPattern) {
  const TemporaryFolder folder;
  const std::string path = make(folder, "safetensors", 100);
  EXPECT_EQ(edit(path, options_of({{"rename", "s/^([ab])[.]/x.$1./"}})).way, Way::in_place);
  const Model model = open(path);
  EXPECT_EQ(model.name(0), "x.a.weight");
  EXPECT_EQ(model.name(1), "x.b.bias");
}

TEST(Edit, LeavingOutTensorsTakesANewFile) {
  const TemporaryFolder folder;
  const std::string path = make(folder, "safetensors");
  EditOptions options = options_of({{"without", "b.*"}});
  EXPECT_EQ(thrown([&] { edit(path, options); }).rule, "misuse/new-file");
  options.output = folder / "out.safetensors";
  const Edited done = edit(path, options);
  EXPECT_EQ(done.way, Way::converted);
  EXPECT_EQ(open(options.output).size(), 1U);
  require_sound(options.output);
}

TEST(Edit, NothingToChangeWritesNothing) {
  const TemporaryFolder folder;
  const std::string path = make(folder, "safetensors");
  EXPECT_EQ(edit(path, options_of({{"set", "author=somebody"}})).way, Way::nothing);
  EXPECT_EQ(folder.entries(), std::set<std::string>{"model.safetensors"});
}

TEST(Edit, APlanChangesNothing) {
  const TemporaryFolder folder;
  const std::string path = make(folder, "gguf", 100);
  const std::string whole = read_file(path);
  EXPECT_EQ(plan_edit(path, options_of({{"set", "k=v"}})).way, Way::in_place);
  EXPECT_EQ(read_file(path), whole);
  EXPECT_EQ(folder.entries(), std::set<std::string>{"model.gguf"});
}

TEST(Edit, BytesBehindTheEndStay) {
  const TemporaryFolder folder;
  const std::string path = make(folder, "gguf", 100);
  write_file(path, read_file(path) + std::string(64, '\1'));
  const std::string tail = read_file(path).substr(read_file(path).size() - 100);
  edit(path, options_of({{"set", "k=v"}}));
  EXPECT_TRUE(read_file(path).ends_with(tail));
  EditOptions options = options_of({{"set", ("k=" + std::string(5000, 'v')).c_str()}});
  edit(path, options);
  EXPECT_TRUE(read_file(path).ends_with(tail));
}

// Each key was once compared with all before it, which took minutes for a few megabytes.
TEST(Edit, AnObjectOfManyKeysIsReadOnce) {
  const TemporaryFolder folder;
  std::string text = R"({"map":{"0":0)";
  for (int i = 1; i < 200000; ++i) text += ",\"" + std::to_string(i) + "\":0";
  write_file(folder / "edit.json", text + "}}");
  EditOptions options;
  options.add_json(*open_file(folder / "edit.json"));
  ASSERT_EQ(options.values.size(), 1U);
  EXPECT_EQ(options.values[0].second.map().size(), 200000U);
  write_file(folder / "edit.json", text + R"(,"7":1}})");
  EXPECT_NE(thrown([&] { options.add_json(*open_file(folder / "edit.json")); }).message.find("\"7\" occurs twice"),
            std::string::npos);
}

TEST(Edit, AFileThatWasLeftIsSettledFirst) {
  const test::StateHome home;
  const TemporaryFolder folder;
  const std::string path = make(folder, "safetensors", 100);
  const std::string old = read_file(path);
  edit(path, options_of({{"set", "author=me"}}));
  const std::string new_bytes = read_file(path);
  const std::string undo = folder / ".model.safetensors.weighbridge-edit.undo",
                    journal = folder / ".model.safetensors.weighbridge-edit.journal";
  fs::rename(undo, journal);
  // The first half of what differs is new: neither the old nor the new file.
  std::size_t first = 0, last = old.size();
  while (old[first] == new_bytes[first]) ++first;
  while (old[last - 1] == new_bytes[last - 1]) --last;
  const int fd = ::open(path.c_str(), O_WRONLY);
  const std::size_t half = (first + last) / 2;
  ASSERT_EQ(::pwrite(fd, old.data() + half, last - half, static_cast<off_t>(half)), static_cast<ssize_t>(last - half));
  ::close(fd);
  EXPECT_EQ(thrown([&] { plan_edit(path, options_of({{"set", "k=v"}})); }).rule, "io/journal");
  {
    const Verdict verdict = verify(path);
    const auto& findings = verdict.report.findings();
    EXPECT_TRUE(std::ranges::any_of(findings, [](const Finding& f) { return f.rule == "io/unfinished-edit"; }));
  }
  test::StateHome::set(nullptr);
  EXPECT_EQ(thrown([&] { settle_edit(path); }).rule, "io/journal");
  test::StateHome::set(home.path().c_str());
  bool shown = false;
  EXPECT_EQ(settle_edit(path, {}, false, [&](const Edited& plan) { shown = plan.steps.size() == 2; }).left,
            Edited::Left::undone);
  EXPECT_TRUE(shown);
  EXPECT_EQ(read_file(path), old);
  EXPECT_EQ(settle_edit(path).left, Edited::Left::nothing);
}

TEST(Edit, AFolderTellsWhichOfItsFilesWasLeft) {
  const TemporaryFolder folder;
  const std::string path = make(folder, "safetensors", 100);
  write_file(folder / "config.json", R"({"model_type": "bert"})");
  edit(path, options_of({{"set", "author=me"}}));
  const std::string beside = folder / ".model.safetensors.weighbridge-edit.";
  fs::rename(beside + "undo", beside + "journal");
  const Verdict verdict = verify(fs::path(path).parent_path().string());
  EXPECT_EQ(verdict.format, "hf");
  const auto& findings = verdict.report.findings();
  const auto found = std::ranges::find(findings, "io/unfinished-edit", &Finding::rule);
  ASSERT_NE(found, findings.end());
  EXPECT_TRUE(found->file.name.ends_with("model.safetensors")) << found->file.name;
}

TEST(Edit, APlanWaitsForAnEditInPlace) {
  const TemporaryFolder folder;
  const std::string path = make(folder, "safetensors", 100);
  const std::uint64_t at = read_file(path).find("somebody");
  auto editing = std::make_unique<edit_files::PatchedFile>(path, 1 << 20);
  if (!editing->alone()) GTEST_SKIP() << "this filesystem gives no leases";
  std::promise<void> changing;
  std::thread other([&] {
    editing->apply({.offset = at, .length = 4, .bytes = "Some"}, [&] {
      changing.set_value();
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    });
    editing.reset();
  });
  changing.get_future().wait();  // its journal is there, and is not that of a run that was killed
  EXPECT_EQ(plan_edit(path, options_of({{"set", "author=me"}})).way, Way::in_place);
  other.join();
  EXPECT_EQ(attribute(path, "author"), "Somebody");
}

// Every valid file of the corpus, with what is odd about it: edited or refused, but never another model than before.
TEST(Edit, TheCorpusStaysWhatItIs) {
  std::size_t in_place = 0, copied = 0, refused = 0;
  for (const char* format : {"safetensors", "gguf", "zt", "npy", "slm"})
    for (const auto& entry : fs::directory_iterator("corpus/" + std::string(format))) {
      if (!entry.is_regular_file() || entry.path().extension() == ".json") continue;
      const TemporaryFolder folder;
      const std::string path = folder / entry.path().filename().string();
      fs::copy_file(entry.path(), path);
      const std::string old = read_file(path);
      std::string before, rules;
      const auto rules_of = [](const Report& report) {
        std::string out;
        for (const Finding& finding : report.findings())
          if (finding.rule != "gguf/boolean-byte") out += finding.rule + " ";  // which the edit writes as 0 or 1
        return out;
      };
      bool valid = false;
      {  // while a model is open, so is its file
        const Verdict verdict = verify(path);
        valid = verdict.report.valid();
        before = std::to_string(verdict.model.size());
        rules = rules_of(verdict.report);
      }
      // What only reading the tensors shows is not checked by an edit.
      if (!valid) {
        try {
          edit(path, options_of({{"set", "zz=1"}}));
        } catch (const Error& error) {
          EXPECT_NE(error.kind(), Kind::io) << path;
          EXPECT_EQ(read_file(path), old) << path;
        }
        continue;
      }
      Way way = Way::nothing;
      try {
        way = edit(path, options_of({{"set", "zz=1"}})).way;
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), Kind::misuse) << path << ": " << error.what();
        EXPECT_EQ(read_file(path), old) << path;
        ++refused;
        continue;
      }
      {
        const Verdict verdict = verify(path);
        EXPECT_EQ(rules_of(verdict.report), rules) << path;
        EXPECT_EQ(std::to_string(verdict.model.size()), before) << path;
        EXPECT_TRUE(verdict.model.attribute("zz")) << path;
      }
      in_place += way == Way::in_place;
      copied += way == Way::copied;
      if (way != Way::in_place) continue;
      undo_edit(path);
      EXPECT_EQ(read_file(path), old) << path;
    }
  EXPECT_GT(in_place, 50U);
  EXPECT_GT(copied, 40U);
  EXPECT_GT(refused, 10U);
}

TEST(Edit, AShardIsNotRenamedBehindItsIndex) {
  const TemporaryFolder folder;
  const std::string whole = make(folder, "safetensors");
  Options options;
  options.shards.max_size = 4000;
  plan(open(whole), "safetensors", options).execute(folder / "shards/");
  const std::string shard = folder / "shards/model-00001-of-00002.safetensors";
  const std::string name = [&] {
    const Model alone = open(shard);
    return std::string(alone.name(0));
  }();
  EXPECT_EQ(thrown([&] { edit(shard, options_of({{"rename", (name + "=x").c_str()}})); }).rule, "misuse/shard");
  EXPECT_EQ(thrown([&] {
              edit(folder / "shards/model.safetensors.index.json", options_of({{"set", "k=v"}}));
            }).rule,
            "misuse/several-files");
  // A folder: the shard with the tensor is named.
  const Finding found = thrown([&] { edit(folder / "shards", options_of({{"rename", (name + "=x").c_str()}})); });
  EXPECT_EQ(found.rule, "misuse/several-files");
  EXPECT_NE(found.message.find('"' + name + "\" is in \"model-00001-of-00002.safetensors\""), std::string::npos)
      << found.message;
  EXPECT_EQ(thrown([&] {
              edit(folder / "shards", options_of({{"rename", "nothing=x"}}));
            }).rule,
            "misuse/no-such-tensor");
}

TEST(Edit, TheFirstPartOfASplitModelIsEditedAlone) {
  const TemporaryFolder folder;
  const std::string whole = make(folder, "gguf");
  Options options;
  options.shards.max_size = 4000;
  plan(open(whole), "gguf", options).execute(folder / "parts/");
  const std::string first = folder / "parts/model-00001-of-00002.gguf";
  EXPECT_EQ(edit(first, options_of({{"set", "author=me"}, {"rename", "a.weight=x"}})).way, Way::in_place);
  {
    const Model model = open(first);
    EXPECT_EQ(*model.attribute("author"), Value::text("me"));
    EXPECT_TRUE(model.find("x") && model.find("b.bias"));
  }
  EXPECT_TRUE(verify(first).report.valid());
  undo_edit(first);
  {
    const Model model = open(first);
    EXPECT_NE(*model.attribute("author"), Value::text("me"));
    EXPECT_TRUE(model.find("a.weight") && model.find("b.bias"));
  }
  undo_edit(first);  // which takes back the undoing
  EXPECT_TRUE(open(first).find("x"));
  edit(first, options_of({{"set", ("author=" + std::string(5000, 'x')).c_str()}}));  // does not fit: a new file
  EXPECT_TRUE(verify(first).report.valid());
  // What concerns other parts is refused.
  EXPECT_EQ(thrown([&] { edit(first, options_of({{"rename", "b.bias=y"}})); }).rule, "misuse/other-file");
  EXPECT_EQ(thrown([&] { edit(first, options_of({{"rename", "x=b.bias"}})); }).rule, "misuse/duplicate-name");
  EXPECT_EQ(thrown([&] { edit(first, options_of({{"without", "x"}})); }).rule, "misuse/shard");
}

TEST(Edit, OfAFolderChangesTheTextOfItsConfigAlone) {
  const TemporaryFolder folder;
  make(folder, "safetensors");
  const auto edited = [&](const std::string& before,
                          std::initializer_list<std::pair<const char*, const char*>> changes) {
    write_file(folder / "config.json", before);
    const Edited done = edit(folder.path(), options_of(changes));
    EXPECT_EQ(done.file, "config.json");
    return read_file(folder / "config.json");
  };
  EXPECT_EQ(edited("{}", {{"set", "a=b"}}), R"({"a": "b"})");
  EXPECT_EQ(edited("{ \"x\" : 1 }", {{"set", "a=b"}}), R"({ "x" : 1, "a": "b" })");
  EXPECT_EQ(edited("{\n \"x\": 1,\n \"y\": 2\n}\n", {{"set", "z:u32=3"}, {"set", "hf.x=7"}}),
            "{\n \"x\": 7,\n \"y\": 2,\n \"z\": 3\n}\n");
  EXPECT_EQ(edited(R"({"x": 1, "y": 2, "z": 3})", {{"unset", "x"}}), R"({"y": 2, "z": 3})");
  EXPECT_EQ(edited(R"({"x": 1, "y": 2, "z": 3})", {{"unset", "z"}, {"unset", "y"}}), R"({"x": 1})");
  EXPECT_EQ(edited(R"({ "x": 1 })", {{"unset", "x"}}), "{  }");
  EXPECT_EQ(edited(R"({"x": [1], "y": {}})", {{"set", "x=[2, 3]"}, {"set", "y={\"a\": null}"}}),
            R"({"x": [2, 3], "y": {"a": null}})");
  write_file(folder / "config.json", R"({"x": 1})");
  for (const char* wrong : {"x=a", "x:u8=300", "x=[1]", "v.w=1"})
    EXPECT_EQ(thrown([&] { edit(folder.path(), options_of({{"set", wrong}})); }).kind, Kind::misuse) << wrong;
  EXPECT_EQ(thrown([&] { edit(folder.path(), options_of({{"unset", "q"}})); }).rule, "misuse/unset");
  EXPECT_EQ(thrown([&] {
              edit(folder.path(), options_of({{"set", "x=2"}, {"set", "tokenizer.chat_template={{ m }}"}}));
            }).rule,
            "misuse/several-files");
  EXPECT_EQ(read_file(folder / "config.json"), R"({"x": 1})");
  edit(folder.path(), options_of({{"set", "tokenizer.chat_template={{ m }}"}}));
  EXPECT_EQ(read_file(folder / "chat_template.jinja"), "{{ m }}");
  EXPECT_EQ(thrown([&] {
              edit(folder.path(), options_of({{"set", "tokenizer.chat_template={{ m._x }}"}}));
            }).rule,
            "misuse/template");
}

TEST(Edit, OfAFolderTheFileToGiveIsNamed) {
  const TemporaryFolder folder;
  make(folder, "safetensors");
  write_file(folder / "config.json", "{}");
  const Finding found = thrown([&] { plan_edit(folder.path(), options_of({{"rename", "a=b"}})); });
  EXPECT_EQ(found.rule, "misuse/folder");
  EXPECT_NE(found.message.find("\"model.safetensors\""), std::string::npos) << found.message;
  fs::create_directory(folder / "empty");
  EXPECT_EQ(thrown([&] { edit(folder / "empty", options_of({{"set", "k=v"}})); }).rule, "misuse/folder");
}

TEST(Edit, EachOptionOfTheTableIsSetByItsName) { test::set_each<EditOptions>(OptionOf::edit); }

}  // namespace
}  // namespace weighbridge
