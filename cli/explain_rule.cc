// SPDX-License-Identifier: Apache-2.0
// explain RULE: what findings by a rule mean, with an example, and what to do.
#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include "nearest.h"
#include "rules.h"
#include "session.h"
#include "weighbridge/json.h"
#include "wrap.h"

namespace weighbridge::cli {
namespace {

// The rules of this id, or whose id ends so after the slash: several formats have an "overlap".
std::vector<const Rule*> rules_named(const std::vector<RuleGroup>& groups, std::string_view name) {
  std::vector<const Rule*> out;
  for (const RuleGroup& group : groups)
    for (const Rule& rule : group.rules) {
      if (rule.id == name) return {&rule};
      if (rule.id.substr(rule.id.find('/') + 1) == name) out.push_back(&rule);
    }
  return out;
}

std::string about_file(const std::string& path) {
  return "to explain a byte of the file " + quote(path) + ": weighbridge explain " + shell_word(path) +
         " @OFFSET, or a tensor in place of @OFFSET";
}

[[noreturn]] void refuse(const std::vector<RuleGroup>& groups, const std::vector<const Rule*>& named,
                         const std::string& asked, bool is_file) {
  if (is_file) throw Misuse(about_file(asked));
  std::string several;
  for (const Rule* each : named) several += (several.empty() ? "" : ", ") + std::string(each->id);
  if (!named.empty()) throw Misuse("several rules are named " + quote(asked) + ": " + several);
  std::vector<std::string_view> ids;
  for (const RuleGroup& group : groups)
    for (const Rule& rule : group.rules) ids.push_back(rule.id);
  for (const OtherRule& rule : other_rules()) ids.push_back(rule.id);
  const std::string_view near = nearest_word(asked, ids);
  throw Misuse("there is no rule " + quote(asked) + ", and no such file" +
               (near.empty() ? "; docs/rules.md lists the rules" : "; did you mean '" + std::string(near) + "'?"));
}

void print_paragraph(Output& out, std::string_view heading, std::string_view text) {
  if (text.empty()) return;
  out.toned(Tone::heading, heading);
  out.text("\n  " + wrapped(shown(text), help_columns(), 2, 2) + "\n");
}

void print(Output& out, const Rule& rule) {
  out.toned(Tone::heading, rule.id);
  out.text(": " + std::string(name(rule.severity)) +
           (rule.reach == Rule::Reach::note ? "" : ", of the " + std::string(name(rule.reach))) + " (from " +
           std::string(rule.section) + ")\n  " + wrapped(rule.sentence, help_columns(), 2, 2) + "\n");
  print_paragraph(out, "example", example_of(rule.id));
  print_paragraph(out, "what to do", advice(rule));
}

void print(Output& out, const OtherRule& rule) {
  const RuleFamily& family = *find_rule_family(rule.id);
  out.toned(Tone::heading, rule.id);
  out.text(" (" + std::string(family.page) + ")\n  " + wrapped(rule.sentence, help_columns(), 2, 2) + "\n");
  print_paragraph(out, "what to do", advice(rule));
}

std::string json_of(const Rule& rule) {
  const std::string_view example = example_of(rule.id);
  JsonWriter out;
  out.begin_object();
  out.member("schema", std::uint64_t{kJsonSchema});
  out.member("rule", rule.id);
  out.member("severity", name(rule.severity));
  out.member("reach", name(rule.reach));
  out.member("from", rule.section);
  out.member("says", rule.sentence);
  out.key("example");
  example.empty() ? out.null() : out.string(example);
  out.member("advice", advice(rule));
  out.end_object();
  return out.take();
}
std::string json_of(const OtherRule& rule) {
  JsonWriter out;
  out.begin_object();
  out.member("schema", std::uint64_t{kJsonSchema});
  out.member("rule", rule.id);
  out.member("says", rule.sentence);
  out.member("advice", advice(rule));
  out.member("page", find_rule_family(rule.id)->page);
  out.end_object();
  return out.take();
}

}  // namespace

Status explain_rule(Session& session) {
  const std::string& asked = session.args.operands[0];
  std::error_code unknown;
  const bool is_file = std::filesystem::exists(asked, unknown);
  const std::vector<RuleGroup> groups = rule_groups();
  const std::vector<const Rule*> named = rules_named(groups, asked);
  if (named.size() == 1) {
    session.print_result([&] { return json_of(*named[0]); }, [&] { print(session.out, *named[0]); });
    if (is_file) remark("  " + about_file(asked));
    return Status::done;
  }
  const OtherRule* const other = is_file || !named.empty() ? nullptr : find_other_rule(asked);
  if (other == nullptr) refuse(groups, named, asked, is_file);
  session.print_result([&] { return json_of(*other); }, [&] { print(session.out, *other); });
  return Status::done;
}

}  // namespace weighbridge::cli
