// SPDX-License-Identifier: Apache-2.0
// How many tokens the files of a tokenizer list, of any kind: no more than it takes to compare them with a model.
#include <algorithm>
#include <span>
#include <string>

#include "core/reading/json_file.h"
#include "core/writing/claims.h"
#include "io/read.h"
#include "wire/json_reader.h"
#include "wire/protobuf_reader.h"

namespace weighbridge::core {
namespace {

using wire::JsonKind, wire::JsonReader, wire::JsonString;

// Where a file has tokens: the key of its member, and of a member of that; empty for the value itself.
struct TokenList {
  std::string_view file, key, inner;
};
constexpr TokenList kTokenLists[] = {
    {"tokenizer.json", "model", "vocab"},
    {"tokenizer.json", "added_tokens", ""},
    {"vocab.json", "", ""},
    {"tokenizer_config.json", "added_tokens_decoder", ""},
    {"added_tokens.json", "", ""},
};
constexpr std::string_view kPieceFiles[] = {"tokenizer.model", "spiece.model", "sentencepiece.bpe.model"};
constexpr std::uint32_t kPieces = 1;  // of sentencepiece's ModelProto

std::string_view member(std::string_view raw, std::string_view key, std::uint32_t depth) {
  JsonReader in(raw, depth);
  if (key.empty() || !in.enter_object()) return key.empty() ? raw : std::string_view();
  std::string scratch;
  for (JsonString name; in.next_key(name);) {
    std::string_view value;
    const bool found = wire::json_text(name, scratch) == key;
    if (!in.skip_value(value)) break;
    if (found) return value;
  }
  return {};
}

// Of {token: id}, {id: token}, [{"id": id}] and [token].
class Tokens {
 public:
  std::uint64_t count(std::string_view raw, std::uint32_t depth) {
    JsonReader in(raw, depth);
    if (in.peek() == JsonKind::object) {
      read_object(in, {});
    } else if (in.enter_array()) {
      std::uint64_t elements = 0;
      while (in.next_element()) {
        ++elements;
        if (in.peek() == JsonKind::object)
          read_object(in, "id");
        else if (in.skip_value())
          out_ = std::max(out_, elements);
      }
    }
    return out_;
  }

 private:
  void read_object(JsonReader& in, std::string_view only) {
    if (!in.enter_object()) return;
    std::string scratch;
    for (JsonString key; in.next_key(key);) {
      const bool number = in.peek() == JsonKind::number;
      std::string_view value;
      if (!in.skip_value(value)) return;
      if (const auto id = wire::as_u64(number ? value : key.raw);
          id && *id < UINT32_MAX && (only.empty() || wire::json_text(key, scratch) == only))
        out_ = std::max(out_, *id + 1);
    }
  }
  std::uint64_t out_ = 0;
};

}  // namespace

std::vector<TokenFile> token_files(const Place& place, const Limits& limits) {
  std::vector<TokenFile> out;
  const auto add = [&](std::string_view name, const auto& count) {
    const auto source = place.open(name);
    if (source && source->size() <= limits.header) out.push_back({source, count(io::text_of(*source))});
  };
  for (const TokenList& list : kTokenLists)
    add(list.file, [&](const std::string& text) {
      return Tokens().count(member(member(text, list.key, limits.depth), list.inner, limits.depth), limits.depth);
    });
  for (const std::string_view name : kPieceFiles)
    add(name, [&](const std::string& text) {
      wire::ProtobufSpan bytes(std::as_bytes(std::span(text)));
      wire::ProtobufReader in(bytes, limits.depth);
      wire::ProtobufMessage model = in.root();
      std::uint64_t pieces = 0;
      for (wire::ProtobufField field; model.next(field);) pieces += field.number == kPieces ? 1U : 0U;
      return pieces;
    });
  return out;
}

}  // namespace weighbridge::core
