// SPDX-License-Identifier: Apache-2.0
// Reads candidates.
#include "chain/candidate.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "base/checked.h"
#include "base/endian.h"
#include "chain/outcome.h"
#include "chain/source_folder.h"
#include "chain/source_schemas.h"
#include "core/model/words.h"
#include "formats/slm/header.h"
#include "formats/slm/hyper.h"
#include "io/read.h"
#include "weighbridge/hash.h"
#include "weighbridge/open.h"
#include "weighbridge/place.h"
#include "weighbridge/source.h"

namespace weighbridge::chain::internal {
namespace {

constexpr std::uint64_t kMaxReadme = 1 << 20;

std::string last_part(std::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  return std::string(path.substr(path.rfind('/') + 1));
}

// The name of a candidate's file: relative to its folder, or the last component.
std::string name_of(std::string_view file, const std::string& candidate) {
  std::string folder = candidate;
  if (!folder.ends_with('/')) folder += '/';
  return file.starts_with(folder) ? std::string(file.substr(folder.size())) : last_part(file);
}

bool speaks_of_license(std::string_view key) {
  std::string lower;
  for (const char c : key) lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower.find("license") != std::string::npos || lower.find("licence") != std::string::npos;
}

std::string_view trimmed(std::string_view text) {
  const auto space = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!text.empty() && space(text.front())) text.remove_prefix(1);
  while (!text.empty() && space(text.back())) text.remove_suffix(1);
  if (text.size() > 1 && (text.front() == '"' || text.front() == '\'') && text.back() == text.front())
    text = text.substr(1, text.size() - 2);
  return text;
}

// The keys of a README's front matter that concern the license; "- x" lines below such a key are values of it.
void read_front_matter(std::string_view text, std::vector<License>& out) {
  std::string key;
  bool first = true;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    if (std::exchange(first, false)) {
      if (trimmed(line) != "---") return;
      continue;
    }
    if (trimmed(line) == "---") return;
    const std::size_t colon = line.find(':');
    if (trimmed(line).starts_with("- ") && !key.empty()) {
      out.push_back({"README.md", key, std::string(trimmed(trimmed(line).substr(2)))});
    } else if (colon != std::string_view::npos) {
      key = speaks_of_license(line.substr(0, colon)) ? std::string(trimmed(line.substr(0, colon))) : std::string();
      const std::string_view value = trimmed(line.substr(colon + 1));
      if (!key.empty() && !value.empty()) out.push_back({"README.md", key, std::string(value)});
    }
  }
}

class Reader {
 public:
  Reader(const std::string& path, const Context& context) : path_(path), context_(context) {}

  Candidate run(const std::string& manifest) {
    const Model model = open(path_, context_);
    if (model.format() != "safetensors" && model.format() != "hf")
      refuse("candidate", {},
             "a candidate is a safetensors file or a Hugging Face folder, not " + std::string(model.format()), {},
             "safetensors", std::string(model.format()));
    for (const auto& source : model.sources()) add_file(*source, name_of(source->name(), path_));
    take_attributes(model);
    if (model.format() == "hf") take_folder();
    std::ranges::sort(out_.files, {}, &CandidateFile::name);
    std::string list;
    for (const CandidateFile& file : out_.files) list += file.sha256 + "  " + file.name + "\n";
    out_.sha256 = sha256_hex(list);
    out_.model = model;
    if (!manifest.empty()) apply(model, manifest);
    return std::move(out_);
  }

 private:
  void add_file(const Source& source, std::string name) {
    out_.paths.emplace_back(source.path());
    out_.files.push_back({std::move(name), source.size(), file_sha256(source, context_).hex()});
  }

  void take_attributes(const Model& model) {
    for (const auto& [key, value] : model.attributes())
      if (speaks_of_license(key))
        out_.licenses.push_back({key.starts_with("hf.") ? "config.json" : "metadata",
                                 key.starts_with("hf.") ? key.substr(3) : key, value.to_text()});
  }

  // Reads files for people that lie beside the weights and are in no model.
  void take_folder() {
    const auto folder = place_at(path_);
    if (folder->kind() != Place::Kind::folder) return;
    for (const char* const name : {"README.md", "LICENSE", "LICENSE.md", "LICENSE.txt"}) {
      const auto source = folder->open(name);
      if (!source) continue;
      const bool known = std::ranges::find(out_.files, name, &CandidateFile::name) != out_.files.end();
      if (!known) add_file(*source, name);
      if (std::string_view(name) != "README.md") {
        out_.licenses.push_back({name, "sha256", file_sha256(*source, context_).hex()});
        continue;
      }
      read_front_matter(io::head_of(*source, kMaxReadme), out_.licenses);
    }
  }

  // Replaces the candidate's own shape by the manifest's, which must not contradict it.
  void apply(const Model& model, const std::string& path) {
    out_.manifest = read_record(kSourceSchema, path);
    out_.paths.push_back(path);
    const Record& record = out_.manifest->record;
    Builder builder;
    std::vector<std::string> replaced;
    for (auto& [key, value] : shape_attributes(record)) {
      const std::string field = key.substr(slm_format::kPrefix.size());
      if (const auto stated = slm_format::find_stated(model, field)) {
        replaced.push_back(stated->key);
        compare(field, *stated, value);
      }
      builder.attribute(std::move(key), std::move(value));
    }
    for (const auto& [key, value] : model.attributes())
      if (std::ranges::find(replaced, key) == replaced.end() && !key.starts_with(slm_format::kPrefix))
        builder.attribute(key, value);
    const Tokenizer tokenizer = tokenizer_of(record);
    if (model.tokenizer() != nullptr) compare(*model.tokenizer(), tokenizer);
    builder.tokenizer(tokenizer);
    for (std::uint32_t i = 0; i < model.size(); ++i) builder.tensor(std::string(model.name(i)), model[i]);
    out_.model = builder.build();
  }

  void compare(const std::string& field, const slm_format::Stated& stated, const Value& value) {
    const auto number = stated.value->as_f64();
    const auto flag = stated.value->as_bool();
    const auto wanted = value.as_f64();
    const bool same = number && wanted ? base::to_float(*number) == base::to_float(*wanted)
                                       : flag && value.as_u64() == std::uint64_t{*flag};
    if (!same)
      object_to(out_.contradictions, "contradiction",
                field + ": source.manifest says " + value.to_text() + ", the candidate's " + stated.key + " " +
                    stated.value->to_text(),
                {}, value.to_text(), stated.value->to_text());
  }

  // Compares the tokenizers as the sections that an .slm would hold.
  void compare(const Tokenizer& own, const Tokenizer& stated) {
    const auto section = [](const Tokenizer& tokenizer) {
      return slm_format::encode_tokenizer(tokenizer, tokenizer.vocab_size).section;
    };
    if (section(own) != section(stated))
      object_to(out_.contradictions, "contradiction",
                "tokenizer_route: the tokenizer of source.manifest is another than the candidate's own");
  }

  const std::string& path_;
  const Context& context_;
  Candidate out_;
};

}  // namespace

Candidate read_candidate(const std::string& path, const std::string& manifest, const Context& context) {
  return Reader(path, context).run(manifest);
}

Options chain_options(const std::string& dtype, bool replace, bool quantize_norms) {
  Options out;
  out.allow = {LossKind::attribute, LossKind::attribute_type, LossKind::extra,
               LossKind::tokenizer, LossKind::precision,      LossKind::alias};
  if (dtype != "f32") out.quantize = dtype;
  out.slm.quantize_norms = quantize_norms;
  out.replace = replace;
  return out;
}

void ValueCounter::update(std::span<const std::byte> bytes) {
  for (std::size_t at = 0; at + sizeof(float) <= bytes.size(); at += sizeof(float)) {
    const float value = std::bit_cast<float>(base::load_le<std::uint32_t>(bytes.data() + at));
    const double magnitude = std::fabs(static_cast<double>(value));
    ++values_.elements;
    values_.zeros += value == 0;
    if (!std::isfinite(value)) {
      ++values_.nonfinite;
      continue;
    }
    values_.above += magnitude > bound_;
    values_.largest = std::max(values_.largest, magnitude);
  }
}

void object_to_values(Report& report, std::string_view tensor, const Values& values, double bound) {
  const std::string subject = core::quoted(tensor);
  const auto count = [](std::uint64_t n) { return std::to_string(n) + (n == 1 ? " value" : " values"); };
  if (values.nonfinite != 0)
    object_to(report, "nonfinite", subject + " has " + count(values.nonfinite) + " that are not finite", tensor, "0",
              std::to_string(values.nonfinite));
  if (values.above != 0)
    object_to(report, "above-bound",
              subject + " has " + count(values.above) + " above the safety bound " + Value::real(bound).to_text() +
                  ", the largest " + Value::real(values.largest).to_text(),
              tensor, Value::real(bound).to_text(), Value::real(values.largest).to_text());
  if (values.all_zero())
    object_to(report, "all-zero", subject + " is all zero, as a placeholder is", tensor, "a value that is not zero",
              count(values.zeros) + " of 0");
}

void Totals::add(const Values& values) {
  ++tensors;
  parameters += values.elements;
  nonfinite += values.nonfinite;
  above += values.above;
  all_zero += values.all_zero();
  largest = std::max(largest, values.largest);
}

namespace {

// A record must not tell where the candidate is on this machine.
std::string text_of(const Finding& finding) {
  const std::string& file = finding.file.name;
  return file.empty() ? finding.message : file.substr(file.rfind('/') + 1) + ": " + finding.message;
}

}  // namespace

void set_verdict(Record& record, const Totals& totals, double bound, const Report& report) {
  record.set("tensor_count", totals.tensors).set("parameter_count", totals.parameters);
  record.set_real("safety_bound", bound).set_real("largest_magnitude", totals.largest);
  record.set("nonfinite_values", totals.nonfinite).set("values_above_bound", totals.above);
  record.set("all_zero_tensors", totals.all_zero).set("verdict", report.valid() ? "accepted" : "refused");
  std::uint64_t i = 0;
  for (const Finding& finding : report.findings()) {
    const std::string row = "objection." + std::to_string(i++);
    record.set(row + ".rule", finding.rule).set(row + ".text", text_of(finding));
  }
}

}  // namespace weighbridge::chain::internal
