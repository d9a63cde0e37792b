// SPDX-License-Identifier: Apache-2.0
// What a folder's own files say about texts, as metadata of llama.cpp: a vocabulary of sentencepiece, and templates of
// conversations. Sources: sentencepiece_model.proto of github.com/google/sentencepiece, and conversion/base.py of
// github.com/ggml-org/llama.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/endian.h"
#include "base/fail.h"
#include "base/utf8.h"
#include "convert/naming.h"
#include "core/model/draft.h"
#include "core/model/words.h"
#include "io/read.h"
#include "tokenizers/described.h"
#include "weighbridge/place.h"
#include "wire/base64.h"
#include "wire/json_reader.h"
#include "wire/protobuf_reader.h"

namespace weighbridge::convert {
namespace {

using tokenizers::TokenType;

constexpr std::string_view kPieces = "tokenizer.model", kShiftedPieces = "sentencepiece.bpe.model",
                           kTokenizerJson = "tokenizer.json", kTokenizerConfig = "tokenizer_config.json",
                           kAddedFile = "added_tokens.json", kTemplate = "chat_template";
constexpr std::uint64_t kMaxFile = std::uint64_t{64} << 20;

[[noreturn]] void refuse(const std::string& why) {
  base::misuse("naming", "the vocabulary cannot be written for llama.cpp: " + why);
}

// A file of the folder; nullopt if there is none.
std::optional<std::string> text_of(const Model& model, std::string_view name) {
  const auto files = core::folder_files(model);
  if (std::ranges::find(files, name, &core::FolderFile::name) == files.end()) return std::nullopt;
  const auto source = core::open_folder_file(model, name);
  if (!source) return std::nullopt;
  if (source->size() > kMaxFile)
    refuse(fmt::format("{} has more than {}", core::quoted(name), core::bytes_text(kMaxFile)));
  std::string out(static_cast<std::size_t>(source->size()), '\0');
  source->read_at(0, std::as_writable_bytes(std::span(out)));
  return out;
}

// Calls use(key, value as raw JSON) for each member of an object.
template <class Use> void each_member(std::string_view json, Use use) {
  wire::JsonReader in(json);
  if (!in.enter_object()) return;
  std::string scratch;
  for (wire::JsonString key; in.next_key(key);) {
    std::string_view raw;
    if (!in.skip_value(raw)) return;
    use(std::string(wire::json_text(key, scratch)), raw);
  }
}
std::optional<std::string> string_of(std::string_view raw) {
  wire::JsonReader in(raw);
  wire::JsonString text;
  std::string scratch;
  if (!in.read_string(text)) return std::nullopt;
  return std::string(wire::json_text(text, scratch));
}
// Calls use() for each object in `list` of a step of tokenizer.json, or for the step itself.
template <class Use> void each_step(std::string_view raw, std::string_view list, Use use) {
  const auto steps = raw_member(raw, list);
  if (!steps) return use(raw);
  wire::JsonReader in(*steps);
  if (!in.enter_array()) return;
  for (std::string_view each; in.next_element() && in.skip_value(each);) use(each);
}
struct Piece {
  std::string text;
  float score = -10000;
  TokenType type = TokenType::unused;
};

bool looks_special(std::string_view text) {
  constexpr std::string_view kSpellings[] = {"<pad>", "<mask>", "<2mass>", "[@BOS@]"};
  return (text.starts_with("<|") && text.ends_with("|>")) ||
         (text.starts_with("<\xEF\xBD\x9C") && text.ends_with("\xEF\xBD\x9C>")) ||
         (text.starts_with("<unused") && text.ends_with('>')) ||
         std::ranges::find(kSpellings, text) != std::end(kSpellings);
}

// The object in a step of tokenizer.json, or in one of a Sequence of them, whose type is this.
std::optional<std::string_view> step_of(std::string_view raw, std::string_view list, std::string_view type) {
  std::optional<std::string_view> out;
  each_step(raw, list, [&](std::string_view step) {
    if (!out && raw_member(step, "type") == "\"" + std::string(type) + "\"") out = step;
  });
  return out;
}

// The ids and marks of special tokens by the files of a folder, as gguf-py's SpecialVocab finds them:
// tokenizer_config.json names tokens, which tokenizer.json lists with their ids; the post-processor says which of them
// go around a text; ids of config.json fill what is missing.
class SpecialTokens {
 public:
  SpecialTokens(const Model& model, std::uint64_t rows) : model_(model), rows_(rows) {}

  std::vector<Value::Entry> run() {
    const auto json = text_of(model_, kTokenizerJson), config = text_of(model_, kTokenizerConfig);
    for (const Role& role : kRoles)
      if (const auto raw = config ? raw_member(*config, std::string(role.name) + "_token") : std::nullopt)
        if (const auto text = string_of(raw->starts_with('{') ? raw_member(*raw, "content").value_or("") : *raw))
          texts_[role.name] = *text;
    if (json) {
      if (config) texts_.try_emplace("bos", text("cls")), texts_.try_emplace("eos", text("sep"));
      if (const auto raw = raw_member(*json, "post_processor"))
        each_step(*raw, "processors", [&](std::string_view step) { frame(step); });
      if (const auto raw = raw_member(*json, "added_tokens")) read_ids(*raw);
      if (const auto raw = raw_member(*json, "normalizer"))
        each_step(*raw, "normalizers", [&](std::string_view step) { normalize(step); });
    }
    for (const Role& role : kRoles) {
      if (const auto raw = config ? raw_member(*config, "add_" + std::string(role.name) + "_token") : std::nullopt)
        adds_.try_emplace(role.name, *raw == "true");
      if (const auto at = ids_.find(text(role.name)); at != ids_.end() && !text(role.name).empty())
        put(role.key, at->second);
    }
    for (const Role& role : kRoles)
      if (const Value* const value = model_.attribute("hf." + std::string(role.name) + "_token_id"))
        if (const auto id = value->as_u64()) put(role.key, *id);
    for (const auto& [name, adds] : adds_) set("add_" + std::string(name) + "_token", Value::boolean(adds));
    return std::move(out_);
  }

 private:
  struct Role {
    std::string_view name, key;
  };
  static constexpr Role kRoles[] = {{"bos", "bos"},     {"eos", "eos"}, {"unk", "unknown"}, {"sep", "seperator"},
                                    {"pad", "padding"}, {"cls", "cls"}, {"mask", "mask"},   {"eot", "eot"}};

  void set(const std::string& key, Value value) {
    out_.emplace_back(std::string(tokenizers::kLlamaCppKeys) + key, std::move(value));
  }
  void put(std::string_view key, std::uint64_t id) {
    if (id < rows_ && there_.insert(key).second) set(std::string(key) + "_token_id", Value::integer(id, DType::u32));
  }
  std::string text(std::string_view role) const {
    const auto at = texts_.find(role);
    return at == texts_.end() ? std::string() : at->second;
  }

  void read_ids(std::string_view list) {
    wire::JsonReader in(list);
    if (!in.enter_array()) return;
    for (std::string_view each; in.next_element() && in.skip_value(each);)
      if (const auto content = string_of(raw_member(each, "content").value_or("")))
        if (const auto id = wire::as_u64(raw_member(each, "id").value_or(""))) ids_.try_emplace(*content, *id);
  }

  void normalize(std::string_view step) {
    const auto flag = [&](std::string key, std::string_view raw) {
      set("normalizer." + key, Value::boolean(raw == "true"));
    };
    const std::string type = string_of(raw_member(step, "type").value_or("")).value_or("");
    if (type == "Lowercase") flag("lowercase", "true");
    if (type == "StripAccents") flag("strip_accents", "true");
    for (const std::string key : {"lowercase", "strip_accents"})
      if (const auto raw = type == "BertNormalizer" ? raw_member(step, key) : std::nullopt) flag(key, *raw);
  }

  // The tokens of a template, an empty text for each sequence.
  static std::vector<std::string> pieces(std::string_view step, std::string_view name) {
    std::vector<std::string> out;
    wire::JsonReader in(raw_member(step, name).value_or("[]"));
    if (!in.enter_array()) return out;
    for (std::string_view each; in.next_element() && in.skip_value(each);)
      out.push_back(
          string_of(raw_member(raw_member(each, "SpecialToken").value_or("{}"), "id").value_or("")).value_or(""));
    return out;
  }
  void frame(std::string_view step) {
    const std::string type = string_of(raw_member(step, "type").value_or("")).value_or("");
    if (type == "ByteLevel") adds_.try_emplace("bos", false), adds_.try_emplace("eos", false);
    if (type == "RobertaProcessing") adds_["bos"] = adds_["eos"] = adds_["sep"] = true;
    if (type != "TemplateProcessing") return;
    const std::vector<std::string> single = pieces(step, "single"), pair = pieces(step, "pair");
    const std::string first = single.size() > 1 ? single.front() : "", last = single.size() > 1 ? single.back() : "";
    if (!first.empty()) {
      if (first != text("cls")) texts_.try_emplace("bos", first);
      if (first != text("bos")) texts_.try_emplace("cls", first);
      adds_["bos"] = first == text("bos") || first == text("cls");
    }
    if (!last.empty()) {
      if (last != text("eos")) texts_["eot"] = std::exchange(texts_["eos"], last);
      adds_["eos"] = true;
    }
    // Between the two sequences of a pair: [sep] [eos].
    const std::size_t begin = !first.empty() && !pair.empty() && pair.front() == first ? 2 : 1;
    const std::size_t end = !last.empty() && !pair.empty() && pair.back() == last ? 2 : 1;
    if (pair.size() <= begin + end) return;
    const auto separates = [&](const std::string& each) {
      return !each.empty() && (each == text("sep") || each == text("eos"));
    };
    const std::size_t between = pair.size() - begin - end;
    adds_["sep"] = (last.empty() && separates(pair[begin])) || (between == 2 && separates(pair[begin + 1]));
  }

  const Model& model_;
  const std::uint64_t rows_;
  std::map<std::string_view, std::string> texts_;  // by role
  std::map<std::string_view, bool> adds_;
  std::map<std::string, std::uint64_t, std::less<>> ids_;
  std::set<std::string_view> there_;
  std::vector<Value::Entry> out_;
};

// Vocabularies of pieces with scores: sentencepiece's files, and Unigram in tokenizer.json.
class SentencePieces {
 public:
  SentencePieces(const Model& model, std::uint64_t rows) : model_(model), pieces_(static_cast<std::size_t>(rows)) {}

  Vocabulary of_json(std::string_view json) {
    unigram_ = true;
    const std::string_view unigram = raw_member(json, "model").value_or("{}");
    wire::JsonReader in(raw_member(unigram, "vocab").value_or("0"));
    if (!in.enter_array()) refuse("its Unigram has no vocabulary");
    for (std::uint64_t id = 0; in.next_element(); ++id) {
      wire::JsonString text;
      wire::JsonNumber score;
      std::string scratch;
      if (!in.enter_array() || !in.next_element() || !in.read_string(text) || !in.next_element() ||
          !in.read_number(score) || in.next_element())
        refuse(fmt::format("token {} of its Unigram is no text with a number", id));
      put(id, {std::string(wire::json_text(text, scratch)), static_cast<float>(wire::as_double(score.raw).value_or(0)),
               TokenType::normal});
    }
    wire::JsonReader added(raw_member(json, "added_tokens").value_or("[]"));
    if (added.enter_array())
      for (std::string_view each; added.next_element() && added.skip_value(each);)
        if (const auto id = wire::as_u64(raw_member(each, "id").value_or("")); id && *id < pieces_.size()) {
          Piece& piece = pieces_[static_cast<std::size_t>(*id)];
          if (piece.type == TokenType::unused)
            piece = {string_of(raw_member(each, "content").value_or("")).value_or(""), 0, TokenType::normal};
          piece.type = raw_member(each, "special") == "true" ? TokenType::control : TokenType::user_defined;
        }
    if (const auto unknown = wire::as_u64(raw_member(unigram, "unk_id").value_or(""));
        unknown && *unknown < pieces_.size())
      pieces_[static_cast<std::size_t>(*unknown)].type = TokenType::unknown;
    const auto charsmap = step_of(raw_member(json, "normalizer").value_or("{}"), "normalizers", "Precompiled");
    if (const auto text =
            charsmap ? string_of(raw_member(*charsmap, "precompiled_charsmap").value_or("")) : std::nullopt)
      if (auto bytes = wire::decode_base64(*text)) charsmap_ = std::move(*bytes);
    const auto metaspace = step_of(raw_member(json, "pre_tokenizer").value_or("{}"), "pretokenizers", "Metaspace");
    space_prefix_ = metaspace && raw_member(*metaspace, "prepend_scheme") != "\"never\"" &&
                    raw_member(*metaspace, "add_prefix_space") != "false";
    const auto config = text_of(model_, kTokenizerConfig);
    removes_spaces_ = config && raw_member(*config, "clean_up_tokenization_spaces") == "true";
    return made();
  }

  // `shifted`: fairseq's tokens come first, as in XLM-RoBERTa.
  Vocabulary run(std::string_view file, bool shifted) {
    read(file);
    if (shifted) {
      for (std::size_t id = 0; id < pieces_.size(); ++id)
        if (pieces_[id].text.empty()) pieces_[id].text = fmt::format("[PAD{}]", id);
      pieces_.insert(pieces_.begin(), Piece{});
      pieces_.pop_back();
      constexpr std::string_view kFirst[] = {"<s>", "<pad>", "</s>", "<unk>"};
      for (std::size_t i = 0; i < std::min(std::size(kFirst), pieces_.size()); ++i)
        pieces_[i] = {std::string(kFirst[i]), 0, kFirst[i] == "<unk>" ? TokenType::unknown : TokenType::control};
      return made();
    }
    if (const auto added = text_of(model_, kAddedFile))
      each_member(*added, [&](const std::string& text, std::string_view raw) {
        if (const auto id = wire::as_u64(raw)) put(*id, {text, -1000, TokenType::user_defined});
      });
    const auto config = text_of(model_, kTokenizerConfig);
    if (const auto decoder = config && !unigram_ ? raw_member(*config, "added_tokens_decoder") : std::nullopt)
      each_member(*decoder, [&](const std::string& number, std::string_view raw) {
        const auto id = wire::as_u64(number);
        const auto content = raw_member(raw, "content");
        const auto text = content ? string_of(*content) : std::nullopt;
        if (!id || !text) return;
        const bool special = raw_member(raw, "special") == "true" || looks_special(*text);
        put(*id, {special ? *text : spaced(*text), -1000, special ? TokenType::control : TokenType::user_defined});
      });
    return made();
  }

 private:
  static std::string spaced(std::string_view text) {
    constexpr std::string_view kSpace = "\xE2\x96\x81";
    std::string out;
    for (std::size_t at = 0, end = 0; at < text.size(); at = end + kSpace.size()) {
      end = std::min(text.find(kSpace, at), text.size());
      out += text.substr(at, end - at);
      if (end < text.size()) out += ' ';
    }
    return out;
  }

  void put(std::uint64_t id, Piece piece) {
    if (id >= pieces_.size())
      refuse(fmt::format("token {} is beyond the {} rows of the word embeddings", id, pieces_.size()));
    pieces_[static_cast<std::size_t>(id)] = std::move(piece);
  }

  void read(std::string_view file) {
    wire::ProtobufSpan bytes(std::as_bytes(std::span(file)));
    wire::ProtobufReader reader(bytes, 4);
    wire::ProtobufMessage root = reader.root();
    std::uint64_t count = 0;
    unigram_ = true;
    for (wire::ProtobufField field; root.next(field);) {
      if (field.wire != wire::ProtobufWire::bytes) continue;
      wire::ProtobufMessage inner = root.inside(field);
      if (field.number == 1) {
        Piece piece{.text = {}, .score = 0, .type = TokenType::normal};
        for (wire::ProtobufField each; inner.next(each);) {
          if (each.number == 1 && each.wire == wire::ProtobufWire::bytes)
            piece.text =
                std::string(file.substr(static_cast<std::size_t>(each.begin), static_cast<std::size_t>(each.size())));
          if (each.number == 2 && each.wire == wire::ProtobufWire::fixed32)
            piece.score = std::bit_cast<float>(static_cast<std::uint32_t>(each.value));
          if (each.number == 3) {
            const auto said = static_cast<TokenType>(each.value & 7);
            piece.type = each.value == 4 ? TokenType::normal : said;
          }
        }
        put(count++, std::move(piece));
      } else if (field.number == 2 || field.number == 3) {
        for (wire::ProtobufField each; inner.next(each);) {
          if (field.number == 2 && each.number == 3) {
            if (each.value != 1 && each.value != 2)
              refuse(fmt::format("{} has neither byte pairs nor Unigram", core::quoted(kPieces)));
            unigram_ = each.value == 1;
          }
          if (field.number == 3 && each.number == 2 && each.wire == wire::ProtobufWire::bytes) {
            const auto map = std::as_bytes(std::span(file))
                                 .subspan(static_cast<std::size_t>(each.begin), static_cast<std::size_t>(each.size()));
            charsmap_.assign(map.begin(), map.end());
          }
          if (field.number == 3 && each.number == 3) space_prefix_ = each.value != 0;
          if (field.number == 3 && each.number == 4) removes_spaces_ = each.value != 0;
        }
      }
    }
    if (!reader.ok() || count == 0) refuse(fmt::format("{} is no model of sentencepiece", core::quoted(kPieces)));
  }

  Vocabulary made() {
    Vocabulary out;
    Texts texts;
    std::vector<std::byte> scores(pieces_.size() * 4), types(pieces_.size() * 4);
    std::set<std::string, std::less<>> seen;
    for (std::size_t id = 0; id < pieces_.size(); ++id) {
      Piece& each = pieces_[id];
      if (each.type == TokenType::unused && each.text.empty()) each.text = fmt::format("[PAD{}]", id);
      if (each.text.empty()) each.text = fmt::format("[EMPTY_{}]", id);
      if (!base::is_utf8(each.text) || !seen.insert(each.text).second)
        refuse(fmt::format("token {} is {}", id, base::is_utf8(each.text) ? "the same as another one" : "no UTF-8"));
      texts.push_back(each.text);
      base::store_le<std::uint32_t>(scores.data() + 4 * id, std::bit_cast<std::uint32_t>(each.score));
      base::store_le<std::uint32_t>(types.data() + 4 * id, static_cast<std::uint32_t>(each.type));
    }
    const auto add = [&](std::string key, Value value) {
      out.attributes.emplace_back(std::string(tokenizers::kLlamaCppKeys) + key, std::move(value));
    };
    add("model", Value::text(unigram_ ? "t5" : "llama"));
    add("pre", Value::text("default"));
    add("tokens", Value::texts(std::move(texts)));
    add("scores", Value::numbers(DType::f32, std::move(scores)));
    add("token_type", Value::numbers(DType::i32, std::move(types)));
    if (unigram_) {
      add("add_space_prefix", Value::boolean(space_prefix_));
      add("remove_extra_whitespaces", Value::boolean(removes_spaces_));
      if (!charsmap_.empty()) add("precompiled_charsmap", Value::numbers(DType::u8, std::move(charsmap_)));
    } else if (!space_prefix_) {
      add("add_space_prefix", Value::boolean(false));
    }
    for (Value::Entry& each : special_tokens(model_, pieces_.size())) out.attributes.push_back(std::move(each));
    return out;
  }

  const Model& model_;
  std::vector<Piece> pieces_;
  bool unigram_ = false, space_prefix_ = true, removes_spaces_ = true;
  std::vector<std::byte> charsmap_;
};

// The templates of a value: a text, or a list of objects with `name` and `template`.
void add_templates(std::string_view raw, std::vector<Value::Entry>& out) {
  const std::string key = "tokenizer." + std::string(kTemplate);
  if (const auto text = string_of(raw)) {
    out.emplace_back(key, Value::text(*text));
    return;
  }
  std::map<std::string, std::string> named;
  wire::JsonReader in(raw);
  if (!in.enter_array()) return;
  while (in.next_element()) {
    std::string_view each;
    if (!in.skip_value(each)) return;
    const auto name = raw_member(each, "name"), text = raw_member(each, "template");
    const auto spelled = name ? string_of(*name) : std::nullopt;
    if (const auto content = text ? string_of(*text) : std::nullopt; spelled && content) named[*spelled] = *content;
  }
  Texts others;
  for (const auto& [name, text] : named) {
    out.emplace_back(name == "default" ? key : key + "." + name, Value::text(text));
    if (name != "default") others.push_back(name);
  }
  if (others.size() > 0) out.emplace_back(key + "s", Value::texts(std::move(others)));
}

}  // namespace

std::optional<std::string_view> raw_member(std::string_view json, std::string_view name) {
  std::optional<std::string_view> out;
  each_member(json, [&](const std::string& key, std::string_view raw) {
    if (key == name && raw != "null") out = raw;
  });
  return out;
}

std::optional<Vocabulary> vocabulary_of_pieces(const Model& model, std::uint64_t rows) {
  for (const std::string_view name : {kPieces, kShiftedPieces, std::string_view("spiece.model")})
    if (const auto file = text_of(model, name)) return SentencePieces(model, rows).run(*file, name == kShiftedPieces);
  const auto json = text_of(model, kTokenizerJson);
  if (!json || raw_member(raw_member(*json, "model").value_or("{}"), "type") != "\"Unigram\"") return std::nullopt;
  return SentencePieces(model, rows).of_json(*json);
}

std::vector<Value::Entry> special_tokens(const Model& model, std::uint64_t rows) {
  return SpecialTokens(model, rows).run();
}

std::optional<huggingface::MergesOfFolder> merges_of_folder(const Model& model, std::uint64_t rows) {
  std::map<std::string, std::shared_ptr<const Source>, std::less<>> files;
  for (const std::string_view name : {kTokenizerJson, kTokenizerConfig, std::string_view("generation_config.json")})
    if (auto source = text_of(model, name) ? core::open_folder_file(model, name) : nullptr)
      files.emplace(name, std::move(source));
  return files.contains(kTokenizerJson) ? huggingface::merges_of(*folder_of(std::move(files)), model, rows)
                                        : std::nullopt;
}

std::vector<Value::Entry> chat_templates(const Model& model) {
  std::vector<Value::Entry> out;
  if (const auto config = text_of(model, kTokenizerConfig))
    if (const auto raw = raw_member(*config, kTemplate)) add_templates(*raw, out);
  if (!out.empty()) return out;
  if (const auto text = text_of(model, "chat_template.jinja")) {
    out.emplace_back("tokenizer." + std::string(kTemplate), Value::text(*text));
  } else if (const auto json = text_of(model, "chat_template.json")) {
    if (const auto raw = raw_member(*json, kTemplate)) add_templates(*raw, out);
  }
  return out;
}

}  // namespace weighbridge::convert
