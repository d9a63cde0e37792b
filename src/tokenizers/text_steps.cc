// SPDX-License-Identifier: Apache-2.0
// One table of steps for each part of a tokenizer.json; every member of a step is read by a row or refused.
#include "tokenizers/text_steps.h"

#include <algorithm>
#include <utility>

#include "base/utf8.h"
#include "core/model/words.h"
#include "wire/json_reader.h"

namespace weighbridge::tokenizers {
namespace {

using wire::JsonKind, wire::JsonReader;

constexpr unsigned kMaxNested = 8;         // sequences within sequences, read by recursion; far deeper than real ones
constexpr std::size_t kMaxSteps = 64;      // of a tokenizer, each a pass over the text; far more than real ones have
constexpr std::size_t kLongestText = 256;  // bytes of a text that a step finds or inserts

struct Entry {
  std::string key;
  std::string_view raw;
};

std::string_view trimmed(std::string_view raw) {
  while (!raw.empty() && (raw.back() == ' ' || raw.back() == '\n' || raw.back() == '\r' || raw.back() == '\t'))
    raw.remove_suffix(1);
  return raw;
}

// The members of an object; nullopt for another value, or a key that occurs twice.
std::optional<std::vector<Entry>> members_of(std::string_view raw) {
  JsonReader in(raw);
  if (!in.enter_object()) return std::nullopt;
  std::vector<Entry> out;
  std::string scratch;
  for (wire::JsonString key; in.next_key(key);) {
    Entry entry{std::string(wire::json_text(key, scratch)), {}};
    if (!in.skip_value(entry.raw)) return std::nullopt;
    entry.raw = trimmed(entry.raw);
    if (std::ranges::find(out, entry.key, &Entry::key) != out.end()) return std::nullopt;
    out.push_back(std::move(entry));
  }
  return in.ok() ? std::optional(std::move(out)) : std::nullopt;
}

std::optional<std::vector<std::string_view>> elements_of(std::string_view raw) {
  JsonReader in(raw);
  if (!in.enter_array()) return std::nullopt;
  std::vector<std::string_view> out;
  while (in.next_element()) {
    std::string_view each;
    if (!in.skip_value(each)) return std::nullopt;
    out.push_back(trimmed(each));
  }
  return in.ok() ? std::optional(std::move(out)) : std::nullopt;
}

std::optional<bool> flag_of(std::string_view raw) {
  if (raw == "true") return true;
  return raw == "false" ? std::optional(false) : std::nullopt;
}

bool set_flag(std::string_view raw, bool& out) {
  const auto flag = flag_of(raw);
  if (flag) out = *flag;
  return flag.has_value();
}

bool set_text(std::string_view raw, std::string& out) {
  auto text = json_string(raw);
  if (!text || text->empty() || text->size() > kLongestText) return false;
  out = *std::move(text);
  return true;
}

// A member of a step; `set` is false for a value that is not supported.
template <class Step> struct Setting {
  std::string_view key;
  bool (*set)(std::string_view raw, Step&);
};

template <class Step> struct StepRow {
  std::string_view type;
  Step step;
  std::vector<Setting<Step>> settings;
};

template <class Step> class StepReader {
 public:
  StepReader(std::string part, std::string list, const std::vector<StepRow<Step>>& rows,
             std::vector<RefusedSetting>& refused)
      : part_(std::move(part)), list_(std::move(list)), rows_(rows), refused_(refused) {}

  std::vector<Step> run(std::string_view json) {
    json = trimmed(json);
    if (!json.empty() && json != "null") read(json, 0);
    return std::move(out_);
  }

 private:
  void refuse(std::string_view key, std::string_view raw, std::string why) {
    refused_.push_back(
        {part_ + (key.empty() ? "" : "." + std::string(key)), raw.empty() ? "null" : std::string(raw), std::move(why)});
  }

  void read(std::string_view raw, unsigned depth) {
    const auto members = members_of(raw);
    const auto type = members ? std::ranges::find(*members, "type", &Entry::key) : std::vector<Entry>::const_iterator{};
    const auto name = members && type != members->end() ? json_string(type->raw) : std::nullopt;
    if (!name) return refuse({}, raw, "it is not a step with a type");
    if (*name == "Sequence") return read_list(*members, depth);
    const auto row = std::ranges::find(rows_, *name, &StepRow<Step>::type);
    if (row == rows_.end()) return refuse("type", type->raw, "this step is not supported");
    Step step = row->step;
    for (const Entry& member : *members) {
      if (member.key == "type") continue;
      const auto setting = std::ranges::find(row->settings, member.key, &Setting<Step>::key);
      if (setting == row->settings.end())
        return refuse(member.key, member.raw, "it is not a known setting of " + *name);
      if (!setting->set(member.raw, step))
        return refuse(member.key, member.raw, "this value of " + *name + " is not supported");
    }
    if (out_.size() == kMaxSteps) return refuse({}, raw, "there are more than " + std::to_string(kMaxSteps) + " steps");
    out_.push_back(std::move(step));
  }

  void read_list(const std::vector<Entry>& members, unsigned depth) {
    for (const Entry& member : members) {
      if (member.key == "type") continue;
      const auto steps = member.key == list_ ? elements_of(member.raw) : std::nullopt;
      if (!steps || depth == kMaxNested) {
        refuse(member.key, member.raw, "it is not a known setting of Sequence");
        continue;
      }
      for (const std::string_view step : *steps) read(step, depth + 1);
    }
  }

  const std::string part_, list_;
  const std::vector<StepRow<Step>>& rows_;
  std::vector<RefusedSetting>& refused_;
  std::vector<Step> out_;
};

bool set_accents(std::string_view raw, TextStep& step) {
  step.accents = flag_of(raw);
  return step.accents || raw == "null";
}

// Only a text, no regular expression.
bool set_pattern(std::string_view raw, TextStep& step) {
  const auto members = members_of(raw);
  return members && members->size() == 1 && (*members)[0].key == "String" && set_text((*members)[0].raw, step.from);
}

bool set_content(std::string_view raw, TextStep& step) {
  auto text = json_string(raw);
  if (!text || text->size() > kLongestText) return false;
  step.to = *std::move(text);
  return true;
}

const std::vector<StepRow<TextStep>>& text_rows() {
  using Kind = TextStep::Kind;
  static const std::vector<StepRow<TextStep>> rows = {
      {"BertNormalizer",
       {.kind = Kind::bert},
       {{"clean_text", [](std::string_view raw, TextStep& step) { return set_flag(raw, step.clean); }},
        {"handle_chinese_chars",
         [](std::string_view raw, TextStep& step) { return set_flag(raw, step.space_chinese); }},
        {"strip_accents", set_accents},
        {"lowercase", [](std::string_view raw, TextStep& step) { return set_flag(raw, step.lower); }}}},
      {"Lowercase", {.kind = Kind::lower_case}, {}},
      {"StripAccents", {.kind = Kind::strip_accents}, {}},
      {"NFD", {.kind = Kind::nfd}, {}},
      {"NFC", {.kind = Kind::nfc}, {}},
      {"Strip",
       {.kind = Kind::strip},
       {{"strip_left", [](std::string_view raw, TextStep& step) { return set_flag(raw, step.left); }},
        {"strip_right", [](std::string_view raw, TextStep& step) { return set_flag(raw, step.right); }}}},
      {"Replace", {.kind = Kind::replace}, {{"pattern", set_pattern}, {"content", set_content}}},
      {"Prepend", {.kind = Kind::prepend}, {{"prepend", [](std::string_view raw, TextStep& step) {
                                               return set_text(raw, step.to);
                                             }}}}};
  return rows;
}

bool set_behavior(std::string_view raw, SplitStep& step) {
  constexpr std::string_view kNames[] = {"\"Removed\"", "\"Isolated\"", "\"MergedWithPrevious\"", "\"MergedWithNext\"",
                                         "\"Contiguous\""};
  const auto* const at = std::ranges::find(kNames, raw);
  if (at == std::end(kNames)) return false;
  step.behavior = static_cast<SplitStep::Behavior>(at - std::begin(kNames));
  return true;
}

bool set_delimiter(std::string_view raw, SplitStep& step) {
  const auto text = json_string(raw);
  if (!text || text->empty()) return false;
  const base::Decoded first = base::decode_utf8(*text, 0);
  step.delimiter = first.code_point;
  return first.valid && first.length == text->size();
}

const std::vector<StepRow<SplitStep>>& split_rows() {
  using Kind = SplitStep::Kind;
  static const std::vector<StepRow<SplitStep>> rows = {
      {"BertPreTokenizer", {.kind = Kind::bert}, {}},
      {"Whitespace", {.kind = Kind::words}, {}},
      {"WhitespaceSplit", {.kind = Kind::spaces}, {}},
      {"Punctuation", {.kind = Kind::punctuation}, {{"behavior", set_behavior}}},
      {"CharDelimiterSplit", {.kind = Kind::delimiter}, {{"delimiter", set_delimiter}}}};
  return rows;
}

// ---- Post-processors ----

class FrameReader {
 public:
  explicit FrameReader(std::vector<RefusedSetting>& refused) : refused_(refused) {}

  TextFrame run(std::string_view json) {
    json = trimmed(json);
    if (!json.empty() && json != "null") read(json, 0);
    return std::move(out_);
  }

 private:
  void refuse(std::string_view key, std::string_view raw, std::string why) {
    refused_.push_back({"post_processor" + (key.empty() ? "" : "." + std::string(key)),
                        raw.empty() ? "null" : std::string(raw), std::move(why)});
  }

  void read(std::string_view raw, unsigned depth) {
    const auto members = members_of(raw);
    const auto find = [&](std::string_view key) -> std::string_view {
      if (!members) return {};
      const auto at = std::ranges::find(*members, key, &Entry::key);
      return at == members->end() ? std::string_view{} : at->raw;
    };
    const auto type = json_string(find("type"));
    if (!type) return refuse({}, raw, "it is not a step with a type");
    const auto only = [&](std::initializer_list<std::string_view> known) {
      for (const Entry& member : *members)
        if (member.key != "type" && std::ranges::find(known, member.key) == known.end()) {
          refuse(member.key, member.raw, "it is not a known setting of " + *type);
          return false;
        }
      return true;
    };
    if (*type == "Sequence") {
      if (!only({"processors"})) return;
      const auto steps = elements_of(find("processors"));
      if (!steps || depth == kMaxNested || steps->size() > kMaxSteps)
        return refuse("processors", find("processors"), "it is not a list of steps");
      for (const std::string_view step : *steps) read(step, depth + 1);
    } else if (framed_) {
      refuse("type", find("type"), "a second step around the ids of a text is not supported");
    } else if (*type == "TemplateProcessing") {
      if (only({"single", "pair", "special_tokens"})) fill(find("single"), find("special_tokens"));
    } else if (*type == "BertProcessing" || *type == "RobertaProcessing") {
      // What Roberta's has besides moves the places of tokens in the text, not their ids.
      if (!only({"sep", "cls", "trim_offsets", "add_prefix_space"})) return;
      const auto sep = id_of_pair(find("sep")), cls = id_of_pair(find("cls"));
      if (!sep || !cls) return refuse(sep ? "cls" : "sep", raw, "it is not a token and its id");
      framed_ = true;
      out_ = {{*cls}, {*sep}};
    } else {
      refuse("type", find("type"), "this step is not supported");
    }
  }

  // ["[SEP]", 3]
  static std::optional<std::uint32_t> id_of_pair(std::string_view raw) {
    const auto both = elements_of(raw);
    if (!both || both->size() != 2) return std::nullopt;
    const auto id = wire::as_u64((*both)[1]);
    return id && *id <= UINT32_MAX ? std::optional(static_cast<std::uint32_t>(*id)) : std::nullopt;
  }

  void fill(std::string_view single, std::string_view tokens) {
    const auto pieces = elements_of(single);
    if (!pieces) return refuse("single", single, "it is not a list of pieces");
    framed_ = true;
    bool seen = false;
    for (const std::string_view piece : *pieces) {
      const auto kind = members_of(piece);
      const auto inner = kind && kind->size() == 1 ? members_of((*kind)[0].raw) : std::nullopt;
      std::optional<std::string> id;
      bool known = inner.has_value();
      for (std::size_t i = 0; known && i < inner->size(); ++i) {
        const Entry& member = (*inner)[i];
        if (member.key == "id")
          id = json_string(member.raw);
        else
          known = member.key == "type_id";
        if (member.key == "type_id" && member.raw != "0")
          return refuse("single", piece, "only tokens of type 0 are supported");
      }
      if (!known || !id) return refuse("single", piece, "it is not a known piece");
      const bool sequence = (*kind)[0].key == "Sequence";
      if (sequence ? *id != "A" || seen : (*kind)[0].key != "SpecialToken")
        return refuse("single", piece, "a text has one place in a template");
      if (sequence)
        seen = true;
      else if (!add_token(*id, tokens, seen ? out_.after : out_.before))
        return refuse("special_tokens", tokens, "it does not have the ids of " + core::quoted(core::excerpt(*id)));
    }
    if (!seen) refuse("single", single, "it has no place for the text");
  }

  static bool add_token(std::string_view name, std::string_view tokens, std::vector<std::uint32_t>& out) {
    const auto all = members_of(tokens);
    if (!all) return false;
    const auto at = std::ranges::find(*all, name, &Entry::key);
    const auto token = at == all->end() ? std::nullopt : members_of(at->raw);
    if (!token) return false;
    const auto ids = std::ranges::find(*token, "ids", &Entry::key);
    const auto list = ids == token->end() ? std::nullopt : elements_of(ids->raw);
    if (!list) return false;
    for (const std::string_view each : *list) {
      const auto id = wire::as_u64(each);
      if (!id || *id >= UINT32_MAX || out.size() == kMaxSteps) return false;
      out.push_back(static_cast<std::uint32_t>(*id));
    }
    return true;
  }

  std::vector<RefusedSetting>& refused_;
  TextFrame out_;
  bool framed_ = false;
};

}  // namespace

std::vector<TextStep> read_normalizer(std::string_view json, std::vector<RefusedSetting>& refused) {
  auto out = StepReader<TextStep>("normalizer", "normalizers", text_rows(), refused).run(json);
  for (const TextStep& step : out)
    if (step.kind == TextStep::Kind::replace && step.from.empty())
      refused.push_back({"normalizer.pattern", "null", "a text to replace is missing"});
  std::erase_if(out, [](const TextStep& step) { return step.kind == TextStep::Kind::replace && step.from.empty(); });
  return out;
}

std::vector<SplitStep> read_pre_tokenizer(std::string_view json, std::vector<RefusedSetting>& refused) {
  return StepReader<SplitStep>("pre_tokenizer", "pretokenizers", split_rows(), refused).run(json);
}

TextFrame read_post_processor(std::string_view json, std::vector<RefusedSetting>& refused) {
  return FrameReader(refused).run(json);
}

std::optional<std::string> json_string(std::string_view raw) {
  JsonReader in(raw);
  wire::JsonString text;
  if (!in.read_string(text)) return std::nullopt;
  std::string scratch;
  return std::string(wire::json_text(text, scratch));
}

}  // namespace weighbridge::tokenizers
