// SPDX-License-Identifier: Apache-2.0
// Checks the header's fields.
#include "formats/slm/header.h"

#include <cmath>

#include "base/checked.h"
#include "formats/slm/format.h"

namespace weighbridge::slm_format {
namespace {

using base::offset_of, core::at_field;

struct Section {
  std::string_view name;
  std::uint64_t begin, end, field_at;
};

bool good(float value) noexcept { return std::isfinite(value) && value > 0; }

std::string number(float value) { return Value::real(value, DType::f32).to_text(); }

void check_alignment(const Rule& rule, std::uint64_t at, std::uint64_t value, core::Findings& findings) {
  if (value % kAlignment != 0) findings.report(rule, {.offset = at}, "a multiple of 64", value);
}

void check_overlap(const Section& a, const Section& b, core::Findings& findings) {
  if (a.begin >= b.end || b.begin >= a.end || a.begin == a.end || b.begin == b.end) return;
  findings.report(rules::kSectionOverlap, {.offset = b.field_at}, {}, {},
                  std::string(a.name) + " is at " + std::to_string(a.begin) + " to " + std::to_string(a.end) + ", " +
                      std::string(b.name) + " at " + std::to_string(b.begin) + " to " + std::to_string(b.end));
}

}  // namespace

void check_special_tokens(const Header& h, core::Findings& findings) {
  if (h.special_token_count < kMinSpecialTokens)
    findings.report(rules::kSpecialTokenCount, at_field(&Header::special_token_count), "at least 4",
                    h.special_token_count);
}

void check_fields(const Header& h, core::Findings& findings) {
  if (h.model_type != kModelType)
    findings.report(rules::kModelTypeRule, at_field(&Header::model_type), "1", h.model_type);
  if ((h.flags & ~kTiedOutput) != 0) findings.report(rules::kFlags, at_field(&Header::flags), "0 or 1", h.flags);
  if (h.checksum == 0) findings.report(rules::kZeroChecksum, at_field(&Header::checksum));
  if (h.vocab_size < kMinVocab)
    findings.report(rules::kVocabSize, at_field(&Header::vocab_size), "at least 260", h.vocab_size);
  each_hyperparameter(h, [&](const auto& field, std::string_view name, std::size_t at) {
    if (std::is_integral_v<std::remove_cvref_t<decltype(field)>> && field == 0 && at >= offset_of(&Header::hidden_size))
      findings.report(rules::kZeroDimension, {.offset = at}, {}, {}, name);
  });
  if (h.head_count != 0 && h.kv_head_count != 0 && h.head_count % h.kv_head_count != 0)
    findings.report(rules::kKvHeads, at_field(&Header::kv_head_count), {"a divisor of ", h.head_count},
                    h.kv_head_count);
  const std::uint64_t attention = std::uint64_t{h.head_count} * h.head_dim;
  if (h.hidden_size != 0 && attention != 0 && h.hidden_size != attention)
    findings.report(rules::kAttentionShape, at_field(&Header::hidden_size),
                    {h.head_count, " x ", h.head_dim, " = ", attention}, h.hidden_size);
  if (!good(h.rope_theta)) findings.report(rules::kRopeTheta, at_field(&Header::rope_theta), {}, number(h.rope_theta));
  if (!good(h.rms_norm_epsilon))
    findings.report(rules::kEpsilon, at_field(&Header::rms_norm_epsilon), {}, number(h.rms_norm_epsilon));
  check_alignment(rules::kDirectoryAlignment, offset_of(&Header::tensor_directory_offset), h.tensor_directory_offset,
                  findings);
  check_alignment(rules::kDataAlignment, offset_of(&Header::tensor_data_offset), h.tensor_data_offset, findings);
}

bool check_sections(const Header& h, std::uint64_t size, core::Findings& findings) {
  const std::uint64_t directory_size = h.tensor_count * kEntrySize;  // below 2^38
  const std::string end = "an end of at most " + std::to_string(size);
  const auto sum = [](std::uint64_t offset, std::uint64_t length) {
    return std::to_string(offset) + " + " + std::to_string(length);
  };
  const bool tokenizer = base::fits(h.tokenizer_offset, h.tokenizer_length, size);
  const bool directory = base::fits(h.tensor_directory_offset, directory_size, size);
  if (!tokenizer)
    findings.report(rules::kTokenizerRange, at_field(&Header::tokenizer_offset), end,
                    sum(h.tokenizer_offset, h.tokenizer_length));
  if (!directory)
    findings.report(rules::kDirectoryRange, at_field(&Header::tensor_directory_offset), end,
                    sum(h.tensor_directory_offset, directory_size));
  // If the directory's offset is misaligned, stop here: otherwise every entry would be reported.
  if (!tokenizer || !directory || h.tensor_directory_offset % kAlignment != 0) return false;
  const std::uint64_t directory_end = h.tensor_directory_offset + directory_size;
  if (h.tensor_data_offset < directory_end || h.tensor_data_offset > size)
    findings.report(rules::kDataRange, at_field(&Header::tensor_data_offset), {directory_end, " to ", size},
                    h.tensor_data_offset);
  const Section sections[] = {
      {"the header", 0, h.header_length, 0},
      {"the tokenizer section", h.tokenizer_offset, h.tokenizer_offset + h.tokenizer_length,
       offset_of(&Header::tokenizer_offset)},
      {"the tensor directory", h.tensor_directory_offset, directory_end, offset_of(&Header::tensor_directory_offset)}};
  check_overlap(sections[0], sections[1], findings);
  check_overlap(sections[0], sections[2], findings);
  check_overlap(sections[1], sections[2], findings);
  return true;
}

std::vector<Value::Entry> header_attributes(const Header& h) {
  std::vector<Value::Entry> out;
  each_hyperparameter(h, [&](const auto& field, std::string_view name, std::size_t) {
    if constexpr (std::is_integral_v<std::remove_cvref_t<decltype(field)>>)
      out.emplace_back(std::string(kPrefix).append(name), Value::integer(std::uint64_t{field}, DType::u32));
    else
      out.emplace_back(std::string(kPrefix).append(name), Value::real(field, DType::f32));
  });
  return out;
}

}  // namespace weighbridge::slm_format
