// SPDX-License-Identifier: Apache-2.0
// Reads, writes and checks the header's fields by the tables of layout.h.
#include "formats/slm/header.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "base/checked.h"
#include "base/endian.h"
#include "formats/slm/format.h"

namespace weighbridge::slm_format {
namespace {

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

Header decode_header(std::span<const std::byte> bytes) noexcept {
  Header h;
  for (const U32Field& f : kU32Fields) h.*f.value = base::load_le<std::uint32_t>(bytes.data() + f.at);
  for (const F32Field& f : kF32Fields)
    h.*f.value = std::bit_cast<float>(base::load_le<std::uint32_t>(bytes.data() + f.at));
  for (const U64Field& f : kU64Fields) h.*f.value = base::load_le<std::uint64_t>(bytes.data() + f.at);
  return h;
}

void tell(const Header& h, const core::Findings& findings) {
  findings.span(Span::Kind::structure, 0, kHeaderSize, "header");
  findings.span(Span::Kind::field, 0, kMagic.size(), "magic", kMagic);
  for (const U32Field& f : kU32Fields)
    findings.span(Span::Kind::field, f.at, f.at + 4, f.name, [&] { return std::to_string(h.*f.value); });
  for (const F32Field& f : kF32Fields)
    findings.span(Span::Kind::field, f.at, f.at + 4, f.name, [&] { return number(h.*f.value); });
  for (const U64Field& f : kU64Fields)
    findings.span(Span::Kind::field, f.at, f.at + 8, f.name, [&] { return std::to_string(h.*f.value); });
}

std::string encode_header(const Header& h) {
  std::string out(kHeaderSize, '\0');
  std::memcpy(out.data(), kMagic.data(), kMagic.size());
  for (const U32Field& f : kU32Fields) base::store_le(out.data() + f.at, h.*f.value);
  for (const F32Field& f : kF32Fields) base::store_le(out.data() + f.at, std::bit_cast<std::uint32_t>(h.*f.value));
  for (const U64Field& f : kU64Fields) base::store_le(out.data() + f.at, h.*f.value);
  return out;
}

void check_special_tokens(const Header& h, core::Findings& findings) {
  if (h.special_token_count < kMinSpecialTokens)
    findings.report(rules::kSpecialTokenCount, {.offset = field_at("special_token_count")}, "at least 4",
                    h.special_token_count);
}

void check_fields(const Header& h, core::Findings& findings) {
  if (h.model_type != kModelType)
    findings.report(rules::kModelTypeRule, {.offset = field_at("model_type")}, "1", h.model_type);
  if ((h.flags & ~kTiedOutput) != 0) findings.report(rules::kFlags, {.offset = field_at("flags")}, "0 or 1", h.flags);
  if (h.checksum == 0) findings.report(rules::kZeroChecksum, {.offset = kChecksumAt});
  if (h.vocab_size < kMinVocab)
    findings.report(rules::kVocabSize, {.offset = field_at("vocab_size")}, "at least 260", h.vocab_size);
  for (const U32Field& f : kU32Fields)
    if (f.nonzero && h.*f.value == 0) findings.report(rules::kZeroDimension, {.offset = f.at}, {}, {}, f.name);
  if (h.head_count != 0 && h.kv_head_count != 0 && h.head_count % h.kv_head_count != 0)
    findings.report(rules::kKvHeads, {.offset = field_at("kv_head_count")}, core::Said("a divisor of ", h.head_count),
                    h.kv_head_count);
  const std::uint64_t attention = std::uint64_t{h.head_count} * h.head_dim;
  if (h.hidden_size != 0 && attention != 0 && h.hidden_size != attention)
    findings.report(
        rules::kAttentionShape, {.offset = field_at("hidden_size")},
        std::to_string(h.head_count) + " x " + std::to_string(h.head_dim) + " = " + std::to_string(attention),
        h.hidden_size);
  if (!good(h.rope_theta))
    findings.report(rules::kRopeTheta, {.offset = field_at("rope_theta")}, {}, number(h.rope_theta));
  if (!good(h.rms_norm_epsilon))
    findings.report(rules::kEpsilon, {.offset = field_at("rms_norm_epsilon")}, {}, number(h.rms_norm_epsilon));
  check_alignment(rules::kDirectoryAlignment, field_at("tensor_directory_offset"), h.tensor_directory_offset, findings);
  check_alignment(rules::kDataAlignment, field_at("tensor_data_offset"), h.tensor_data_offset, findings);
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
    findings.report(rules::kTokenizerRange, {.offset = field_at("tokenizer_offset")}, end,
                    sum(h.tokenizer_offset, h.tokenizer_length));
  if (!directory)
    findings.report(rules::kDirectoryRange, {.offset = field_at("tensor_directory_offset")}, end,
                    sum(h.tensor_directory_offset, directory_size));
  // If the directory's offset is misaligned, stop here: otherwise every entry would be reported.
  if (!tokenizer || !directory || h.tensor_directory_offset % kAlignment != 0) return false;
  const std::uint64_t directory_end = h.tensor_directory_offset + directory_size;
  if (h.tensor_data_offset < directory_end || h.tensor_data_offset > size)
    findings.report(rules::kDataRange, {.offset = field_at("tensor_data_offset")},
                    std::to_string(directory_end) + " to " + std::to_string(size), h.tensor_data_offset);
  const Section sections[] = {
      {"the header", 0, h.header_length, 0},
      {"the tokenizer section", h.tokenizer_offset, h.tokenizer_offset + h.tokenizer_length,
       field_at("tokenizer_offset")},
      {"the tensor directory", h.tensor_directory_offset, directory_end, field_at("tensor_directory_offset")}};
  check_overlap(sections[0], sections[1], findings);
  check_overlap(sections[0], sections[2], findings);
  check_overlap(sections[1], sections[2], findings);
  return true;
}

std::vector<Value::Entry> header_attributes(const Header& h) {
  std::vector<Value::Entry> out;
  const auto key = [](std::string_view name) { return std::string(kPrefix) + std::string(name); };
  for (const U32Field& f : kU32Fields)
    if (f.attribute) out.emplace_back(key(f.name), Value::integer(std::uint64_t{h.*f.value}, DType::u32));
  for (const F32Field& f : kF32Fields) out.emplace_back(key(f.name), Value::real(h.*f.value, DType::f32));
  return out;
}

}  // namespace weighbridge::slm_format
