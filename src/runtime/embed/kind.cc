// SPDX-License-Identifier: Apache-2.0
// The text that the kind is a digest of. A line for each fact; those of the vocabulary have their size, since a token
// may be any bytes.
#include "runtime/embed/family.h"

#include <algorithm>

#include "codecs/checksum.h"
#include "core/reading/encoder_settings.h"
#include "runtime/embed/modules.h"
#include "runtime/kernels/half.h"
#include "weighbridge/hash.h"

namespace weighbridge::embed {
namespace {

// In f16, two groups of processors give different bits.
std::string precision_text(Precision precision) {
  std::string out(name(precision));
  if (precision == Precision::f16 && kernels::half_kernels() != nullptr) out += " avx512fp16";
  return out;
}

}  // namespace

std::string text_of(const std::vector<Pooling>& all) {
  std::string out;
  for (const Pooling each : all) (out += out.empty() ? "" : "+") += name(each);
  return out;
}

void add_module_lines(const Model& model, KindLines& lines) {
  for (const std::string_view key : {core::kSentenceModules, core::kTruncateDim})
    if (const Value* const value = model.attribute(key)) lines.emplace_back(key, value->to_text());
}

bool is_of_module(const Model& model, std::string_view tensor) {
  if (!model.attribute(core::kSentenceModules)) return false;
  return std::ranges::any_of(modules_of(model), [&](const core::SentenceModule& module) {
    return !module.path.empty() && tensor.starts_with(module.path + ".");
  });
}

EmbedDigests digests_of(const Model& model, const Family::Facts& facts, const KindLines& more, const KindName& counted,
                        const WordPiece* words, const Context& context) {
  const ContentDigests digests = content_digests(model, context);
  std::vector<std::string> tensors;
  for (std::uint32_t i = 0; i < model.size(); ++i)
    if (const auto name = counted(model.name(i)))
      tensors.push_back(std::string(*name) + " " + digests.tensors[i].text());
  std::sort(tensors.begin(), tensors.end());
  std::string all = "weighbridge kind of vectors 1\n";
  const auto line = [&](std::string_view what, std::string_view is) {
    all.append(what).append(" ").append(is).append("\n");
  };
  line("precision", precision_text(facts.precision));
  line("pooling", text_of(facts.pooling));
  line("normalize", facts.normalize ? "yes" : "no");
  line("max_length", std::to_string(facts.max_length));
  for (const auto& [what, is] : more) line(what, is);
  if (words != nullptr) {  // as far as it is not a BERT's
    const WordPieceOptions& with = words->options();
    if (with.strip_accents && *with.strip_accents != with.lower_case)
      line("strip_accents", *with.strip_accents ? "yes" : "no");
    if (!with.space_chinese) line("space_chinese", "no");
    if (!with.rules.empty()) line("rules " + std::to_string(with.rules.size()), with.rules);
    for (const std::string& ignored : with.ignore_settings) line("ignored " + std::to_string(ignored.size()), ignored);
  }
  for (const std::string& tensor : tensors) line("tensor", tensor);
  const std::uint32_t count = words == nullptr ? 0 : words->size();
  for (std::uint32_t id = 0; id < count; ++id) {
    const std::string_view token = words->token(id).value_or("");
    line("token " + std::to_string(token.size()), token);
  }
  Digest out;
  out.bytes = codecs::sha256(std::as_bytes(std::span(all)));
  return {.model = digests.model, .kind = "wbv1:" + out.hex()};
}

}  // namespace weighbridge::embed
