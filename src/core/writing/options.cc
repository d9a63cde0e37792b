// SPDX-License-Identifier: Apache-2.0
// The table of options: lookups, the words that an option can be, and the meaning of its text.
#include "core/writing/options.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "codecs/indexed_checksum.h"
#include "core/model/pattern.h"
#include "core/writing/file_types.h"
#include "weighbridge/block_type.h"
#include "weighbridge/place.h"
#include "wire/json_reader.h"

namespace weighbridge {
namespace {

constexpr std::string_view kOptionKinds[kOptionOfCount] = {
    "open", "convert", "view",    "inputs", "embed",    "generator", "generate", "limit",
    "diff", "edit",    "recover", "hash",   "manifest", "sign",      "check",    "trust"};
constexpr std::string_view kOptionTypes[] = {"toggle", "text", "word", "dtype", "number", "fraction", "size", "file"};
constexpr std::string_view kToggle[] = {"true", "false"};
constexpr std::array<std::string_view, kLossKindCount> kLossNames = {
    "attribute", "attribute-type", "extra",       "tokenizer", "name", "shape", "layout",    "dtype",
    "precision", "alias",          "unsupported", "overflow",  "file", "part",  "requantize"};

constexpr core::Bound<ViewOptions> kView[] = {
#define WB_VIEW_OPTION(MEMBER, ...) WB_BOUND(ViewOptions, MEMBER)
#include "core/writing/option_rows.def"
};
constexpr core::Bound<Limits> kLimits[] = {
#define WB_LIMIT_OPTION(MEMBER, ...) WB_BOUND(Limits, MEMBER)
#include "core/writing/option_rows.def"
};

const char* rule_of(OptionOf kind) { return kind == OptionOf::limit ? "limit" : "option"; }

[[noreturn]] void refuse(const OptionInfo& row, std::string_view text, const std::string& what) {
  base::misuse(row.type == OptionType::size && row.of != OptionOf::limit ? "shard-size" : rule_of(row.of),
               std::string(row.name) + " is " + what + ", not " + core::quoted(core::excerpt(text)));
}

std::string number_text(double number) {
  return number == std::floor(number) ? fmt::format("{:.0f}", number) : fmt::format("{}", number);
}

// The message leaves out a bound that nobody comes near.
void check_range(const OptionInfo& row, std::string_view text, std::optional<double> number) {
  const auto [minimum, maximum, above] = row.range;
  if (number && (above ? *number > minimum : *number >= minimum) && *number <= maximum) return;
  const bool bounded = maximum <= 1 << 24 || (number && *number > maximum && maximum <= 0x1p63);
  refuse(row, text,
         std::string(row.type == OptionType::fraction ? "a number " : "a whole number ") +
             (above ? "above " : "from ") + number_text(minimum) +
             (bounded ? (above ? ", at most " : " to ") + number_text(maximum) : ""));
}

// "5GB" and "5G" are 5 * 10^9 bytes, as in huggingface_hub; "5GiB" is 5 * 2^30. Also K, M, T, or plain bytes, in
// letters of either case.
std::uint64_t size_in_bytes(const OptionInfo& row, std::string_view text) {
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
  const auto [minimum, maximum, above] = row.range;
  const auto fits = [&range = row.range](double size) { return size >= range.minimum && size <= range.maximum; };
  if (const auto whole = known && factor == 1 ? wire::as_u64(digits) : std::nullopt;
      whole && fits(static_cast<double>(*whole)))
    return *whole;
  const auto number = known && !digits.empty() && digits[0] != '.' ? wire::as_double(digits) : std::nullopt;
  if (number && fits(*number * factor) && *number * factor < 0x1p63 && (minimum == 0 || *number * factor >= 1))
    return static_cast<std::uint64_t>(*number * factor);
  if (maximum < 0x1p53)
    refuse(row, text, "a whole number from " + number_text(minimum) + " to " + number_text(maximum));
  refuse(row, text,
         std::string(minimum > 0 ? "a size above 0 " : "a size ") + "such as 5GB, 500M, 200KiB or a number of bytes");
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

void ViewOptions::add(std::string_view option, std::string_view text) {
  core::set<ViewOptions>(*this, OptionOf::view, kView, option, text);
}
void ViewOptions::add(std::string_view option, std::string_view key, std::string_view value) {
  if (option == "rename")
    rename.push_back({.from = std::string(key), .to = std::string(value)});
  else if (option == "set")
    set.emplace_back(key, value);
  else
    add(option, std::string(key) + "=" + std::string(value));
}

std::uint64_t number_of(const OptionInfo& row, std::string_view text) {
  if (row.type == OptionType::size) return size_in_bytes(row, text);
  const std::optional<std::uint64_t> number = wire::as_u64(text);
  check_range(row, text, number ? std::optional(static_cast<double>(*number)) : std::nullopt);
  return *number;
}

void set_limit(Limits& limits, std::string_view name, std::uint64_t value) {
  core::set<Limits>(limits, OptionOf::limit, kLimits, name, std::to_string(value));
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
  for (const FileType& type : kFileTypes)
    if (type.type != "f32") out.push_back(type.name);
  for (const FileTypeAlias& alias : kFileTypeAliases) out.push_back(alias.word);
  return out;
}

std::size_t index_of_word(const OptionInfo& row, std::string_view text) {
  const std::vector<std::string_view> known = words(row);
  check_word(row.name, text, known);
  return static_cast<std::size_t>(std::ranges::find(known, text) - known.begin());
}

void assign(const OptionInfo& row, std::string_view text, bool& to) { to = index_of_word(row, text) == 0; }
void assign(const OptionInfo& row, std::string_view text, std::string& to) {
  std::string lower;
  if (row.type == OptionType::word && row.listed == quantization_names) {
    for (const char c : text) lower += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    text = short_dtype_name(lower);
  }
  if (row.type == OptionType::word) index_of_word(row, text);
  if (row.type == OptionType::file && text.empty())
    base::misuse("option", std::string(row.name) + " has an empty value");
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
void assign(const OptionInfo& row, std::string_view text, std::optional<DType>& to) {
  text = short_dtype_name(text);
  to = index_of_word(row, text) == 0 ? DType::unknown : *dtype_from_name(text);
}
void assign(const OptionInfo& row, std::string_view text, double& to) {
  const std::optional<double> number = wire::as_double(text);
  check_range(row, text, number);
  to = *number;
}
void assign(const OptionInfo& row, std::string_view text, std::uint64_t& to) { to = number_of(row, text); }
void assign(const OptionInfo& row, std::string_view text, std::shared_ptr<const Source>& to) {
  if (row.name != "base") return void(to = open_file(std::string(text)));
  const std::shared_ptr<const Place> place = place_at(std::string(text));
  to = place->kind() == Place::Kind::folder ? place->open("config.json") : place->file();
  if (to == nullptr) base::misuse_of(std::string(text), "lora-base", "the folder of the base model has no config.json");
}
void assign(const OptionInfo& row, std::string_view text, std::vector<std::pair<std::string, std::string>>& to) {
  auto made = divided(text);
  if (!made)
    base::misuse("option", std::string(row.name) + " takes " + std::string(row.value) + ", not " + quoted(text));
  to.push_back(*std::move(made));
}
void assign_renaming(const OptionInfo& row, std::string_view text, std::vector<Renaming>& to,
                     std::vector<std::string>& patterns) {
  if (Pattern::is_one(text)) {  // a name may begin with "s/" too: s/x=y is no pattern
    Pattern{text};
    patterns.emplace_back(text);
    return;
  }
  auto made = divided(text);
  if (!made)
    base::misuse("option", std::string(row.name) + " takes FROM=TO or s/PATTERN/REPLACEMENT/, not " + quoted(text));
  if (made->second.empty())
    base::misuse("option",
                 std::string(row.name) + " takes FROM=TO, and " + quoted(text) + " lacks the new name behind the =");
  to.push_back({.from = std::move(made->first), .to = std::move(made->second)});
}

const OptionInfo& option_named(OptionOf kind, std::string_view name) {
  if (const OptionInfo* const found = find_option(kind, name)) return *found;
  const std::span<const OptionInfo> all = options_of(kind);
  if (kind == OptionOf::limit) {
    std::string known;
    for (const OptionInfo& each : all) known.append(known.empty() ? "" : ", ").append(each.name);
    base::misuse(rule_of(kind), "there is no limit " + quoted(name) + "; the limits are " + known);
  }
  base::misuse(rule_of(kind), "there is no option " + quoted(name) +
                                  near_text(name, static_cast<std::uint32_t>(all.size()),
                                            [&](std::uint32_t i) { return all[i].name; }));
}

}  // namespace core
}  // namespace weighbridge
