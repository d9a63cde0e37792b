// SPDX-License-Identifier: Apache-2.0
// Plans the metadata to write: the ten required keys in the specification's order, with values from the caller, the
// source or the tensors, then the source's other attributes in their order.
#include <string>

#include "base/fail.h"
#include "base/timestamp.h"
#include "base/utf8.h"
#include "formats/embd/architecture.h"
#include "formats/embd/metadata.h"

namespace weighbridge::embd {
namespace {

using core::indexed;

void check_option(std::string_view key, std::string_view text) {
  if (text.size() > kMaxText || !base::is_utf8(text))
    base::misuse("metadata", std::string(key) + " is to be UTF-8 text of at most " + bytes_text(kMaxText));
}

class MetadataPlanner {
 public:
  MetadataPlanner(const Model& model, const Options& options, core::PlanItems plan_items)
      : model_(model), options_(options), plan_items_(plan_items), derived_(derive(model)) {}

  MetadataPlan run() {
    for (const auto& [key, number] : kRequiredKeys) {
      if (number != nullptr)
        add_number(key, number);
      else
        add_text(key);
    }
    check_numbers();
    for (const auto& [key, value] : model_.attributes()) {
      if (find_required(key) != nullptr || is_header_fact(key, value)) continue;
      if (auto text = text_of(key, value)) out_.entries.emplace_back(key, *std::move(text));
    }
    if (complete_) out_.numbers = numbers_;
    return std::move(out_);
  }

 private:
  void add(std::string_view key, std::string text) { out_.entries.emplace_back(key, std::move(text)); }

  void add_number(std::string_view key, std::uint64_t Numbers::*number) {
    const std::string subject = indexed("attributes", key);
    const Value* const own = model_.attribute(key);
    auto text = own ? text_of(key, *own) : std::nullopt;
    if (!text && derived_.*number == 0) {
      complete_ = false;
      const std::string_view tensor = teller(key);
      plan_items_.block(
          LossKind::attribute, subject, core::kAbsent,
          tensor.empty()
              ? "a key that EMBD requires and that no tensor implies: convert the model's Hugging "
                "Face folder, whose config.json has it"
              : "a key that EMBD requires, and there is no tensor " + std::string(tensor) + " that implies it");
      return;
    }
    if (!text) {
      text = std::to_string(derived_.*number);
      plan_items_.change(LossKind::attribute, subject, core::kAbsent, *text);
    }
    if (const auto value = positive_integer(*text)) {
      numbers_.*number = *value;
    } else {
      complete_ = false;
      plan_items_.block(LossKind::attribute, subject, excerpt(*text), "a positive integer, which EMBD requires");
    }
    add(key, *std::move(text));
  }

  // A key whose value is text: the caller's option, else the source's value, else a default.
  void add_text(std::string_view key) {
    const std::string subject = indexed("attributes", key);
    const std::string& given = option(key);
    check_option(key, given);
    const Value* const own = model_.attribute(key);
    if (!given.empty()) {
      const std::string before = own ? own->to_text() : core::kAbsent;
      if (!own || before != given) plan_items_.change(LossKind::attribute, subject, before, given);
      return add(key, given);
    }
    auto text = own ? text_of(key, *own) : std::nullopt;
    if (!text) {
      text = options_.canonical && key == kCreatedAtKey ? base::utc_time(0) : fallback(key);
      plan_items_.change(LossKind::attribute, subject, core::kAbsent, *text);
    }
    add(key, *std::move(text));
  }

  const std::string& option(std::string_view key) const {
    if (key == kModelName) return options_.metadata.model_name;
    return key == kModelVersion ? options_.metadata.model_version : options_.metadata.created_at;
  }

  static std::string fallback(std::string_view key) {
    if (key == kModelName) return "model";
    return key == kModelVersion ? "1.0.0" : base::reproducible_time();
  }

  void check_numbers() {
    if (!complete_) return;
    if (numbers_.embedding_dim != numbers_.hidden_size)
      plan_items_.block(LossKind::attribute, indexed("attributes", "embedding_dim"),
                        std::to_string(numbers_.embedding_dim),
                        "hidden_size, " + std::to_string(numbers_.hidden_size) + ": EMBD has no projection");
    if (numbers_.hidden_size % numbers_.num_attention_heads != 0)
      plan_items_.block(LossKind::attribute, indexed("attributes", "num_attention_heads"),
                        std::to_string(numbers_.num_attention_heads),
                        "a divisor of hidden_size, " + std::to_string(numbers_.hidden_size));
  }

  // Whether the reader of EMBD adds this attribute, for a header value that the writer would not choose.
  bool is_header_fact(std::string_view key, const Value& value) {
    if (value.kind() != Value::Kind::integer) return false;
    const auto number = value.as_u64();
    if (key == kFlagsAttribute && number && (*number & ~std::uint64_t{kKnownFlags}) == 0) {
      out_.flags = static_cast<std::uint32_t>(*number) & ~kVocabEmbedded;
      return true;
    }
    if (key == kMinorAttribute && number && *number <= UINT16_MAX) {
      out_.version_minor = static_cast<std::uint16_t>(*number);
      return true;
    }
    return false;
  }

  // The text for a value; nullopt, and a loss, if it has none.
  std::optional<std::string> text_of(std::string_view key, const Value& value) {
    const std::string subject = indexed("attributes", key);
    std::string text = value.to_text();
    const auto drop = [&](std::string why) {
      plan_items_.lose(LossKind::attribute, subject, std::move(text), "dropped: " + std::move(why));
      return std::nullopt;
    };
    if (!core::can_be_text(key, value, text)) return drop("it cannot be text");
    if (key.size() > kMaxText || text.size() > kMaxText)
      return drop("EMBD holds texts of up to " + bytes_text(kMaxText));
    if (value.kind() != Value::Kind::text)
      plan_items_.lose(LossKind::attribute_type, subject, core::type_text(value), "text");
    return text;
  }

  const Model& model_;
  const Options& options_;
  core::PlanItems plan_items_;
  const Numbers derived_;  // as derived from the tensors
  Numbers numbers_;
  bool complete_ = true;
  MetadataPlan out_;
};

}  // namespace

MetadataPlan plan_metadata(const Model& model, const Options& options, core::PlanItems plan_items) {
  return MetadataPlanner(model, options, plan_items).run();
}

}  // namespace weighbridge::embd
