// SPDX-License-Identifier: Apache-2.0
// The rules of the whole house, and what to do about each.
#include "rules.h"

#include <algorithm>

#include "rule_examples_generated.h"
#include "weighbridge/chain.h"
#include "weighbridge/doctor.h"
#include "weighbridge/error.h"
#include "weighbridge/khlnary.h"
#include "weighbridge/policy.h"

namespace weighbridge::cli {
namespace {

constexpr RuleAdvice kAdvice[] = {
    {"a limit was exceeded (`limit/...`)",
     "If you trust the file, raise the limit: --limit NAME=N. If you do not, reject the file: it asks a reader for "
     "more "
     "than a model needs.",
     [](const Rule& rule) { return rule.id.starts_with("limit/"); }},
    {"a policy is not met (`policy/...`)",
     "Change the model, or the demand of the policy that the finding names: docs/policies.md.",
     [](const Rule& rule) { return rule.id.starts_with("policy/"); }},
    {"code that a program would run when it loads the file (an error)",
     "Do not load the file with Python; ask for one without code, such as safetensors. weighbridge runs none of it: "
     "weighbridge extract FILE --only '*' -o FOLDER writes the tensors, each as a .npy file. convert refuses the file.",
     [](const Rule& rule) { return is_about_code(rule.id) && rule.severity == Severity::error; }},
    {"code that other programs would run",
     "Do not load the file with Python or with another program that runs its code, unless you trust its publisher. Ask "
     "for a "
     "file without code, such as safetensors; weighbridge convert makes one from what it can read without running "
     "anything.",
     [](const Rule& rule) { return is_about_code(rule.id); }},
    {"it is not a tensor file (`file/...`)",
     "weighbridge doctor FILE says what the file is and how to get the right one.",
     [](const Rule& rule) { return rule.id.starts_with("file/") && rule.severity == Severity::error; }},
    {"a file of the model is missing",
     "Fetch the missing file: weighbridge doctor PATH names it. Until then, inspect shows the rest.",
     [](const Rule& rule) {
       return rule.phase == Rule::Phase::whole || rule.id.ends_with("-missing") || rule.id.ends_with("shard-alone");
     }},
    {"the file is invalid",
     "Download the file again, and compare it with the SHA-256 that its publisher states. If it stays invalid, report "
     "it: "
     "the program that wrote it is wrong. weighbridge doctor FILE says what can be saved.",
     [](const Rule& rule) { return rule.severity == Severity::error && rule.reach == Rule::Reach::file; }},
    {"one tensor is invalid",
     "The other tensors can be read: weighbridge doctor FILE --salvage OUT saves them. Download the file again; if it "
     "stays invalid, report it to its publisher.",
     [](const Rule& rule) { return rule.severity == Severity::error; }},
    {"one tensor is not supported",
     "Nothing is wrong with the file. The tensor is listed, but this build cannot read its elements: leave it out with "
     "--without.",
     [](const Rule& rule) { return rule.severity == Severity::unsupported; }},
    {"a warning", "The file can be used. Mend it if you publish it; weighbridge check --policy strict refuses it.",
     [](const Rule&) { return true; }},
};

constexpr OtherRule kOtherRules[] = {
#define WB_OTHER_RULE(id, sentence, advice) {id, sentence, advice},
#include "other_rules.def"
#undef WB_OTHER_RULE
};

constexpr RuleFamily kFamilies[] = {
    {"values/nan", "verify --read-all: a tensor has NaN; a warning", "docs/checking.md#what-is-read", {}},
    {"file/sha256", "the file does not have the SHA-256 of verify --sha256", "docs/checking.md#check-a-download", {}},
    {"io/", "errors of the system", "docs/checking.md#read-a-rejection",
     "The message has the system's reason. Mend that, and run the command again."},
    {"misuse/", "usage errors", "docs/checking.md#read-a-rejection",
     "Nothing is wrong with the file. Change the command or the call as the message says; weighbridge VERB --help "
     "lists the flags of a verb."},
    {"convert/ delta/result",
     "values that a conversion cannot store: a cast that overflows, GPTQ's zeros; patches",
     "docs/checking.md#read-a-rejection",
     {}},
    {"unsupported/",
     "elements of a tensor that this build does not support, when they are requested; codes "
     "that verify did not examine",
     "docs/checking.md#read-a-rejection",
     "Nothing is wrong with the file. This build cannot read such elements: leave the tensor out with --without, or "
     "read it with the program that wrote it."},
    {"part/", "the bytes of a tensor, when they are read", "docs/checking.md#read-a-rejection",
     "Download the file again, and compare it with the SHA-256 that its publisher states. weighbridge doctor FILE says "
     "what can be saved."},
    {"embed/", "models for embeddings", "docs/embedding.md#errors",
     "This build runs BERT encoders. weighbridge inspect lists the tensors and the metadata of the model; if it is "
     "one, ask its publisher for a complete file."},
    {"texts/", "texts for embeddings", "docs/embedding.md#errors", "Correct the line that the message names."},
    {"tokenizer/", "vocabularies and tokenizers", "docs/embedding.md#errors",
     "Take the vocabulary and the tokenizer from the folder that the model was published in."},
    {"generate/", "models for generation", "docs/generation.md#errors",
     "This build runs models of the Llama family. weighbridge inspect lists the tensors and the metadata of the model; "
     "if it is one, ask its publisher for a complete file."},
    {"imatrix/", "importance matrices for quantization", "docs/gguf.md",
     "Make it again with llama-imatrix, or fetch it again."},
    {"manifest/", "signed lists of files: the list, its signature, and files that differ from it", "docs/signing.md",
     "Report it to the author of the manifest: it breaks the specification."},
    {"limit/address-space", "a size that a 32-bit machine (the browser) cannot hold", "web/README.md", {}},
    {"limit/input limit/output", "limits of the command's input and output", "docs/reliability.md", {}},
};

}  // namespace

std::string_view name(Rule::Reach reach) noexcept {
  return reach == Rule::Reach::file ? "file" : reach == Rule::Reach::tensor ? "tensor" : "note";
}

std::vector<RuleGroup> rule_groups() {
  std::vector<RuleGroup> out;
  for (const FormatInfo& format : formats()) out.push_back({format.title, format.name, format.rules});
  out.push_back({"All formats", {}, common_rules()});
  out.push_back({"The doctor", {}, doctor_rules()});
  out.push_back({"Policies", {}, policy_rules()});
  out.push_back({"KHLNARY modules", {}, khlnary::module_rules()});
  out.push_back({"The chain of .slm models", {}, chain::step_rules()});
  return out;
}

const Rule* find_rule(std::string_view id) noexcept {
  for (const RuleGroup& group : rule_groups())
    if (const auto found = std::ranges::find(group.rules, id, &Rule::id); found != group.rules.end()) return &*found;
  return nullptr;
}

std::span<const RuleAdvice> rule_advice() noexcept { return kAdvice; }
std::string_view advice(const Rule& rule) noexcept {
  return std::ranges::find_if(kAdvice, [&](const RuleAdvice& each) { return each.applies(rule); })->advice;
}
std::string_view example_of(std::string_view rule) noexcept {
  const auto* const found = std::ranges::lower_bound(kRuleExamples, rule, {}, &RuleExample::rule);
  return found != std::end(kRuleExamples) && found->rule == rule ? found->message : std::string_view();
}

std::span<const OtherRule> other_rules() noexcept { return kOtherRules; }
const OtherRule* find_other_rule(std::string_view id) noexcept {
  const auto* const found = std::ranges::find(kOtherRules, id, &OtherRule::id);
  return found != std::end(kOtherRules) ? found : nullptr;
}
std::string_view advice(const OtherRule& rule) noexcept {
  return !rule.advice.empty() ? rule.advice : find_rule_family(rule.id)->advice;
}

std::span<const RuleFamily> rule_families() noexcept { return kFamilies; }
const RuleFamily* find_rule_family(std::string_view id) noexcept {
  for (const RuleFamily& family : kFamilies)
    for (std::string_view rest = family.ids; !rest.empty();) {
      const std::string_view one = rest.substr(0, rest.find(' '));
      rest.remove_prefix(std::min(one.size() + 1, rest.size()));
      if (one.ends_with('/') ? id.starts_with(one) : id == one) return &family;
    }
  return nullptr;
}

}  // namespace weighbridge::cli
