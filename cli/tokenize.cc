// SPDX-License-Identifier: Apache-2.0
// tokenize: texts as ids, as the runtimes use them.
#include "weighbridge/tokenize.h"

#include <utility>
#include <vector>

#include "session.h"
#include "texts.h"
#include "weighbridge/json.h"

namespace weighbridge::cli {
namespace {

WordPiece tokenizer_of(Session& session, const Model& model) {
  WordPieceOptions options;
  if (const Value* lower = model.attributes().find("do_lower_case"))
    options.lower_case = lower->as_bool().value_or(true);
  if (const auto vocabulary = vocabulary_of(session)) return WordPiece(*vocabulary, options);
  if (!model.tokenizer())
    raise(Kind::misuse, "misuse/no-vocabulary", "the model has no vocabulary: give one with --vocab vocab.txt");
  if (model.tokenizer()->kind != Tokenizer::Kind::wordpiece)
    raise(
        Kind::unsupported, "unsupported/tokenizer",
        "the model has a " + std::string(name(model.tokenizer()->kind)) + " tokenizer, which this build does not run");
  return WordPiece(*model.tokenizer(), options);
}

class Printer {
 public:
  Printer(Session& session, const WordPiece& tokenizer) : session_(session), tokenizer_(tokenizer) {
    options_.special = !session.args.has(FlagId::no_special);
    options_.max_length = session.args.number(FlagId::max_length, 2, UINT32_MAX, 0);
    offsets_ = session.args.has(FlagId::offsets);
  }

  void print(const std::string& text) {
    ids_.resize(static_cast<std::size_t>(WordPiece::bound(text.size())));
    spans_.resize(offsets_ ? ids_.size() : 0);
    const Encoded what = tokenizer_.encode(text, ids_, options_, spans_);
    ids_.resize(static_cast<std::size_t>(what.count));
    spans_.resize(offsets_ ? ids_.size() : 0);
    WordPiece::to_code_points(text, spans_);
    std::vector<std::string_view> tokens;
    for (const std::uint32_t id : ids_) tokens.push_back(tokenizer_.token(id).value_or("[UNK]"));
    session_.json ? print_json(tokens, what) : print_lines(tokens, what);
  }
  void finish() {
    if (session_.json) session_.out.text(first_ ? "{\"schema\":1,\"inputs\":[]}\n" : "]}\n");
  }

 private:
  void print_json(std::span<const std::string_view> tokens, const Encoded& what) {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> offsets;
    for (const TokenSpan& span : spans_) offsets.emplace_back(span.begin, span.end);
    session_.out.text(std::exchange(first_, false) ? "{\"schema\":1,\"inputs\":[" : ",");
    session_.out.text(to_json(TokenizedText{ids_, tokens, offsets, what.truncated, what.replaced}));
  }
  void print_lines(std::span<const std::string_view> tokens, const Encoded& what) {
    std::string line;
    for (std::size_t i = 0; i < ids_.size(); ++i)
      line += (i == 0 ? "" : " ") + shown(tokens[i]) + "/" + std::to_string(ids_[i]);
    if (what.truncated) line += "  (truncated)";
    session_.out.text(line + "\n");
  }

  Session& session_;
  const WordPiece& tokenizer_;
  EncodeOptions options_;
  bool offsets_ = false, first_ = true;
  std::vector<std::uint32_t> ids_;
  std::vector<TokenSpan> spans_;
};

}  // namespace

Status run_tokenize(Session& session) {
  const std::string& path = session.args.operands.front();
  Texts texts(session, 1);
  const Input input = open_input(session, path);
  if (!input.model) return input.status;
  try {
    const WordPiece tokenizer = tokenizer_of(session, *input.model);
    Printer printer(session, tokenizer);
    for (std::string text; texts.next(text) && !session.out.closed();) printer.print(text);
    printer.finish();
  } catch (const Error& error) {
    return session.fail(path, error);
  }
  return Status::done;
}

}  // namespace weighbridge::cli
