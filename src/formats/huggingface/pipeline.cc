// SPDX-License-Identifier: Apache-2.0
// Reads the steps of the normalizer, then those of the pre-tokenizer.
#include "formats/huggingface/pipeline.h"

#include <optional>
#include <utility>

#include "core/model/words.h"

namespace weighbridge::huggingface {
namespace {

using wire::JsonKind;

// What ByteLevel divides texts by, and Digits.
constexpr std::string_view kWordsOfGpt2 =
                               R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
                           kDigit = R"(\p{N})", kDigits = R"(\p{N}+)";

class PipelineReader {
 public:
  PipelineReader(Reading& reading, const JsonObject& file) : reading_(reading), file_(file) {}

  Pipeline run() {
    walk("normalizer", "normalizers", [&](const std::string& type, const JsonObject& step) { normalize(type, step); });
    walk("pre_tokenizer", "pretokenizers",
         [&](const std::string& type, const JsonObject& step) { pre_tokenize(type, step); });
    if (out_.spelling != Pipeline::Spelling::bytes) {
      out_.words.clear();
      for (std::string& step : divisions_) beyond(std::move(step));
    }
    if (prepends_ && out_.spelling != Pipeline::Spelling::spaces) beyond("it puts U+2581 before a text");
    out_.prefix = out_.prefix || prepends_;
    return std::move(out_);
  }

 private:
  static constexpr unsigned kMaxNested = 4;  // read by recursion; far deeper than real ones

  void beyond(std::string what) { out_.beyond.push_back(std::move(what)); }

  template <class Step> void walk(std::string_view key, std::string_view list, Step step) {
    const Member* const member = file_.find(key);
    if (member != nullptr && member->kind == JsonKind::object) descend(member->raw, list, step, 0);
  }

  template <class Step> void descend(std::string_view raw, std::string_view list, Step& step, unsigned depth) {
    const auto object = object_in(reading_, file_.file, raw);
    const auto type = object ? object->text("type") : std::nullopt;
    const Member* const steps = type == "Sequence" ? object->find(list) : nullptr;
    if (!type || depth == kMaxNested || (type == "Sequence" && steps == nullptr))
      return beyond("it has a step of a kind that is not known");
    if (steps == nullptr) return step(*type, *object);
    wire::JsonReader in(steps->raw, reading_.limits.depth);
    if (!in.enter_array()) return;
    for (std::string_view each; in.next_element() && in.skip_value(each);) descend(each, list, step, depth + 1);
  }

  void normalize(const std::string& type, const JsonObject& step) {
    if (type == "Prepend" && step.text("prepend") == kMetaspace) {
      prepends_ = true;
    } else if (type == "Replace" && step.text("content") == kMetaspace && replaces_space(step)) {
      out_.spelling = Pipeline::Spelling::spaces;
    } else {
      beyond("its normalizer " + core::excerpt(type) + " changes texts");
    }
  }

  bool replaces_space(const JsonObject& step) {
    const Member* const pattern = step.find("pattern");
    const auto object = pattern != nullptr ? object_in(reading_, step.file, pattern->raw) : std::nullopt;
    return object && object->text("String") == " ";
  }

  void pre_tokenize(const std::string& type, const JsonObject& step) {
    if (type == "Metaspace" && step.text("replacement") == kMetaspace) {
      out_.spelling = Pipeline::Spelling::spaces;
      const auto scheme = step.text("prepend_scheme");
      const bool adds = scheme ? *scheme != "never" : step.boolean("add_prefix_space").value_or(true);
      out_.spares_first = adds && !prepends_;
      out_.prefix = adds;
      out_.split = step.boolean("split").value_or(true);
    } else if (type == "ByteLevel") {
      if (out_.spelling != Pipeline::Spelling::plain) beyond("it replaces characters before it spells bytes");
      out_.spelling = Pipeline::Spelling::bytes;
      if (step.boolean("use_regex").value_or(true)) out_.words.emplace_back(kWordsOfGpt2);
      if (step.boolean("add_prefix_space").value_or(true)) beyond("it puts a space before a text without one");
    } else if (auto expression = division(type, step); expression && out_.spelling != Pipeline::Spelling::bytes) {
      out_.words.push_back(*std::move(expression));
      divisions_.push_back(split_by(type));
    } else {
      beyond(split_by(type));
    }
  }

  static std::string split_by(const std::string& type) {
    return type == "Split" ? "it splits texts by a regular expression first"
                           : "its pre-tokenizer " + core::excerpt(type) + " splits texts first";
  }

  // The expression that divides a text: its matches, and the text between them, become words.
  std::optional<std::string> division(const std::string& type, const JsonObject& step) {
    if (type == "Digits") return std::string(step.boolean("individual_digits").value_or(false) ? kDigit : kDigits);
    if (type != "Split" || step.text("behavior") != "Isolated" || step.boolean("invert").value_or(false))
      return std::nullopt;
    const Member* const pattern = step.find("pattern");
    const auto object = pattern != nullptr ? object_in(reading_, step.file, pattern->raw) : std::nullopt;
    return object ? object->text("Regex") : std::nullopt;
  }

  Reading& reading_;
  const JsonObject& file_;
  Pipeline out_;
  std::vector<std::string> divisions_;  // descriptions of the steps that divide texts
  bool prepends_ = false;
};

}  // namespace

Pipeline read_pipeline(Reading& reading, const JsonObject& tokenizer) {
  return PipelineReader(reading, tokenizer).run();
}

}  // namespace weighbridge::huggingface
