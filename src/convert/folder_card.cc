// SPDX-License-Identifier: Apache-2.0
// general.* of a GGUF that is made of a folder: what the model card and generation_config.json state, and what the
// name of the folder suggests. Source: gguf-py/gguf/metadata.py of github.com/ggml-org/llama.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "base/utf8.h"
#include "convert/naming.h"
#include "core/model/draft.h"
#include "core/model/plan_text.h"
#include "core/model/words.h"
#include "io/fd.h"
#include "io/read.h"
#include "wire/front_matter.h"
#include "wire/json_reader.h"

namespace weighbridge::convert {
namespace {

constexpr std::string_view kCard = "README.md", kGeneration = "generation_config.json";
constexpr std::uint64_t kMaxCard = std::uint64_t{1} << 20;

// A key of general.*, and the keys of a card that state it; the first one counts.
struct CardRow {
  std::string_view key, keys;
};
constexpr CardRow kCardTexts[] = {{"name", "name model_name"},
                                  {"author", "author model_author model_creator"},
                                  {"version", "version model_version"},
                                  {"organization", "organization model_organization"},
                                  {"finetune", "finetune model_finetune"},
                                  {"basename", "basename model_basename model_type"},
                                  {"description", "description model_description"},
                                  {"size_label", "size_label model_size_label"},
                                  {"license", "license"},
                                  {"license.name", "license_name"},
                                  {"license.link", "license_link"},
                                  {"source.url", "url model_url"},
                                  {"source.doi", "doi model_doi"},
                                  {"source.uuid", "uuid model_uuid"},
                                  {"source.repo_url", "repo_url model_repo_url"}};
// All of the keys count.
constexpr CardRow kCardLists[] = {{"tags", "tags pipeline_tag"}, {"languages", "languages language"}};
// The first one counts.
constexpr CardRow kReferences[] = {{"base_model", "base_model base_models base_model_sources"},
                                   {"dataset", "datasets dataset dataset_sources"}};

struct SamplingRow {
  std::string_view key, from;
  DType dtype;
};
constexpr SamplingRow kSamplingRows[] = {{"top_k", "top_k", DType::i32},
                                         {"top_p", "top_p", DType::f32},
                                         {"min_p", "min_p", DType::f32},
                                         {"xtc_probability", "xtc_probability", DType::f32},
                                         {"xtc_threshold", "xtc_threshold", DType::f32},
                                         {"temp", "temperature", DType::f32},
                                         {"penalty_last_n", "penalty_last_n", DType::i32},
                                         {"penalty_repeat", "penalty_repeat", DType::f32},
                                         {"mirostat", "mirostat", DType::i32},
                                         {"mirostat_tau", "mirostat_tau", DType::f32},
                                         {"mirostat_eta", "mirostat_eta", DType::f32}};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
std::string in_lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}
std::vector<std::string> words_of(std::string_view text, char separator) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(separator, at), text.size());
    if (end > at) out.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

// As a title: "my-model-7b" is "My Model 7b".
std::string title_of(std::string_view name) {
  std::string out;
  for (const std::string& part : words_of(name, '-'))
    for (std::string& word : words_of(part, ' ')) {
      const bool lower = std::ranges::none_of(word, [](char c) { return c >= 'A' && c <= 'Z'; });
      const bool version = is_digit(word[0]) || (word[0] == 'v' && word.size() > 1 && is_digit(word[1]));
      for (std::size_t i = 0; lower && !version && i < word.size(); ++i)
        if (is_letter(word[i]) && (i == 0 || !is_letter(word[i - 1]))) word[i] = static_cast<char>(word[i] & ~0x20);
      out += (out.empty() ? "" : " ") + word;
    }
  return out;
}

// The digits at the beginning, with more of them after each of these separators.
std::size_t number_length(std::string_view text, std::string_view separators, std::size_t most) {
  std::size_t at = 0;
  for (std::size_t n = 0; n <= most; ++n) {
    const std::size_t begin = n == 0 ? 0 : at + 1;
    if (n > 0 && (at >= text.size() || separators.find(text[at]) == separators.npos)) break;
    std::size_t end = begin;
    while (end < text.size() && is_digit(text[end])) ++end;
    if (end == begin) break;
    at = end;
  }
  return at;
}
// v1.2, iter3, 2.5
bool is_version(std::string_view lower) {
  for (const std::string_view prefix : {"iter", "v"})
    if (lower.starts_with(prefix)) lower.remove_prefix(prefix.size());
  return !lower.empty() && number_length(lower, ".", lower.size()) == lower.size();
}
// q4_k_m, iq4_xs, fp16
bool is_type(std::string_view lower) {
  constexpr std::string_view kFloats[] = {"f16", "fp16", "bf16", "bfp16", "f32", "fp32", "bf32", "bfp32"};
  if (std::ranges::find(kFloats, lower) != std::end(kFloats)) return true;
  if (lower.starts_with('i')) lower.remove_prefix(1);
  if (lower.size() < 2 || lower[0] != 'q' || !is_digit(lower[1])) return false;
  for (lower.remove_prefix(2); lower.size() > 1 && lower[0] == '_'; lower.remove_prefix(2))
    if (!is_digit(lower[1]) && !is_letter(lower[1]) && lower[1] != '_') return false;
  return lower.empty();
}
// 7b, 8x7B, 1.5B, 7b1; or a word. As GGUF spells it; empty: none.
std::string size_of(std::string_view part) {
  const std::string lower = in_lower(part);
  constexpr std::string_view kWords[] = {"small", "mini", "medium", "large", "xl", "xxl"};
  if (std::ranges::find(kWords, lower) != std::end(kWords)) return std::string(part);
  std::string_view rest = lower;
  if (rest.starts_with('a')) {
    rest.remove_prefix(1);
  } else if (const std::size_t n = number_length(rest, "", 0); n > 0 && rest.substr(n).starts_with('x')) {
    rest.remove_prefix(n + 1);
  }
  const std::size_t n = number_length(rest, "._", 1);
  constexpr std::string_view kUnits = "kmbt";
  if (n == 0 || n >= rest.size() || kUnits.find(rest[n]) == kUnits.npos) return {};
  const std::string_view more = rest.substr(n + 1);
  if (more.size() > 1 || (more.size() == 1 && !is_digit(more[0]))) return {};
  std::string out(part.substr(0, part.size() - more.size()));
  std::ranges::replace(out, '_', '.');
  if (!more.empty()) out.insert(out.size() - 1, "." + std::string(more));
  out.back() = static_cast<char>(out.back() & ~0x20);
  return out;
}
// The number that a size with a unit states; nullopt: it is a word, or has a prefix.
std::optional<double> parameters_of(const std::string& size) {
  constexpr std::string_view kUnits = " KMBT";
  const std::size_t unit = kUnits.find(size.back());
  const auto number = wire::as_double(std::string_view(size).substr(0, size.size() - 1));
  return unit == kUnits.npos || !number ? std::nullopt
                                        : std::optional(*number * std::pow(1000.0, static_cast<double>(unit)));
}

// What a name such as "org/Base-7B-Instruct-v0.2" says.
struct NameParts {
  std::string name, organization, basename, finetune, version, size_label;
};
// `parameters`: below 0 for those of an adapter.
NameParts parts_of(std::string_view id, double parameters) {
  NameParts out;
  const std::size_t slash = id.find('/');
  out.name = id.substr(slash == id.npos ? 0 : slash + 1);
  if (id.find(' ') != id.npos) {  // a sentence
    out.name = id;
    return out;
  }
  if (slash != id.npos && !id.starts_with('.')) out.organization = id.substr(0, slash);
  enum Kind : unsigned { kBase = 1, kSize = 2, kTune = 4, kVersion = 8, kType = 16 };
  std::vector<std::string> parts = words_of(out.name, '-');
  std::vector<unsigned> kinds(parts.size());
  bool sized = false;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string lower = in_lower(parts[i]);
    constexpr std::string_view kTunes[] = {"chat", "instruct", "vision", "lora"};
    if (is_version(lower)) {
      kinds[i] = kVersion;
    } else if (is_type(lower)) {
      kinds[i] = kType;
    } else if (std::string size = i > 0 ? size_of(parts[i]) : std::string(); !size.empty()) {
      const auto stated = parameters_of(size);
      const double known = std::abs(parameters);
      const bool far = stated && known > 0 && std::abs(*stated - known) > std::floor(7 * known / 8);
      if (far) size.back() = static_cast<char>(size.back() | 0x20);  // the length of a context
      kinds[i] = far ? kTune : kSize;
      parts[i] = std::move(size);
      sized |= !far && std::ranges::any_of(parts[i], is_digit);
    } else if (i > 0 && std::ranges::find(kTunes, lower) != std::end(kTunes)) {
      kinds[i] = parameters < 0 && lower == "lora" ? kType : kTune;
    }
  }
  bool at_start = true;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (sized && kinds[i] == kSize && std::ranges::none_of(parts[i], is_digit)) kinds[i] = 0;
    if (at_start && ((kinds[i] == 0 && is_letter(parts[i][0])) || kinds[i] == kVersion)) {
      kinds[i] |= kBase;
    } else {
      at_start = false;
      if (kinds[i] == 0) kinds[i] = kTune;
    }
  }
  for (std::size_t i = parts.size(); i-- > 0 && kinds[i] == (kBase | kVersion);) kinds[i] = kVersion;
  std::set<std::string> sizes;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto add = [&](std::string& to) { to += (to.empty() ? "" : "-") + parts[i]; };
    if ((kinds[i] & kBase) != 0) add(out.basename);
    if (kinds[i] == kTune) add(out.finetune);
    if (kinds[i] == kVersion) add(out.version);
    if (kinds[i] == kSize && sizes.insert(parts[i]).second) add(out.size_label);
  }
  if (out.size_label.empty() && out.finetune.empty() && out.version.empty()) out.basename.clear();  // too ambiguous
  return out;
}

class Describing {
 public:
  Describing(const Model& model, double parameters, core::Draft& draft, core::Derived& out)
      : model_(model), parameters_(parameters), draft_(draft), out_(out) {}

  void run() {
    if (const Value* const name = model_.attribute("model_name")) draft_.set_attribute("general.name", *name);
    if (const auto card = text_of(kCard)) read_card(wire::read_front_matter(*card));
    if (const auto config = text_of(kGeneration)) read_sampling(*config);
    if (const Value* const id = model_.attribute("hf._name_or_path"))
      if (const std::string text = id->to_text(); std::ranges::count(text, '/') <= 1 && !text.empty())
        guess(parts_of(text, parameters_), "_name_or_path");
    const auto sources = model_.sources();
    if (sources.empty()) return;
    const std::string folder = io::split_path(io::split_path(std::string(sources[0]->path())).folder).name;
    if (base::is_utf8(folder) && folder.find_first_not_of(". ") != folder.npos)
      guess(parts_of(folder, parameters_), "the folder");
  }

 private:
  // A file of the folder, or its beginning.
  std::optional<std::string> text_of(std::string_view name) const {
    const auto files = core::folder_files(model_);
    if (std::ranges::find(files, name, &core::FolderFile::name) == files.end()) return std::nullopt;
    const auto source = core::open_folder_file(model_, name);
    return source ? std::optional(io::head_of(*source, kMaxCard)) : std::nullopt;
  }
  static std::string general(std::string_view key) { return "general." + std::string(key); }
  void set(std::string key, std::string text) {
    if (!draft_.attribute(key)) draft_.set_attribute(std::move(key), Value::text(std::move(text)));
  }
  void skip(std::string_view key) {
    out_.losses.push_back({LossKind::file, core::indexed("files", kCard), core::quoted(key),
                           "left out: neither a text nor a list of texts"});
  }

  void read_card(const wire::FrontMatter& card) {
    for (const std::string& key : card.skipped) skip(key);
    for (const CardRow& row : kCardTexts)
      for (const std::string& from : words_of(row.keys, ' ')) {
        const std::vector<std::string>* const values = card.find(from);
        if (values == nullptr || values->empty()) continue;
        if (values->size() > 1 && row.key != "license") {
          skip(from);
          continue;
        }
        std::string text;
        for (const std::string& each : *values) text += (text.empty() ? "" : ",") + each;
        set(general(row.key), std::move(text));
      }
    for (const CardRow& row : kCardLists) {
      Texts all;
      for (const std::string& from : words_of(row.keys, ' '))
        if (const std::vector<std::string>* const values = card.find(from))
          for (const std::string& each : *values) all.push_back(each);
      if (all.size() > 0) draft_.set_attribute(general(row.key), Value::texts(std::move(all)));
    }
    for (const CardRow& row : kReferences)
      for (const std::string& from : words_of(row.keys, ' '))
        if (const std::vector<std::string>* const values = card.find(from)) {
          add_others(row.key, *values);
          break;
        }
  }

  // Models and data sets that a card names, by their ids or addresses.
  void add_others(std::string_view key, const std::vector<std::string>& ids) {
    constexpr std::string_view kHub = "https://huggingface.co/";
    draft_.set_attribute(general(key) + ".count", Value::integer(std::uint64_t{ids.size()}, DType::u32));
    for (std::size_t i = 0; i < ids.size(); ++i) {
      std::string_view id = ids[i];
      const auto add = [&](std::string_view name, std::string text) {
        if (!text.empty()) set(fmt::format("general.{}.{}.{}", key, i, name), std::move(text));
      };
      const bool address = id.find("://") != id.npos;
      if (address) add("repo_url", std::string(id));
      if (id.starts_with(kHub)) id.remove_prefix(kHub.size());
      if (address && (id.find("://") != id.npos || std::ranges::count(id, '/') != 1)) continue;
      const NameParts parts = parts_of(id, parameters_);
      add("name", title_of(parts.name));
      add("organization", title_of(parts.organization));
      add("version", parts.version);
      if (!parts.organization.empty() && !parts.name.empty())
        add("repo_url", std::string(kHub) + parts.organization + "/" + parts.name);
    }
  }

  void read_sampling(const std::string& config) {
    for (const SamplingRow& row : kSamplingRows) {
      const auto raw = raw_member(config, row.from);
      const auto number = raw ? wire::as_double(*raw) : std::nullopt;
      if (!number || !std::isfinite(*number)) continue;
      const bool whole = *number == std::floor(*number) && std::abs(*number) <= 0x1p31 - 1;
      if (row.dtype == DType::i32 && !whole) continue;
      draft_.set_attribute("general.sampling." + std::string(row.key),
                           row.dtype == DType::i32
                               ? Value::integer(static_cast<std::int64_t>(*number), DType::i32)
                               : Value::real(static_cast<double>(static_cast<float>(*number)), DType::f32));
    }
  }

  void guess(const NameParts& parts, std::string_view from) {
    const auto add = [&](std::string_view key, std::string text) {
      if (text.empty() || draft_.attribute(general(key))) return;
      out_.changes.push_back({LossKind::attribute, core::indexed("attributes", general(key)), "not stated",
                              fmt::format("{}, after {}", core::quoted(text), from)});
      set(general(key), std::move(text));
    };
    add("name", title_of(parts.name));
    add("organization", title_of(parts.organization));
    add("basename", parts.basename);
    add("finetune", parts.finetune);
    add("version", parts.version);
    add("size_label", parts.size_label);
  }

  const Model& model_;
  const double parameters_;
  core::Draft& draft_;
  core::Derived& out_;
};

}  // namespace

void describe(const Model& model, core::Draft& draft, core::Derived& out, std::optional<double> parameters) {
  double counted = 0;
  for (const Tensor& tensor : model)
    if (tensor.has_shape()) counted += static_cast<double>(base::element_count(tensor.shape()).value_or(0));
  Describing(model, parameters.value_or(counted), draft, out).run();
}

}  // namespace weighbridge::convert
