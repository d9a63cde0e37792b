// SPDX-License-Identifier: Apache-2.0
// Artifacts, seals, and comparing records with recomputed ones.
#include "chain/evidence.h"

#include <charconv>
#include <filesystem>
#include <iterator>

#include "weighbridge/hash.h"
#include "weighbridge/verify.h"

namespace weighbridge::chain::internal {
namespace {

// The offset of the line of `key`.
std::optional<std::uint64_t> line_of(std::string_view bytes, std::string_view key) {
  const std::string start = std::string(key) + "=";
  if (bytes.starts_with(start)) return 0;
  const std::size_t at = bytes.find("\n" + start);
  return at == std::string_view::npos ? std::optional<std::uint64_t>{} : at + 1;
}

[[noreturn]] void refuse_difference(const ReadRecord& given, const std::string& key, const std::string& expected,
                                    const std::string& found) {
  const std::string record = "in the " + std::string(given.record.schema().name);
  const auto offset = line_of(given.bytes, key);
  if (key == kSeal)
    refuse("seal", key, record + " does not fit the lines above it: the record was changed after it was written",
           offset, expected, found);
  if (key.ends_with("_sha256"))
    refuse("stale", key, record + " is the digest of something else than what is there now: write that record again",
           offset, expected, found);
  const auto shown = [](const std::string& value) { return value.empty() ? std::string("nothing") : value; };
  refuse("recomputed", key, record + " is " + shown(found) + ", where " + shown(expected) + " comes out now", offset,
         expected, found);
}

std::uint64_t count_parameters(const Model& model) {
  std::uint64_t sum = 0;
  for (const Tensor& tensor : model) {
    std::uint64_t elements = 1;  // no larger than its payload, which the validator has checked
    for (const std::uint64_t dim : tensor.shape()) elements *= dim;
    sum += elements;
  }
  return sum;
}

Stamp stamp_of(const Source& source, const Context& context) {
  return {source.size(), file_sha256(source, context).hex()};
}

}  // namespace

std::uint64_t Artifact::header(std::string_view field) const {
  const Value* const value = model.attribute("slm." + std::string(field));
  return value ? value->as_u64().value_or(0) : 0;
}

std::string Artifact::real_header(std::string_view field) const {
  const Value* const value = model.attribute("slm." + std::string(field));
  char text[32];
  const auto real = static_cast<float>(value ? value->as_f64().value_or(0) : 0);
  return {text, std::to_chars(std::begin(text), std::end(text), real).ptr};
}

std::string_view Artifact::checksum(std::string_view of) const {
  for (const Checksum& each : model.checksums())
    if (each.name == of) return each.value;
  return {};
}

std::string last_component(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename().string();
  if (name.empty() || name == "." || name == "..") refuse("artifact", {}, "'" + path + "' names no file");
  return name;
}

Artifact read_artifact(const std::string& path, const Context& context,
                       const std::function<void(const Stamp&)>& expect) {
  Artifact out;
  out.path = path;
  out.name = last_component(path);
  out.source = open_file(path);
  static_cast<Stamp&>(out) = stamp_of(*out.source, context);
  if (expect) expect(out);
  const Verdict verdict = verify(out.source, context);
  if (const Finding* const error = verdict.report.first_error()) throw Error(*error);
  if (verdict.format != "slm")
    refuse("artifact", {}, "'" + path + "' is not an .slm model; convert-trained makes one", 0, "slm",
           std::string(verdict.format));
  out.model = verdict.model;
  out.source->check_unchanged();
  out.parameters = count_parameters(out.model);
  return out;
}

Stamp stamp(const Source& source, const Context& context) {
  Stamp out = stamp_of(source, context);
  source.check_unchanged();
  return out;
}

void set_checksums(Record& record, const std::string& prefix, const Artifact& artifact) {
  record.set(prefix + "checksum", artifact.checksum("file"));
  record.set(prefix + "tokenizer_checksum", artifact.checksum("tokenizer"));
  record.set(prefix + "tensor_layout_checksum", artifact.checksum("tensor_layout"));
}

ReadRecord read_evidence(const Schema& schema, const std::string& path, std::string_view how) {
  std::error_code unknown;
  if (!std::filesystem::exists(path, unknown))
    refuse("missing-evidence", {},
           "there is no " + std::string(schema.name) + " at '" + path + "'; " + std::string(how) + " writes it");
  ReadRecord out = read_record(schema, path);
  if (const std::string text = out.record.text(); text != out.bytes) {
    std::size_t at = 0;
    while (at < text.size() && at < out.bytes.size() && text[at] == out.bytes[at]) ++at;
    about_record(path, [&] {
      refuse("spelling", {}, "the " + std::string(schema.name) + " is not spelled as it was written", at);
    });
  }
  return out;
}

void seal(Record& record) {
  const std::string digest = record.digest();
  record.set(kSeal, digest);
}

Record without_seal(const Record& record) {
  Record out(record.schema());
  for (const auto& [key, value] : record.lines())
    if (key != kSeal) out.set(key, record.get(key));
  return out;
}

void compare(const ReadRecord& given, const Record& again) {
  const auto has = given.record.lines(), wants = again.lines();
  for (std::size_t i = 0; i < wants.size() || i < has.size(); ++i) {
    if (i < has.size() && i < wants.size() && has[i] == wants[i]) continue;
    // If only one of them has the key, the other has a later key in its place.
    const bool missing = i < wants.size() && !given.record.has(wants[i].first);
    const std::string key = missing || i >= has.size() ? wants[i].first : has[i].first;
    std::string expected, found;
    for (const auto& [name, value] : wants)
      if (name == key) expected = value;
    for (const auto& [name, value] : has)
      if (name == key) found = value;
    refuse_difference(given, key, expected, found);
  }
}

}  // namespace weighbridge::chain::internal
