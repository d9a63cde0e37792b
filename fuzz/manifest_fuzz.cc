// SPDX-License-Identifier: Apache-2.0
// Fuzz target: the readers of manifests and of policies. The input is read as a bundle, and also as the statement
// inside one, because a fuzzer cannot change a text that is written in base64. A statement that is read must be the
// same after it is written, and any certificate must at worst be reported as wrong.
#include <algorithm>
#include <tuple>

#include "harness.h"
#include "manifest/bundle.h"
#include "manifest/signature.h"
#include "weighbridge/manifest.h"
#include "weighbridge/place.h"
#include "weighbridge/policy.h"

namespace weighbridge::fuzz {
namespace {

using signing::Bundle;
using signing::Statement;

bool same(const ManifestEntry& a, const ManifestEntry& b) {
  return std::tie(a.file, a.begin, a.end, a.sha256) == std::tie(b.file, b.begin, b.end, b.sha256);
}

void expect_harmless(const Manifest& manifest) {
  for (const ManifestEntry& entry : manifest.entries) {
    const bool single = entry.file == "." && manifest.entries.size() == 1;
    expect(single || signing::fault_of_name(entry.file).empty(), "a name that leads out of the folder");
    expect(manifest.shard_size == 0 || (entry.begin < entry.end && entry.end - entry.begin <= manifest.shard_size),
           "a range of no length, or of more than the manifest says");
  }
  for (const std::string& each : manifest.ignored)
    expect(signing::fault_of_name(each).empty(), "an ignored path that leads out of the folder");
}

// Statements of the old form are not written.
void expect_kept(const Manifest& manifest, const Limits& limits) {
  Report report;
  const std::string text = signing::statement_text(manifest);
  const Manifest again = signing::parse_statement(text, limits, report).manifest;
  expect(report.total() == 0, "what is written reads with a warning");
  expect(again.name == manifest.name && again.shard_size == manifest.shard_size &&
             again.allow_symlinks == manifest.allow_symlinks && again.format == manifest.format,
         "a statement that is written reads as another");
  expect(std::equal(again.entries.begin(), again.entries.end(), manifest.entries.begin(), manifest.entries.end(), same),
         "the files of a statement that is written are others");
  const Bundle bundle = signing::parse_bundle(signing::bundle_text(text, nullptr), limits, report);
  expect(bundle.payload == text && bundle.method == SigningMethod::none, "a bundle has another payload");
}

void judge_statement(std::string_view text, const Limits& limits) {
  Report report;
  Statement statement;
  try {
    statement = signing::parse_statement(text, limits, report);
  } catch (const Error& error) {
    return expect_files_fault(error.finding());
  }
  expect_harmless(statement.manifest);
  if (!statement.old_form) expect_kept(statement.manifest, limits);
  if (!is_planted()) return;
  bool is_new = statement.manifest.name.find_first_not_of("model") != std::string::npos;
  for (const ManifestEntry& entry : statement.manifest.entries)
    is_new |= entry.file.find_first_not_of("abcimn./") != std::string::npos;
  if (is_new) fail("planted bug: a sound statement with a sign that is in no name of the seeds");
}

void read_bundle(std::string_view text, const Limits& limits) {
  Report report;
  Bundle bundle;
  try {
    bundle = signing::parse_bundle(text, limits, report);
  } catch (const Error& error) {
    return expect_files_fault(error.finding());
  }
  expect(bundle.signatures.empty() == (bundle.method == SigningMethod::none), "a signature without a method");
  signing::signed_bytes_of_old_form(bundle.payload);
  judge_statement(bundle.payload, limits);
  if (!can_sign() || bundle.chain.empty()) return;
  try {
    const std::string message = signing::signed_bytes(bundle.payload);
    signing::subject_of(bundle.chain.front());
    signing::PublicKey::from_certificate(bundle.chain.front())
        .accepts(bundle.signatures.empty() ? signing::Octets() : bundle.signatures.front(),
                 std::as_bytes(std::span(message)));
  } catch (const Error& error) {
    expect_files_fault(error.finding());
  }
}

// A policy that is refused is a usage error; one that is read has demands of the table, and can be compared with.
void read_as_policy(std::string_view text) {
  try {
    const Policy policy = read_policy(text);
    for (const Demand& each : policy.demands)
      expect(std::ranges::find(demands(), each.key, &DemandInfo::key) != demands().end(), "a demand of no row");
    check(place_of(source_of(nullptr, 0)), policy);
  } catch (const Error& error) {
    expect(error.finding().rule == "misuse/policy", "a policy is refused as something else: " + error.finding().rule);
  }
}

}  // namespace
}  // namespace weighbridge::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weighbridge;
  const std::vector<char> exact(data, data + size);  // a sanitizer detects a read past the end
  const std::string_view text(exact.data(), exact.size());
  const Limits limits = fuzz::small_context().limits;
  fuzz::read_bundle(text, limits);
  fuzz::judge_statement(text, limits);
  fuzz::read_as_policy(text);
  return 0;
}
