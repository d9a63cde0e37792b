// SPDX-License-Identifier: Apache-2.0
// Makes a chain of evidence for a small fixture in a folder, for the tests of admission: the output of convert-trained,
// and every step after it.
#pragma once
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "chain/admission.h"
#include "chain/source_schemas.h"
#include "support/temporary_folder.h"
#include "support/thrown.h"
#include "weighbridge/chain.h"
#include "weighbridge/convert.h"
#include "weighbridge/open.h"
#include "weighbridge/slm.h"

namespace weighbridge::chain::testing {

using namespace internal;

// As convert-trained writes it.
inline void write_conversion(const Artifact& artifact, const std::string& path, const std::string& identity) {
  Record out(kConversionSchema);
  out.set("record", "slm-conversion").set("schema_version", "1").set("source_kind", "converted-trained");
  out.set("route", "source").set("identity", identity).set("license", "MIT").set("dataset", "none");
  out.set("training_summary", "a fixture").set("source_dtype", "f32").set("manifest_sha256", sha256_hex("manifest"));
  out.set("family", "llama");
  for (const char* const field : {"vocab_size", "special_token_count", "hidden_size", "layer_count", "head_count",
                                  "kv_head_count", "head_dim", "ffn_size", "max_context"})
    out.set(field, artifact.header(field));
  out.set("rope_theta", artifact.real_header("rope_theta"));
  out.set("rms_norm_epsilon", artifact.real_header("rms_norm_epsilon"));
  out.set_flag("tied_output", (artifact.header("flags") & 1U) != 0);
  out.set("artifact.name", artifact.name).set("artifact.bytes", artifact.bytes);
  out.set("artifact.sha256", artifact.sha256);
  set_checksums(out, "artifact.", artifact);
  out.set("artifact.quantization", artifact.model.dtype_label());
  out.set("tensor_count", std::uint64_t{artifact.model.size()}).set("parameter_count", artifact.parameters);
  out.set("structure", "accepted").set("quality", "pending");
  seal(out);
  publish(path, out.text(), true);
}

// Fills in the cases: one prompt. If `expected` is empty, it expects the model's output.
inline void fill_in_cases(const Evidence& at, const std::string& expected = {}) {
  Record cases = read_record(cases_schema(), at.cases).record;
  cases.set("scope", "that the fixture runs").set("safety_review", "none needed, by the test");
  cases.set("case.0.prompt", "the and").set("case.0.max_tokens", std::uint64_t{4}).set("case.0.expected", "nothing");
  publish(at.cases, cases.text(), true);
  std::string text = expected;
  if (text.empty()) {
    run_evaluation(at, true);
    text = read_record(evaluation_schema(), at.evaluation).record.get("case.0.actual");
  }
  cases.set("case.0.expected", text);
  publish(at.cases, cases.text(), true);
}

inline const Decision kApproved{"approve", "the test", "2026-01-31T12:00:00Z"};

// Makes every record that `kind` can have, for a fixture at `path`.
inline Evidence make_chain(const std::string& path, slm::Fixture fixture = slm::Fixture::tiny_bpe,
                           std::string_view kind = kTrainedKind, const std::string& quantize = {}) {
  Options options;
  options.quantize = quantize;
  plan(slm::fixture(fixture), "slm", options).execute(path);
  const Evidence at = evidence_beside(path);
  if (kind == kTrainedKind) write_conversion(read_artifact(path, {}), at.conversion, "fixture");
  write_slm_manifest(at, kind, false);
  runtime_smoke(at, false);
  quality_gate(Gate::runtime_smoke, at, {}, false);
  evaluation_template(at, false);
  fill_in_cases(at);
  EXPECT_TRUE(run_evaluation(at, true).passed);
  if (kind != kTrainedKind) return at;
  quality_gate(Gate::assistant_quality, at, kApproved, false);
  write_admission(at, false);
  return at;
}

// The value with one character changed, so that it usually keeps its type.
inline std::string changed(std::string value) {
  if (value.empty()) return "x";
  char& last = value.back();
  if (last >= '0' && last <= '9')
    last = last == '1' ? '2' : '1';
  else if (last >= 'A' && last <= 'F')
    last = last == 'A' ? 'B' : 'A';
  else if (last == 'e')  // true, false, a digest
    value = value == "true" ? "false" : value == "false" ? "true" : value.substr(0, value.size() - 1) + "f";
  else
    value += 'x';
  return value;
}

inline void replace_line(std::string& text, const std::string& key, const std::string& value) {
  const std::string start = key + "=";
  const std::size_t at = text.starts_with(start) ? 0 : text.find("\n" + start) + 1;
  ASSERT_TRUE(at == 0 ? text.starts_with(start) : at != std::string::npos) << key;
  text.replace(at, text.find('\n', at) - at, start + value);
}

// Changes each field of the record at `path`, one at a time, and expects `next` to refuse it: because of the field, as
// a changed record, or as a record of another object. Restores the file.
inline void expect_each_field_is_caught(const Schema& schema, const std::string& path,
                                        const std::function<void()>& next) {
  const std::string text = test::read_file(path);
  ASSERT_NO_THROW(next()) << path;
  for (const auto& [key, value] : parse_record(schema, text).lines()) {
    SCOPED_TRACE(path + ": " + key);
    std::string edited = text;
    replace_line(edited, key, changed(value));
    test::write_file(path, edited);
    const Finding finding = test::thrown(next);
    EXPECT_EQ(finding.kind, Kind::malformed);
    // The digest of a ledger's entry covers all its keys.
    const std::string entry = key.substr(0, key.rfind('.') + 1);
    EXPECT_TRUE((finding.rule == "chain/ledger" && finding.message.starts_with(entry)) ||
                finding.message.find(key) != std::string::npos || finding.rule == "chain/seal" ||
                finding.rule == "chain/stale" || finding.rule == "chain/missing-case")
        << finding.rule << ": " << finding.message;
  }
  test::write_file(path, text);
}

// The same with a recomputed seal, as an attacker would do it: whatever refers to the record must then refuse it.
inline void expect_each_resealed_field_is_caught(const Schema& schema, const std::string& path,
                                                 const std::function<void()>& next) {
  const std::string text = test::read_file(path);
  for (const auto& [key, value] : parse_record(schema, text).lines()) {
    SCOPED_TRACE(path + ": " + key);
    std::string edited = text;
    replace_line(edited, key, changed(value));
    Record forged(schema);
    try {
      const Record parsed = parse_record(schema, edited);
      for (const auto& line : parsed.lines())
        if (line.first != kSeal) forged.set(line.first, parsed.get(line.first));
    } catch (const Error&) {
      continue;  // no value of its type: the grammar refuses it, as the other test shows
    }
    if (key == kSeal) continue;
    seal(forged);
    test::write_file(path, forged.text());
    EXPECT_EQ(test::thrown(next).kind, Kind::malformed);
  }
  test::write_file(path, text);
}

}  // namespace weighbridge::chain::testing
