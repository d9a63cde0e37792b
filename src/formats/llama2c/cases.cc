// SPDX-License-Identifier: Apache-2.0
// The corpus of llama2.c checkpoints: for each rule the smallest file that breaks it, and valid files of every kind.
// The files are built by hand in run.c's order.
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "formats/llama2c/format.h"
#include "support/corpus_case.h"

namespace weighbridge::llama2c {
namespace {

void i32(std::string& to, std::int32_t value) { to.append(reinterpret_cast<const char*>(&value), 4); }
void f32(std::string& to, float value) { to.append(reinterpret_cast<const char*>(&value), 4); }
void put(std::string& to, std::size_t at, std::int32_t value) { std::memcpy(to.data() + at, &value, 4); }

// Two heads of size two, one of them for keys and values, two layers, tied. Its values count up.
constexpr Header kSmall{
    .dim = 4, .hidden_dim = 3, .n_layers = 2, .n_heads = 2, .n_kv_heads = 1, .vocab_size = 5, .seq_len = 3};
// The smallest model that a tokenizer fits.
constexpr Header kSpeaking{
    .dim = 2, .hidden_dim = 1, .n_layers = 1, .n_heads = 1, .n_kv_heads = 1, .vocab_size = 262, .seq_len = 1};

std::string checkpoint(const Header& h) {
  std::string out;
  Header::each(h, [&](std::int32_t field, base::FieldNote) { i32(out, field); });
  const int dim = h.dim, kv = dim / h.n_heads * h.n_kv_heads, vocab = h.vocab_size < 0 ? -h.vocab_size : h.vocab_size;
  const int layer = dim + 2 * dim * dim + 2 * dim * kv + dim + 3 * dim * h.hidden_dim;
  const int values =
      vocab * dim * (h.vocab_size < 0 ? 2 : 1) + h.n_layers * layer + dim + h.seq_len * (dim / h.n_heads);
  for (int i = 0; i < values; ++i) f32(out, static_cast<float>(i) / 8);
  return out;
}

struct Token {
  std::string text;
  float score = 0;
};

// <unk>, BOS, EOS, the bytes, then "a", "b" and "ab".
std::vector<Token> tokens() {
  std::vector<Token> out{{"<unk>"}, {"\n<s>\n"}, {"\n</s>\n"}};
  for (int i = 0; i < 256; ++i) {
    constexpr const char* kDigits = "0123456789ABCDEF";
    out.push_back({std::string("<0x") + kDigits[i >> 4] + kDigits[i & 15] + ">"});
  }
  for (const char* piece : {"ab", "a", "b"}) out.push_back({piece, -static_cast<float>(out.size())});
  return out;
}

std::string tokenizer(const std::vector<Token>& all, std::int32_t longest = 7) {
  std::string out;
  i32(out, longest);
  for (const Token& token : all) {
    f32(out, token.score);
    i32(out, static_cast<std::int32_t>(token.text.size()));
    out += token.text;
  }
  return out;
}

class Corpus : public core::CorpusCases {
 public:
  Corpus() : CorpusCases("llama2c") {}
  // Adds a file with one header field changed so that no length would match.
  void field(std::string name, std::string rule, std::int32_t Header::*field, std::int32_t value) {
    std::string bytes = checkpoint(kSmall);
    put(bytes, base::offset_of(field), value);
    add(std::move(name), std::move(rule), std::move(bytes));
  }
  core::CorpusCase& speaking(std::string name, std::string rule, std::string tokens) {
    core::CorpusCase& out = add(std::move(name), std::move(rule), checkpoint(kSpeaking));
    out.sidecar = core::CorpusSidecar{.extension = std::string(kTokenizerExtension), .bytes = std::move(tokens)};
    return out;
  }
};

void add_header(Corpus& c) {
  c.add("too-short", "too-short", checkpoint(kSmall).substr(0, 7));
  std::string later = checkpoint(kSmall);
  put(later, 0, static_cast<std::int32_t>(kLaterMagic));
  put(later, 4, 1);
  c.add("version", "version", later);
  c.field("field", "field", &Header::dim, 0);
  c.field("field-negative", "field", &Header::seq_len, -1);
  c.field("field-layers", "field", &Header::n_layers, (1 << 12) + 1);
  c.field("field-vocabulary", "field", &Header::vocab_size, std::numeric_limits<std::int32_t>::min());
  c.field("heads", "heads", &Header::n_heads, 3);
  c.field("heads-odd", "heads", &Header::n_heads, 4);
  Header one = kSmall;
  one.dim = 12;
  one.n_heads = 6;
  one.n_kv_heads = 4;
  std::string kv = checkpoint(kSmall);
  kv.replace(0, kHeaderSize, base::store_record(one));
  c.add("kv-heads", "kv-heads", kv);
  c.add("length", "length", checkpoint(kSmall).substr(0, checkpoint(kSmall).size() - 1));
  c.add("length-more", "length", checkpoint(kSmall) + '\0');
  c.field("length-layers", "length", &Header::n_layers, 1 << 12);
  c.field("length-untied", "length", &Header::vocab_size, -5);
  core::CorpusCase& tensors = c.add("limit-tensors", "limit/tensors", checkpoint(kSmall));
  tensors.limits.tensors = 21;
  tensors.generated_only = true;
}

void add_tokenizers(Corpus& c) {
  const std::string good = tokenizer(tokens());
  c.speaking("tokenizer-short", "tokenizer-short", good.substr(0, good.size() - 1));
  c.speaking("tokenizer-short-empty", "tokenizer-short", "");
  auto fewer = tokens();
  fewer.pop_back();
  c.speaking("tokenizer-short-by-one", "tokenizer-short", tokenizer(fewer));
  c.speaking("tokenizer-trailing", "tokenizer-trailing", good + "!");
  const auto changed = [&](std::string name, std::string rule, std::size_t id, Token token, std::int32_t maximum = 7) {
    auto all = tokens();
    all[id] = std::move(token);
    c.speaking(std::move(name), std::move(rule), tokenizer(all, maximum));
  };
  changed("token-length", "token-length", 260, {"12345678", -1});
  changed("token-length-zero", "token-length", 0, {"", 0});
  changed("token-length-most", "token-length", 260, {std::string(257, 'x'), 0}, 1000);
  c.speaking("token-length-max-zero", "token-length", tokenizer(tokens(), 0));
  changed("token-score", "token-score", 4, {"<0x01>", std::numeric_limits<float>::quiet_NaN()});
  changed("tokenizer-bytes", "tokenizer-bytes", 258, {"<0xff>"});
  core::CorpusCase& few = c.add("tokenizer-bytes-none", "tokenizer-bytes", checkpoint(kSmall));
  few.sidecar = core::CorpusSidecar{.extension = std::string(kTokenizerExtension),
                                    .bytes = tokenizer({{"a"}, {"b"}, {"c"}, {"d"}, {"e"}})};
  core::CorpusCase& header = c.speaking("limit-header", "limit/header", good);
  header.limits.header = good.size() - 1;
  header.generated_only = true;
  core::CorpusCase& memory = c.speaking("limit-memory", "limit/memory", good);
  memory.limits.memory = sizeof(Tokenizer::Merge) - 1;
  memory.generated_only = true;
}

void add_values(Corpus& c) {
  const auto changed = [&](std::string name, std::size_t at, float value) {
    std::string bytes = checkpoint(kSmall);
    std::memcpy(bytes.data() + at, &value, 4);
    c.add(std::move(name), "not-finite", std::move(bytes));
  };
  changed("not-finite", 28, std::numeric_limits<float>::infinity());
  changed("not-finite-last", checkpoint(kSmall).size() - 4, std::numeric_limits<float>::quiet_NaN());
}

}  // namespace

std::vector<core::CorpusCase> cases() {
  Corpus c;
  c.add("valid-tied", "", checkpoint(kSmall));
  Header untied = kSmall;
  untied.vocab_size = -5;
  c.add("valid-untied", "", checkpoint(untied));
  c.speaking("valid-tokenizer", "", tokenizer(tokens()));
  add_header(c);
  add_tokenizers(c);
  add_values(c);
  return c.take();
}

}  // namespace weighbridge::llama2c
