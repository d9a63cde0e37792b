// SPDX-License-Identifier: Apache-2.0
// The table of options: lookups, the words that an option can be, and the meaning of its text.
#include "core/writing/options.h"

#include <utility>

#include "codecs/indexed_checksum.h"
#include "weighbridge/block_type.h"
#include "wire/json_reader.h"

namespace weighbridge {
namespace {

constexpr std::string_view kOptionKinds[kOptionOfCount] = {"open",  "convert",   "view",    "inputs",
                                                           "embed", "generator", "generate"};
constexpr std::string_view kOptionTypes[] = {"toggle", "text", "word", "dtype", "number", "fraction", "size", "file"};
constexpr std::string_view kToggle[] = {"true", "false"};
constexpr std::array<std::string_view, kLossKindCount> kLossNames = {
    "attribute", "attribute-type", "extra", "tokenizer",   "name",     "shape", "layout",
    "dtype",     "precision",      "alias", "unsupported", "overflow", "file",  "part"};

void refuse(const OptionInfo& row, std::string_view text, const std::string& what) {
  base::misuse("option", std::string(row.name) + " is " + what + ", not " + core::quoted(core::excerpt(text)));
}

std::string number_text(double number) {
  return number < 0x1p53 && number == static_cast<double>(static_cast<std::uint64_t>(number))
             ? std::to_string(static_cast<std::uint64_t>(number))
             : std::to_string(number);
}

void check_range(const OptionInfo& row, std::string_view text, std::optional<double> number) {
  const auto [least, most, above] = row.range;
  if (number && (above ? *number > least : *number >= least) && *number <= most) return;
  refuse(row, text,
         std::string(row.type == OptionType::fraction ? "a number " : "a whole number ") +
             (above ? "above " : "from ") + number_text(least) +
             (most > 1 << 24 ? "" : (above ? ", at most " : " to ") + number_text(most)));
}

// "5GB" and "5G" are 5 * 10^9 bytes, as in huggingface_hub; "5GiB" is 5 * 2^30. Also K, M, T, or plain bytes, in
// letters of either case.
std::uint64_t size_in_bytes(std::string_view text) {
  constexpr std::string_view kPrefixes = "kmgt";
  std::string lower(text);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  const std::size_t end = std::min(lower.find_first_not_of("0123456789."), lower.size());
  const std::string_view digits = std::string_view(lower).substr(0, end);
  std::string_view unit = std::string_view(lower).substr(end);
  double factor = 1;
  bool known = unit.empty() || unit == "b";
  if (const std::size_t power = unit.empty() ? kPrefixes.npos : kPrefixes.find(unit.front()); power != kPrefixes.npos) {
    unit.remove_prefix(1);
    known = unit.empty() || unit == "b" || unit == "ib";
    for (std::size_t i = 0; i <= power; ++i) factor *= unit == "ib" ? 1024 : 1000;
  }
  if (const auto whole = known && factor == 1 ? wire::as_u64(digits) : std::nullopt; whole && *whole > 0) return *whole;
  const auto number = known && !digits.empty() && digits[0] != '.' ? wire::as_double(digits) : std::nullopt;
  if (!number || *number * factor < 1 || *number * factor >= 0x1p63)
    base::misuse("shard-size",
                 core::quoted(core::excerpt(text)) + " is not a size such as 5GB, 500M, 200KiB or a number of bytes");
  return static_cast<std::uint64_t>(*number * factor);
}

}  // namespace

std::string_view name(OptionOf kind) noexcept { return kOptionKinds[static_cast<std::size_t>(kind)]; }
std::string_view name(OptionType type) noexcept { return kOptionTypes[static_cast<std::size_t>(type)]; }
std::string_view name(LossKind kind) noexcept { return kLossNames[static_cast<std::size_t>(kind)]; }

std::optional<LossKind> loss_kind_from_name(std::string_view text) noexcept {
  const auto* const at = std::ranges::find(kLossNames, text);
  if (at == kLossNames.end()) return std::nullopt;
  return static_cast<LossKind>(at - kLossNames.begin());
}

std::span<const OptionInfo> all_options() noexcept { return core::kOptions; }

std::span<const OptionInfo> options_of(OptionOf kind) noexcept {
  const OptionInfo *begin = std::begin(core::kOptions), *end = std::end(core::kOptions);
  while (begin != end && begin->of != kind) ++begin;
  while (begin != end && end[-1].of != kind) --end;
  return {begin, end};
}

const OptionInfo* find_option(OptionOf kind, std::string_view name) noexcept {
  for (const OptionInfo& each : options_of(kind))
    if (each.name == name) return &each;
  return nullptr;
}

std::vector<std::string_view> words(const OptionInfo& option) {
  if (option.listed != nullptr) return option.listed();
  std::vector<std::string_view> out;
  if (option.type == OptionType::toggle) out.assign(std::begin(kToggle), std::end(kToggle));
  for (std::string_view rest = option.words; !rest.empty();) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    out.push_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return out;
}

namespace core {

std::vector<std::string_view> checksum_form_names() {
  std::vector<std::string_view> out;
  for (const auto& known : codecs::kChecksumForms) out.push_back(known.name);
  return out;
}
std::vector<std::string_view> loss_kind_names() { return {kLossNames.begin(), kLossNames.end()}; }
std::vector<std::string_view> real_dtype_names() {
  std::vector<std::string_view> out;
  for (const DTypeInfo& dtype : all_dtypes())
    if (dtype.kind == DTypeKind::real) out.push_back(dtype.name);
  return out;
}
std::vector<std::string_view> quantization_names() {
  std::vector<std::string_view> out;
  for (const BlockTypeInfo& type : all_block_types())
    if (type.can_encode && std::ranges::find(out, type.name) == out.end()) out.push_back(type.name);
  // GGUF: matrices only, as its programs do it.
  for (const DType dtype : {DType::bf16, DType::f16}) out.push_back(name(dtype));
  return out;
}

std::size_t index_of_word(const OptionInfo& row, std::string_view text) {
  const std::vector<std::string_view> known = words(row);
  check_word(row.name, text, known);
  return static_cast<std::size_t>(std::ranges::find(known, text) - known.begin());
}

void assign(const OptionInfo& row, std::string_view text, bool& to) { to = index_of_word(row, text) == 0; }
void assign(const OptionInfo& row, std::string_view text, std::string& to) {
  if (row.type == OptionType::word && row.listed == quantization_names) text = short_dtype_name(text);
  if (row.type == OptionType::word) index_of_word(row, text);
  to = text;
}
void assign(const OptionInfo&, std::string_view text, std::vector<std::string>& to) { to.emplace_back(text); }
void assign(const OptionInfo& row, std::string_view text, std::vector<LossKind>& to) {
  for (;;) {
    const std::size_t end = std::min(text.find(','), text.size());
    to.push_back(static_cast<LossKind>(index_of_word(row, text.substr(0, end))));
    if (end == text.size()) return;
    text.remove_prefix(end + 1);
  }
}
void assign(const OptionInfo& row, std::string_view text, DType& to) {
  text = short_dtype_name(text);
  index_of_word(row, text);
  to = *dtype_from_name(text);
}
void assign(const OptionInfo& row, std::string_view text, double& to) {
  const std::optional<double> number = wire::as_double(text);
  check_range(row, text, number);
  to = *number;
}
void assign(const OptionInfo& row, std::string_view text, std::uint64_t& to) {
  if (row.type == OptionType::size) {
    to = size_in_bytes(text);
    return;
  }
  const std::optional<std::uint64_t> number = wire::as_u64(text);
  check_range(row, text, number ? std::optional(static_cast<double>(*number)) : std::nullopt);
  to = *number;
}
void assign(const OptionInfo&, std::string_view text, std::shared_ptr<const Source>& to) {
  to = open_file(std::string(text));
}

const OptionInfo& option_named(OptionOf kind, std::string_view name) {
  if (const OptionInfo* const found = find_option(kind, name)) return *found;
  const std::span<const OptionInfo> all = options_of(kind);
  base::misuse("option", "there is no option " + quoted(name) +
                             near_text(name, static_cast<std::uint32_t>(all.size()),
                                       [&](std::uint32_t i) { return all[i].name; }));
}

}  // namespace core
}  // namespace weighbridge
