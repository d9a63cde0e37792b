// SPDX-License-Identifier: Apache-2.0
// Evaluation cases and their results from the runner.
#include "chain/admission.h"

#include <cmath>
#include <filesystem>
#include <set>

#include "chain/outcome.h"
#include "core/model/words.h"
#include "weighbridge/generate.h"

namespace weighbridge::chain {
using namespace internal;
namespace {

constexpr std::uint64_t kMaxTokens = 4096, kMaxText = 16000, kMaxHeldOut = std::uint64_t{16} << 20;

constexpr Key kCaseKeys[] = {
    choice_key("cases_version", "1", "of this grammar"),
    {.name = "artifact_sha256", .type = Type::digest, .about = "of the model that the cases are for"},
    {.name = "manifest_sha256", .type = Type::digest, .about = "of its manifest"},
    {.name = "scope", .about = "what the cases cover; the gate refuses the template's words"},
    {.name = "safety_review", .about = "what the safety review found, and whose it is; likewise"},
    {.name = "held_out.path", .required = false, .about = "file name of a held-out text beside the cases"},
    {.name = "held_out.sha256", .type = Type::digest, .required = false, .about = "of that text"},
    optional(Key{.name = "held_out.max_mean_nll",
                 .type = Type::real,
                 .about = "bound on its mean negative log likelihood, natural logarithm"}),
    {.name = "case.N.id", .type = Type::word, .about = "unique"},
    {.name = "case.N.prompt", .about = "may be empty"},
    {.name = "case.N.max_tokens", .type = Type::number, .about = "1 to 4096"},
    {.name = "case.N.expected", .about = "the exact text that the model has to add"},
};
constexpr Schema kCases{.name = "slm.cases", .keys = kCaseKeys, .comments = true};

constexpr Key kEvaluationKeys[] = {
    choice_key("evaluation_version", "1", "of this grammar"),
    {.name = "artifact_sha256", .type = Type::digest, .about = "of the model that ran"},
    {.name = "manifest_sha256", .type = Type::digest, .about = "of its manifest"},
    {.name = "cases_sha256", .type = Type::digest, .about = "of the cases"},
    {.name = "cases", .type = Type::number, .about = "how many ran"},
    {.name = "passed", .type = Type::number, .about = "how many gave the expected text"},
    {.name = "failures", .type = Type::number, .about = "how many did not"},
    {.name = "case.N.id", .type = Type::word, .about = "the case's"},
    {.name = "case.N.expected", .about = "the case's"},
    {.name = "case.N.actual", .about = "what the model added to the prompt"},
    {.name = "case.N.tokens", .type = Type::number, .about = "generated"},
    choice_key("case.N.result", "passed|failed", "whether the two are equal"),
    {.name = "held_out.tokens", .type = Type::number, .required = false, .about = "scored"},
    {.name = "held_out.mean_nll", .type = Type::real, .required = false, .about = "rounded to six places"},
    optional(choice_key("held_out.result", "passed|failed", "whether it is at most the bound")),
    kSealKey,
};
constexpr Schema kEvaluation{.name = "slm.evaluation", .keys = kEvaluationKeys};

std::string row(std::uint64_t i) { return "case." + std::to_string(i) + "."; }

void check_bound(const Record& cases, const char* key, std::string_view expected) {
  if (cases.get(key) != expected)
    refuse("stale", key, "in the slm.cases is the digest of another model's: these cases are not for this one", {},
           std::string(expected), std::string(cases.get(key)));
}

void check_held_out(const Record& cases) {
  constexpr const char* kNeeded[] = {"held_out.path", "held_out.sha256", "held_out.max_mean_nll"};
  bool any = false, all = true;
  for (const char* const key : kNeeded) {
    any = any || cases.has(key);
    all = all && cases.has(key);
  }
  if (any && !all) refuse("missing", "held_out", "needs path, sha256 and max_mean_nll, all three");
  if (!any) return;
  const std::string path(cases.get("held_out.path"));
  if (path.find_first_of("/\\") != std::string::npos || path == "." || path == "..")
    refuse("path", "held_out.path", "is the name of a file beside the cases, not " + core::quoted(path));
}

void check_cases(const Record& cases) {
  std::set<std::string, std::less<>> ids;
  for (std::uint64_t i = 0; i < cases.rows("case"); ++i) {
    const std::string id(cases.get(row(i) + "id"));
    if (!ids.insert(id).second) refuse("case", row(i) + "id", "appears twice: " + core::quoted(id));
    if (const std::uint64_t tokens = cases.number(row(i) + "max_tokens"); tokens < 1 || tokens > kMaxTokens)
      refuse("case", row(i) + "max_tokens", "is 1 to 4096, not " + std::to_string(tokens));
    const std::string_view prompt = cases.get(row(i) + "prompt"), expected = cases.get(row(i) + "expected");
    if (is_placeholder(id) || (!prompt.empty() && is_placeholder(prompt)) || is_placeholder(expected))
      refuse("placeholder", row(i) + "expected", "of case " + core::quoted(id) + " was not filled in");
  }
}

std::string held_out_path(const Record& cases, const std::string& folder) {
  return (std::filesystem::path(folder) / std::string(cases.get("held_out.path"))).string();
}

void score_held_out(const Generator& generator, const Record& cases, const std::string& folder, Record& out,
                    const Context& context) {
  if (!cases.has("held_out.path")) return;
  const std::string path = held_out_path(cases, folder);
  const std::string text = read_bytes(path, kMaxHeldOut);
  if (const std::string digest = sha256_hex(text); digest != cases.get("held_out.sha256"))
    refuse("stale", "held_out.sha256", "is not the digest of '" + path + "'", {},
           std::string(cases.get("held_out.sha256")), digest);
  const Perplexity scored = perplexity(generator, text, context);
  const double nll = std::round(scored.nll * 1e6) / 1e6;
  out.set("held_out.tokens", scored.tokens).set_real("held_out.mean_nll", nll);
  out.set("held_out.result", nll <= cases.real("held_out.max_mean_nll") ? "passed" : "failed");
}

// Compares which cases the two have, by name, before their texts are compared.
void compare_cases(const Record& given, const Record& cases) {
  std::set<std::string_view> ran, asked;
  for (std::uint64_t i = 0; i < given.rows("case"); ++i) ran.insert(given.get(row(i) + "id"));
  for (std::uint64_t i = 0; i < cases.rows("case"); ++i) asked.insert(cases.get(row(i) + "id"));
  for (const std::string_view id : asked)
    if (!ran.contains(id))
      refuse("missing-case", {}, "the slm.evaluation lacks case " + core::quoted(id), {}, std::string(id));
  for (const std::string_view id : ran)
    if (!asked.contains(id))
      refuse("stray-case", {}, "the slm.evaluation has case " + core::quoted(id) + ", which the cases do not have", {},
             {}, std::string(id));
}

Generated run_case(const Generator& generator, const Record& cases, const std::string& at) {
  Session session = generator.session();
  GenerateOptions options;
  options.max_tokens = cases.number(at + "max_tokens");
  try {
    Generated out = session.generate(cases.get(at + "prompt"), options);
    if (out.text.size() > kMaxText)
      refuse("case", at + "max_tokens", "lets the model add more than the 16,000 bytes that a record holds of a text");
    return out;
  } catch (const Error& error) {  // a prompt that does not fit the context is a fault of the cases
    if (error.kind() != Kind::misuse) throw;
    refuse("case", at + "prompt", "cannot be run: " + error.finding().message);
  }
}

void object_to_case(Report& report, const Record& evaluation, const std::string& at) {
  const auto shown = [](std::string_view text) { return core::quoted(core::excerpt(text)); };
  const std::string expected(evaluation.get(at + "expected")), actual(evaluation.get(at + "actual"));
  object_to(report, "failed-cases",
            "case " + core::quoted(evaluation.get(at + "id")) + " gave " + shown(actual) + ", not " + shown(expected),
            {}, expected, actual);
}

std::string folder_of(const std::string& path) { return std::filesystem::path(path).parent_path().string(); }

}  // namespace

const Schema& internal::cases_schema() { return kCases; }
const Schema& internal::evaluation_schema() { return kEvaluation; }

Record internal::make_cases_template(const Provenance& of) {
  Record out(kCases);
  out.set("cases_version", "1").set("artifact_sha256", of.artifact.sha256).set("manifest_sha256", of.manifest.sha256);
  out.set("scope", "<what these cases cover, and what they do not>");
  out.set("safety_review", "<what was reviewed, by whom, what was found>");
  out.set("case.0.id", "first").set("case.0.prompt", "<prompt>").set("case.0.max_tokens", 32U);
  out.set("case.0.expected", "<exact text that the model adds>");
  return out;
}

ReadRecord internal::read_cases(const Provenance& of, const std::string& path) {
  std::error_code unknown;
  if (!std::filesystem::exists(path, unknown))
    refuse("missing-evidence", {}, "there is no slm.cases at '" + path + "'; slm eval-template writes one to fill in");
  ReadRecord out = read_record(kCases, path);
  about_record(path, [&] {
    check_bound(out.record, "artifact_sha256", of.artifact.sha256);
    check_bound(out.record, "manifest_sha256", of.manifest.sha256);
    check_held_out(out.record);
    check_cases(out.record);
  });
  return out;
}

Record internal::make_evaluation(const Provenance& of, const ReadRecord& cases, const std::string& folder,
                                 const Context& context) {
  const Generator generator(of.artifact.model);
  Record out(kEvaluation);
  out.set("evaluation_version", "1").set("artifact_sha256", of.artifact.sha256);
  out.set("manifest_sha256", of.manifest.sha256).set("cases_sha256", cases.sha256);
  const std::uint64_t count = cases.record.rows("case");
  std::uint64_t passed = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::string_view expected = cases.record.get(row(i) + "expected");
    const Generated text = run_case(generator, cases.record, row(i));
    const bool equal = text.text == expected;
    passed += equal ? 1U : 0U;
    out.set(row(i) + "id", cases.record.get(row(i) + "id")).set(row(i) + "expected", expected);
    out.set(row(i) + "actual", text.text).set(row(i) + "tokens", std::uint64_t{text.tokens.size()});
    out.set(row(i) + "result", equal ? "passed" : "failed");
  }
  out.set("cases", count).set("passed", passed).set("failures", count - passed);
  score_held_out(generator, cases.record, folder, out, context);
  seal(out);
  return out;
}

ReadRecord internal::read_evaluation(const Provenance& of, const ReadRecord& cases, const Evidence& at,
                                     const Context& context) {
  ReadRecord out = read_evidence(kEvaluation, at.evaluation, "slm eval");
  if (out.record.get("cases_sha256") == cases.sha256) compare_cases(out.record, cases.record);
  compare(out, make_evaluation(of, cases, folder_of(at.cases), context));
  return out;
}

Outcome evaluation_template(const Evidence& at, bool replace, const Context& context) {
  return conclude("eval-template", make_cases_template(read_provenance(at, context)), {},
                  output_of(at, &Evidence::cases, replace));
}

Outcome run_evaluation(const Evidence& at, bool replace, const Context& context) {
  const Provenance of = read_provenance(at, context);
  const ReadRecord cases = read_cases(of, at.cases);
  const Record record = make_evaluation(of, cases, folder_of(at.cases), context);
  Report report;
  if (record.rows("case") == 0) object_to(report, "no-cases", "the slm.cases have no case: nothing was evaluated");
  for (std::uint64_t i = 0; i < record.rows("case"); ++i)
    if (record.get(row(i) + "result") != "passed") object_to_case(report, record, row(i));
  if (record.get("held_out.result") == "failed")
    object_to(report, "held-out", "the held-out text's mean negative log likelihood is above its bound", {},
              "at most " + std::string(cases.record.get("held_out.max_mean_nll")),
              std::string(record.get("held_out.mean_nll")));
  Output output = output_of(at, &Evidence::evaluation, replace);
  if (cases.record.has("held_out.path")) output.inputs.push_back(held_out_path(cases.record, folder_of(at.cases)));
  return conclude("eval", record, std::move(report), output);
}

}  // namespace weighbridge::chain
