// SPDX-License-Identifier: Apache-2.0
// Spells, reads and checks journals.
#include "io/journal_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <utility>

#include "io/temporary.h"

namespace weighbridge::io {
namespace {

// What differs between the versions of a journal; the last one is written.
struct JournalVersion {
  std::string_view first;  // field
  std::size_t head;        // fields before the changes
  std::size_t fields;      // of a change
};
constexpr JournalVersion kVersions[] = {
    {"weighbridge journal 1", 1, 5}, {"weighbridge journal 2", 2, 7}, {"weighbridge journal 3", 2, 10}};
constexpr const JournalVersion& kNewest = *std::rbegin(kVersions);
constexpr std::string_view kLast = "end", kOld = ".old";
constexpr std::size_t kMaxComponents = 8, kBlockDigits = 16;

// The text that the mark covers.
std::string marked_text(std::uint64_t folder, std::uint64_t journal, std::string_view rest) {
  std::string out = "weighbridge journal\n" + std::to_string(folder) + "\n" + std::to_string(journal);
  out += '\n';
  return out.append(rest);
}

bool is_beneath(std::string_view name) noexcept {
  if (name.empty() || name.size() >= kMaxPath || name.front() == '/' || name.back() == '/') return false;
  std::size_t components = 0;
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('/', begin), name.size());
    const std::string_view component = name.substr(begin, end - begin);
    if (component.empty() || component.size() > kMaxName || component == "." || component == "..") return false;
    if (++components > kMaxComponents) return false;
    begin = end + 1;
  }
  return true;
}

bool is_number(std::string_view digits, std::uint64_t& to) noexcept {
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), to);
  return error == std::errc() && end == digits.data() + digits.size();
}

// Null if no run would write such an entry.
std::optional<JournalEntry> parse_entry(std::span<const std::string_view> fields) {
  JournalEntry out;
  out.name = fields[0], out.new_path = fields[1], out.aside = fields[2];
  if (!is_beneath(out.name) || is_in_temporary(out.name) || !is_number(fields[3], out.inode) ||
      !is_number(fields[4], out.old_inode))
    return std::nullopt;
  if (fields.size() >= 7 && (!is_number(fields[5], out.size.emplace()) || !is_number(fields[6], out.time.emplace())))
    return std::nullopt;
  if (fields.size() == kNewest.fields) {
    out.block = fields[7], out.old_block = fields[9];
    if (!fields[8].empty() && !is_number(fields[8], out.old_size.emplace())) return std::nullopt;
    for (const std::string* block : {&out.block, &out.old_block})
      if (!block->empty() && !codecs::is_hex(*block, kBlockDigits)) return std::nullopt;
  }
  // Without a new file, the name is only removed.
  const bool is_new_path =
      out.new_path.empty() ? out.inode == 0 : is_beneath(out.new_path) && is_in_temporary(out.new_path);
  const bool aside = out.aside.empty() ? out.old_inode == 0 : is_old(out.aside) && is_beneath(out.aside);
  if (!is_new_path || !aside || out.aside.find('/') != std::string::npos) return std::nullopt;
  return out;
}

template <typename Member> bool are_distinct(const std::vector<JournalEntry>& entries, Member member) {
  std::vector<std::string_view> names;
  for (const JournalEntry& each : entries)
    if (!(each.*member).empty()) names.push_back(each.*member);
  std::ranges::sort(names);
  return std::ranges::adjacent_find(names) == names.end();
}

std::string with_ending(std::string temporary, std::string_view ending) {
  return temporary.replace(temporary.rfind('.'), std::string::npos, ending);
}
std::string last_component(const std::string& name) { return name.substr(name.rfind('/') + 1); }

}  // namespace

std::string block_hash(std::span<const std::byte> first) {
  return codecs::to_hex(codecs::sha256(first)).substr(0, kBlockDigits);
}

std::string spell_journal(std::uint64_t folder, std::uint64_t journal, const std::vector<JournalEntry>& entries) {
  std::string rest;
  const auto add = [](std::string& to, std::string_view text) { to.append(text).push_back('\0'); };
  for (const JournalEntry& each : entries) {
    for (const std::string* text : {&each.name, &each.new_path, &each.aside}) add(rest, *text);
    for (const std::uint64_t number : {each.inode, each.old_inode, each.size.value_or(0), each.time.value_or(0)})
      add(rest, std::to_string(number));
    add(rest, each.block);
    add(rest, each.old_size ? std::to_string(*each.old_size) : std::string());
    add(rest, each.old_block);
  }
  add(rest, kLast);
  std::string out;
  add(out, kNewest.first);
  const auto mark = mark_of(marked_text(folder, journal, rest), Missing::make);
  add(out, mark ? codecs::to_hex(*mark) : std::string());
  return out + rest;
}

std::optional<JournalText> parse_journal(std::uint64_t folder, std::uint64_t journal, std::string_view text) {
  JournalText out;
  std::vector<std::string_view> fields;
  for (std::size_t begin = 0, end = 0; (end = text.find('\0', begin)) != std::string_view::npos; begin = end + 1) {
    if (fields.size() == 3 + kNewest.fields * JournalText::kMaxEntries) return std::nullopt;
    fields.push_back(text.substr(begin, end - begin));
  }
  // After a power failure, a file may have its size and not its bytes.
  if (text.find_first_not_of('\0') == std::string_view::npos) return out;
  // As much of its beginning as is there: anything else is not a journal that a kill cut short.
  const std::string_view first = text.substr(0, kNewest.first.size());
  if (std::ranges::none_of(kVersions, [&](const JournalVersion& v) { return v.first.starts_with(first); }))
    return std::nullopt;
  if (fields.empty() || !text.ends_with('\0') || fields.back() != kLast) return out;
  const auto version = std::ranges::find(kVersions, fields[0], &JournalVersion::first);
  if (version == std::end(kVersions)) return std::nullopt;
  const std::size_t head = version->head, each = version->fields;
  if (fields.size() % each != (head + 1) % each || fields.size() <= head) return out;
  for (std::size_t i = head; i + each < fields.size(); i += each) {
    auto entry = parse_entry(std::span(fields).subspan(i, each));
    if (!entry) return std::nullopt;
    out.entries.push_back(*std::move(entry));
  }
  if (!are_distinct(out.entries, &JournalEntry::name) || !are_distinct(out.entries, &JournalEntry::new_path) ||
      !are_distinct(out.entries, &JournalEntry::aside))
    return std::nullopt;
  codecs::Digest256 mark{};
  if (head == 2 && fields[1].size() == 2 * mark.size() && codecs::from_hex(fields[1], mark))
    out.marked = is_marked(marked_text(folder, journal, text.substr(fields[0].size() + fields[1].size() + 2)), mark);
  return out;
}

bool is_old(std::string_view entry) noexcept { return entry.starts_with('.') && has_our_digits(entry, kOld); }

// Derived from a temporary's name, so equally unique.
std::string aside_name(const std::string& name) { return with_ending(temporary_name(last_component(name)), kOld); }
std::string journal_name() { return with_ending(temporary_name(""), kJournalEnding).substr(1); }

std::string spare_name(const JournalEntry& entry) {
  std::string_view rest = entry.new_path;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('/'), rest.size());
    if (is_temporary(rest.substr(0, end))) return temporary_name_like(last_component(entry.name), rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return {};
}

bool is_in_temporary(std::string_view path) noexcept {
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    if (is_temporary(path.substr(begin, end - begin))) return true;
    begin = end + 1;
  }
  return false;
}

}  // namespace weighbridge::io
