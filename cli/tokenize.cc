// SPDX-License-Identifier: Apache-2.0
// tokenize: prints the token ids of texts, as the runtimes use them.
#include "weighbridge/tokenize.h"

#include <optional>

#include "session.h"
#include "texts.h"
#include "weighbridge/json.h"

namespace weighbridge::cli {
namespace {

TextTokenizer tokenizer_of(Session& session, const Model& model) {
  const Arguments& args = session.args;
  TextTokenizerOptions options;
  options.special = !args.has(FlagId::no_special);
  options.offsets = args.has(FlagId::offsets);
  options.max_length = args.number(FlagId::max_length, 0U);
  options.ignore_settings = args.values(FlagId::ignore_setting);
  if (args.has(FlagId::no_prefix_space)) options.byte_pair.prefix_space = false;
  const auto vocabulary = vocabulary_of(session);
  if (!vocabulary) return TextTokenizer(model, options);
  options.vocabulary = &*vocabulary;
  return in_file(std::string(args.value(FlagId::vocab)), [&] { return TextTokenizer(model, options); });
}

class Printer {
 public:
  explicit Printer(Session& session) : session_(session) {
    json_.begin_object();
    json_.member("schema", std::uint64_t{kJsonSchema});
    json_.key("inputs").begin_array();
  }

  void print(const TokenizedText& text) { session_.json ? print_json(text) : print_lines(text); }
  void finish() {
    if (!session_.json) return;
    json_.end_array();
    json_.end_object();
    session_.out.text(json_.take() + "\n");
  }

 private:
  void print_json(const TokenizedText& text) {
    json_.raw(to_json(text));
    session_.out.text(json_.take());
  }
  void print_lines(const TokenizedText& text) {
    std::string line;
    for (std::size_t i = 0; i < text.ids.size(); ++i)
      line += (i == 0 ? "" : " ") + shown(text.tokens[i]) + "/" + std::to_string(text.ids[i]);
    if (text.truncated) line += "  (truncated)";
    if (text.replaced > 0) line += "  (" + grouped(text.replaced) + " replaced)";
    session_.out.text(line + "\n");
  }

  Session& session_;
  JsonWriter json_{};
};

}  // namespace

Status run_tokenize(Session& session) {
  const std::string& path = session.args.operands.front();
  std::optional<Printer> printer;
  try {
    Texts texts(session, 1);
    const Input input = open_input(session, path);
    const TextTokenizer tokenizer = tokenizer_of(session, input.model);
    if (!session.quiet)
      for (const std::string& note : tokenizer.notes()) complain(shown(path) + ": " + shown(note));
    printer.emplace(session);
    for (std::string text; texts.next(text) && !session.out.closed();) printer->print(tokenizer(text));
    printer->finish();
  } catch (const Error& error) {
    if (printer) printer->finish();  // completes the printed object; the failure follows as the next one
    return session.fail(path, error);
  }
  return Status::done;
}

}  // namespace weighbridge::cli
