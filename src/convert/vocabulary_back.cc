// SPDX-License-Identifier: Apache-2.0
// The files of a folder for a vocabulary of llama.cpp: tokenizer.json for bytes that are merged in words,
// tokenizer.model for pieces of sentencepiece, and tokenizer_config.json. Sources: src/llama-vocab.cpp of
// github.com/ggml-org/llama.cpp, sentencepiece_model.proto of github.com/google/sentencepiece, and the files that the
// package tokenizers writes.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <optional>
#include <unordered_set>
#include <utility>

#include "base/endian.h"
#include "convert/naming.h"
#include "core/model/words.h"
#include "formats/huggingface/layout.h"
#include "tokenizers/described.h"
#include "tokenizers/splitter.h"
#include "wire/json_reader.h"
#include "wire/json_writer.h"

namespace weighbridge::convert {
namespace {

using tokenizers::TokenType;

class VocabularyFiles {
 public:
  explicit VocabularyFiles(const Model& model) : model_(model) {}

  FolderVocabulary run() {
    const std::string kind = text("model").value_or("none");
    if (kind == "none") return {};
    if (std::string fault = read_tokens(); !fault.empty())
      refuse_all(std::move(fault));
    else if (kind == "gpt2")
      byte_level();
    else if (kind == "llama")
      pieces();
    else
      refuse_all("it is of the kind " + core::quoted(core::excerpt(kind)));
    if (out_.refused.empty()) settings(kind == "llama");
    return std::move(out_);
  }

 private:
  const Value* said(std::string_view key) const {
    return model_.attribute(std::string(tokenizers::kLlamaCppKeys) + std::string(key));
  }
  std::optional<std::string> text(std::string_view key) const {
    const Value* const value = said(key);
    return value ? std::optional(value->to_text()) : std::nullopt;
  }
  bool flag(std::string_view key, bool otherwise) const {
    const Value* const value = said(key);
    return value ? value->as_bool().value_or(otherwise) : otherwise;
  }
  std::optional<std::uint32_t> id(std::string_view role) const {
    const Value* const value = said(std::string(role) + "_token_id");
    const auto out = value ? value->as_u64() : std::nullopt;
    return out && *out < types_.size() ? std::optional(static_cast<std::uint32_t>(*out)) : std::nullopt;
  }
  void refuse_all(std::string why) {
    out_.files.clear();
    out_.refused = std::move(why);
  }

  // What is wrong with them; empty: nothing is.
  std::string read_tokens() {
    const Value* const tokens = said("tokens");
    texts_ = tokens ? tokens->texts() : nullptr;
    if (texts_ == nullptr || texts_->size() == 0 || texts_->size() > INT32_MAX) return "it has no list of tokens";
    types_.assign(texts_->size(), TokenType::normal);
    if (const Value* const types = said("token_type")) {
      if (!is_for_each(*types, DType::i32)) return "it has no type for each token";
      for (std::size_t i = 0; i < types_.size(); ++i) {
        types_[i] = static_cast<TokenType>(base::load_le<std::uint32_t>(types->bytes().data() + 4 * i));
        if (types_[i] < TokenType::normal || types_[i] > TokenType::byte)
          return fmt::format("token {} has the type {}", i, static_cast<std::int32_t>(types_[i]));
      }
    }
    std::unordered_set<std::string_view> seen;
    for (std::size_t i = 0; i < types_.size(); ++i)
      if (!seen.insert((*texts_)[i]).second) return fmt::format("token {} has the text of another one", i);
    for (const std::string_view role : {"bos", "cls", "eos", "eom", "eot", "mask", "padding", "seperator", "unknown"})
      if (said(std::string(role) + "_token_id") && !id(role))
        return fmt::format("the id of {} is not in the vocabulary", role);
    return {};
  }
  bool is_for_each(const Value& value, DType dtype) const {
    return value.kind() == Value::Kind::numbers && value.type() == dtype && value.bytes().size() == types_.size() * 4;
  }
  // A row of the embeddings that no token has.
  bool is_padding(std::size_t i) const {
    return types_[i] == TokenType::unused && (*texts_)[i] == fmt::format("[PAD{}]", i);
  }
  bool is_added(std::size_t i) const { return types_[i] == TokenType::control || types_[i] == TokenType::user_defined; }

  // ---- gpt2 ----

  // How a tokenizer.json spells the division that llama.cpp calls so, and whether words that are tokens stay whole.
  static const tokenizers::Splitter::Spelled* division(std::string_view pre, bool& whole) {
    const auto* const named = tokenizers::Splitter::find(pre);
    if (named == nullptr || pre.starts_with(tokenizers::Splitter::kHuggingFace)) return nullptr;
    whole = named->whole_words;
    return tokenizers::Splitter::spelled_as(*named);
  }

  void byte_level() {
    const std::string pre = text("pre").value_or("default");
    bool whole = false;
    const auto* const words = division(pre, whole);
    const Value* const list = said("merges");
    const Texts* const merges = list ? list->texts() : nullptr;
    if (words == nullptr) {
      refuse_all("no tokenizer.json is known that divides texts into words as " + core::quoted(core::excerpt(pre)));
      return;
    }
    if (merges == nullptr) {
      refuse_all("it has no list of merges");
      return;
    }
    if (!words->in_llama_cpp.empty())
      out_.differences.push_back("with the words of the tokenizer itself; in llama.cpp " +
                                 std::string(words->in_llama_cpp.substr(words->in_llama_cpp.find("words"))));
    wire::JsonWriter json(wire::JsonWriter::Style::indented);
    json.begin_object();
    json.key("version").string("1.0");
    json.key("truncation").null();
    json.key("padding").null();
    json.key("added_tokens").begin_array();
    for (std::size_t i = 0; i < types_.size(); ++i)
      if (is_added(i)) {
        json.begin_object();
        json.key("id").raw(std::to_string(i));
        json.key("content").string((*texts_)[i]);
        for (const std::string_view off : {"single_word", "lstrip", "rstrip", "normalized"})
          json.key(off).boolean(false);
        json.key("special").boolean(types_[i] == TokenType::control);
        json.end_object();
      }
    json.end_array();
    json.key("normalizer").null();
    json.key("pre_tokenizer").begin_object();
    json.key("type").string("Sequence");
    json.key("pretokenizers").begin_array();
    bool own_words = true;
    for (const std::string_view expression : words->expressions) own_words &= !step(json, expression);
    byte_step(json, !own_words);
    json.end_array();
    json.end_object();
    json.key("post_processor");
    // llama.cpp puts BOS before a text of Llama 3's words even if the file does not say so.
    frame(json, flag("add_bos_token", whole), flag("add_eos_token", false));
    json.key("decoder");
    byte_step(json, true);
    json.key("model").begin_object();
    json.key("type").string("BPE");
    for (const std::string_view none : {"dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix"})
      json.key(none).null();
    json.key("fuse_unk").boolean(false);
    json.key("byte_fallback").boolean(false);
    json.key("ignore_merges").boolean(whole);
    json.key("vocab").begin_object();
    std::unordered_set<std::string_view> known;
    for (std::size_t i = 0; i < types_.size(); ++i)
      if (!is_padding(i)) {
        json.key((*texts_)[i]).raw(std::to_string(i));
        known.insert((*texts_)[i]);
      }
    json.end_object();
    json.key("merges").begin_array();
    for (std::size_t i = 0; i < merges->size(); ++i) {
      const std::string_view pair = (*merges)[i];
      const std::size_t space = pair.find(' ', 1);
      if (space == pair.npos) {
        refuse_all("a merge is not two tokens with a space between them");
        return;
      }
      // A merge of what is no token cannot be reached, and tokenizers does not open it.
      const std::string_view left = pair.substr(0, space), right = pair.substr(space + 1);
      if (!known.contains(left) || !known.contains(right) || !known.contains(std::string(left).append(right))) continue;
      json.begin_array();
      json.string(left);
      json.string(right);
      json.end_array();
    }
    json.end_array();
    json.end_object();
    json.end_object();
    out_.files.emplace_back("tokenizer.json", Value::text(json.take() + "\n"));
  }

  // One division; false if it is that of ByteLevel itself.
  static bool step(wire::JsonWriter& json, std::string_view expression) {
    if (expression == tokenizers::Splitter::kOfByteLevel) return true;
    json.begin_object();
    if (expression == R"(\p{N})") {
      json.key("type").string("Digits");
      json.key("individual_digits").boolean(true);
    } else {
      json.key("type").string("Split");
      json.key("pattern").begin_object();
      json.key("Regex").string(expression);
      json.end_object();
      json.key("behavior").string("Isolated");
      json.key("invert").boolean(false);
    }
    json.end_object();
    return false;
  }
  static void byte_step(wire::JsonWriter& json, bool divides) {
    json.begin_object();
    json.key("type").string("ByteLevel");
    json.key("add_prefix_space").boolean(false);
    json.key("trim_offsets").boolean(true);
    json.key("use_regex").boolean(divides);
    json.end_object();
  }

  void frame(wire::JsonWriter& json, bool begins, bool ends) const {
    const auto bos = begins ? id("bos") : std::nullopt, eos = ends ? id("eos") : std::nullopt;
    if (!bos && !eos) return byte_step(json, true);
    const auto token = [&](std::uint32_t of) {
      json.begin_object();
      json.key("SpecialToken").begin_object();
      json.key("id").string((*texts_)[of]);
      json.key("type_id").raw("0");
      json.end_object();
      json.end_object();
    };
    const auto sequence = [&](std::string_view name) {
      if (bos) token(*bos);
      json.begin_object();
      json.key("Sequence").begin_object();
      json.key("id").string(name);
      json.key("type_id").raw("0");
      json.end_object();
      json.end_object();
      if (eos) token(*eos);
    };
    // With ByteLevel before it, as the package's own files have it.
    json.begin_object();
    json.key("type").string("Sequence");
    json.key("processors").begin_array();
    byte_step(json, true);
    json.begin_object();
    json.key("type").string("TemplateProcessing");
    json.key("single").begin_array();
    sequence("A");
    json.end_array();
    json.key("pair").begin_array();
    sequence("A");
    sequence("B");
    json.end_array();
    json.key("special_tokens").begin_object();
    const auto describe = [&](std::uint32_t of) {
      json.key((*texts_)[of]).begin_object();
      json.key("id").string((*texts_)[of]);
      json.key("ids").begin_array();
      json.raw(std::to_string(of));
      json.end_array();
      json.key("tokens").begin_array();
      json.string((*texts_)[of]);
      json.end_array();
      json.end_object();
    };
    if (bos) describe(*bos);
    if (eos && eos != bos) describe(*eos);
    json.end_object();
    json.end_object();
    json.end_array();
    json.end_object();
  }

  // ---- llama ----

  static void put_number(std::string& to, std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) to += static_cast<char>(value | 0x80);
    to += static_cast<char>(value);
  }
  static void put_field(std::string& to, unsigned number, std::uint64_t value) {
    put_number(to, number << 3);
    put_number(to, value);
  }
  static void put_bytes(std::string& to, unsigned number, std::string_view bytes) {
    put_number(to, number << 3 | 2);
    put_number(to, bytes.size());
    to += bytes;
  }

  // The token of type unknown, or the one that is to be so; sentencepiece needs exactly one. Sets unknown_.
  std::string find_unknown() {
    const auto stated = id("unknown");
    const auto first = std::ranges::find(types_, TokenType::unknown);
    if (first != types_.end()) {
      unknown_ = static_cast<std::uint32_t>(first - types_.begin());
      if (std::find(first + 1, types_.end(), TokenType::unknown) != types_.end()) return "it has two unknown tokens";
      return stated && *stated != unknown_ ? "two tokens are called the unknown one" : "";
    }
    unknown_ = stated.value_or(0);
    const TokenType type = types_[unknown_];
    return (stated || (*texts_)[0] == "<unk>") && (type == TokenType::normal || type == TokenType::control)
               ? ""
               : "it has no unknown token";
  }
  // Whether sentencepiece spells what no piece has as bytes; nullopt: some bytes have a token, or other texts.
  std::optional<bool> falls_back_to_bytes() const {
    constexpr std::ptrdiff_t kBytes = 256;
    std::unordered_set<std::string> spellings;
    for (int i = 0; i < kBytes; ++i) spellings.insert(fmt::format("<0x{:02X}>", i));
    for (std::size_t i = 0; i < types_.size(); ++i)
      if (types_[i] == TokenType::byte && !spellings.contains(std::string((*texts_)[i]))) return std::nullopt;
    const auto bytes = std::ranges::count(types_, TokenType::byte);
    return bytes == 0 || bytes == kBytes ? std::optional(bytes != 0) : std::nullopt;
  }

  void pieces() {
    const Value* const scores = said("scores");
    if (scores == nullptr || !is_for_each(*scores, DType::f32)) return refuse_all("it has no score for each token");
    for (std::size_t i = 0; i < types_.size(); ++i) {
      if (std::isnan(std::bit_cast<float>(base::load_le<std::uint32_t>(scores->bytes().data() + 4 * i))))
        return refuse_all(fmt::format("the score of token {} is not a number", i));
      if ((*texts_)[i].empty()) return refuse_all(fmt::format("token {} is empty", i));
    }
    if (std::string fault = find_unknown(); !fault.empty()) return refuse_all(std::move(fault));
    const auto by_bytes = falls_back_to_bytes();
    if (!by_bytes) return refuse_all("its tokens of bytes are not <0x00> to <0xFF>");
    std::size_t count = types_.size();
    while (count > 0 && is_padding(count - 1)) --count;
    std::string file;
    for (std::size_t i = 0; i < count; ++i) {
      std::string piece;
      put_bytes(piece, 1, (*texts_)[i]);
      put_number(piece, 2 << 3 | 5);
      piece.append(reinterpret_cast<const char*>(scores->bytes().data() + 4 * i), 4);
      const TokenType type = i == unknown_ ? TokenType::unknown : types_[i];
      if (type != TokenType::normal) put_field(piece, 3, static_cast<std::uint32_t>(type));
      put_bytes(file, 1, piece);
    }
    std::string trainer, normalizer;
    put_field(trainer, 3, 2);  // byte pairs
    put_field(trainer, 4, count);
    put_field(trainer, 35, *by_bytes ? 1 : 0);  // byte_fallback
    put_field(trainer, 40, unknown_);
    for (const auto& [number, role] : {std::pair(41U, "bos"), std::pair(42U, "eos"), std::pair(43U, "padding")})
      put_field(trainer, number, id(role) ? std::uint64_t{*id(role)} : UINT64_MAX);  // -1: none
    put_bytes(normalizer, 1, "identity");
    put_field(normalizer, 3, flag("add_space_prefix", true) ? 1 : 0);
    put_field(normalizer, 4, flag("remove_extra_whitespaces", false) ? 1 : 0);
    put_bytes(file, 2, trainer);
    put_bytes(file, 3, normalizer);
    const auto bytes = std::as_bytes(std::span(file));
    out_.files.emplace_back("tokenizer.model", Value::numbers(DType::u8, {bytes.begin(), bytes.end()}));
  }

  // ---- what goes with both ----

  void settings(bool of_pieces) {
    wire::JsonWriter json(wire::JsonWriter::Style::indented);
    json.begin_object();
    if (of_pieces) {
      json.key("add_bos_token").boolean(flag("add_bos_token", true));
      json.key("add_eos_token").boolean(flag("add_eos_token", false));
      json.key("add_prefix_space").boolean(flag("add_space_prefix", true));
      // llama.cpp puts a space before what follows an added token, too; transformers does so if this is true.
      json.key("legacy").boolean(true);
      json.key("added_tokens_decoder").begin_object();
      for (std::size_t i = 0; i < types_.size(); ++i)
        if (is_added(i) || i == unknown_) {
          json.key(std::to_string(i)).begin_object();
          json.key("content").string((*texts_)[i]);
          for (const std::string_view off : {"lstrip", "normalized", "rstrip", "single_word"})
            json.key(off).boolean(false);
          json.key("special").boolean(types_[i] != TokenType::user_defined);
          json.end_object();
        }
      json.end_object();
    }
    for (const auto& [role, key] :
         {std::pair("bos", "bos_token"), std::pair("cls", "cls_token"), std::pair("eos", "eos_token"),
          std::pair("mask", "mask_token"), std::pair("padding", "pad_token"), std::pair("seperator", "sep_token"),
          std::pair("unknown", "unk_token")})
      if (const auto token = id(role)) json.key(key).string((*texts_)[*token]);
    templates(json);
    json.key("clean_up_tokenization_spaces").boolean(false);
    json.key("tokenizer_class").string(of_pieces ? "LlamaTokenizer" : "PreTrainedTokenizerFast");
    json.end_object();
    out_.files.emplace_back("tokenizer_config.json", Value::text(json.take() + "\n"));
    ends();
  }

  void templates(wire::JsonWriter& json) const {
    const Value* const usual = model_.attribute("tokenizer.chat_template");
    const Value* const names = model_.attribute("tokenizer.chat_templates");
    if (names == nullptr || names->texts() == nullptr) {
      if (usual) json.key("chat_template").string(usual->to_text());
      return;
    }
    json.key("chat_template").begin_array();
    const auto one = [&](std::string_view name, const Value* value) {
      if (value == nullptr) return;
      json.begin_object();
      json.key("name").string(name);
      json.key("template").string(value->to_text());
      json.end_object();
    };
    one("default", usual);
    for (std::size_t i = 0; i < names->texts()->size(); ++i) {
      const std::string_view name = (*names->texts())[i];
      one(name, model_.attribute("tokenizer.chat_template." + std::string(name)));
    }
    json.end_array();
  }

  // All tokens that end a text, if there are several.
  void ends() {
    const auto eos = id("eos");
    if (!eos || (!id("eot") && !id("eom"))) return;
    wire::JsonWriter json(wire::JsonWriter::Style::indented);
    json.begin_object();
    json.key("eos_token_id").begin_array();
    for (const auto& each : {eos, id("eot"), id("eom")})
      if (each) json.raw(std::to_string(*each));
    json.end_array();
    json.end_object();
    out_.files.emplace_back("generation_config.json", Value::text(json.take() + "\n"));
  }

  const Model& model_;
  const Texts* texts_ = nullptr;
  std::vector<TokenType> types_;
  std::uint32_t unknown_ = 0;  // of pieces
  FolderVocabulary out_;
};

}  // namespace

FolderVocabulary vocabulary_for_folder(const Model& model) { return VocabularyFiles(model).run(); }

}  // namespace weighbridge::convert
