// SPDX-License-Identifier: Apache-2.0
#include "corpus/all_cases.h"

#include <algorithm>
#include <map>
#include <utility>

#include "formats/embd/format.h"
#include "formats/gguf/format.h"
#include "formats/hdf5/format.h"
#include "formats/llama2c/format.h"
#include "formats/numpy/format.h"
#include "formats/onnx/format.h"
#include "formats/pytorch/format.h"
#include "formats/safetensors/format.h"
#include "formats/slm/format.h"
#include "formats/slm_adapter/format.h"
#include "formats/stb/format.h"
#include "formats/ztensor/v0/format.h"
#include "formats/ztensor/v1/format.h"
#include "formats/ztensor/v2/format.h"
#include "io/forwarding_source.h"
#include "support/agreement.h"
#include "support/huggingface_testing.h"
#include "weighbridge/place.h"
#include "weighbridge/verify.h"

namespace weighbridge::test {
namespace {

std::shared_ptr<const Source> in_memory(const std::string& text, std::string name) {
  const auto bytes = std::make_shared<const std::string>(text);
  return memory_source({std::as_bytes(std::span(*bytes)), bytes}, std::move(name));
}

class WithSidecar final : public io::ForwardingSource {
 public:
  WithSidecar(std::shared_ptr<const Source> inner, const core::CorpusSidecar& sidecar)
      : ForwardingSource(std::move(inner)),
        sidecar_(in_memory(sidecar.bytes, sidecar_path(std::string(name()), sidecar))) {}
  std::shared_ptr<const Place> place() const override {
    return folder_of({{std::string(sidecar_->file_name()), sidecar_}});
  }

 private:
  std::shared_ptr<const Source> sidecar_;
};

}  // namespace

std::shared_ptr<const Source> with_sidecar(std::shared_ptr<const Source> source, const core::CorpusSidecar& sidecar) {
  return std::make_shared<const WithSidecar>(std::move(source), sidecar);
}

std::string sidecar_path(std::string path, const core::CorpusSidecar& sidecar) {
  if (sidecar.name.empty()) return path.erase(path.rfind('.')).append(sidecar.extension);
  return path.erase(path.rfind('/') + 1).append(sidecar.name);
}

std::string FormatCorpus::path(const core::CorpusCase& c) const {
  return std::string(format->info.name) + "/" + c.name + "." + (c.extension.empty() ? extension() : c.extension);
}

std::string FormatCorpus::extension() const {
  return std::string(format->info.extensions.empty() ? format->info.name : format->info.extensions.front());
}

std::shared_ptr<const Source> FormatCorpus::source(const core::CorpusCase& c) const {
  auto bytes = in_memory(c.bytes, path(c));
  return c.sidecar ? with_sidecar(std::move(bytes), *c.sidecar) : bytes;
}

const std::vector<FormatCorpus>& all_cases() {
  static const std::vector<FormatCorpus> all = {
      {&safetensors::kFormat, safetensors::cases()},
      {&gguf::kFormat, gguf::cases()},
      {&ztensor1::kFormat, ztensor1::cases()},
      {&ztensor2::kFormat, ztensor2::cases()},
      {&ztensor0::kFormat, ztensor0::cases()},
      {&stb::kFormat, stb::cases()},
      {&embd::kFormat, embd::cases()},
      {&slm_format::kFormat, slm_format::cases()},
      {&slm_adapter::kFormat, slm_adapter::cases()},
      {&onnx::kFormat, onnx::cases()},
      {&llama2c::kFormat, llama2c::cases()},
      {&numpy::kNpy, numpy::npy_cases()},
      {&numpy::kNpz, numpy::npz_cases()},
      {&hdf5::kHdf5, hdf5::hdf5_cases()},
      {&hdf5::kKeras, hdf5::keras_cases()},
      {&pytorch::kFormat, pytorch::cases()},
  };
  return all;
}

std::string index_of_cases() {
  std::string out = "file\tverdict\trule\tfrom\tsays\talso\tbeside\n";
  for (const FormatCorpus& corpus : all_cases()) {
    std::vector<std::string> lines;
    for (const core::CorpusCase& c : corpus.cases) {
      if (c.generated_only) continue;
      std::vector<std::string> ids = c.others;
      if (!c.rule.empty()) ids.insert(ids.begin(), c.rule);
      // The first of the worst findings makes the verdict.
      const auto weight = [](const std::string& id) {
        const Severity severity = find_rule(id)->severity;
        return severity == Severity::error ? 2 : severity == Severity::unsupported ? 1 : 0;
      };
      const auto worst = std::max_element(
          ids.begin(), ids.end(),
          [&](const std::string& left, const std::string& right) { return weight(left) < weight(right); });
      Rule rule{};
      if (worst != ids.end()) {
        rule = *find_rule(*worst);
        ids.erase(worst);
      }
      const std::string_view verdict = rule.id.empty()                      ? "valid"
                                       : rule.severity == Severity::error   ? "invalid"
                                       : rule.severity == Severity::warning ? "warning"
                                                                            : "unsupported";
      const std::string path = corpus.path(c);
      std::string also, beside = c.sidecar ? sidecar_path(path, *c.sidecar) : std::string();
      beside.erase(0, beside.rfind('/') + 1);
      for (const std::string& id : ids) also += (also.empty() ? "" : " ") + id;
      std::string line = path;
      for (const std::string_view cell :
           {verdict, rule.id, rule.section, rule.sentence, std::string_view(also), std::string_view(beside)})
        line.append("\t").append(cell);
      lines.push_back(std::move(line) + '\n');
    }
    std::sort(lines.begin(), lines.end());
    for (const std::string& line : lines) out += line;
  }
  return out;
}

std::string examples_of_cases() {
  constexpr std::size_t kLongest = 300, kLine = 90;
  std::map<std::string, std::string> examples;
  const auto printable = [](char byte) { return byte >= ' ' && byte <= '~'; };
  const auto take = [&](const Report& report) {
    for (const Finding& each : report.findings())
      if (each.message.size() <= kLongest && std::ranges::all_of(each.message, printable))
        examples.try_emplace(each.rule, each.message);
  };
  for (const FormatCorpus& corpus : all_cases())
    for (const core::CorpusCase& c : corpus.cases) take(verify(corpus.source(c), {.limits = c.limits}).report);
  for (const auto& c : huggingface::testing::cases())
    take(verify(huggingface::testing::in_memory(c.files), {.limits = c.limits}).report);
  std::string out =
      "// SPDX-License-Identifier: Apache-2.0\n"
      "// Messages of findings about files and folders of the corpus, by rule, sorted. Written by corpus_generate.\n"
      "#pragma once\n#include <string_view>\n\nnamespace weighbridge::cli {\n\nstruct RuleExample {\n"
      "  std::string_view rule, message;\n};\n// clang-format off\ninline constexpr RuleExample kRuleExamples[] = {\n";
  for (const auto& [rule, message] : examples) {
    out += "  {\"" + rule + "\",";
    for (std::size_t at = 0; at < message.size(); at += kLine) {
      out += "\n   \"";
      for (const char byte : message.substr(at, kLine))
        out.append(byte == '"' || byte == '\\' ? "\\" : "").append(1, byte);
      out += "\"";
    }
    out += "},\n";
  }
  return out + "};\n// clang-format on\n\n}  // namespace weighbridge::cli\n";
}

}  // namespace weighbridge::test
