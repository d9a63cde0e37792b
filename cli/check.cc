// SPDX-License-Identifier: Apache-2.0
// check: says whether models meet a policy, for CI: as lines, JSON or SARIF.
#include <algorithm>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nearest.h"
#include "rules.h"
#include "session.h"
#include "standard_input.h"
#include "weighbridge/json.h"
#include "weighbridge/output.h"
#include "weighbridge/policy.h"
#include "weighbridge/version.h"

namespace weighbridge::cli {
namespace {

// A ready policy by its name, else the file.
Policy policy_of(Session& session) {
  const std::string given(session.args.has(FlagId::policy) ? session.args.value(FlagId::policy) : "download");
  if (const std::string_view ready = ready_policy(given); !ready.empty()) return read_policy(ready, given);
  std::error_code unknown;
  if (!std::filesystem::exists(given, unknown) && given.find_first_of("./") == given.npos) {
    const auto known = ready_policies();
    const std::string_view near = nearest_word(given, known);
    std::string all;
    for (const std::string_view each : known)
      all += (all.empty() ? "" : each == known.back() ? " and " : ", ") + std::string(each);
    throw Misuse("there is no policy " + quote(given) + ", and no such file" +
                 (near.empty() ? ": the ready ones are " + all : "; did you mean '" + std::string(near) + "'?"));
  }
  return in_file(given, [&] { return read_policy(small_text(session, given), given); });
}

Status status_of(const PolicyVerdict& found) {
  if (std::ranges::any_of(found.breaches, [](const Breach& each) { return each.finding.kind == Kind::io; }))
    return Status::io;
  if (!found.passed()) return Status::invalid;
  return found.others.unsupported() > 0 || !found.not_known_safe.empty() ? Status::unsupported : Status::done;
}

void print(Session& session, std::string_view path, const Policy& policy, const PolicyVerdict& found) {
  Output& out = session.out;
  Report breaches;
  std::vector<std::string_view> demands;
  for (const Breach& each : found.breaches) {
    Finding finding = each.finding;
    if (each.demand != "valid") finding.message.insert(0, std::string(each.demand) + ": ");
    breaches.add(std::move(finding));
    if (std::ranges::find(demands, each.demand) == demands.end()) demands.push_back(each.demand);
  }
  session.print_findings(path, breaches);
  session.print_findings(path, found.others);
  out.shown(input_name(path));
  out.text(": ");
  out.toned(found.passed() ? Tone::good : Tone::bad, found.passed() ? "meets" : "does NOT meet");
  out.text(" " + shown(policy.name));
  if (found.passed()) {
    out.text(" (" + std::string(found.format) + ", " + found.checked + ")");
  } else {
    out.text(" (" + counted(found.breached, "finding", "findings") + "):");
    for (const std::string_view each : demands) out.text((each == demands[0] ? " " : ", ") + std::string(each));
  }
  out.text("\n");
}

// SARIF 2.1.0 (OASIS), which code scanning reads.

struct Checked {
  std::string path;
  PolicyVerdict verdict;
};

// A path as a reference that is relative to the folder where the command runs, or as a file: URI.
std::string uri_of(std::string_view path) {
  constexpr std::string_view kPlain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/",
                             kHex = "0123456789ABCDEF";
  std::string out = path.starts_with('/') ? "file://" : "";
  while (path.starts_with("./")) path.remove_prefix(2);
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (kPlain.find(c) != kPlain.npos)
      out += c;
    else
      out.append({'%', kHex[byte >> 4], kHex[byte & 15]});
  }
  return out;
}

void add_text(JsonWriter& out, std::string_view key, std::string_view text) {
  out.key(key).begin_object();
  out.member("text", text);
  out.end_object();
}

// What a result is about: the file, the byte, and the tensor.
void add_location(JsonWriter& out, std::string_view path, const Finding& finding) {
  out.key("locations").begin_array();
  out.begin_object();
  out.key("physicalLocation").begin_object();
  out.key("artifactLocation").begin_object();
  out.member("uri", uri_of(finding.file.empty() ? path : finding.file.name));
  out.end_object();
  if (finding.offset) {
    out.key("region").begin_object();
    out.member("byteOffset", *finding.offset);
    out.member("byteLength", std::uint64_t{1});
    out.end_object();
  }
  out.end_object();
  if (finding.has_tensor && !finding.tensor.empty()) {
    out.key("logicalLocations").begin_array();
    out.begin_object();
    out.member("name", finding.tensor);
    out.member("kind", "member");
    out.end_object();
    out.end_array();
  }
  out.end_object();
  out.end_array();
}

void add_result(JsonWriter& out, std::string_view path, const Finding& finding, std::string_view demand) {
  out.begin_object();
  out.member("ruleId", finding.rule);
  out.member("level", demand.empty() ? "note" : "error");
  add_text(out, "message", finding.message + ".");
  add_location(out, path, finding);
  if (!demand.empty()) {
    out.key("properties").begin_object();
    out.member("demand", demand);
    out.end_object();
  }
  out.end_object();
}

void add_rule(JsonWriter& out, std::string_view id) {
  out.begin_object();
  out.member("id", id);
  if (const Rule* const rule = find_rule(id)) {
    add_text(out, "shortDescription", std::string(rule->sentence) + ".");
    add_text(out, "help", advice(*rule));
  } else if (const OtherRule* const other = find_other_rule(id)) {
    add_text(out, "shortDescription", std::string(other->sentence) + ".");
    add_text(out, "help", advice(*other));
  }
  out.end_object();
}

std::string to_sarif(const Policy& policy, const std::vector<Checked>& files, bool complete) {
  std::set<std::string_view> rules;
  for (const Checked& file : files) {
    for (const Breach& each : file.verdict.breaches) rules.insert(each.finding.rule);
    for (const Finding& each : file.verdict.others.findings()) rules.insert(each.rule);
  }
  JsonWriter out;
  out.begin_object();
  out.member("$schema", "https://json.schemastore.org/sarif-2.1.0.json");
  out.member("version", "2.1.0");
  out.key("runs").begin_array();
  out.begin_object();
  out.key("tool").begin_object();
  out.key("driver").begin_object();
  out.member("name", "weighbridge");
  out.member("version", version());
  out.key("rules").begin_array();
  for (const std::string_view id : rules) add_rule(out, id);
  out.end_array();
  out.end_object();
  out.end_object();
  out.key("invocations").begin_array();
  out.begin_object();
  out.flag("executionSuccessful", complete);
  out.end_object();
  out.end_array();
  out.key("properties").begin_object();
  out.member("policy", policy.name);
  out.end_object();
  out.key("results").begin_array();
  for (const Checked& file : files) {
    for (const Breach& each : file.verdict.breaches) add_result(out, file.path, each.finding, each.demand);
    for (const Finding& each : file.verdict.others.findings()) add_result(out, file.path, each, {});
  }
  out.end_array();
  out.end_object();
  out.end_array();
  out.end_object();
  return out.take();
}

}  // namespace

Status run_check(Session& session) {
  const Policy policy = policy_of(session);
  const bool sarif = session.args.has(FlagId::sarif);
  const std::string output(session.args.value(FlagId::output));
  std::optional<OutputFile> file;
  if (!output.empty()) file.emplace(output, session.args.has(FlagId::overwrite));
  const std::string list(session.args.value(FlagId::manifest));
  if (!list.empty() && session.args.operands.size() > 1)
    throw Misuse("--manifest checks one file or folder, but several are given");
  const auto manifest = list.empty() ? nullptr : session.source(list);
  std::vector<Checked> files;
  std::set<std::string, std::less<>> beside;  // pickles that broke the policy with their folder: not reported again
  const Status status = session.for_each_file([&](const std::string& path) {
    if (beside.contains(path)) return Status::done;
    const OpenOptions options = reading_options(session);
    const auto place = path == "-" ? place_of(session.source(path)) : place_at(path, options.access);
    PolicyVerdict found = check(place, policy, session.context(), options, manifest);
    session.progress().clear();
    session.show_steps(path, found.checks);
    drop_shard_alone(session.args, path, found.others);
    found.breached -= std::erase_if(
        found.breaches, [&](const Breach& each) { return is_in_company(session.args, path, each.finding); });
    if (session.args.has(FlagId::recursive))
      for (const Breach& each : found.breaches)
        if (each.finding.rule.ends_with("/pickle-beside")) beside.insert(each.finding.file.name);
    const Status of_file = status_of(found);
    if (!sarif || file)
      session.print_result([&] { return to_json(path, policy, found); }, [&] { print(session, path, policy, found); });
    if (sarif) files.push_back({path, std::move(found)});
    return of_file;
  });
  const std::string text = sarif ? to_sarif(policy, files, status != Status::io) + "\n" : std::string();
  if (!file) {
    session.out.text(text);
  } else {
    file->write(std::as_bytes(std::span(text)));
    file->publish();
  }
  return status;
}

}  // namespace weighbridge::cli
