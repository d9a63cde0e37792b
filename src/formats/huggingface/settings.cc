// SPDX-License-Identifier: Apache-2.0
// Reads and writes the settings of sentence-transformers.
#include "formats/huggingface/settings.h"

#include <algorithm>

#include "core/words.h"
#include "formats/huggingface/config.h"
#include "formats/huggingface/rules.h"

namespace weighbridge::huggingface {
namespace {

using wire::JsonKind;
using wire::JsonReader;
using wire::JsonWriter;

struct PoolingMode {
  std::string_view mode, key;
};
// In the order in which sentence-transformers writes them.
constexpr PoolingMode kModes[] = {{"cls", "pooling_mode_cls_token"},
                                  {"mean", "pooling_mode_mean_tokens"},
                                  {"max", "pooling_mode_max_tokens"},
                                  {"mean_sqrt_len", "pooling_mode_mean_sqrt_len_tokens"},
                                  {"weightedmean", "pooling_mode_weightedmean_tokens"},
                                  {"lasttoken", "pooling_mode_lasttoken"}};
constexpr std::size_t kAlwaysWritten = 4;  // every version has these keys

void read_length(Reading& reading, Settings& out) {
  const auto object = read_object(reading, kSentenceConfig);
  const Member* const member = object ? object->find(kMaxSeqLength) : nullptr;
  if (member == nullptr || member->kind == JsonKind::null) return;
  out.max_seq_length = member->kind == JsonKind::number ? positive(member->raw) : std::nullopt;
  if (!out.max_seq_length)
    reading.in(object->file)
        .report(rules::kSettingValue, {.offset = object->offset(*member)}, "a positive integer", {},
                core::quoted(kMaxSeqLength));
}

// modules.json is a list of objects; one whose type ends in .Normalize means that embeddings are normalized.
void read_modules(Reading& reading, Settings& out) {
  const TextFile file = read_text(reading, kModules);
  if (!file.text) return;
  JsonReader in(*file.text, reading.limits.depth);
  if (!in.enter_array()) {
    if (in.ok())
      reading.in(file).report(rules::kJsonRoot, {.offset = 0}, "a list");
    else
      report_json(reading, file, *file.text, in.error());
    return;
  }
  bool found = false;
  while (in.next_element()) {
    const bool is_module = in.peek() == JsonKind::object;
    std::string_view raw;
    if (!in.skip_value(raw)) break;
    const auto module = is_module ? object_in(reading, file, raw) : std::nullopt;
    const std::string type = module ? module->text("type").value_or("") : "";
    found = found || type.ends_with(".Normalize");
    if (!type.ends_with(".StaticEmbedding") || out.word_table) continue;
    const std::string path = module->text("path").value_or("");
    out.word_table = core::is_plain_name(path) ? path : "";
  }
  if (!in.ok() || !in.finish())
    report_json(reading, file, *file.text, in.error());
  else
    out.normalize = found;
}

void read_pooling(Reading& reading, Settings& out) {
  const auto object = read_object(reading, kPooling);
  if (!object) return;
  for (const PoolingMode& each : kModes) {
    const Member* const member = object->find(each.key);
    if (member == nullptr) continue;
    if (member->kind != JsonKind::boolean)
      reading.in(object->file)
          .report(rules::kSettingValue, {.offset = object->offset(*member)}, "true or false", {},
                  core::quoted(each.key));
    if (object->boolean(each.key) == true)
      out.pooling_mode += (out.pooling_mode.empty() ? "" : "+") + std::string(each.mode);
  }
}

// The text of one file, indented as the Python packages write it.
template <class Fill> std::string document(Fill fill) {
  JsonWriter out(JsonWriter::Style::indented);
  fill(out);
  return out.take() + "\n";
}

void module(JsonWriter& out, std::uint64_t index, std::string_view path, std::string_view type) {
  out.begin_object();
  out.key("idx");
  out.u64(index);
  out.key("name");
  out.string(std::to_string(index));
  out.key("path");
  out.string(path);
  out.key("type");
  out.string("sentence_transformers.models." + std::string(type));
  out.end_object();
}

// The modes of the text, each once and in the order of kModes; empty if it has anything else.
std::string canonical(std::string_view mode) {
  std::string out;
  for (const PoolingMode& each : kModes) {
    for (std::string_view rest = mode; !rest.empty();) {
      const std::size_t end = std::min(rest.find('+'), rest.size());
      if (rest.substr(0, end) == each.mode) {
        out += (out.empty() ? "" : "+") + std::string(each.mode);
        break;
      }
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  return out;
}

bool contains(std::string_view modes, std::string_view mode) {
  const std::string all = "+" + std::string(modes) + "+";
  return all.find("+" + std::string(mode) + "+") != std::string::npos;
}

}  // namespace

Settings read_settings(Reading& reading) {
  Settings out;
  read_length(reading, out);
  read_modules(reading, out);
  read_pooling(reading, out);
  return out;
}

std::vector<std::string> module_folders(Reading& reading, const TextFile& modules) {
  std::vector<std::string> out;
  JsonReader in(*modules.text, reading.limits.depth);
  if (!in.enter_array()) return out;
  while (in.next_element()) {
    const bool is_module = in.peek() == JsonKind::object;
    std::string_view raw;
    if (!in.skip_value(raw)) break;
    const auto module = is_module ? object_in(reading, modules, raw) : std::nullopt;
    std::string path = module ? module->text("path").value_or("") : "";
    if (core::is_plain_name(path)) out.push_back(std::move(path));
  }
  std::ranges::sort(out);
  const auto repeated = std::ranges::unique(out);
  out.erase(repeated.begin(), repeated.end());
  return out;
}

bool is_pooling_mode(std::string_view mode) { return !mode.empty() && canonical(mode) == mode; }

std::string sentence_config_json(std::uint64_t max_seq_length) {
  return document([&](JsonWriter& out) {
    out.begin_object();
    out.key(kMaxSeqLength);
    out.u64(max_seq_length);
    out.key(kLowerCase);
    out.boolean(false);  // lowercasing before the tokenizer; the tokenizer's own setting is separate
    out.end_object();
  });
}

std::string modules_json(bool pooling, bool normalize) {
  return document([&](JsonWriter& out) {
    out.begin_array();
    std::uint64_t index = 0;
    module(out, index++, "", "Transformer");
    if (pooling) module(out, index++, "1_Pooling", "Pooling");
    if (normalize) module(out, index, std::to_string(index) + "_Normalize", "Normalize");
    out.end_array();
  });
}

std::string pooling_json(std::string_view mode, std::uint64_t dimension) {
  return document([&](JsonWriter& out) {
    out.begin_object();
    out.key("word_embedding_dimension");
    out.u64(dimension);
    for (std::size_t i = 0; i < std::size(kModes); ++i) {
      const bool on = contains(mode, kModes[i].mode);
      if (!on && i >= kAlwaysWritten) continue;
      out.key(kModes[i].key);
      out.boolean(on);
    }
    out.end_object();
  });
}

}  // namespace weighbridge::huggingface
