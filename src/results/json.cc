// SPDX-License-Identifier: Apache-2.0
// Results as JSON. Owns the members of each object and their order; core formats values, wire text.
#include "weighbridge/json.h"

#include <algorithm>
#include <array>

#include "core/model/values.h"
#include "results/json_parts.h"
#include "weighbridge/formats.h"
#include "weighbridge/scheme.h"
#include "weighbridge/version.h"
#include "wire/json_writer.h"

namespace weighbridge {
namespace {

constexpr std::size_t kPiece = 128 << 10;

template <class T> void member(JsonWriter& out, std::string_view key, const T& value) { out.member(key, value); }
void flag(JsonWriter& out, std::string_view key, bool value) { out.flag(key, value); }

using results::add_path, results::list, results::objects, results::shape, results::text_or_null, results::texts;

template <class Enum> void names(JsonWriter& out, std::string_view key, std::span<const Enum> all) {
  list(out, key, all, [&](Enum value) { out.string(name(value)); });
}

void attributes(JsonWriter& out, Attributes entries) {
  out.key("attributes").begin_object();
  for (const auto& [key, value] : entries) {
    out.key(key);
    core::write_value(out, value);
  }
  out.end_object();
}

void finding(JsonWriter& out, const Finding& f) {
  out.begin_object();
  member(out, "rule", f.rule);
  member(out, "severity", name(f.severity));
  member(out, "kind", name(f.kind));
  member(out, "message", f.message);
  text_or_null(out, "file", f.file.name);
  results::number_or_null(out, "offset", f.offset);
  out.key("tensor");
  f.has_tensor ? out.string(f.tensor) : out.null();
  text_or_null(out, "expected", f.expected);
  text_or_null(out, "found", f.found);
  if (f.hint.what != Hint::What::none) {
    out.key("hint").begin_object();
    member(out, "what", name(f.hint.what));
    member(out, "name", f.hint.name);
    text_or_null(out, "value", f.hint.value);
    out.end_object();
  }
  out.end_object();
}

void part(JsonWriter& out, const Part& p) {
  out.begin_object();
  member(out, "role", p.role());
  member(out, "dtype", p.dtype_name());
  const std::optional<Extent> extent = p.extent();
  out.key("offset");
  extent ? out.u64(extent->offset) : out.null();
  out.key("length");
  extent ? out.u64(extent->length) : out.null();
  if (extent && extent->source != 0) member(out, "source", std::uint64_t{extent->source});
  member(out, "encoding", p.encoding_name());
  text_or_null(out, "digest", p.digest());
  out.end_object();
}

void histogram_members(JsonWriter& out, const Histogram& histogram) {
  results::number(out, "from", histogram.from);
  results::number(out, "to", histogram.to);
  list(out, "counts", histogram.counts, [&](std::uint64_t count) { out.u64(count); });
}

void stats(JsonWriter& out, const Stats& s) {
  out.begin_object();
  member(out, "elements", s.elements);
  member(out, "zeros", s.zeros);
  member(out, "nans", s.nans);
  member(out, "infinities", s.infinities);
  out.key("min");
  core::write_value(out, s.min);
  out.key("max");
  core::write_value(out, s.max);
  out.key("mean");
  s.min.kind() == Value::Kind::null ? out.null() : out.number(s.mean);
  if (!s.histogram.counts.empty()) {
    results::number(out, "std", s.std);
    out.key("histogram").begin_object();
    histogram_members(out, s.histogram);
    out.end_object();
    member(out, "outliers", s.outliers);
    member(out, "dead_rows", s.dead_rows);
  }
  out.end_object();
}

// What the model is; members of the object that has been begun.
void summary(JsonWriter& out, const Model& model) {
  const Summary found = summarize(model);
  text_or_null(out, "architecture", found.architecture);
  member(out, "parameters", found.parameters);
  text_or_null(out, "dtype", found.dtypes.empty() ? std::string() : found.dtypes[0].dtype);
  text_or_null(out, "quantization", found.quantization);
  const auto stated = [](std::uint64_t number) { return number > 0 ? std::optional(number) : std::nullopt; };
  results::number_or_null(out, "context_length", stated(found.context_length));
  results::number_or_null(out, "vocabulary", stated(found.vocabulary));
  flag(out, "chat_template", found.chat_template);
  text_or_null(out, "license", found.license);
  member(out, "tensor_count", std::uint64_t{model.size()});
  objects(out, "dtypes", found.dtypes, [&](const Summary::Share& share) {
    member(out, "dtype", share.dtype);
    member(out, results::kTensors, share.tensors);
    member(out, "elements", share.elements);
    member(out, "bytes", share.bytes);
  });
  const std::vector<ModelScheme> schemes = schemes_of(model);
  if (schemes.empty()) return;
  objects(out, "schemes", schemes, [&](const ModelScheme& scheme) {
    member(out, "id", scheme.id);
    member(out, "name", scheme.name);
    member(out, "codes", scheme.codes);
    member(out, "companions", scheme.companions);
  });
}

void tensor(JsonWriter& out, const Tensor& t, const Stats* found) {
  out.begin_object();
  member(out, "name", t.name());
  if (const std::optional<std::uint64_t> id = t.id()) member(out, "id", *id);
  member(out, "dtype", t.type_name());
  if (t.has_shape()) {
    shape(out, t.shape());
  } else {
    out.key("shape").null();
  }
  member(out, "layout", t.layout_name());
  if (const BlockTypeInfo* type = t.block_type()) member(out, "block_type", type->id);
  const Finding* reason = t.unsupported();
  flag(out, "supported", reason == nullptr);
  if (reason) member(out, "reason", reason->message);
  const auto scheme = scheme_of(t);
  if (scheme) {
    out.key("scheme").begin_object();
    member(out, "id", scheme->id);
    member(out, "name", scheme->name);
    flag(out, "codes", scheme->codes);
    out.end_object();
  }
  if (const StoredWeight* const weight = stored_weight(t)) {
    out.key("stored").begin_object();
    member(out, "id", weight->id);
    member(out, "name", weight->text);
    list(out, "tensors", weight->tensors, [&](const std::string& name) { out.string(name); });
    member(out, "bytes", weight->bytes);
    out.end_object();
  }
  if (!t.attributes().empty()) attributes(out, t.attributes());
  list(out, results::kParts, t.parts(), [&](const Part& each) { part(out, each); });
  if (found && found->scheme.empty()) {
    out.key("stats");
    stats(out, *found);
  }
  out.end_object();
}

void tokenizer(JsonWriter& out, const Tokenizer& t) {
  out.key("tokenizer").begin_object();
  member(out, "kind", name(t.kind));
  member(out, "vocab_size", std::uint64_t{t.vocab_size});
  member(out, "tokens", std::uint64_t{t.tokens.size()});
  member(out, "merges", std::uint64_t{t.merges.size()});
  out.key("special").begin_object();
  for (const auto& [key, id] : t.special) member(out, key, std::uint64_t{id});
  out.end_object();
  out.end_object();
}

void checksums(JsonWriter& out, const Model& model) {
  if (!model.checksums().empty()) {
    out.key("checksums").begin_object();
    for (const auto& [name, value] : model.checksums()) member(out, name, value);
    out.end_object();
  }
  if (!model.dtype_label().empty()) member(out, "dtype_label", model.dtype_label());
}

void item(JsonWriter& out, const Item& i) {
  member(out, "kind", name(i.kind));
  member(out, "subject", i.subject);
  member(out, "from", i.from);
  member(out, "to", i.to);
}

using results::items;

void losses(JsonWriter& out, const Plan& plan) {
  std::array<bool, kLossKindCount> consented{};
  consented.fill(true);
  for (const Item& loss : plan.unconsented()) consented[static_cast<std::size_t>(loss.kind)] = false;
  objects(out, "losses", plan.losses(), [&](const Item& i) {
    item(out, i);
    const bool named = consented[static_cast<std::size_t>(i.kind)];
    flag(out, "allowed", named || i.kind == LossKind::file);
    flag(out, "consented", named);
  });
}

void add_casts(JsonWriter& out, std::span<const Cast> casts) {
  objects(out, "casts", casts, [&](const Cast& cast) {
    member(out, "from", name(cast.from));
    member(out, "to", name(cast.to));
    member(out, results::kTensors, std::uint64_t{cast.tensors});
    member(out, "values", cast.values);
    member(out, "overflowed", cast.overflowed);
    member(out, "flushed", cast.flushed);
    results::number(out, "largest_error", cast.largest_error);
  });
}

// The files that the member "source" of a part indexes.
void sources(JsonWriter& out, const Model& model) {
  const auto all = model.sources();
  if (all.size() < 2) return;
  // Names beneath the folder that holds them all.
  std::string_view common = all[0]->name();
  for (const auto& source : all) {
    const std::string_view name = source->name();
    const auto differs = std::mismatch(common.begin(), common.end(), name.begin(), name.end()).first;
    common = common.substr(0, static_cast<std::size_t>(differs - common.begin()));
  }
  const std::size_t folder = common.rfind('/') + 1;  // npos + 1 is 0
  objects(out, "sources", all, [&](const auto& source) {
    member(out, "name", source->name().substr(folder));
    member(out, "size", source->size());
  });
}

void format(JsonWriter& out, const FormatInfo& f) {
  out.begin_object();
  member(out, "name", f.name);
  member(out, "title", f.title);
  texts(out, "extensions", f.extensions);
  member(out, "versions", f.versions);
  flag(out, "reads", f.reads);
  flag(out, "writes", f.writes);
  flag(out, "folder", f.folder);
  out.key("holds").begin_object();
  names(out, "dtypes", f.holds.dtypes);
  names(out, "layouts", f.holds.layouts);
  names(out, "encodings", f.holds.encodings);
  texts(out, "digests", f.holds.digests);
  member(out, "attributes", f.holds.attributes);
  flag(out, "names", f.holds.names);
  flag(out, "tokenizer", f.holds.tokenizer);
  out.key("max_tensors");
  f.holds.max_tensors == UINT64_MAX ? out.null() : out.u64(f.holds.max_tensors);
  out.end_object();
  out.end_object();
}

}  // namespace

void results::items(JsonWriter& out, std::string_view key, const std::vector<Item>& all) {
  objects(out, key, all, [&](const Item& i) { item(out, i); });
}

void results::findings(JsonWriter& out, const Report& report) {
  list(out, "findings", report.findings(), [&](const Finding& f) { finding(out, f); });
  if (report.total() > report.findings().size()) member(out, "findings_total", report.total());
}

void to_json(const Inspection& in, const std::function<void(std::string_view)>& sink) {
  JsonWriter out(JsonWriter::Style::shown);
  out.begin_object();
  member(out, "path", in.path);
  text_or_null(out, "format", in.model.format());
  text_or_null(out, "version", in.model.version());
  member(out, "file_size", in.model.file_size());
  sources(out, in.model);
  summary(out, in.model);
  flag(out, "checked", in.model.checked());
  if (!in.model.checksum_form().empty()) member(out, "checksum_form", in.model.checksum_form());
  checksums(out, in.model);
  attributes(out, in.model.attributes());
  if (const auto t = in.model.tokenizer()) tokenizer(out, *t);
  if (in.report && in.report->total() != 0) results::findings(out, *in.report);
  std::size_t i = 0;
  list(out, results::kTensors, in.tensors, [&](std::uint32_t each) {
    tensor(out, in.model[each], i < in.stats.size() ? &in.stats[i] : nullptr);
    ++i;
    if (out.text().size() >= kPiece) sink(out.take());
  });
  out.end_object();
  sink(out.take());
}

std::string to_json(const Inspection& in) {
  std::string text;
  to_json(in, [&](std::string_view piece) { text.append(piece); });
  return text;
}

std::string to_json(std::string_view path, const Verdict& verdict) {
  return results::object_of_file(path, [&](JsonWriter& out) {
    text_or_null(out, "format", verdict.format);
    flag(out, "valid", verdict.report.valid());
    member(out, "checked", verdict.checked);
    results::texts(out, "not_known_safe", verdict.not_known_safe);
    member(out, "about_code", verdict.report.about_code());
    member(out, results::kParts, verdict.parts);
    member(out, "digests", verdict.digests);
    if (!verdict.model.checksum_form().empty()) member(out, "checksum_form", verdict.model.checksum_form());
    results::findings(out, verdict.report);
  });
}

void add_members(JsonWriter& out, std::string_view path, std::string_view output, const Plan& plan,
                 const Written* written) {
  add_path(out, path);
  member(out, "format", plan.from());
  member(out, "output", output);
  member(out, "to", plan.to());
  flag(out, "possible", plan.possible());
  flag(out, "written", written != nullptr);
  items(out, "blockers", plan.blockers());
  losses(out, plan);
  items(out, "changes", plan.changes());
  member(out, results::kTensors, std::uint64_t{plan.tensors()});
  member(out, "files", plan.files());
  member(out, "payload_size", plan.payload_size());
  member(out, "output_size", written ? written->size : plan.output_size());
  flag(out, "output_size_exact", written || plan.output_size_exact());
  objects(out, "types", plan.types(), [&](const OutputType& type) {
    member(out, "type", type.name);
    member(out, results::kTensors, type.tensors);
    member(out, "elements", type.elements);
    member(out, "size", type.size);
    results::number(out, "bits_per_weight", type.bits());
  });
  add_casts(out, written ? written->casts : std::vector<Cast>());
}

std::string to_json(std::string_view path, std::string_view output, const Plan& plan, const Written* written) {
  return results::object([&](JsonWriter& out) { add_members(out, path, output, plan, written); });
}

std::string_view name(DigestKind kind) noexcept {
  switch (kind) {
    case DigestKind::content: return "content";
    case DigestKind::content_without_names: return "content-without-names";
    case DigestKind::zt_content: return "zt-content";
    case DigestKind::data: return "data-sha256";
    case DigestKind::file: break;
  }
  return "file-sha256";
}

namespace {

void digest_members(JsonWriter& out, std::string_view format, DigestKind kind, const Digest& digest) {
  text_or_null(out, "format", format);
  member(out, "of", name(kind));
  member(out, "digest", digest.text());
  out.key("version");
  digest.version == 0 ? out.null() : out.u64(digest.version);
}

}  // namespace

std::string to_json(std::string_view path, std::string_view format, DigestKind kind, const Digest& digest) {
  return results::object_of_file(path, [&](JsonWriter& out) { digest_members(out, format, kind, digest); });
}

std::string to_json(std::string_view path, std::string_view format, DigestKind kind, const Digest& expected,
                    const Digest& found) {
  return results::object_of_file(path, [&](JsonWriter& out) {
    digest_members(out, format, kind, expected);
    member(out, "found", found.text());
    flag(out, "ok", found == expected);
  });
}

std::string to_json(std::string_view path, std::string_view format, std::span<const Extracted> all,
                    std::span<const Tensor> left_out) {
  return results::result(path, [&](JsonWriter& out) {
    text_or_null(out, "format", format);
    objects(out, results::kTensors, all, [&](const Extracted& e) {
      member(out, "name", e.tensor);
      text_or_null(out, "part", e.part);
      member(out, "dtype", name(e.dtype));
      shape(out, e.shape);
      member(out, "bytes", e.bytes);
      if (!e.scheme.empty()) member(out, "scheme", e.scheme);
      member(out, "output", e.output);
    });
    objects(out, "left_out", left_out, [&](const Tensor& tensor) {
      member(out, "name", tensor.name());
      member(out, "type", tensor.type_name());
    });
  });
}

std::string formats_to_json() {
  return results::result(
      [&](JsonWriter& out) { list(out, "formats", formats(), [&](const FormatInfo& f) { format(out, f); }); });
}

std::string completion_to_json(std::string_view shell, std::string_view script) {
  return results::result([&](JsonWriter& out) {
    member(out, "shell", shell);
    member(out, "script", script);
  });
}

std::string version_to_json(std::string_view sandbox) {
  return results::result([&](JsonWriter& out) {
    member(out, "version", version());
    member(out, "commit", commit());
    member(out, "compiler", compiler());
    out.key("libraries").begin_object();
    for (const Library& library : libraries()) member(out, library.name, library.version);
    out.end_object();
    if (!sandbox.empty()) member(out, "sandbox", sandbox);
    out.key("paths").begin_object();
    for (const CpuPath& path : cpu_paths()) member(out, path.of, path.taken);
    out.end_object();
  });
}

void add_failure_members(JsonWriter& out, std::string_view path, const Report& report) {
  member(out, "path", path);
  const Finding* first = report.first_error();
  const std::string_view rule = first ? std::string_view(first->rule) : std::string_view{};
  const FormatInfo* format = find_format(rule.substr(0, rule.find('/')));
  text_or_null(out, "format", format ? format->name : std::string_view{});
  results::findings(out, report);
}

std::string to_json(const Finding& found) {
  JsonWriter out(JsonWriter::Style::shown);
  finding(out, found);
  return out.take();
}

std::string to_json(const Stats& found) {
  JsonWriter out(JsonWriter::Style::shown);
  stats(out, found);
  return out.take();
}

std::string to_json(const Histogram& histogram) {
  return results::result([&](JsonWriter& out) { histogram_members(out, histogram); });
}

std::string to_json(const Value& value) {
  JsonWriter out(JsonWriter::Style::shown);
  core::write_value(out, value);
  return out.take();
}

}  // namespace weighbridge
