// SPDX-License-Identifier: Apache-2.0
// Diagnoses as JSON.
#include "results/json_parts.h"
#include "weighbridge/json.h"

namespace weighbridge {
namespace {

using results::number_or_null, results::text_or_null, results::texts;

void range_or_null(JsonWriter& out, std::string_view key, const std::optional<ByteRange>& range) {
  out.key(key);
  if (!range) return out.null();
  out.begin_object();
  out.member("offset", range->offset);
  out.member("length", range->length);
  out.end_object();
}

}  // namespace

std::string to_json(std::string_view path, const Diagnosis& diagnosis) {
  return results::object_of_file(path, [&](JsonWriter& out) {
    out.member("condition", name(diagnosis.condition));
    out.member("what", diagnosis.what);
    text_or_null(out, "format", diagnosis.verdict.format);
    text_or_null(out, "named_like", diagnosis.named_like);
    out.member("size", diagnosis.size);
    number_or_null(out, "full_size", diagnosis.full_size);
    text_or_null(out, "sha256", diagnosis.sha256);
    out.member(results::kTensors, diagnosis.tensors);
    out.member("whole", diagnosis.whole);
    texts(out, "damaged", diagnosis.damaged);
    range_or_null(out, "zeros", diagnosis.zeros);
    range_or_null(out, "trailing", diagnosis.trailing);
    texts(out, "missing", diagnosis.missing);
    results::objects(out, "advice", diagnosis.advice, [&](const Advice& advice) {
      out.member("what", name(advice.what));
      text_or_null(out, "name", advice.name);
      out.member("from", advice.from);
      out.member("to", advice.to);
    });
    texts(out, "not_known_safe", diagnosis.verdict.not_known_safe);
    results::findings(out, diagnosis.verdict.report);
  });
}

std::string to_json(std::string_view path, const CacheReport& report) {
  return results::object_of_file(path, [&](JsonWriter& out) {
    out.flag("sound", report.sound());
    out.member("bytes", report.bytes);
    results::objects(out, "entries", report.entries, [&](const CacheEntry& entry) {
      out.member("path", entry.path);
      out.member("state", name(entry.state));
      text_or_null(out, "used_by", entry.used_by);
      out.member("size", entry.size);
      text_or_null(out, "found", entry.found);
    });
  });
}

std::string to_json(std::string_view path, const std::vector<LeftJournal>& journals) {
  return results::object_of_file(path, [&](JsonWriter& out) {
    results::objects(out, "journals", journals, [&](const LeftJournal& journal) {
      out.member("path", journal.path);
      out.flag("own", journal.own);
      text_or_null(out, "why", journal.why);
      results::steps(out, journal.steps);
      out.flag("undone", journal.undone);
    });
  });
}

std::string to_json(std::string_view path, const Policy& policy, const PolicyVerdict& found) {
  return results::object_of_file(path, [&](JsonWriter& out) {
    text_or_null(out, "format", found.format);
    out.member("policy", policy.name);
    out.flag("passed", found.passed());
    out.member("checked", found.checked);
    results::texts(out, "not_known_safe", found.not_known_safe);
    results::objects(out, "breaches", found.breaches, [&](const Breach& each) {
      out.member("demand", each.demand);
      out.key("finding").raw(to_json(each.finding));
    });
    if (found.breached > found.breaches.size()) out.member("breaches_total", found.breached);
    results::findings(out, found.others);
  });
}

}  // namespace weighbridge
