// SPDX-License-Identifier: Apache-2.0
// Reads lists of tokens.
#include "formats/huggingface/vocabulary.h"

#include "core/reading/budget.h"

namespace weighbridge::huggingface {
namespace {

using wire::JsonReader, wire::JsonString;

// Memory that a token takes besides its text while it is read. A file can hold a token in a few bytes.
constexpr std::uint64_t kTokenCost = 64;

// Anything but true is false.
void read_flag(JsonReader& in, bool& flag) {
  bool value = false;
  if (in.read_bool(value))
    flag = flag || value;
  else
    in.skip_value();
}

}  // namespace

bool over_memory(Reading& reading, std::uint64_t tokens, const TextFile& file) {
  core::Findings findings = reading.in(file);
  return !core::Budget(reading.limits.memory).keep(findings, {}, tokens, kTokenCost);
}

bool read_entries(Reading& reading, const TextFile& file, std::string_view raw, std::vector<VocabularyEntry>& entries) {
  JsonReader in(raw, reading.limits.depth);
  if (!in.enter_object()) return false;
  for (VocabularyEntry entry; in.next_key(entry.text);) {
    if (!in.read_u64(entry.id)) return false;
    entries.push_back(entry);
    if (over_memory(reading, entries.size(), file)) return false;
  }
  return in.ok();
}

void add_added(Reading& reading, const JsonObject& file, std::vector<VocabularyEntry>& entries,
               std::vector<std::string_view>* unknown) {
  const Member* const list = file.find("added_tokens");
  if (list == nullptr) return;
  JsonReader in(list->raw, reading.limits.depth);
  if (!in.enter_array()) return;
  while (in.next_element()) {
    const std::size_t depth = in.depth();
    VocabularyEntry entry;
    bool id = false, text = false;
    if (in.enter_object()) {
      for (JsonString key; in.next_key(key);) {
        if (key.raw == "id")
          id = in.read_u64(entry.id) || (in.skip_value(), false);
        else if (key.raw == "content")
          text = in.read_string(entry.text) || (in.skip_value(), false);
        else if (key.raw == "special" || key.raw == "normalized")
          read_flag(in, key.raw == "special" ? entry.special : entry.normalized);
        else if (key.raw == "single_word" || key.raw == "lstrip" || key.raw == "rstrip")
          read_flag(in, key.raw == "lstrip" ? entry.lstrip : key.raw == "rstrip" ? entry.rstrip : entry.single_word);
        else if (in.skip_value() && unknown != nullptr)
          unknown->push_back(key.raw);
      }
    }
    in.unwind(depth);
    entry.strict = entry.single_word || entry.lstrip || entry.rstrip;
    if (id && text) entries.push_back(entry);
  }
}

}  // namespace weighbridge::huggingface
