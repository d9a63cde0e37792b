// SPDX-License-Identifier: Apache-2.0
// From an .slm to its admission: what each step refuses, and that a change of any field of any record is detected.
#include "chain/admission.h"
#include "support/admission_chain.h"

namespace weighbridge::chain {
using namespace internal;
namespace {

using test::thrown, test::read_file, test::write_file, test::TemporaryFolder;
using namespace testing;

std::string rule(const std::function<void()>& call) { return thrown(call).rule; }

TEST(Admission, EveryFieldOfEveryRecordIsCaughtByTheNextStep) {
  const TemporaryFolder folder;
  const Evidence at = make_chain(folder / "m.slm");
  Evidence elsewhere = at;  // where steps that pass write
  elsewhere.manifest = folder / "manifest";
  expect_each_field_is_caught(kConversionSchema, at.conversion,
                              [&] { write_slm_manifest(elsewhere, kTrainedKind, true); });
  expect_each_field_is_caught(slm_manifest_schema(), at.manifest, [&] { validate_slm_manifest(at); });
  Evidence gate = at;
  gate.smoke_gate = folder / "gate";
  expect_each_field_is_caught(smoke_schema(), at.smoke, [&] { quality_gate(Gate::runtime_smoke, gate, {}, true); });
  gate = at;
  gate.quality_gate = folder / "quality";
  const auto assistant = [&] { quality_gate(Gate::assistant_quality, gate, kApproved, true); };
  expect_each_field_is_caught(smoke_gate_schema(), at.smoke_gate, assistant);
  expect_each_field_is_caught(cases_schema(), at.cases, assistant);
  expect_each_field_is_caught(evaluation_schema(), at.evaluation, assistant);
  Evidence admission = at;
  admission.admission = folder / "admission";
  expect_each_field_is_caught(quality_gate_schema(), at.quality_gate, [&] { write_admission(admission, true); });
  expect_each_field_is_caught(admission_schema(), at.admission, [&] { read_admission(at, {}); });
}

TEST(Admission, AForgedSealIsCaughtByWhatIsBoundToTheRecord) {
  const TemporaryFolder folder;
  const Evidence at = make_chain(folder / "m.slm");
  const auto promote = [&] { read_admission(at, {}); };
  expect_each_resealed_field_is_caught(kConversionSchema, at.conversion, promote);
  expect_each_resealed_field_is_caught(slm_manifest_schema(), at.manifest, promote);
  expect_each_resealed_field_is_caught(smoke_schema(), at.smoke, promote);
  expect_each_resealed_field_is_caught(smoke_gate_schema(), at.smoke_gate, promote);
  expect_each_resealed_field_is_caught(evaluation_schema(), at.evaluation, promote);
  expect_each_resealed_field_is_caught(quality_gate_schema(), at.quality_gate, promote);
  expect_each_resealed_field_is_caught(admission_schema(), at.admission, promote);
}

TEST(Admission, IsRefusedWhereARecordIsMissing) {
  const TemporaryFolder folder;
  const Evidence at = make_chain(folder / "m.slm");
  for (const std::string& path :
       {at.conversion, at.manifest, at.smoke, at.smoke_gate, at.cases, at.evaluation, at.quality_gate}) {
    const std::string text = read_file(path);
    std::filesystem::remove(path);
    const Finding finding = thrown([&] { write_admission(at, true); });
    EXPECT_EQ(finding.rule, "chain/missing-evidence");
    EXPECT_NE(finding.message.find(path), std::string::npos) << finding.message;
    write_file(path, text);
  }
}

TEST(Admission, TwoRunsGiveTheSameBytes) {
  const TemporaryFolder one, two;
  const Evidence a = make_chain(one / "m.slm"), b = make_chain(two / "m.slm");
  for (const auto member : {&Evidence::manifest, &Evidence::smoke, &Evidence::smoke_gate, &Evidence::cases,
                            &Evidence::evaluation, &Evidence::quality_gate, &Evidence::admission})
    EXPECT_EQ(read_file(a.*member), read_file(b.*member));
}

TEST(Admission, RecordsOfAnotherModelAreStale) {
  const TemporaryFolder folder;
  const Evidence a = make_chain(folder / "a.slm"),
                 b = make_chain(folder / "b.slm", slm::Fixture::tiny_bpe, kTrainedKind, "q8_0");
  const auto foreign = [&](std::string Evidence::*record, const std::function<void(const Evidence&)>& step) {
    Evidence mixed = a;
    mixed.*record = b.*record;
    return thrown([&] { step(mixed); });
  };
  const auto gate = [](const Evidence& at) { quality_gate(Gate::assistant_quality, at, kApproved, true); };
  const Finding smoke =
      foreign(&Evidence::smoke, [](const Evidence& at) { quality_gate(Gate::runtime_smoke, at, {}, true); });
  EXPECT_EQ(smoke.rule, "chain/stale");
  EXPECT_EQ(smoke.found, read_artifact(b.artifact, {}).sha256);
  EXPECT_EQ(foreign(&Evidence::evaluation, gate).rule, "chain/stale");
  EXPECT_EQ(foreign(&Evidence::cases, gate).rule, "chain/stale");
  EXPECT_EQ(foreign(&Evidence::smoke_gate, gate).rule, "chain/stale");
  EXPECT_EQ(foreign(&Evidence::quality_gate, [](const Evidence& at) { write_admission(at, true); }).rule,
            "chain/stale");
  EXPECT_EQ(foreign(&Evidence::manifest, [](const Evidence& at) { validate_slm_manifest(at); }).rule,
            "chain/recomputed");
}

TEST(Admission, AStaleSmokeIsRefused) {
  const TemporaryFolder folder;
  const Evidence at = make_chain(folder / "m.slm");
  Options options;
  options.quantize = "q4_0";
  options.replace = true;
  plan(slm::fixture(slm::Fixture::tiny_bpe), "slm", options).execute(at.artifact);
  write_conversion(read_artifact(at.artifact, {}), at.conversion, "fixture");
  write_slm_manifest(at, kTrainedKind, true);
  const Finding finding = thrown([&] { quality_gate(Gate::runtime_smoke, at, {}, true); });
  EXPECT_EQ(finding.rule, "chain/stale");
  EXPECT_NE(finding.message.find("slm.smoke"), std::string::npos) << finding.message;
}

TEST(SmokeModels, PassTheSmokeGateAndNoOther) {
  const TemporaryFolder folder;
  const Evidence at = make_chain(folder / "m.slm", slm::Fixture::tiny, kSmokeKind);
  EXPECT_EQ(rule([&] { quality_gate(Gate::assistant_quality, at, kApproved, false); }), "chain/smoke-claim");
  EXPECT_EQ(rule([&] { write_admission(at, false); }), "chain/smoke-claim");
  const std::string manifest = read_file(at.manifest);
  for (const auto& [key, value] : {std::pair{"quality_claim", "quality-pending"},
                                   {"trained_quality_claim", "evaluation-pending"},
                                   {"admission_status", "structure-accepted"},
                                   {"required_next_gate", "assistant-quality"}}) {
    std::string claims = manifest;
    replace_line(claims, key, value);
    write_file(at.manifest, claims);
    const Finding finding = thrown([&] { quality_gate(Gate::runtime_smoke, at, {}, true); });
    EXPECT_EQ(finding.rule, "chain/smoke-claim");
    EXPECT_EQ(finding.found, value);
  }
}

class Quality : public ::testing::Test {
 protected:
  // The rule with which the gate refuses edited cases that were run again.
  std::string with(const std::function<void(Record&)>& edit, const Decision& decision = kApproved) {
    Record cases = read_record(cases_schema(), at_.cases).record;
    edit(cases);
    publish(at_.cases, cases.text(), true);
    run_evaluation(at_, true);
    return rule([&] { quality_gate(Gate::assistant_quality, at_, decision, true); });
  }
  const TemporaryFolder folder_{};
  const Evidence at_ = make_chain(folder_ / "m.slm");
};

TEST_F(Quality, NeedsEachOfItsConditions) {
  EXPECT_EQ(with([](Record& cases) { cases.set("safety_review", "<to do>"); }), "chain/safety-review");
  EXPECT_EQ(with([](Record& cases) { cases.set("safety_review", "read").set("scope", ""); }), "chain/scope");
  const auto good = [](Record& cases) { cases.set("scope", "fixture").set("safety_review", "read"); };
  EXPECT_EQ(with(good, {}), "chain/decision");
  EXPECT_EQ(with(good, {"approve", "", ""}), "chain/decision");
  EXPECT_EQ(with(good, {"later", "the test", ""}), "chain/decision");
  EXPECT_EQ(with([](Record& cases) { cases.set("case.0.expected", "something else"); }), "chain/failed-cases");
}

TEST_F(Quality, APlaceholderIsNoReviewNoScopeAndNobody) {
  for (const char* const text : {"", " ", "\xE2\x80\x8B",
                                 "To"
                                 "Do",
                                 "tbd.",
                                 "T\xE2\x80\x8B"
                                 "BA",
                                 "<who>", "-", "--", "n/a", "None", "not  done", "Unknown",
                                 "x"
                                 "xx",
                                 "Fix"
                                 "me!",
                                 "placeholder", "na"})
    EXPECT_TRUE(says_nothing(text)) << text;
  for (const char* const text : {"none needed, by the test", "Nora", "a", "\xC3\x89va", "todo lists are written"})
    EXPECT_FALSE(says_nothing(text)) << text;
  EXPECT_EQ(with([](Record& cases) { cases.set("safety_review", "not done"); }), "chain/safety-review");
  EXPECT_EQ(with([](Record& cases) { cases.set("safety_review", "read").set("scope", "n/a"); }), "chain/scope");
  EXPECT_EQ(with([](Record& cases) { cases.set("scope", "fixture"); }, {"approve",
                                                                        "To"
                                                                        "Do",
                                                                        ""}),
            "chain/decision");
}

TEST_F(Quality, ARejectionTakesThePlaceOfTheApproval) {
  const Outcome rejected = quality_gate(Gate::assistant_quality, at_, {"reject", "the test", ""}, true);
  EXPECT_FALSE(rejected.passed);
  const Record gate = read_record(quality_gate_schema(), at_.quality_gate).record;
  EXPECT_EQ(gate.get("decision"), "reject");
  EXPECT_EQ(gate.get("passed"), "false");
  EXPECT_EQ(rule([&] { write_admission(at_, true); }), "chain/rejected");
  EXPECT_EQ(rule([&] { append_to_ledger(folder_ / "promotion.ledger", at_, {}, {}); }), "chain/rejected");
}

TEST_F(Quality, NoStepWritesOverItsEvidence) {
  for (const auto member : {&Evidence::artifact, &Evidence::manifest, &Evidence::cases}) {
    Evidence over = at_;
    over.smoke = at_.*member;
    const std::string before = read_file(over.smoke);
    EXPECT_EQ(rule([&] { runtime_smoke(over, true); }), "misuse/output-is-input");
    over.smoke = folder_ / "link";
    std::filesystem::create_symlink(at_.*member, over.smoke);
    EXPECT_EQ(rule([&] { runtime_smoke(over, true); }), "misuse/output-is-input");
    std::filesystem::remove(over.smoke);
    EXPECT_EQ(read_file(at_.*member), before);
  }
  Evidence other = at_;
  other.smoke = folder_ / "notes";
  write_file(other.smoke, "a letter\n");
  EXPECT_EQ(rule([&] { runtime_smoke(other, true); }), "misuse/output-kind");
  EXPECT_EQ(read_file(other.smoke), "a letter\n");
}

TEST_F(Quality, ARecordAtFaultIsNamedItself) {
  write_file(at_.smoke, std::string(70000, 'x') + "\n");
  try {
    quality_gate(Gate::runtime_smoke, at_, {}, true);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.finding().file.name, at_.smoke);
  }
}

TEST_F(Quality, NeedsCases) {
  std::string text = read_file(at_.cases);
  text.resize(text.find("case.0"));
  write_file(at_.cases, text);
  EXPECT_FALSE(run_evaluation(at_, true).passed);
  EXPECT_EQ(rule([&] { quality_gate(Gate::assistant_quality, at_, kApproved, true); }), "chain/no-cases");
}

TEST_F(Quality, NeedsTheSameCasesInBoth) {
  const std::string evaluation = read_file(at_.evaluation);
  std::string renamed = evaluation;
  replace_line(renamed, "case.0.id", "other");
  write_file(at_.evaluation, renamed);
  EXPECT_EQ(rule([&] { quality_gate(Gate::assistant_quality, at_, kApproved, true); }), "chain/missing-case");
  std::string more = evaluation;
  more.insert(more.find(kSeal),
              "case.1.id=stray\ncase.1.expected=a\ncase.1.actual=a\ncase.1.tokens=1\n"
              "case.1.result=passed\n");
  write_file(at_.evaluation, more);
  EXPECT_EQ(rule([&] { quality_gate(Gate::assistant_quality, at_, kApproved, true); }), "chain/stray-case");
}

TEST_F(Quality, AHeldOutTextCanFailButNotReplaceCases) {
  write_file(folder_ / "text.txt", "the and ing");
  const auto held_out = [](double bound) {
    return [=](Record& cases) {
      cases.set("held_out.path", "text.txt").set("held_out.sha256", sha256_hex("the and ing"));
      cases.set_real("held_out.max_mean_nll", bound);
    };
  };
  EXPECT_EQ(with(held_out(0.001)), "chain/held-out");
  Record cases = read_record(cases_schema(), at_.cases).record;
  held_out(100)(cases);
  publish(at_.cases, cases.text(), true);
  EXPECT_TRUE(run_evaluation(at_, true).passed);
  quality_gate(Gate::assistant_quality, at_, kApproved, true);
  write_file(folder_ / "text.txt", "the and in");
  EXPECT_EQ(rule([&] { write_admission(at_, true); }), "chain/stale");
  cases.set("held_out.path", "../text.txt");
  publish(at_.cases, cases.text(), true);
  EXPECT_EQ(rule([&] { run_evaluation(at_, true); }), "chain/path");
}

TEST_F(Quality, PlaceholdersAndRepeatedCasesDoNotRun) {
  evaluation_template(at_, true);
  EXPECT_EQ(rule([&] { run_evaluation(at_, true); }), "chain/placeholder");
  fill_in_cases(at_);
  std::string text = read_file(at_.cases);
  text += "case.1.id=first\ncase.1.prompt=\ncase.1.max_tokens=1\ncase.1.expected=a\n";
  write_file(at_.cases, text);
  EXPECT_EQ(rule([&] { run_evaluation(at_, true); }), "chain/case");
  replace_line(text, "case.1.id", "second");
  replace_line(text, "case.1.max_tokens", "4097");
  write_file(at_.cases, text);
  EXPECT_EQ(rule([&] { run_evaluation(at_, true); }), "chain/case");
  replace_line(text, "case.1.max_tokens", "1");
  replace_line(text, "case.1.prompt", std::string(40, 'x'));  // the context has 32 tokens
  write_file(at_.cases, text);
  EXPECT_EQ(rule([&] { run_evaluation(at_, true); }), "chain/case");
}

}  // namespace
}  // namespace weighbridge::chain
