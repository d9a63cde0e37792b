// SPDX-License-Identifier: Apache-2.0
// tokenize: texts as ids, as the runtimes use them.
#include "weighbridge/tokenize.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "session.h"
#include "texts.h"
#include "weighbridge/json.h"

namespace weighbridge::cli {
namespace {

WordPiece word_piece_of(Session& session, const Model& model) {
  WordPieceOptions options;
  if (const Value* lower = model.attributes().find("do_lower_case"))
    options.lower_case = lower->as_bool().value_or(true);
  if (const auto vocabulary = vocabulary_of(session))
    return about_file(std::string(session.args.value(FlagId::vocab)), [&] { return WordPiece(*vocabulary, options); });
  if (!model.tokenizer()) no_vocabulary();
  return WordPiece(*model.tokenizer(), options);
}

// The longest text that embed reads where --max-length does not say it (weighbridge/embed.h); 0: the model has no
// places for tokens, so that nothing bounds them.
std::uint64_t usual_length(const Model& model) {
  constexpr std::uint64_t kUsual = 256;
  for (const char* name : {"embeddings.position_embeddings.weight", "bert.embeddings.position_embeddings.weight"}) {
    const auto positions = model.find(name);
    if (!positions || !positions->has_shape() || positions->shape().empty()) continue;
    const Value* said = model.attributes().find("max_seq_length");
    const std::uint64_t length = said ? said->as_u64().value_or(kUsual) : kUsual;
    return std::max<std::uint64_t>(2, std::min(length, positions->shape()[0]));
  }
  return 0;
}

// A text as the model's own tokenizer has it.
struct Shown {
  std::vector<std::uint32_t> ids;
  std::vector<std::string_view> tokens;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> offsets;
  bool truncated = false;
  std::uint64_t replaced = 0;
};

class Tokens {
 public:
  virtual ~Tokens() = default;
  virtual Shown of(const std::string& text) = 0;
};

class WordPieceTokens : public Tokens {
 public:
  WordPieceTokens(Session& session, const Model& model)
      : tokenizer_(word_piece_of(session, model)), offsets_(session.args.has(FlagId::offsets)) {
    options_.special = !session.args.has(FlagId::no_special);
    options_.max_length = session.args.number(FlagId::max_length, 2, UINT32_MAX, 0);
    if (options_.max_length == 0) options_.max_length = usual_length(model);
  }

  Shown of(const std::string& text) override {
    Shown out;
    out.ids.resize(static_cast<std::size_t>(WordPiece::bound(text.size())));
    std::vector<TokenSpan> spans(offsets_ ? out.ids.size() : 0);
    const Encoded what = tokenizer_.encode(text, out.ids, options_, spans);
    out.ids.resize(static_cast<std::size_t>(what.count));
    spans.resize(offsets_ ? out.ids.size() : 0);
    WordPiece::to_code_points(text, spans);
    for (const TokenSpan& span : spans) out.offsets.emplace_back(span.begin, span.end);
    for (const std::uint32_t id : out.ids) out.tokens.push_back(tokenizer_.token(id).value_or("[UNK]"));
    out.truncated = what.truncated;
    out.replaced = what.replaced;
    return out;
  }

 private:
  WordPiece tokenizer_;
  EncodeOptions options_;
  bool offsets_;
};

// As a prompt: BOS before, no EOS behind.
BytePairOptions options_of(const Arguments& args) {
  BytePairOptions out;
  if (args.has(FlagId::no_prefix_space)) out.prefix_space = false;
  return out;
}

class BytePairTokens : public Tokens {
 public:
  BytePairTokens(Session& session, const Tokenizer& from) : tokenizer_(from, options_of(session.args)) {
    if (session.args.has(FlagId::offsets))
      raise(Kind::misuse, "misuse/offsets",
            "the model has a " + std::string(name(from.kind)) + " tokenizer, and --offsets is for wordpiece");
    options_.bos = !session.args.has(FlagId::no_special);
    max_length_ = session.args.number(FlagId::max_length, 2, UINT32_MAX, 0);
    if (max_length_ != 0) options_.max_length = max_length_ + 1;  // the one more tells that there is more
  }

  Shown of(const std::string& text) override {
    Shown out;
    out.ids = tokenizer_.encode(text, options_);
    out.truncated = max_length_ != 0 && out.ids.size() > max_length_;
    if (out.truncated) out.ids.resize(static_cast<std::size_t>(max_length_));
    for (const std::uint32_t id : out.ids) out.tokens.push_back(token(id));
    return out;
  }

 private:
  // What has no bytes is named.
  std::string_view token(std::uint32_t id) const {
    if (const auto bytes = tokenizer_.token(id)) return *bytes;
    return id == tokenizer_.bos() ? "<bos>" : id == tokenizer_.unk() ? "<unk>" : "";
  }

  BytePair tokenizer_;
  FrameOptions options_;
  std::uint64_t max_length_;
};

std::unique_ptr<Tokens> tokens_of(Session& session, const Model& model) {
  const auto own = model.tokenizer();
  if (session.args.has(FlagId::vocab) || !own || own->kind == Tokenizer::Kind::wordpiece)
    return std::make_unique<WordPieceTokens>(session, model);
  return std::make_unique<BytePairTokens>(session, *own);
}

class Printer {
 public:
  explicit Printer(Session& session) : session_(session) {}

  void print(const Shown& text) { session_.json ? print_json(text) : print_lines(text); }
  void finish() {
    if (session_.json) session_.out.text(first_ ? "{\"schema\":1,\"inputs\":[]}\n" : "]}\n");
  }

 private:
  void print_json(const Shown& text) {
    session_.out.text(std::exchange(first_, false) ? "{\"schema\":1,\"inputs\":[" : ",");
    session_.out.text(to_json(TokenizedText{text.ids, text.tokens, text.offsets, text.truncated, text.replaced}));
  }
  void print_lines(const Shown& text) {
    std::string line;
    for (std::size_t i = 0; i < text.ids.size(); ++i)
      line += (i == 0 ? "" : " ") + shown(text.tokens[i]) + "/" + std::to_string(text.ids[i]);
    if (text.truncated) line += "  (truncated)";
    if (text.replaced > 0) line += "  (" + grouped(text.replaced) + " replaced)";
    session_.out.text(line + "\n");
  }

  Session& session_;
  bool first_ = true;
};

}  // namespace

Status run_tokenize(Session& session) {
  const std::string& path = session.args.operands.front();
  std::optional<Printer> printer;
  try {
    Texts texts(session, 1);
    const Input input = open_input(session, path);
    if (!input.model) return input.status;
    const auto tokens = tokens_of(session, *input.model);
    printer.emplace(session);
    for (std::string text; texts.next(text) && !session.out.closed();) printer->print(tokens->of(text));
    printer->finish();
  } catch (const Error& error) {
    if (printer) printer->finish();  // what was printed is a whole object, and the failure the next one
    return session.fail(path, error);
  }
  return Status::done;
}

}  // namespace weighbridge::cli
