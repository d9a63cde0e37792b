// SPDX-License-Identifier: Apache-2.0
// What programs do wrong with weighbridge/c.h, and what its results must say. tests/consumer/main.c does it right, in
// C.
#include "weighbridge/c.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <new>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "support/c_objects.h"
#include "support/temporary_folder.h"

namespace {
thread_local bool memory_is_gone = false;
}  // namespace

// Not inlined: GCC would take them for a pair that does not match.
[[gnu::noinline]] void* operator new(std::size_t size) {
  void* const out = memory_is_gone ? nullptr : std::malloc(size);
  if (out == nullptr) throw std::bad_alloc();
  return out;
}
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return memory_is_gone ? nullptr : std::malloc(size);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace weighbridge {
namespace {

using test::AJob, test::AModel, test::APlan, test::Failed, test::failed, test::SomeOptions;
using test::safetensors, test::six_floats, test::TemporaryFolder, test::text, test::works, test::write_file;
using namespace std::string_literals;

// The process was aborted.
TEST(C, OfAFileWithoutAShapeItIsSaid) {
  const AModel model("corpus/stb/no-shape.stb");
  ASSERT_EQ(wb_model_size(model), 1U);
  EXPECT_EQ(wb_tensor_has_shape(model, 0), 0);
  EXPECT_EQ(wb_tensor_readable(model, 0), 0);
  EXPECT_EQ(wb_tensor_rank(model, 0), 0U);
  EXPECT_EQ(wb_tensor_shape(model, 0), nullptr);
  EXPECT_EQ(wb_tensor_count(model, 0), 0U);
  char byte = 0;
  EXPECT_EQ(failed(wb_read(model, 0, nullptr, 0, 1, &byte, 1, nullptr)).kind, WB_UNSUPPORTED);
}

// The error for a lack of memory needed memory, and a plan copied its losses for a yes or no.
TEST(C, WithoutMemoryThereIsAnErrorAndAccessorsStillWork) {
  const TemporaryFolder folder;
  write_file(folder / "in.safetensors", six_floats());
  const AModel model(folder / "in.safetensors");
  const SomeOptions options{{"to", "npz"}};
  const APlan plan(model, folder / "out.npz", options);
  wb_job* job = nullptr;
  memory_is_gone = true;
  wb_error* const error = wb_job_new(&job);
  const bool possible = wb_plan_possible(plan) != 0;
  const std::size_t found = wb_model_find(model, "w", 1), rank = wb_tensor_rank(model, 0);
  const bool named = *wb_version() != '\0' && *wb_model_format(model) == 's' && *wb_tensor_dtype(model, 0) == 'f';
  const int kind = wb_error_kind(error);
  memory_is_gone = false;
  EXPECT_EQ(kind, WB_MEMORY);
  EXPECT_EQ(failed(error).json, "null");
  EXPECT_EQ(job, nullptr);
  EXPECT_TRUE(possible && named);
  EXPECT_EQ(found, 0U);
  EXPECT_EQ(rank, 2U);
}

// Each of these read or wrote at address 0.
TEST(C, NullIsAnErrorOrNothing) {
  const TemporaryFolder folder;
  const std::string path = folder / "in.safetensors", out = folder / "out.zt";
  write_file(path, six_floats());
  const AModel model(path);
  const AJob job;
  const SomeOptions options{};
  const APlan plan(model, out);
  wb_model* opened = nullptr;
  wb_plan* planned = nullptr;
  char* made = nullptr;
  const std::vector<std::pair<const char*, std::function<wb_error*()>>> calls{
      {"error_json", [&] { return wb_error_json(nullptr, &made); }},
      {"job_new", [] { return wb_job_new(nullptr); }},
      {"job_set_limit, job", [] { return wb_job_set_limit(nullptr, "memory", 1); }},
      {"job_set_limit, name", [&] { return wb_job_set_limit(job, nullptr, 1); }},
      {"job_set_threads", [] { return wb_job_set_threads(nullptr, 2); }},
      {"options_new", [] { return wb_options_new(nullptr); }},
      {"options_set, options", [] { return wb_options_set(nullptr, "cast", "bf16"); }},
      {"options_set, name", [&] { return wb_options_set(options, nullptr, "bf16"); }},
      {"options_set, value", [&] { return wb_options_set(options, "cast", nullptr); }},
      {"open, path", [&] { return wb_open(nullptr, nullptr, nullptr, &opened); }},
      {"open, out", [&] { return wb_open(path.c_str(), nullptr, nullptr, nullptr); }},
      {"read, model", [&] { return wb_read(nullptr, 0, nullptr, 0, 0, nullptr, 0, nullptr); }},
      {"read, out", [&] { return wb_read(model, 0, nullptr, 0, 6, nullptr, 24, nullptr); }},
      {"inspect, model", [&] { return wb_inspect(nullptr, &made); }},
      {"inspect, json", [&] { return wb_inspect(model, nullptr); }},
      {"verify, path", [&] { return wb_verify(nullptr, nullptr, nullptr, nullptr, nullptr); }},
      {"hash, model", [&] { return wb_hash(nullptr, WB_DIGEST_CONTENT, nullptr, &made); }},
      {"hash, text", [&] { return wb_hash(model, WB_DIGEST_CONTENT, nullptr, nullptr); }},
      {"plan_new, model", [&] { return wb_plan_new(nullptr, out.c_str(), nullptr, nullptr, &planned); }},
      {"plan_new, path", [&] { return wb_plan_new(model, nullptr, nullptr, nullptr, &planned); }},
      {"plan_new, out", [&] { return wb_plan_new(model, out.c_str(), nullptr, nullptr, nullptr); }},
      {"plan_json, plan", [&] { return wb_plan_json(nullptr, &made); }},
      {"plan_json, json", [&] { return wb_plan_json(plan, nullptr); }},
      {"plan_execute", [&] { return wb_plan_execute(nullptr, nullptr, &made); }},
  };
  for (const auto& [name, call] : calls) EXPECT_EQ(failed(call()).rule, "misuse/null") << name;
  EXPECT_TRUE(opened == nullptr && planned == nullptr && made == nullptr) << "outputs stay what they were";
  // Accessors have nothing to tell.
  wb_job_set_progress(nullptr, nullptr, nullptr);
  wb_job_cancel(nullptr);
  EXPECT_EQ(wb_error_kind(nullptr), 0);
  for (const auto& get :
       {wb_error_message, wb_error_rule, wb_error_file, wb_error_expected, wb_error_found, wb_error_hint})
    EXPECT_STREQ(get(nullptr), "");
  EXPECT_EQ(wb_error_tensor(nullptr, nullptr), nullptr);
  EXPECT_EQ(wb_error_offset(nullptr, nullptr), 0);
  EXPECT_STREQ(wb_model_format(nullptr), "");
  EXPECT_EQ(wb_model_size(nullptr), 0U);
  EXPECT_EQ(wb_model_find(nullptr, "w", 1), 0U);
  EXPECT_EQ(wb_model_find(model, nullptr, 5), 1U);
  EXPECT_EQ(wb_tensor_name(nullptr, 0, nullptr), nullptr);
  EXPECT_EQ(wb_tensor_dtype(nullptr, 0), nullptr);
  EXPECT_EQ(wb_tensor_shape(nullptr, 0), nullptr);
  EXPECT_EQ(wb_tensor_rank(nullptr, 0) + wb_tensor_count(nullptr, 0), 0U);
  EXPECT_EQ(wb_tensor_has_shape(nullptr, 0) + wb_tensor_readable(nullptr, 0) + wb_plan_possible(nullptr), 0);
  for (const auto& free : std::vector<std::function<void()>>{
           [] { wb_error_free(nullptr); }, [] { wb_job_free(nullptr); }, [] { wb_options_free(nullptr); },
           [] { wb_model_free(nullptr); }, [] { wb_plan_free(nullptr); }, [] { wb_text_free(nullptr); }})
    free();
}

// Two calls with one job were in its hook at the same time.
TEST(C, CallsThatShareAJobTakeTurnsInItsHook) {
  const TemporaryFolder folder;
  constexpr std::size_t kSize = std::size_t{16} << 20;
  write_file(
      folder / "in.safetensors",
      safetensors(R"({"w":{"dtype":"U8","shape":[16777216],"data_offsets":[0,16777216]}})", std::string(kSize, 'x')));
  const AModel model(folder / "in.safetensors");
  const AJob job;
  struct Seen {
    std::atomic<int> inside{0}, together{0};
  } seen;
  const auto hook = [](std::uint64_t, std::uint64_t, void* user) {
    Seen& into = *static_cast<Seen*>(user);
    if (++into.inside > 1) ++into.together;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    --into.inside;
    return 1;
  };
  wb_job_set_progress(job, hook, &seen);
  const auto work = [&] {
    EXPECT_TRUE(text([&](char** out) { return wb_hash(model, 0, job, out); }).starts_with("wb2:"));
  };
  std::thread one(work), two(work);
  one.join();
  two.join();
  EXPECT_EQ(seen.together, 0);
}

// The inner call's threads waited for the hook, which waited for the call.
TEST(C, AHookCanMakeACallWithItsJob) {
  const TemporaryFolder folder;
  write_file(
      folder / "in.safetensors",
      safetensors(R"({"w":{"dtype":"U8","shape":[33554432],"data_offsets":[0,33554432]}})", std::string(1 << 25, 'x')));
  const AModel model(folder / "in.safetensors");
  const AJob job;
  works(wb_job_set_threads(job, 4));
  struct Seen {
    const wb_model* model;
    const wb_job* job;
    std::atomic<int> calls{0};
    std::string inner{};
  } seen{model, job};
  const auto hook = [](std::uint64_t, std::uint64_t, void* user) {
    Seen& into = *static_cast<Seen*>(user);
    if (++into.calls == 1) into.inner = text([&](char** out) { return wb_hash(into.model, 0, into.job, out); });
    return 1;
  };
  wb_job_set_progress(job, hook, &seen);
  const std::string outer = text([&](char** out) { return wb_hash(model, 0, job, out); });
  EXPECT_EQ(seen.inner, outer);
}

// A file without a name in its message.
TEST(C, AnErrorOfReadingNamesTheFile) {
  const TemporaryFolder folder;
  const std::string path = folder / "in.safetensors";
  write_file(path, safetensors(R"({"w":{"dtype":"F99","shape":[1],"data_offsets":[0,4]}})", std::string(4, 'x')));
  const AModel model(path);
  float element = 0;
  const Failed found = failed(wb_read(model, 0, nullptr, 0, 1, &element, 4, nullptr));
  EXPECT_EQ(found.kind, WB_UNSUPPORTED);
  EXPECT_TRUE(found.message.starts_with(path)) << found.message;
}

// The file itself changed.
TEST(C, AnEmptyOutputIsNoRequestToChangeTheFile) {
  const SomeOptions options{};
  EXPECT_EQ(failed(wb_options_set(options, "output", "")).rule, "misuse/option");
}

// 4,294,967,295 threads were tried.
TEST(C, AJobHasAtMost1024Threads) {
  const AJob job;
  EXPECT_EQ(failed(wb_job_set_threads(job, 1025)).rule, "misuse/threads");
  works(wb_job_set_threads(job, 2));
}

// A plan was made with a cancelled job.
TEST(C, ACancelledJobStartsNothing) {
  const TemporaryFolder folder;
  const std::string path = folder / "in.safetensors", out = folder / "out.zt";
  write_file(path, six_floats());
  const AModel model(path);
  const APlan plan(model, out);
  const AJob job;
  wb_job_cancel(job);
  wb_model* opened = nullptr;
  wb_plan* planned = nullptr;
  char* made = nullptr;
  float element = 0;
  for (wb_error* const error :
       {wb_open(path.c_str(), nullptr, job, &opened), wb_read(model, 0, nullptr, 0, 1, &element, 4, job),
        wb_verify(path.c_str(), nullptr, job, nullptr, &made), wb_hash(model, WB_DIGEST_CONTENT, job, &made),
        wb_plan_new(model, out.c_str(), nullptr, job, &planned), wb_plan_execute(plan, job, &made)}) {
    const Failed found = failed(error);
    EXPECT_EQ(found.kind, WB_CANCELLED);
    EXPECT_EQ(found.json, "null");
  }
  EXPECT_EQ(folder.entries(), std::set<std::string>{"in.safetensors"});
}

// It was called a lack of memory.
TEST(C, AnExceptionOfAHookIsNamed) {
  const TemporaryFolder folder;
  write_file(folder / "in.safetensors", six_floats());
  const AModel model(folder / "in.safetensors");
  const AJob job;
  char* made = nullptr;
  for (const wb_progress hook :
       {wb_progress{[](std::uint64_t, std::uint64_t, void*) -> int { throw 42; }},
        wb_progress{[](std::uint64_t, std::uint64_t, void*) -> int { throw std::runtime_error("mine"); }}}) {
    wb_job_set_progress(job, hook, nullptr);
    EXPECT_EQ(failed(wb_hash(model, WB_DIGEST_CONTENT, job, &made)).kind, WB_INTERNAL);
  }
}

// add() reported the end first, and could still stop there.
TEST(C, WhatIsDoneIsReturnedThoughTheHookSaysNo) {
  const TemporaryFolder folder;
  const std::string path = folder / "in.safetensors", out = folder / "out.zt";
  write_file(path, six_floats());
  const AModel model(path);
  const APlan plan(model, out);
  const AJob job;
  int calls = 0;
  const auto until_done = [](std::uint64_t done, std::uint64_t total, void* user) {
    ++*static_cast<int*>(user);
    return total == 0 || done < total ? 1 : 0;
  };
  wb_job_set_progress(job, until_done, &calls);
  EXPECT_TRUE(text([&](char** made) { return wb_hash(model, WB_DIGEST_CONTENT, job, made); }).starts_with("wb2:"));
  EXPECT_EQ(calls, 1);
  works(wb_verify(path.c_str(), nullptr, job, nullptr, nullptr));
  // An output that is not published yet can still be stopped.
  EXPECT_EQ(failed(wb_plan_execute(plan, job, nullptr)).kind, WB_CANCELLED);
  EXPECT_EQ(folder.entries(), std::set<std::string>{"in.safetensors"});
}

// The bound of the plan stood there.
TEST(C, TheResultOfAnEncodedOutputHasItsSize) {
  const TemporaryFolder folder;
  const std::string path = folder / "in.safetensors", out = folder / "out.zt";
  write_file(path, safetensors(R"({"w":{"dtype":"U8","shape":[100000],"data_offsets":[0,100000]}})",
                               std::string(100000, 'x')));
  const AModel model(path);
  const SomeOptions options{{"encoding", "zstd"}};
  const APlan plan(model, out, options);
  const std::string planned = text([&](char** json) { return wb_plan_json(plan, json); });
  const std::string done = text([&](char** json) { return wb_plan_execute(plan, nullptr, json); });
  EXPECT_NE(planned.find("\"output_size_exact\":false"), std::string::npos) << planned;
  const std::string size = std::to_string(std::filesystem::file_size(out));
  EXPECT_NE(done.find("\"output_size\":" + size + ",\"output_size_exact\":true"), std::string::npos) << done;
}

// Its first shard stood there.
TEST(C, ResultsNameTheFolderThatWasOpened) {
  const TemporaryFolder folder;
  for (const char* const name : {"a", "b"})
    write_file(folder / ("model-0000"s + (*name == 'a' ? "1" : "2") + "-of-00002.safetensors"),
               safetensors(R"({")"s + name + R"(":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", "x"));
  write_file(folder / "model.safetensors.index.json",
             R"({"metadata":{"total_size":2},"weight_map":{"a":"model-00001-of-00002.safetensors",)"
             R"("b":"model-00002-of-00002.safetensors"}})");
  const AModel model(folder.path());
  EXPECT_EQ(wb_model_size(model), 2U);
  const APlan plan(model, folder / "out.zt");
  const std::string named = "\"path\":\"" + folder.path() + "\"";
  for (const std::string& json : {text([&](char** out) { return wb_plan_json(plan, out); }),
                                  text([&](char** out) { return wb_inspect(model, out); })})
    EXPECT_NE(json.find(named), std::string::npos) << json;
}

// The warnings of opening were lost.
TEST(C, AnInspectionHasTheWarningsOfOpening) {
  const AModel model("corpus/embd/created-at.weights");
  const std::string json = text([&](char** out) { return wb_inspect(model, out); });
  EXPECT_NE(json.find("\"rule\":\"embd/created-at\""), std::string::npos) << json;
}

// A tensor's name ended the message at its NUL, and a dtype reached the terminal. No function had the tensor.
TEST(C, AnErrorNamesFileAndTensorAndCanBeShown) {
  const TemporaryFolder folder;
  const std::string path = folder / "in\x1b[31m\xff.safetensors"s;
  write_file(path,
             safetensors(R"({"a\u0000b":{"dtype":"F32","shape":[2,3],"data_offsets":[0,20]}})", std::string(20, '\0')));
  wb_model* opened = nullptr;
  const Failed found = failed(wb_open(path.c_str(), nullptr, nullptr, &opened));
  EXPECT_EQ(found.kind, WB_MALFORMED);
  EXPECT_EQ(found.file, folder / "in\\x1b[31m\\xff.safetensors");
  EXPECT_TRUE(found.message.starts_with(found.file + ": ")) << found.message;
  EXPECT_EQ(found.tensor, "a\0b"s);
  EXPECT_NE(found.json.find("\"tensor\":\"a\\u0000b\""), std::string::npos) << found.json;
  EXPECT_NE(found.json.find("\"rule\":\"" + found.rule + "\""), std::string::npos) << found.json;
  write_file(path,
             safetensors(R"({"a\u0000b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", std::string(4, '\0')));
  const AModel named(path);
  float element = 0;
  const std::string cast = failed(wb_read(named, 0, "i8", 0, 1, &element, 1, nullptr)).message;
  EXPECT_NE(cast.find("a\\x00b"), std::string::npos) << cast;
  // The system's errors name it as well; what a caller did wrong is not about the file.
  EXPECT_EQ(failed(wb_open((folder / "none").c_str(), nullptr, nullptr, &opened)).file, folder / "none");
  write_file(folder / "in.safetensors", six_floats());
  const AModel model(folder / "in.safetensors");
  EXPECT_EQ(failed(wb_read(model, 0, nullptr, 7, 0, &element, 4, nullptr)).file, "");
  write_file(folder / "type.safetensors",
             safetensors(R"({"w":{"dtype":"F\u001b]0;x\u0007","shape":[1],"data_offsets":[0,1]}})", "x"));
  const AModel unknown(folder / "type.safetensors");
  const std::string why = failed(wb_read(unknown, 0, nullptr, 0, 1, &element, 1, nullptr)).message;
  EXPECT_EQ(why.find_first_of("\x1b\x07"), std::string::npos) << why;
}

// A byte with a fourth element was given for three; one element as f32 was refused.
TEST(C, ElementsOfHalfAByteAreReadInWholeBytesOrInAnotherDtype) {
  const TemporaryFolder folder;
  std::string data(8, '\0');
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<char>(0x21 + 0x11 * i);
  write_file(folder / "in.safetensors",
             safetensors(R"({"w":{"dtype":"F4","shape":[2,8],"data_offsets":[0,8]}})", data));
  write_file(folder / "odd.safetensors",
             safetensors(R"({"w":{"dtype":"F4","shape":[15],"data_offsets":[0,8]}})", data));
  const AModel model(folder / "in.safetensors");
  unsigned char bytes[2] = {};
  const auto own = [&](std::uint64_t first, std::uint64_t count) {
    return failed(wb_read(model, 0, nullptr, first, count, bytes, 2, nullptr)).message;
  };
  EXPECT_EQ(own(0, 3), "elements [0, 3) of f4 do not begin and end on byte boundaries");
  EXPECT_EQ(own(1, 3), "elements [1, 4) of f4 do not begin and end on byte boundaries");
  EXPECT_EQ(own(0, 4), "");
  EXPECT_EQ(bytes[0], 0x21);
  float all[16] = {}, one = 0, three[3] = {};
  works(wb_read(model, 0, "f32", 0, 16, all, sizeof all, nullptr));
  works(wb_read(model, 0, "f32", 1, 1, &one, sizeof one, nullptr));
  works(wb_read(model, 0, "f32", 2, 3, three, sizeof three, nullptr));
  EXPECT_EQ(one, all[1]);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(three[i], all[2 + i]);
}

// "elements [7, 7 + 0) of 6 are not 0 whole bytes"
TEST(C, ARangeThatCannotBeReadIsExplained) {
  const TemporaryFolder folder;
  write_file(folder / "in.safetensors", six_floats());
  const AModel model(folder / "in.safetensors");
  float out[6] = {};
  const auto said = [&](const char* dtype, std::uint64_t first, std::uint64_t count, std::size_t size) {
    return failed(wb_read(model, 0, dtype, first, count, out, size, nullptr)).message;
  };
  EXPECT_EQ(said(nullptr, 7, 0, 0), "the tensor has 6 elements; 7 is past its end");
  EXPECT_EQ(said(nullptr, UINT64_MAX, 2, 8), "the tensor has 6 elements; 18446744073709551615 is past its end");
  EXPECT_EQ(said(nullptr, 0, 6, 23), "these 6 elements take 24 bytes; the buffer has 23");
  EXPECT_EQ(said("f33", 0, 6, 24), "unknown dtype \"f33\"");
  const AJob job;
  EXPECT_EQ(failed(wb_job_set_limit(job, "x", 1)).message,
            "there is no limit \"x\"; the limits are memory, header, tensors, decoded, work, output, depth");
  EXPECT_EQ(failed(wb_job_set_limit(job, "depth", 1U << 20)).message,
            "depth is a whole number from 1 to 1024, not \"1048576\"");
}

// Opening took "cast", planning took "format", and wrote what they do not mean.
TEST(C, ACallRefusesOptionsThatItCannotUse) {
  const TemporaryFolder folder;
  const std::string path = folder / "in.safetensors", out = folder / "out.zt";
  write_file(path, six_floats());
  const AModel model(path);
  const SomeOptions conversion{{"cast", "bf16"}}, opening{{"format", "safetensors"}};
  wb_model* opened = nullptr;
  wb_plan* planned = nullptr;
  EXPECT_EQ(failed(wb_open(path.c_str(), conversion, nullptr, &opened)).message,
            "\"cast\" is an option for conversions");
  EXPECT_EQ(failed(wb_verify(path.c_str(), conversion, nullptr, nullptr, nullptr)).rule, "misuse/option");
  EXPECT_EQ(failed(wb_plan_new(model, out.c_str(), opening, nullptr, &planned)).message,
            "\"format\" is an option for opening");
  const AModel again(path);
  works(wb_verify(path.c_str(), opening, nullptr, nullptr, nullptr));
}

// Any text was taken until a call used it, and " 5" and "+7" were levels.
TEST(C, AnOptionIsCheckedWhenItIsSet) {
  const SomeOptions options{{"level", "19"}, {"overwrite", "true"}, {"to", "zt"}, {"checks", "structure"}};
  for (const auto& [name, value] : std::vector<std::pair<const char*, const char*>>{{"format", "nonsense"},
                                                                                    {"to", "nonsense"},
                                                                                    {"checksum-form", "zzz"},
                                                                                    {"checks", "none"},
                                                                                    {"overwrite", "yes"},
                                                                                    {"Cast", "bf16"}})
    EXPECT_EQ(failed(wb_options_set(options, name, value)).kind, WB_MISUSE) << name;
  for (const char* const level : {" 5", "+7", "0x7", "", "20", "-1", "99999999999999999999"})
    EXPECT_EQ(failed(wb_options_set(options, "level", level)).rule, "misuse/option") << level;
}

}  // namespace
}  // namespace weighbridge
