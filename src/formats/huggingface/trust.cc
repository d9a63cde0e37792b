// SPDX-License-Identifier: Apache-2.0
// Finds code, templates and pickles among the files of a folder.
#include "formats/huggingface/folder_files.h"

#include <algorithm>
#include <array>

#include "base/checked.h"
#include "core/model/words.h"
#include "core/writing/claims.h"
#include "formats/huggingface/format.h"
#include "formats/huggingface/quiet.h"
#include "io/fd.h"
#include "io/read.h"
#include "weighbridge/error.h"

namespace weighbridge::huggingface {
namespace {

using wire::JsonKind;

constexpr std::string_view kChatTemplate = "chat_template", kTemplateEnd = ".jinja";
constexpr std::string_view kOwnModules = "sentence_transformers.";

class Trust {
 public:
  Trust(Reading& reading, bool pickled)
      : reading_(reading),
        pickled_(pickled),
        quiet_(std::shared_ptr<const Place>(std::shared_ptr<const Place>{}, &reading.place), reading.limits) {}

  void run(std::span<const core::FolderFile> files) {
    if (pickled_) reading_.findings.report(rules::kPickle, {});
    look_at_settings(kConfig);
    for (const core::FolderFile& file : files) {
      if (file.name == kTokenizerConfig) look_at_settings(kTokenizerConfig);
      if (file.name == kModules) look_at_modules();
      if (file.name.ends_with(kTemplateEnd)) look_at_template(file.name);
      if (file.name == "chat_template.json" || file.name == "processor_config.json") look_at_settings(file.name);
      if (is_program(file.name)) about(file.name, rules::kProgram);
      if (is_pickle(file.name)) about(file.name, rules::kPickleBeside);
    }
  }

 private:
  std::shared_ptr<const Source> opened(std::string_view name) const {
    try {
      return reading_.place.open(name);
    } catch (const Error&) {
      return nullptr;  // not a readable file; its name is enough
    }
  }

  void about(std::string_view name, const Rule& rule) {
    const auto source = opened(name);
    core::Findings to =
        source ? reading_.in(source)
               : reading_.findings.in(io::join_path(std::string(reading_.place.name()), std::string(name)));
    to.report(rule, {});
  }

  bool is_pickle(std::string_view name) const {
    if (ends_like_a_pickle(name)) return true;
    if (!name.ends_with(".bin")) return false;
    const auto source = opened(name);
    if (!source || source->size() < 4) return false;
    const std::string begin = io::head_of(*source, 4);
    return begin == "PK\x03\x04" || (begin[0] == '\x80' && begin[1] >= 2 && begin[1] <= 5);
  }

  void look_at_settings(std::string_view name) {
    const auto object = read_quietly(name);
    if (!object) return;
    for (const std::string_view key : kCodeKeys)
      if (const Member* const member = object->find(key); member != nullptr && is_set(*member))
        reading_.in(object->file)
            .report(rules::kRemoteCode, {.offset = object->offset(*member)}, {},
                    core::excerpted(attribute_text(*member)), key);
    if (const Member* const member = object->find(kChatTemplate); member != nullptr && is_set(*member)) {
      wire::JsonReader in(member->raw, reading_.limits.depth);
      const core::At at{.offset = object->offset(*member)};
      core::Findings to = reading_.in(object->file);
      each_text(in, [&](std::string_view text) { core::check_chat_template(text, kChatTemplate, at, to); });
    }
  }

  // One template, or a list or an object of several: every text in it.
  template <class Use> void each_text(wire::JsonReader& in, Use use) {
    if (in.peek() == JsonKind::string) {
      std::string_view raw;
      if (in.skip_value(raw)) use(unquote(raw));
    } else if (in.enter_array()) {
      while (in.next_element()) each_text(in, use);
    } else if (in.enter_object()) {
      for (wire::JsonString key; in.next_key(key);) each_text(in, use);
    } else {
      in.skip_value();
    }
  }

  // A file that is a template.
  void look_at_template(std::string_view name) {
    try {
      const TextFile file = read_text(quiet_.reading, name);
      core::Findings to = reading_.in(file);
      if (file.text) core::check_chat_template(*file.text, {}, {}, to);
    } catch (const Error&) {  // not a readable file
    }
  }

  static bool is_set(const Member& member) { return member.kind != JsonKind::null && member.raw.size() > 2; }

  std::optional<JsonObject> read_quietly(std::string_view name) {
    try {
      return read_object(quiet_.reading, name);
    } catch (const Error&) {
      return std::nullopt;
    }
  }

  // The type of a module is a Python class, which is imported.
  void look_at_modules() {
    TextFile modules;
    try {
      modules = read_text(quiet_.reading, kModules);
    } catch (const Error&) {
      return;
    }
    if (!modules.text) return;
    wire::JsonReader in(*modules.text, reading_.limits.depth);
    if (!in.enter_array()) return;
    while (in.next_element()) {
      const bool is_module = in.peek() == JsonKind::object;
      std::string_view raw;
      if (!in.skip_value(raw)) return;
      const auto module = is_module ? object_in(quiet_.reading, modules, raw) : std::nullopt;
      const Member* const type = module ? module->find("type") : nullptr;
      if (type == nullptr || type->kind != JsonKind::string || unquote(type->raw).starts_with(kOwnModules)) continue;
      reading_.in(modules).report(rules::kRemoteCode, {.offset = module->offset(*type)}, {},
                                  core::excerpted(unquote(type->raw)), "type");
    }
  }

  Reading& reading_;
  bool pickled_;
  Quiet quiet_;
};

}  // namespace

void report_trust(Reading& reading, std::span<const core::FolderFile> files, bool pickled) {
  Trust(reading, pickled).run(files);
}

}  // namespace weighbridge::huggingface
