// SPDX-License-Identifier: Apache-2.0
// Replaces members of a JSON file in its text, so that the rest of the file stays as people wrote it. Before anything
// is written, the folder is opened with the new text in place of the old one.
#include "edit/folder.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "core/model/plan_text.h"
#include "core/model/values.h"
#include "core/model/words.h"
#include "core/reading/json_file.h"
#include "core/writing/claims.h"
#include "edit/values.h"
#include "io/atomic_file.h"
#include "io/place.h"
#include "weighbridge/open.h"
#include "weighbridge/place.h"
#include "weighbridge/view.h"
#include "wire/json_reader.h"
#include "wire/json_writer.h"
#include "wire/template_text.h"

namespace weighbridge::edit_files {
namespace {

using wire::JsonKind;

constexpr std::string_view kConfig = "config.json", kTokenizerConfig = "tokenizer_config.json";
constexpr std::string_view kTemplateFile = "chat_template.jinja", kTemplate = "chat_template";
constexpr std::string_view kTemplateKey = "tokenizer.chat_template", kOwn = "hf.";

struct Member {
  std::string key;
  std::size_t begin = 0;  // of its key's quote
  std::string_view raw{};
};

// The members of the object that is the whole text.
std::vector<Member> members_of(std::string_view text, std::string_view file, std::uint32_t depth) {
  wire::JsonReader in(text, depth);
  std::vector<Member> out;
  std::string scratch;
  if (in.enter_object()) {
    for (wire::JsonString key; in.next_key(key);) {
      Member one{.key = std::string(wire::json_text(key, scratch)), .begin = key.offset - 1};
      if (!in.skip_value(one.raw)) break;
      out.push_back(std::move(one));
    }
    if (in.ok() && in.finish()) return out;
  }
  base::misuse("json", std::string(file) + " is not a JSON object, so an edit cannot change a key of it");
}

// The text with another value of the member, without it (nullopt), or with a new member at the end.
std::string with_member(std::string_view text, std::span<const Member> members, const Member* old, std::string_view key,
                        const std::optional<std::string>& raw) {
  std::string out(text);
  const auto end_of = [&](const Member& m) {
    return static_cast<std::size_t>(m.raw.data() + m.raw.size() - text.data());
  };
  if (old != nullptr && raw) {
    out.replace(static_cast<std::size_t>(old->raw.data() - text.data()), old->raw.size(), *raw);
  } else if (old != nullptr) {
    // With the comma and the blanks before it, or, of the first member, those after it.
    const auto i = static_cast<std::size_t>(old - members.data());
    const std::size_t begin = i > 0 ? end_of(members[i - 1]) : old->begin;
    const std::size_t end = i > 0 || members.size() == 1 ? end_of(*old) : members[1].begin;
    out.erase(begin, end - begin);
  } else if (raw) {
    wire::JsonWriter name(wire::JsonWriter::Style::compact);
    name.string(key);
    const std::string member = name.take() + ": " + *raw;
    if (members.empty()) {
      out.insert(out.find('{') + 1, member);
    } else {
      const std::size_t end = end_of(members.back());
      std::size_t blank = members.back().begin;  // the blanks before the last member, which the new one gets too
      while (blank > 0 && std::string_view(" \t\r\n").find(text[blank - 1]) != std::string_view::npos) --blank;
      out.insert(end, "," + std::string(text.substr(blank, members.back().begin - blank)) + member);
    }
  }
  return out;
}

// The value of a member, of the kinds that a setting can keep.
Value value_of(std::string_view raw) {
  wire::JsonReader in(raw);
  switch (in.peek()) {
    case JsonKind::string: return Value::text(core::unquote(raw));
    case JsonKind::boolean: return Value::boolean(raw == "true");
    case JsonKind::number:
      return wire::as_i64(raw) ? Value::integer(*wire::as_i64(raw), DType::i64)
                               : Value::real(wire::as_double(raw).value_or(0), DType::f64);
    default: return Value::list({});
  }
}

std::string json_of(const Value& value) {
  wire::JsonWriter out(wire::JsonWriter::Style::compact);
  core::write_value(out, value);
  return out.take();
}

class FolderEditor {
 public:
  FolderEditor(const std::string& path, const EditOptions& options, const Context& context)
      : place_(place_at(path)),
        options_(options),
        context_(context),
        model_(open(place_, context, {.format = options.format, .checks = Checks::structure})) {}

  FolderEdit run() {
    for (const EditOptions::Setting& each : options_.set) {
      const std::string key = begin(each.key);
      if (file_ == kTemplateFile)
        replace_template(each.text);
      else
        set(key, [&](const Value* present) {
          // An object or a list takes JSON.
          return present && type_of(*present) == "json" && each.type.empty() ? as_json(each)
                                                                             : json_of(typed(each, present));
        });
    }
    for (const auto& [name, value] : options_.values) {
      const std::string key = begin(name);
      if (file_ == kTemplateFile)
        replace_template(value.to_text());
      else
        set(key, [&, &value = value](const Value* present) { return json_of(like(value, present)); });
    }
    for (const std::string& each : options_.unset) {
      const std::string key = begin(each);
      if (file_ == kTemplateFile)
        base::misuse("key", "an edit deletes no file: the chat template is in " + std::string(kTemplateFile));
      set(key, nullptr);
    }
    FolderEdit out;
    out.edited = std::move(out_);
    out.edited.format = model_.format();
    out.edited.file = file_;
    out.edited.size = before_.size();
    out.edited.size_after = text_.size();
    if (text_ != before_) {
      out.edited.way = Edited::Way::settings;
      const Model edited = open(io::with_text(place_, file_, text_), context_, {.checks = Checks::structure});
      for (const std::string& key : keys_) core::require_token_id(edited, key);
    }
    out.text = std::move(text_);
    return out;
  }

 private:
  // Chooses the file that has the key, and returns the key in it.
  std::string begin(const std::string& name) {
    std::string key = name.starts_with(kOwn) ? name.substr(kOwn.size()) : name, file(kConfig);
    if (name == kTemplateKey) {
      key = kTemplate;
      const auto settings = place_->open(kTemplateFile) ? nullptr : place_->open(kTokenizerConfig);
      const std::string text = settings ? core::whole_text(*settings, context_.limits, settings->name()) : "{}";
      const auto members = members_of(text, kTokenizerConfig, context_.limits.depth);
      file = std::ranges::find(members, key, &Member::key) != members.end() ? kTokenizerConfig : kTemplateFile;
    }
    if (!file_.empty() && file_ != file)
      base::misuse("several-files", "an edit changes one file of a folder, and these keys are in " + file_ + " and " +
                                        file + ": edit the folder twice");
    if (file_.empty()) {
      file_ = file;
      const auto source = place_->open(file_);
      if (!source && file_ != kTemplateFile) base::misuse("folder", "the folder has no " + file_);
      if (source) text_ = before_ = core::whole_text(*source, context_.limits, source->name());
    }
    keys_.push_back(std::string(kOwn) + key);
    return key;
  }

  std::string as_json(const EditOptions::Setting& setting) const {
    wire::JsonReader in(setting.text, context_.limits.depth);
    if (in.skip_value() && in.finish()) return setting.text;
    base::misuse("value", core::quoted(core::excerpt(setting.text)) + " is not JSON, which " +
                              core::quoted(setting.key) + " has in " + file_);
  }

  // `make` gives the JSON of the new value; null: the member goes.
  template <class Make> void set(const std::string& key, Make make) {
    const auto members = members_of(text_, file_, context_.limits.depth);
    const auto at = std::ranges::find(members, key, &Member::key);
    const Member* const old = at == members.end() ? nullptr : &*at;
    std::optional<std::string> raw;
    if constexpr (!std::is_same_v<Make, std::nullptr_t>) {
      if (old == nullptr && key.find('.') != key.npos)
        base::misuse("key",
                     file_ + " has no key " + core::quoted(key) + ", and an edit adds no key with a dot in its name");
      const std::optional<Value> present = old ? std::optional(value_of(old->raw)) : std::nullopt;
      raw = make(present ? &*present : nullptr);
    } else if (old == nullptr) {
      base::misuse("unset", file_ + " has no key " + core::quoted(key));
    }
    if (key == kTemplate && file_ == kTokenizerConfig && raw) require_template(core::unquote(*raw));
    // Before the text, of which `old` is a part.
    note(std::string(kOwn) + key, old ? std::string(old->raw) : std::string(core::kAbsent), raw.value_or("removed"));
    text_ = with_member(text_, members, old, key, raw);
  }

  void replace_template(const std::string& text) {
    require_template(text);
    note(kTemplateKey, before_.empty() ? std::string(core::kAbsent) : before_, text);
    text_ = text;
  }

  static void require_template(std::string_view text) {
    if (const auto fault = wire::template_fault(text))
      base::misuse("template", std::string(fault->escapes ? "the chat template leaves its sandbox"
                                                          : "the chat template has a fault") +
                                   " at byte " + std::to_string(fault->offset) + ": " + core::excerpt(fault->found));
  }

  void note(std::string_view subject, std::string from, std::string to) {
    if (from != to)
      out_.changes.push_back(
          {LossKind::attribute, core::indexed("attributes", subject), std::move(from), std::move(to)});
  }

  std::shared_ptr<const Place> place_;
  const EditOptions& options_;
  const Context& context_;
  Model model_;
  std::string file_, before_, text_;
  std::vector<std::string> keys_;
  Edited out_;
};

}  // namespace

FolderEdit plan_folder(const std::string& path, const EditOptions& options, const Context& context) {
  return FolderEditor(path, options, context).run();
}

void write_folder(const std::string& path, const FolderEdit& edit) {
  if (edit.edited.way == Edited::Way::nothing) return;
  const std::string file = (std::filesystem::path(path) / edit.edited.file).string();
  io::AtomicFile out(file, {.replace = true});
  out.write_whole(std::as_bytes(std::span(edit.text)));
  out.publish();
}

}  // namespace weighbridge::edit_files
