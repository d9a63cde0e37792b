// SPDX-License-Identifier: Apache-2.0
// What diff() found as JSON, and the order in which its tensors are listed.
#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include "base/order.h"
#include "results/json_parts.h"
#include "weighbridge/json.h"

namespace weighbridge {

std::string to_json(std::string_view path, std::string_view output, const PatchInfo& patch) {
  return results::result(path, [&](JsonWriter& out) {
    results::text_or_null(out, "output", output);
    out.member("base", patch.base.text());
    out.member("result", patch.result.text());
    out.member("tensors", patch.tensors);
    out.member("changed", patch.changed);
    out.member("added", patch.added);
    out.member("removed", patch.removed);
    out.member("renamed", patch.renamed);
    out.member("replaced", patch.replaced);
    out.member("elements", patch.elements);
    out.member("differing", patch.differing);
    out.member("bytes", patch.bytes);
    out.flag("replaces_metadata", patch.replaces_metadata);
    out.flag("reencoded", patch.reencoded);
  });
}

namespace {

using Verdict = TensorDiff::Verdict;

void text_or_null(JsonWriter& out, std::string_view key, std::string_view text, bool is_null) {
  out.key(key);
  is_null ? out.null() : out.string(text);
}

void side(JsonWriter& out, std::string_view key, std::string_view path, const Model& model) {
  out.key(key).begin_object();
  out.member("path", path);
  out.member("format", model.format());
  out.member(results::kTensors, std::uint64_t{model.size()});
  out.end_object();
}

void tensor_side(JsonWriter& out, std::string_view key, bool there, std::string_view name, std::string_view type,
                 const std::vector<std::uint64_t>& shape) {
  out.key(key);
  if (!there) return out.null();
  out.begin_object();
  out.member("name", name);
  out.member("dtype", type);
  results::shape(out, shape);
  out.end_object();
}

// Infinities stay; what has no value is null.
void number(JsonWriter& out, std::string_view key, double value) {
  out.key(key);
  std::isnan(value) ? out.null() : out.number(value);
}

void values(JsonWriter& out, const ValueDiff& v) {
  out.key("values").begin_object();
  out.member("elements", v.elements);
  out.member("changed", v.changed);
  out.member("beyond", v.beyond);
  out.member("nans", v.nans);
  out.member("infinite", v.infinite);
  number(out, "max_abs", v.max_abs);
  number(out, "max_relative", v.max_relative);
  number(out, "rms", v.rms);
  number(out, "relative_rms", v.relative_rms);
  number(out, "cosine", v.cosine);
  number(out, "snr", v.snr);
  results::number_or_null(out, "first", v.first);
  results::number_or_null(out, "largest", v.largest);
  out.end_object();
}

void tensor(JsonWriter& out, const TensorDiff& t) {
  out.begin_object();
  out.member("verdict", name(t.verdict));
  tensor_side(out, "a", t.verdict != Verdict::only_b, t.name_a, t.type_a, t.shape_a);
  tensor_side(out, "b", t.verdict != Verdict::only_a, t.name_b, t.type_b, t.shape_b);
  if (t.verdict != Verdict::only_a && t.verdict != Verdict::only_b) out.member("by", name(t.by));
  out.key("changes").begin_array();
  for (const auto& [is, what] :
       {std::pair(t.renamed, "renamed"), std::pair(t.reshaped, "reshaped"), std::pair(t.transposed, "transposed"),
        std::pair(t.permuted, "permuted"), std::pair(t.recast, "recast"), std::pair(t.changed, "changed"),
        std::pair(t.bits_only, "bits-only")})
    if (is) out.string(what);
  out.end_array();
  if (!t.tied_to.empty()) out.member("tied_to", t.tied_to);
  if (!t.order.empty()) out.member("order", t.order);
  if (!t.why.empty()) out.member("why", t.why);
  if (!t.scheme.empty()) out.member("scheme", t.scheme);
  if (t.values) values(out, *t.values);
  out.end_object();
}

void metadata(JsonWriter& out, std::string_view key, const std::vector<MetadataDiff>& list) {
  results::objects(out, key, list, [&](const MetadataDiff& each) {
    out.member("key", each.key);
    if (!each.tensor.empty()) out.member("tensor", each.tensor);
    text_or_null(out, "a", each.a, each.only_b);
    text_or_null(out, "b", each.b, each.only_a);
    if (each.first) out.member("first", *each.first);
  });
}

// How much a tensor changed: the RMS of the change by that of the values, past everything where that has no number.
double weight(const TensorDiff& t) {
  if (!t.values) return std::numeric_limits<double>::infinity();
  if (t.values->changed == 0) return 0;
  return std::isnan(t.values->relative_rms) ? std::numeric_limits<double>::infinity() : t.values->relative_rms;
}

// Only the rows that both have were compared.
bool is_resized(const TensorDiff& t) { return t.reshaped && !t.why.empty(); }

// Values that are all there, whatever they are called, matter less than missing ones.
int rank(const TensorDiff& t) {
  switch (t.verdict) {
    case Verdict::different: return t.changed || is_resized(t) ? 0 : 4;
    case Verdict::incomparable: return 1;
    case Verdict::only_a: return 2;
    case Verdict::only_b: return 3;
    case Verdict::equal: break;
  }
  return 5;
}

}  // namespace

std::vector<std::uint32_t> by_change(const Diff& diff) {
  return base::order_by(diff.tensors.size(), [&](std::uint32_t i) {
    const TensorDiff& t = diff.tensors[i];
    return std::tuple(rank(t), -weight(t));
  });
}

std::string to_json(const Comparison& in) {
  JsonWriter out;
  const Diff& diff = in.found;
  out.begin_object();
  out.member("schema", std::uint64_t{kJsonSchema});
  side(out, "a", in.path_a, in.a);
  side(out, "b", in.path_b, in.b);
  out.flag("equal", diff.equal());
  out.member("compared", diff.compared);
  out.member("same", diff.same);
  out.member("different", diff.different);
  out.member("incomparable", diff.incomparable);
  if (!diff.schemes.empty()) {
    out.member("codes", diff.codes);
    results::list(out, "schemes", diff.schemes, [&](const std::string& scheme) { out.string(scheme); });
  }
  out.member("moved", diff.moved);
  out.member("bytes", diff.bytes);
  auto shown = by_change(diff);
  if (shown.size() > in.max_tensors) shown.resize(static_cast<std::size_t>(in.max_tensors));
  results::list(out, results::kTensors, shown, [&](std::uint32_t i) { tensor(out, diff.tensors[i]); });
  metadata(out, "metadata", diff.metadata);
  metadata(out, "tokenizer", diff.tokenizer);
  out.end_object();
  return out.take();
}

std::string to_json(const DifferenceMap& map) {
  JsonWriter out;
  out.begin_object();
  out.member("rows", map.rows);
  out.member("columns", map.columns);
  out.member("high", std::uint64_t{map.grid_rows});
  out.member("wide", std::uint64_t{map.grid_columns});
  results::list(out, "max_abs", map.blocks, [&](const DifferenceMap::Block& block) { out.number(block.max_abs); });
  results::list(out, "changed", map.blocks, [&](const DifferenceMap::Block& block) { out.u64(block.changed); });
  results::list(out, "not_finite", map.blocks, [&](const DifferenceMap::Block& block) { out.u64(block.not_finite); });
  out.end_object();
  return out.take();
}

}  // namespace weighbridge
