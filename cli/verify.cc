// SPDX-License-Identifier: Apache-2.0
// verify: checks each file, and with --sha256 or --manifest compares one with what was published.
#include "weighbridge/verify.h"

#include <algorithm>

#include "derivation.h"
#include "manifest.h"
#include "patch.h"
#include "session.h"
#include "standard_input.h"
#include "weighbridge/hash.h"
#include "weighbridge/json.h"
#include "weighbridge/stats.h"

namespace weighbridge::cli {
namespace {

constexpr std::size_t kHexDigits = 64;

std::string published_digest(const Arguments& args) {
  const std::string_view given = args.value(FlagId::sha256);
  const std::size_t begin = std::min(given.find_first_not_of(" \t\r\n"), given.size());  // of a pasted digest
  std::string hex(given.substr(begin, given.find_last_not_of(" \t\r\n") + 1 - begin));
  for (const std::string_view prefix : {"sha256:", "sha256-", "SHA256:", "0x"})  // of OCI, the Hub, OpenSSL, ModelSpec
    if (hex.starts_with(prefix)) hex.erase(0, prefix.size());
  std::transform(hex.begin(), hex.end(), hex.begin(),
                 [](char c) { return c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c; });
  if (hex.size() != kHexDigits || hex.find_first_not_of("0123456789abcdef") != std::string::npos)
    throw Misuse("--sha256 must be 64 hexadecimal digits, not " + quote(given) +
                 (hex.size() == kHexDigits ? "" : ", which has " + std::to_string(hex.size())));
  return hex;
}

void compare_digest(Session& session, const Source& source, const std::string& wanted, Report& report) {
  const std::string found = file_sha256(source, session.context()).hex();
  if (found == wanted) return;
  Finding finding;
  finding.rule = "file/sha256";
  finding.expected = wanted;
  finding.found = found;
  finding.message = "SHA-256 mismatch: expected " + wanted + ", found " + found;
  report.add(std::move(finding));
}

// Of --strict: code that other programs may run, and files that their own loader refuses.
bool fails_strict(const Report& report) {
  return report.about_code() > 0 || std::ranges::any_of(report.findings(), [](const Finding& each) {
           return each.rule == "onnx/external-hard-link";
         });
}

void print(Session& session, std::string_view path, const Verdict& verdict, std::uint64_t file_size) {
  Output& out = session.out;
  const Report& report = verdict.report;
  session.print_findings(path, report);
  if (!report.valid()) return;
  out.shown(input_name(path));
  out.text(": ");
  if (verdict.not_known_safe.empty()) {
    out.toned(Tone::good, "ok");
  } else {
    out.toned(Tone::warning, "not known to be safe");
    out.text(": " + not_known_safe_list(verdict));
  }
  const std::uint64_t unsupported = count_unsupported(verdict.model);
  out.text(" (" + std::string(verdict.format) + ", " + counted(verdict.model.size(), "tensor", "tensors") +
           (unsupported > 0 ? " (" + grouped(unsupported) + " unsupported), " : ", ") + grouped(file_size) +
           " bytes), " + verdict.checked);
  if (const std::uint64_t code = report.about_code())
    out.text("; " + counted(code, "finding", "findings") + " about code that other programs may run");
  if (is_patch(verdict.model)) out.text("; a patch: " + patch_text(patch_info(verdict.model, session.context())));
  out.text("\n");
}

Status verify_one(Session& session, const std::string& path, const std::string& wanted) {
  try {
    // Standard input can be read once only.
    const auto source = path == "-" || !wanted.empty() ? session.source(path) : nullptr;
    const OpenOptions options = reading_options(session);
    Verdict verdict = source ? verify(source, session.context(), options) : verify(path, session.context(), options);
    if (session.args.has(FlagId::read_all)) read_all(verdict, session.context());
    drop_shard_alone(session.args, path, verdict.report);
    if (!wanted.empty()) {
      compare_digest(session, *source, wanted, verdict.report);
      const bool only = verdict.checked.starts_with("structure only");
      verdict.checked = !verdict.report.valid() ? ""
                        : only                  ? "structure and SHA-256"
                                                : verdict.checked + ", and SHA-256";
    }
    if (session.args.has(FlagId::with_patch) && verdict.report.valid()) {
      with_patches(session, verdict.model);
      verdict.checked += ", and what the patches make of it";
    }
    session.progress().clear();
    session.show_steps(path, verdict.checks);
    session.print_result([&] { return to_json(path, verdict); },
                         [&] { print(session, path, verdict, verdict.model.file_size()); });
    const Status status = session.args.has(FlagId::strict) && fails_strict(verdict.report)
                              ? Status::invalid
                              : status_of_report(verdict.report);
    return status == Status::done && !verdict.not_known_safe.empty() ? Status::unsupported : status;
  } catch (const Error& error) {
    session.progress().clear();
    if (error.kind() != Kind::io || !session.json) return session.fail(path, error);
    Verdict verdict;  // JSON has the same shape for an unreadable file
    verdict.report.add(error.finding());
    session.object(to_json(path, verdict));
    complain(session.fault(path, error));
    return Status::io;
  }
}

}  // namespace

Status run_verify(Session& session) {
  if (session.args.has(FlagId::manifest)) return verify_with_manifest(session);
  if (session.args.has(FlagId::derived_from)) return verify_derivation(session);
  const std::string wanted = session.args.has(FlagId::sha256) ? published_digest(session.args) : std::string{};
  if (!wanted.empty() && session.args.operands.size() > 1)
    throw Misuse("--sha256 checks one FILE, but several are given");
  return session.for_each_file([&](const std::string& path) { return verify_one(session, path, wanted); });
}

}  // namespace weighbridge::cli
