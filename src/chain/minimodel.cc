// SPDX-License-Identifier: Apache-2.0
// MiniModel manifests: the table, the values refused by name, the signed form.
#include "chain/promotion.h"

#include <algorithm>

#include "chain/outcome.h"
#include "core/model/words.h"
#include "core/reading/findings.h"

namespace weighbridge::chain {

using namespace internal;

namespace {

using core::excerpt;

constexpr std::string_view kSignature = "signature.", kSchemaId = "minimodel.manifest.v0";

// Sorted like the signed form.
constexpr Key kMiniModelKeys[] = {
    choice_key("artifact.acquisition", "user-local-file|user-external-download|consent-peer-transfer",
               "how a user comes by it"),
    {.name = "artifact.byte_count", .type = Type::number, .about = "size of the file"},
    choice_key("artifact.kind", "slm", "the container"),
    choice_key("artifact.project_server_url", "none", "there is no server"),
    {.name = "artifact.sha256", .type = Type::tagged, .about = "of the file"},
    {.name = "license.route", .type = Type::word, .about = "where the license stands, a path, never an address"},
    {.name = "manifest.created_utc", .type = Type::time, .about = "as given, or SOURCE_DATE_EPOCH"},
    choice_key("manifest.kind", "minimodel.manifest", "constant"),
    {.name = "manifest.schema_checksum",
     .type = Type::tagged,
     .about = "of the schema that its maker followed; only its form is checked"},
    choice_key("manifest.schema_id", "minimodel.manifest.v0", "constant"),
    choice_key("manifest.version", "0", "constant"),
    {.name = "model.id", .type = Type::word, .about = "filled in by the publisher"},
    {.name = "model.version", .type = Type::word, .about = "filled in by the publisher"},
    {.name = "model_card.route", .type = Type::word, .about = "as license.route"},
    {.name = "publisher.id", .type = Type::word, .about = "filled in by the publisher"},
    {.name = "publisher.key_id", .type = Type::word, .about = "filled in by the publisher"},
    {.name = "signature.algorithm", .type = Type::word, .required = false, .about = "carried, not verified"},
    {.name = "signature.value", .type = Type::word, .required = false, .about = "carried, not verified"},
    {.name = "slm.checksum", .type = Type::checksum, .required = false, .about = "the container's own (ours)"},
    {.name = "slm.ffn_size", .type = Type::number, .required = false, .about = "header (ours)"},
    choice_key("slm.format_version", "1", "of the container"),
    {.name = "slm.head_count", .type = Type::number, .required = false, .about = "header (ours)"},
    {.name = "slm.head_dim", .type = Type::number, .required = false, .about = "header (ours)"},
    {.name = "slm.hidden_size", .type = Type::number, .required = false, .about = "header (ours)"},
    {.name = "slm.kv_head_count", .type = Type::number, .required = false, .about = "header (ours)"},
    {.name = "slm.layer_count", .type = Type::number, .required = false, .about = "header (ours)"},
    {.name = "slm.max_context", .type = Type::number, .required = false, .about = "header (ours)"},
    optional(choice_key("slm.quantization", "f32|q8_0|q4_0|mixed", "dtype label (ours)")),
    optional(Key{.name = "slm.tensor_layout_checksum", .type = Type::checksum, .about = "the container's own (ours)"}),
    optional(Key{.name = "slm.tokenizer_checksum", .type = Type::checksum, .about = "the container's own (ours)"}),
    {.name = "slm.vocab_size", .type = Type::number, .required = false, .about = "header (ours)"},
};
static_assert(std::ranges::is_sorted(kMiniModelKeys, {}, &Key::name), "the signed form is what lines() gives");
constexpr Schema kMiniModelSchema{.name = "MiniModel manifest", .keys = kMiniModelKeys, .comments = true, .crlf = true};

// The checksum of this table, which our manifests state as manifest.schema_checksum.
std::string schema_checksum() {
  std::string text = std::string(kSchemaId) + "\n";
  for (const Key& key : kMiniModelKeys)
    text += std::string(key.name) + " " + std::string(name(key.type)) + (key.required ? " required " : " optional ") +
            std::string(key.choices) + "\n";
  return tagged(sha256_hex(text));
}

bool is_key_character(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.'; }

// Words for things that act or fetch. No part of a key may be one.
constexpr std::string_view kActive[] = {"command", "commands", "cmd",  "exec",  "execute", "script",
                                        "scripts", "callback", "hook", "hooks", "eval",    "shell",
                                        "url",     "urls",     "uri",  "href",  "download"};

bool is_active(std::string_view key) {
  if (key == "artifact.project_server_url") return false;  // required, and always "none"
  for (std::size_t begin = 0; begin <= key.size();) {
    const std::size_t end = std::min(key.find_first_of("._", begin), key.size());
    if (std::ranges::find(kActive, key.substr(begin, end - begin)) != std::end(kActive)) return true;
    begin = end + 1;
  }
  return false;
}

// An address or an active scheme: "https://", "javascript:", "data:".
bool is_address(std::string_view value) {
  if (value.find("://") != std::string_view::npos || value.starts_with("//")) return true;
  const std::size_t colon = value.find(':');
  if (colon == std::string_view::npos || colon == 0) return false;
  return std::ranges::all_of(value.substr(0, colon), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '+' || c == '-';
  });
}

struct Line {
  std::uint64_t offset = 0;
  std::string_view text;  // without its line end
};
std::vector<Line> lines_of(std::string_view bytes) {
  std::vector<Line> out;
  for (std::size_t begin = 0; begin < bytes.size();) {
    const std::size_t end = std::min(bytes.find('\n', begin), bytes.size());
    std::string_view line = bytes.substr(begin, end - begin);
    if (line.ends_with('\r')) line.remove_suffix(1);
    out.push_back({begin, line});
    begin = end + 1;
  }
  return out;
}

// Refuses these by name; the table would only report an unknown key or a wrong value.
void check_lines(std::string_view bytes) {
  for (const Line& line : lines_of(bytes)) {
    if (line.text.empty() || line.text[0] == '#') continue;
    const std::size_t split = std::min(line.text.find('='), line.text.size());
    const std::string_view key = line.text.substr(0, split);
    const std::string_view value = split < line.text.size() ? line.text.substr(split + 1) : std::string_view{};
    if (!std::ranges::all_of(key, is_key_character))
      refuse("key", {},
             "a key has lower-case letters, digits, dots and underscores, unlike " + core::quoted(excerpt(key)),
             line.offset, {}, excerpt(key));
    if (is_active(key))
      refuse("active-content", key, "a manifest holds no commands, scripts, callbacks or addresses", line.offset);
    const bool is_encoded = key.ends_with("sha256") || key.ends_with("checksum") || key.starts_with(kSignature);
    if (!is_encoded && is_address(value))
      refuse("active-content", key, "is an address, which a manifest has none of: " + core::quoted(excerpt(value)),
             line.offset + split + 1, {}, excerpt(value));
  }
}

void check_comments(std::string_view bytes) {
  for (const Line& line : lines_of(bytes))
    if (line.text.empty() || line.text[0] == '#')
      refuse("comment", {}, "a signed manifest has no comments and no empty lines", line.offset);
}

std::string signed_form_of(const Record& manifest) {
  std::string out;
  for (const auto& [key, value] : manifest.lines())
    if (!key.starts_with(kSignature)) out += key + "=" + value + "\n";
  return out;
}

Record make_manifest(const Artifact& artifact, const std::string& created) {
  Record out(kMiniModelSchema);
  out.set("artifact.acquisition", "user-local-file").set("artifact.byte_count", artifact.bytes);
  out.set("artifact.kind", "slm").set("artifact.project_server_url", "none");
  out.set("artifact.sha256", tagged(artifact.sha256));
  out.set("license.route", "<license>").set("model_card.route", "<model-card>");
  out.set("manifest.created_utc", created).set("manifest.kind", "minimodel.manifest");
  out.set("manifest.schema_checksum", schema_checksum()).set("manifest.schema_id", kSchemaId);
  out.set("manifest.version", "0");
  out.set("model.id", "<model>").set("model.version", "<version>");
  out.set("publisher.id", "<publisher>").set("publisher.key_id", "<key>");
  out.set("slm.format_version", artifact.model.version());
  set_checksums(out, "slm.", artifact);
  out.set("slm.quantization", artifact.model.dtype_label());
  for (const char* const field : {"vocab_size", "hidden_size", "layer_count", "head_count", "kv_head_count", "head_dim",
                                  "ffn_size", "max_context"})
    out.set(std::string("slm.") + field, artifact.header(field));
  return out;
}

// Import receipts.

constexpr Key kReceiptKeys[] = {
    choice_key("receipt_version", "1", "of this grammar"),
    {.name = "path", .about = "file name of the artifact"},
    {.name = "bytes", .type = Type::number, .about = "its size"},
    {.name = "artifact_sha256", .type = Type::digest, .about = "of its bytes"},
    {.name = "checksum", .type = Type::checksum, .about = "the container's own"},
    {.name = "tokenizer_checksum", .type = Type::checksum, .about = "the container's own"},
    {.name = "tensor_layout_checksum", .type = Type::checksum, .about = "the container's own"},
    choice_key("quantization", "f32|q8_0|q4_0|mixed", "dtype label"),
    choice_key("validation", "every-slm-rule", "what the file itself passed"),
    {.name = "manifest_sha256", .type = Type::digest, .about = "of the MiniModel manifest as it stands"},
    {.name = "signed_form_sha256", .type = Type::digest, .about = "of its signed form"},
    choice_key("signature", "absent|not-verified", "of the manifest"),
    {.name = "model_id", .about = "the manifest's"},
    {.name = "model_version", .about = "the manifest's"},
    {.name = "publisher_id", .about = "the manifest's"},
    {.name = "acquisition", .type = Type::word, .about = "the manifest's"},
    {.name = "received_at", .type = Type::time, .required = false, .about = "as given, or SOURCE_DATE_EPOCH"},
    kSealKey,
};
constexpr Schema kReceiptSchema{.name = "minimodel-receipt", .keys = kReceiptKeys};

Record make_receipt(const Artifact& artifact, const MiniModel& minimodel, const std::string& at) {
  const Record& manifest = minimodel.manifest.record;
  Record out(kReceiptSchema);
  out.set("receipt_version", "1").set("path", artifact.name).set("bytes", artifact.bytes);
  out.set("artifact_sha256", artifact.sha256);
  set_checksums(out, {}, artifact);
  out.set("quantization", artifact.model.dtype_label()).set("validation", "every-slm-rule");
  out.set("manifest_sha256", minimodel.manifest.sha256).set("signed_form_sha256", sha256_hex(minimodel.signed_form));
  out.set("signature", minimodel.has_signature ? "not-verified" : "absent");
  out.set("model_id", manifest.get("model.id")).set("model_version", manifest.get("model.version"));
  out.set("publisher_id", manifest.get("publisher.id")).set("acquisition", manifest.get("artifact.acquisition"));
  if (!at.empty()) out.set("received_at", at);
  seal(out);
  return out;
}

void check_stamp(const ReadRecord& receipt, const std::string& path, const Stamp& file) {
  const std::string_view stated = receipt.record.get("artifact_sha256");
  if (file.sha256 != stated)
    refuse("artifact-mismatch", "artifact_sha256", "in the minimodel-receipt is not that of '" + path + "'", {},
           std::string(stated), file.sha256);
}

void check(const ReadRecord& receipt, const MiniModel& minimodel, const Artifact& artifact) {
  check_stamp(receipt, artifact.path, artifact);
  compare(receipt, make_receipt(artifact, minimodel, std::string(receipt.record.get("received_at"))));
  check_artifact(artifact, minimodel);
}

ReadRecord read_receipt(const std::string& path) { return read_evidence(kReceiptSchema, path, "slm import-receipt"); }

}  // namespace

const Schema& internal::minimodel_schema() { return kMiniModelSchema; }

std::string internal::tagged(std::string_view lower_hex) {
  std::string out = "sha256:";
  for (const char c : lower_hex) out += c >= 'a' ? static_cast<char>(c - 'a' + 'A') : c;
  return out;
}

namespace {

MiniModel parse_minimodel(const std::string& path) {
  const std::string bytes = read_bytes(path);
  check_lines(bytes);
  MiniModel out{{parse_record(kMiniModelSchema, bytes), bytes, sha256_hex(bytes)}, {}, false};
  const Record& manifest = out.manifest.record;
  out.has_signature = manifest.has("signature.algorithm") || manifest.has("signature.value");
  if (out.has_signature) {
    if (!manifest.has("signature.algorithm") || !manifest.has("signature.value"))
      refuse("missing", "signature", "has an algorithm and a value, both or neither");
    check_comments(bytes);
  }
  for (const auto& [key, value] : manifest.lines())
    if (is_placeholder(value)) refuse("placeholder", key, "was not filled in: " + core::quoted(value));
  out.signed_form = signed_form_of(manifest);
  return out;
}

}  // namespace

MiniModel internal::read_minimodel(const std::string& path) {
  return about_record(path, [&] { return parse_minimodel(path); });
}

namespace {

[[noreturn]] void mismatch(const MiniModel& minimodel, const std::string& path, std::string_view key,
                           const std::string& found) {
  const std::string stated(minimodel.manifest.record.get(key));
  refuse("artifact-mismatch", key, "in the MiniModel manifest is " + stated + ", where '" + path + "' has " + found, {},
         stated, found);
}

void check_stamp(const MiniModel& minimodel, const std::string& path, const Stamp& file) {
  const Record& manifest = minimodel.manifest.record;
  if (file.bytes != manifest.number("artifact.byte_count"))
    mismatch(minimodel, path, "artifact.byte_count", std::to_string(file.bytes));
  if (tagged(file.sha256) != manifest.get("artifact.sha256"))
    mismatch(minimodel, path, "artifact.sha256", tagged(file.sha256));
}

}  // namespace

void internal::check_artifact(const Artifact& artifact, const MiniModel& minimodel) {
  check_stamp(minimodel, artifact.path, artifact);
  const Record& manifest = minimodel.manifest.record;
  const Record actual = make_manifest(artifact, std::string(manifest.get("manifest.created_utc")));
  for (const auto& [key, value] : actual.lines())
    if (key.starts_with("slm.") && manifest.has(key) && manifest.get(key) != value)
      mismatch(minimodel, artifact.path, key, value);
}

Artifact internal::read_verified_artifact(const std::string& path, const MiniModel& minimodel, const Context& context) {
  Artifact artifact = read_artifact(path, context, [&](const Stamp& file) { check_stamp(minimodel, path, file); });
  check_artifact(artifact, minimodel);
  return artifact;
}

Outcome minimodel_template(const std::string& artifact, const std::string& manifest, const std::string& created,
                           bool replace, const Context& context) {
  const std::string time = stated_time(created).value_or("1970-01-01T00:00:00Z");
  return conclude("minimodel-template", make_manifest(read_artifact(artifact, context), time), {},
                  {manifest, replace, {artifact}});
}

namespace {

Outcome report_on_minimodel(std::string_view step, const MiniModel& minimodel) {
  Report report;
  if (minimodel.has_signature) report.add(core::Findings::make(rules::kSignature, {}));
  Outcome out = report_on(step, minimodel.manifest.record, minimodel.manifest.sha256, std::move(report), {});
  out.record = minimodel.signed_form;
  return out;
}

}  // namespace

Outcome verify_minimodel_manifest(const std::string& manifest) {
  return report_on_minimodel("verify-manifest", read_minimodel(manifest));
}

Outcome verify_minimodel_artifact(const std::string& artifact, const std::string& manifest, const Context& context) {
  const MiniModel minimodel = read_minimodel(manifest);
  read_verified_artifact(artifact, minimodel, context);
  return report_on_minimodel("verify-artifact", minimodel);
}

const Schema& internal::receipt_schema() { return kReceiptSchema; }

void internal::check_receipt(const Artifact& artifact, const MiniModel& minimodel, const std::string& receipt) {
  check(read_receipt(receipt), minimodel, artifact);
}

Outcome write_import_receipt(const std::string& artifact, const std::string& manifest, const std::string& receipt,
                             const std::string& at, bool replace, const Context& context) {
  const MiniModel minimodel = read_minimodel(manifest);
  const Artifact verified = read_verified_artifact(artifact, minimodel, context);
  return conclude("import-receipt", make_receipt(verified, minimodel, stated_time(at).value_or("")), {},
                  {receipt, replace, {artifact, manifest}});
}

Outcome check_import_receipt(const std::string& artifact, const std::string& manifest, const std::string& receipt,
                             const Context& context) {
  const ReadRecord given = read_receipt(receipt);
  const MiniModel minimodel = read_minimodel(manifest);
  check(given, minimodel,
        read_artifact(artifact, context, [&](const Stamp& file) { check_stamp(given, artifact, file); }));
  return report_on("import-receipt", given.record, given.sha256, {}, {});
}

}  // namespace weighbridge::chain
