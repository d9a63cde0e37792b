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

constexpr RuleFamily kFamilies[] = {
    {"values/nan", "verify --read-all: a tensor has NaN; a warning", "docs/checking.md#what-is-read"},
    {"file/sha256", "the file does not have the SHA-256 of verify --sha256", "docs/checking.md#check-a-download"},
    {"io/ misuse/ convert/",
     "errors of the system; usage errors; values that a conversion cannot store: a cast that overflows, GPTQ's zeros",
     "docs/checking.md#read-a-rejection"},
    {"unsupported/", "elements of a tensor that this build does not support, when they are requested",
     "docs/checking.md#read-a-rejection"},
    {"embed/ texts/ tokenizer/", "models, texts and vocabularies for embeddings", "docs/embedding.md#errors"},
    {"generate/ tokenizer/", "models and tokenizers for generation", "docs/generation.md#errors"},
    {"manifest/", "signed lists of files: the list, its signature, and files that differ from it", "docs/signing.md"},
    {"limit/address-space", "a size that a 32-bit machine (the browser) cannot hold", "web/README.md"},
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
