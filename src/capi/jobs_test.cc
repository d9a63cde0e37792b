// SPDX-License-Identifier: Apache-2.0
// The calls of weighbridge/c.h that compare, edit, check, sign, prove and patch: a job of each, and an error of each.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "support/c_objects.h"
#include "support/signing_keys.h"
#include "support/temporary_folder.h"
#include "weighbridge/c.h"
#include "weighbridge/convert.h"
#include "weighbridge/derivation.h"
#include "weighbridge/manifest.h"
#include "weighbridge/open.h"

namespace weighbridge {
namespace {

using test::AJob, test::AModel, test::APlan, test::Failed, test::failed, test::Owned, test::SomeOptions;
using test::safetensors, test::six_floats, test::text, test::works, test::write_file, test::read_file;
using namespace std::string_literals;

bool has(const std::string& text, std::string_view part) { return text.find(part) != text.npos; }

// A matrix of 8 x 512 f32; `changed` of its elements differ from those of 0.
std::string matrix(int changed) {
  std::string data;
  for (int i = 0; i < 8 * 512; ++i) {
    const float number = static_cast<float>(i % 97) / 10 + (i < changed ? 1.0F : 0.0F);
    char bytes[sizeof number];
    std::memcpy(bytes, &number, sizeof number);
    data.append(bytes, sizeof number);
  }
  return safetensors(R"({"w":{"dtype":"F32","shape":[8,512],"data_offsets":[0,16384]}})", data);
}

class CJobs : public testing::Test {
 protected:
  CJobs() {
    works(wb_job_set_threads(threads, 4));
    write_file(base, matrix(0));
    write_file(tuned, matrix(3));
  }
  test::TemporaryFolder folder;
  const AJob threads;
  const std::string base = folder / "base.safetensors", tuned = folder / "tuned.safetensors",
                    patch = folder / "patch.zt";
  int verdict = -1;
  char* json = nullptr;
};

TEST_F(CJobs, Diff) {
  const AModel a(base), b(tuned);
  int equal = -1;
  works(wb_diff(a, a, nullptr, threads, &equal, nullptr));
  EXPECT_EQ(equal, 1);
  const std::string found = text([&](char** out) { return wb_diff(a, b, nullptr, threads, &equal, out); });
  EXPECT_EQ(equal, 0);
  EXPECT_TRUE(has(found, R"("a":{"path":")" + base)) << found;
  EXPECT_TRUE(has(found, R"("changed":3)")) << found;
  EXPECT_EQ(found, text([&](char** out) { return wb_diff(a, b, nullptr, nullptr, nullptr, out); }));
  const SomeOptions close{{"atol", "1.5"}};
  works(wb_diff(a, b, close, nullptr, &equal, nullptr));
  EXPECT_EQ(equal, 1);
  const SomeOptions other{{"only", "v"}};
  EXPECT_EQ(failed(wb_diff(a, b, other, nullptr, &equal, nullptr)).kind, WB_MISUSE);
  EXPECT_EQ(equal, 1) << "outputs stay what they were";
}

TEST_F(CJobs, Edit) {
  const SomeOptions set{{"set", "license=mit"}, {"rename", "w=v"}};
  const std::string before = read_file(base);
  EXPECT_TRUE(has(text([&](char** out) { return wb_edit(base.c_str(), set, 1, threads, out); }), R"("written":false)"));
  EXPECT_EQ(read_file(base), before);
  EXPECT_TRUE(has(text([&](char** out) { return wb_edit(base.c_str(), set, 0, threads, out); }), R"("written":true)"));
  const AModel edited(base);
  EXPECT_EQ(wb_model_find(edited, "v", 1), 0U);
  EXPECT_TRUE(has(text([&](char** out) { return wb_inspect(edited, out); }), R"("license")"));
  const std::string copy = folder / "copy.safetensors";
  const SomeOptions again{{"unset", "license"}, {"output", copy.c_str()}};
  works(wb_edit(base.c_str(), again, 0, nullptr, nullptr));
  EXPECT_EQ(failed(wb_edit(base.c_str(), again, 0, nullptr, nullptr)).rule, "misuse/output-exists");
  const Failed none = failed(wb_edit((folder / "none").c_str(), set, 0, nullptr, nullptr));
  EXPECT_EQ(none.kind, WB_IO);
  EXPECT_EQ(none.file, folder / "none");
}

TEST_F(CJobs, CheckWithAManifest) {
  const test::Key key, other;
  const auto policy_for = [](const test::Key& of) {
    std::string pem = of.public_pem();
    for (std::size_t at = 0; (at = pem.find('\n', at)) != pem.npos; at += 2) pem.replace(at, 1, "\\n");
    return R"({"formats": ["safetensors"], "keys": [")" + pem + "\"]}";
  };
  const std::string model = folder / "model", list = folder / "model.sig", ours = folder / "ours.json",
                    theirs = folder / "theirs.json", pem = folder / "key.pem";
  std::filesystem::create_directory(model);
  write_file(model + "/model.safetensors", matrix(0));
  write_file(ours, policy_for(key));
  write_file(theirs, policy_for(other));
  write_file(pem, key.private_pem());
  const SomeOptions signing{{"key", pem.c_str()}};
  works(wb_manifest_write(model.c_str(), list.c_str(), signing, threads, nullptr));
  const auto checked = [&](const std::string& policy, const char* manifest, const wb_job* job) {
    return text(
        [&](char** out) { return wb_check(model.c_str(), policy.c_str(), manifest, nullptr, job, &verdict, out); });
  };
  const std::string found = checked(ours, list.c_str(), threads);
  EXPECT_EQ(verdict, WB_VALID) << found;
  EXPECT_EQ(found, checked(ours, list.c_str(), nullptr));
  checked(theirs, list.c_str(), threads);
  EXPECT_EQ(verdict, WB_INVALID);
  checked("download", nullptr, threads);
  EXPECT_EQ(verdict, WB_VALID);
  // A manifest for a policy that does not ask for it, a policy that is none, and one that is not there.
  EXPECT_EQ(failed(wb_check(model.c_str(), "download", list.c_str(), nullptr, nullptr, nullptr, nullptr)).kind,
            WB_MISUSE);
  write_file(ours, "{");
  const Failed fault = failed(wb_check(model.c_str(), ours.c_str(), nullptr, nullptr, nullptr, nullptr, nullptr));
  EXPECT_EQ(fault.rule, "misuse/policy");
  const Failed absent = failed(wb_check(model.c_str(), "dowload", nullptr, nullptr, nullptr, nullptr, nullptr));
  EXPECT_EQ(absent.kind, WB_IO);
  EXPECT_EQ(absent.file, "dowload");
  EXPECT_EQ(
      failed(wb_check(model.c_str(), "strict", (folder / "no.sig").c_str(), nullptr, nullptr, nullptr, nullptr)).file,
      folder / "no.sig");
}

TEST_F(CJobs, Manifest) {
  const test::Key key;
  const std::string list = folder / "base.sig", pem = folder / "key.pem", pub = folder / "key.pub",
                    empty = folder / "empty.pem";
  write_file(pem, key.private_pem());
  write_file(pub, key.public_pem());
  write_file(empty, "");
  const SomeOptions signing{{"key", pem.c_str()}, {"per-tensor", "true"}}, trust{{"public-key", pub.c_str()}};
  const std::string made =
      text([&](char** out) { return wb_manifest_write(base.c_str(), list.c_str(), signing, threads, out); });
  EXPECT_TRUE(has(made, R"("method":"key")")) << made;
  const auto verified = [&](const wb_options* options) {
    return text(
        [&](char** out) { return wb_manifest_verify(base.c_str(), list.c_str(), options, threads, &verdict, out); });
  };
  EXPECT_TRUE(has(verified(trust), R"("signature":"valid")"));
  EXPECT_EQ(verdict, WB_VALID);
  verified(nullptr);
  EXPECT_EQ(verdict, WB_INCONCLUSIVE) << "nothing to check the signature with";
  write_file(base, matrix(1));
  EXPECT_TRUE(has(verified(trust), R"("tensors":["w"])"));
  EXPECT_EQ(verdict, WB_INVALID);
  EXPECT_EQ(
      failed(wb_manifest_verify(base.c_str(), (folder / "none").c_str(), nullptr, nullptr, nullptr, nullptr)).file,
      folder / "none");
  // A key that is none is known before the output is made.
  const SomeOptions nothing{{"key", empty.c_str()}}, wrong{{"key", pub.c_str()}}, half{{"certificate", pub.c_str()}};
  const std::string fresh = folder / "fresh.sig";
  EXPECT_EQ(failed(wb_manifest_write(base.c_str(), fresh.c_str(), nothing, nullptr, nullptr)).file, empty);
  EXPECT_EQ(failed(wb_manifest_write(base.c_str(), fresh.c_str(), wrong, nullptr, nullptr)).rule, "misuse/key");
  EXPECT_EQ(failed(wb_manifest_write(base.c_str(), fresh.c_str(), half, nullptr, nullptr)).rule, "misuse/option");
  EXPECT_FALSE(std::filesystem::exists(fresh));
  EXPECT_EQ(failed(wb_manifest_write((folder / "none").c_str(), fresh.c_str(), nullptr, nullptr, nullptr)).kind, WB_IO);
}

// With "overwrite", a wrong output replaced a file of the model.
TEST_F(CJobs, AManifestReplacesOnlyManifests) {
  const std::string list = folder / "base.sig", before = read_file(tuned);
  const SomeOptions overwrite{{"overwrite", "true"}};
  works(wb_manifest_write(base.c_str(), list.c_str(), nullptr, nullptr, nullptr));
  EXPECT_EQ(failed(wb_manifest_write(base.c_str(), list.c_str(), nullptr, nullptr, nullptr)).rule,
            "misuse/output-exists");
  works(wb_manifest_write(base.c_str(), list.c_str(), overwrite, nullptr, nullptr));
  const Failed refused = failed(wb_manifest_write(base.c_str(), tuned.c_str(), overwrite, nullptr, nullptr));
  EXPECT_EQ(refused.rule, "misuse/output-exists");
  EXPECT_TRUE(has(refused.message, "is not a manifest")) << refused.message;
  EXPECT_EQ(read_file(tuned), before);
}

TEST_F(CJobs, DerivationByAStatement) {
  const std::string made = folder / "q.gguf", statement = folder / "statement.json";
  const AModel source(base), another(tuned);
  const SomeOptions quantize{{"quantize", "q8_0"}};
  works(wb_plan_execute(APlan(source, made, quantize), threads, nullptr));
  write_file(statement, write_statement(state(made, open(base), {{"quantize", "q8_0"}})));
  const auto proven = [&](const wb_model* from, const char* how) {
    return text(
        [&](char** out) { return wb_verify_derivation(made.c_str(), from, how, nullptr, threads, &verdict, out); });
  };
  EXPECT_TRUE(has(proven(source, statement.c_str()), R"("quantize":"q8_0")"));
  EXPECT_EQ(verdict, WB_VALID);
  EXPECT_EQ(proven(source, nullptr), proven(source, statement.c_str()));
  EXPECT_EQ(verdict, WB_VALID);
  proven(another, nullptr);
  EXPECT_EQ(verdict, WB_INVALID);
  EXPECT_EQ(proven(another, statement.c_str()), "statement/source");
  EXPECT_EQ(failed(wb_verify_derivation(base.c_str(), source, nullptr, nullptr, nullptr, nullptr, nullptr)).kind,
            WB_MISUSE)
      << "it is no GGUF";
  write_file(statement, "{}");
  const Failed fault =
      failed(wb_verify_derivation(made.c_str(), source, statement.c_str(), nullptr, nullptr, nullptr, nullptr));
  EXPECT_EQ(fault.rule, "manifest/statement");
  EXPECT_EQ(fault.file, statement);
  EXPECT_EQ(failed(wb_verify_derivation(made.c_str(), source, nullptr, quantize, nullptr, nullptr, nullptr)).rule,
            "misuse/option");
}

TEST_F(CJobs, PatchesAreMadeFoldedAndApplied) {
  const std::string last = folder / "last.safetensors", second = folder / "second.zt", folded = folder / "folded.zt",
                    out = folder / "out.safetensors";
  write_file(last, matrix(40));
  const AModel a(base), b(tuned), c(last);
  const std::string made =
      text([&](char** json_out) { return wb_make_patch(a, b, patch.c_str(), nullptr, threads, json_out); });
  EXPECT_TRUE(has(made, R"("differing":3)")) << made;
  EXPECT_EQ(failed(wb_make_patch(a, b, patch.c_str(), nullptr, nullptr, nullptr)).rule, "misuse/output-exists");
  const SomeOptions overwrite{{"overwrite", "true"}};
  works(wb_make_patch(a, b, patch.c_str(), overwrite, nullptr, nullptr));
  works(wb_make_patch(b, c, second.c_str(), nullptr, threads, nullptr));
  const AModel one(patch), two(second);
  const wb_model *const both[] = {one, two}, *const turned[] = {two, one};
  works(wb_fold_patches(both, 2, folded.c_str(), nullptr, threads, nullptr));
  EXPECT_EQ(failed(wb_fold_patches(turned, 2, (folder / "no.zt").c_str(), nullptr, nullptr, nullptr)).kind, WB_MISUSE);
  EXPECT_FALSE(std::filesystem::exists(folder / "no.zt"));
  const std::string digest = text([&](char** to) { return wb_hash(c, WB_DIGEST_CONTENT, nullptr, to); });
  {
    Owned<wb_model> result(wb_model_free);
    {
      const AModel fold(folded), start(base);
      const wb_model* const list[] = {fold};
      works(wb_apply(start, list, 1, threads, &result.it));
    }  // the result keeps what it needs
    EXPECT_EQ(text([&](char** to) { return wb_hash(result, WB_DIGEST_CONTENT, threads, to); }), digest);
    works(wb_plan_execute(APlan(result, out), threads, nullptr));
  }
  EXPECT_EQ(text([&](char** to) { return wb_hash(AModel(out), WB_DIGEST_CONTENT, nullptr, to); }), digest);
  wb_model* none = nullptr;
  EXPECT_EQ(failed(wb_apply(c, both, 2, nullptr, &none)).rule, "misuse/patch-base");
  EXPECT_EQ(failed(wb_apply(a, both, 0, nullptr, &none)).kind, WB_MISUSE) << "no patches";
  const wb_model* const model[] = {b};
  EXPECT_NE(failed(wb_apply(a, model, 1, nullptr, &none)).kind, 0) << "it is no patch";
  EXPECT_EQ(none, nullptr);
}

TEST_F(CJobs, PatchesAreAppliedInPlace) {
  {
    const AModel a(base), b(tuned);
    works(wb_make_patch(a, b, patch.c_str(), nullptr, nullptr, nullptr));
  }
  const AModel one(patch);
  const wb_model* const list[] = {one};
  const std::string before = read_file(base);
  const auto applied = [&](int dry_run) {
    return text([&](char** out) { return wb_apply_in_place(base.c_str(), list, 1, dry_run, threads, out); });
  };
  EXPECT_TRUE(has(applied(1), R"("written":false)"));
  EXPECT_EQ(read_file(base), before);
  EXPECT_TRUE(has(applied(0), R"("written":true)"));
  EXPECT_EQ(read_file(base), read_file(tuned));
  EXPECT_EQ(applied(0), "misuse/patch-base");
  EXPECT_EQ(failed(wb_apply_in_place((folder / "none").c_str(), list, 1, 0, nullptr, nullptr)).file, folder / "none");
}

TEST_F(CJobs, NullIsAnError) {
  const AModel a(base);
  const wb_model* const holes[] = {nullptr};
  const char* const path = base.c_str();
  wb_model* out = nullptr;
  const std::vector<std::pair<const char*, std::function<wb_error*()>>> calls{
      {"diff, a", [&] { return wb_diff(nullptr, a, nullptr, nullptr, nullptr, &json); }},
      {"diff, b", [&] { return wb_diff(a, nullptr, nullptr, nullptr, nullptr, &json); }},
      {"edit", [&] { return wb_edit(nullptr, nullptr, 0, nullptr, &json); }},
      {"check, path", [&] { return wb_check(nullptr, "strict", nullptr, nullptr, nullptr, &verdict, &json); }},
      {"check, policy", [&] { return wb_check(path, nullptr, nullptr, nullptr, nullptr, &verdict, &json); }},
      {"manifest_write, path", [&] { return wb_manifest_write(nullptr, "x", nullptr, nullptr, &json); }},
      {"manifest_write, output", [&] { return wb_manifest_write(path, nullptr, nullptr, nullptr, &json); }},
      {"manifest_verify, path", [&] { return wb_manifest_verify(nullptr, "x", nullptr, nullptr, &verdict, &json); }},
      {"manifest_verify, manifest",
       [&] { return wb_manifest_verify(path, nullptr, nullptr, nullptr, &verdict, &json); }},
      {"verify_derivation, path",
       [&] { return wb_verify_derivation(nullptr, a, nullptr, nullptr, nullptr, &verdict, &json); }},
      {"verify_derivation, source",
       [&] { return wb_verify_derivation(path, nullptr, nullptr, nullptr, nullptr, &verdict, &json); }},
      {"make_patch, base", [&] { return wb_make_patch(nullptr, a, "x", nullptr, nullptr, &json); }},
      {"make_patch, result", [&] { return wb_make_patch(a, nullptr, "x", nullptr, nullptr, &json); }},
      {"make_patch, output", [&] { return wb_make_patch(a, a, nullptr, nullptr, nullptr, &json); }},
      {"fold_patches, list", [&] { return wb_fold_patches(nullptr, 1, "x", nullptr, nullptr, &json); }},
      {"fold_patches, a patch", [&] { return wb_fold_patches(holes, 1, "x", nullptr, nullptr, &json); }},
      {"apply, base", [&] { return wb_apply(nullptr, holes, 0, nullptr, &out); }},
      {"apply, a patch", [&] { return wb_apply(a, holes, 1, nullptr, &out); }},
      {"apply, out", [&] { return wb_apply(a, nullptr, 0, nullptr, nullptr); }},
      {"apply_in_place, path", [&] { return wb_apply_in_place(nullptr, nullptr, 0, 0, nullptr, &json); }},
      {"apply_in_place, a patch", [&] { return wb_apply_in_place(path, holes, 1, 0, nullptr, &json); }},
  };
  for (const auto& [name, call] : calls) EXPECT_EQ(failed(call()).rule, "misuse/null") << name;
  EXPECT_TRUE(out == nullptr && json == nullptr && verdict == -1) << "outputs stay what they were";
}

TEST_F(CJobs, ACancelledJobStartsNothing) {
  const AModel a(base), b(tuned);
  works(wb_make_patch(a, b, patch.c_str(), nullptr, nullptr, nullptr));
  const AModel one(patch);
  const wb_model* const list[] = {one};
  const AJob job;
  wb_job_cancel(job);
  const SomeOptions set{{"set", "a=b"}};
  const std::string fresh = folder / "fresh", before = read_file(base);
  wb_model* out = nullptr;
  for (wb_error* const error : {
           wb_diff(a, b, nullptr, job, nullptr, &json),
           wb_edit(base.c_str(), set, 0, job, &json),
           wb_check(base.c_str(), "strict", nullptr, nullptr, job, nullptr, &json),
           wb_manifest_write(base.c_str(), fresh.c_str(), nullptr, job, &json),
           wb_manifest_verify(base.c_str(), patch.c_str(), nullptr, job, nullptr, &json),
           wb_verify_derivation(base.c_str(), a, nullptr, nullptr, job, nullptr, &json),
           wb_make_patch(a, b, fresh.c_str(), nullptr, job, &json),
           wb_fold_patches(list, 1, fresh.c_str(), nullptr, job, &json),
           wb_apply(a, list, 1, job, &out),
           wb_apply_in_place(base.c_str(), list, 1, 0, job, &json),
       })
    EXPECT_EQ(failed(error).kind, WB_CANCELLED);
  EXPECT_EQ(read_file(base), before);
  EXPECT_FALSE(std::filesystem::exists(fresh));
}

// An option of one name is of several tables, and each call takes those of its own.
TEST_F(CJobs, ACallTakesTheOptionsOfItsTables) {
  const AModel a(base), b(tuned);
  const SomeOptions shared{{"overwrite", "true"}}, source{{"naming", "source"}}, comparing{{"permuted", "true"}},
      ignoring{{"ignore", "*.txt"}};
  const std::string list = folder / "base.sig";
  works(wb_manifest_write(base.c_str(), list.c_str(), shared, nullptr, nullptr));
  works(wb_make_patch(a, b, patch.c_str(), shared, nullptr, nullptr));
  works(wb_manifest_write(base.c_str(), (folder / "b.sig").c_str(), ignoring, nullptr, nullptr));
  works(wb_manifest_verify(base.c_str(), list.c_str(), ignoring, nullptr, nullptr, nullptr));
  EXPECT_EQ(failed(wb_diff(a, b, shared, nullptr, nullptr, nullptr)).message,
            "\"overwrite\" is an option for conversions");
  EXPECT_EQ(failed(wb_edit(base.c_str(), comparing, 0, nullptr, nullptr)).message,
            "\"permuted\" is an option for comparisons");
  // "source" is a naming of conversions, not of comparisons.
  EXPECT_TRUE(has(failed(wb_diff(a, b, source, nullptr, nullptr, nullptr)).message, "llama"));
  const SomeOptions format{{"format", "safetensors"}};
  works(wb_check(base.c_str(), "strict", nullptr, format, nullptr, &verdict, nullptr));
  EXPECT_EQ(verdict, WB_VALID);
}

}  // namespace
}  // namespace weighbridge
