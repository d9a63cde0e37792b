// SPDX-License-Identifier: Apache-2.0
// generate and perplexity: text from a language model, and the perplexity of a text under it.
#include "weighbridge/generate.h"

#include <fmt/format.h>

#include <chrono>
#include <vector>

#include "interrupt.h"
#include "os.h"
#include "session.h"
#include "slm_actions.h"
#include "texts.h"
#include "weighbridge/json.h"

namespace weighbridge::cli {
namespace {

// All text of a file or of standard input, within the memory limit.
std::string whole_text(Session& session, const std::string& path) {
  const TextPull pull = pull_from(session, path);
  std::string out;
  for (;;) {
    const std::size_t had = out.size();
    out.resize(had + (std::size_t{1} << 16));
    const std::size_t got = pull(std::span(out).subspan(had));
    out.resize(had + got);
    if (got == 0) return out;
    if (out.size() > session.context().limits.memory)
      raise(Kind::limit, "limit/memory", "the text is larger than the limit allows", {},
            {Hint::What::limit, "memory", {}});
  }
}

// All text of --input.
std::string input_text(Session& session) {
  const std::string path(session.args.value(FlagId::input));
  return in_file(path, [&] { return whole_text(session, path); });
}

// The model of the first operand with its --adapter packages, ready to run.
std::unique_ptr<Generator> open_generator(Session& session) {
  const Arguments& args = session.args;
  GeneratorOptions options;
  args.apply(options, OptionOf::generator);
  options.threads = args.number(FlagId::threads, 0U);
  options.limits = session.context().limits;
  end_on_bus_error();  // the weights stay mapped
  std::vector<Model> models;
  std::vector<std::string> paths{args.operands.front()};
  paths.insert(paths.end(), args.values(FlagId::adapter).begin(), args.values(FlagId::adapter).end());
  for (const std::string& path : paths) {
    const Input input = open_input(session, path);
    session.remarks(path, input.report);
    models.push_back(input.model);
  }
  if (models[0].find("embeddings.word_embeddings.weight") || models[0].find("bert.embeddings.word_embeddings.weight"))
    raise(Kind::malformed, "generate/encoder",
          "this is a BERT encoder, which computes vectors and continues no text: use embed");
  if (models.size() > 1) session.progress().busy("adding the adapters");
  if (models.size() > 1) models[0] = adapted(models, paths, session.context());
  session.progress().busy("packing the weights");
  auto generator = std::make_unique<Generator>(models[0], options);
  session.progress().clear();
  return generator;
}

// A piece of text for a terminal: line breaks and tabs stay, other control characters are escaped.
std::string for_terminal(std::string_view piece) {
  std::string out;
  while (!piece.empty()) {
    const std::size_t end = piece.find_first_of("\n\t");
    out += shown(piece.substr(0, end));
    if (end == std::string_view::npos) break;
    out += piece[end];
    piece.remove_prefix(end + 1);
  }
  return out;
}

}  // namespace

Status run_generate(Session& session) {
  const Arguments& args = session.args;
  const std::string& path = args.operands.front();
  GenerateOptions options;
  args.apply(options, OptionOf::generate);
  if (args.has(FlagId::prompt) && args.has(FlagId::input)) throw Misuse("--prompt and --input cannot be used together");
  const bool reads_prompt = args.value(FlagId::prompt) == "-";
  const std::string prompt = args.has(FlagId::input) ? input_text(session)
                             : reads_prompt          ? whole_text(session, "-")
                                                     : std::string(args.value(FlagId::prompt));
  const auto generator = open_generator(session);
  const bool terminal = os::is_terminal(os::Stream::output);
  std::uint64_t pieces = 0;
  if (session.json)
    options.on_text = [&, show_progress = session.progress().hook("tokens")](std::string_view) {
      return show_progress(++pieces, options.max_tokens);
    };
  else
    options.on_text = [&](std::string_view piece) {
      session.progress().clear();
      session.out.text(terminal ? for_terminal(piece) : std::string(piece));
      session.out.flush();
      return !session.out.closed();
    };
  session.progress().busy(session.json ? "generating" : "reading the prompt");
  const Generated text = generator->session().generate(prompt, options);
  session.progress().clear();
  if (session.json) {
    const double rate = text.seconds > 0 ? static_cast<double>(text.tokens.size()) / text.seconds : 0;
    session.object(to_json(GeneratedText{text.prompt_tokens, text.tokens, text.text, name(text.stopped), rate,
                                         name(generator->precision())}));
  } else {
    session.out.text("\n");
    session.out.flush();
    if (text.stopped == Stopped::context && !session.quiet)
      complain(shown(path) + ": the context of " + grouped(generator->context()) + " tokens is full");
  }
  if (options.sampling.temperature == 0 && !session.quiet &&
      (args.has(FlagId::top_k) || args.has(FlagId::top_p) || args.has(FlagId::seed)))
    complain("--top-k, --top-p and --seed have no effect at --temperature 0, which takes the most likely token");
  return Status::done;
}

Status run_perplexity(Session& session) {
  const Arguments& args = session.args;
  const std::string& path = args.operands.front();
  const std::string text = input_text(session);
  const auto generator = open_generator(session);
  const auto begin = std::chrono::steady_clock::now();
  // The bar counts bytes, as in other verbs.
  Context context = session.context();
  if (context.progress)
    context.progress = [&, show_progress = context.progress](std::uint64_t done, std::uint64_t total) {
      return show_progress(done * text.size() / total, text.size());
    };
  const Perplexity result = perplexity(*generator, text, context);
  session.progress().clear();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (session.json)
    session.object(
        to_json(path, Likelihood{result.tokens, result.nll, result.perplexity, seconds, name(generator->precision())}));
  else
    session.out.text(fmt::format("{} tokens, mean negative log likelihood {:.4f}, perplexity {:.4f}\n",
                                 grouped(result.tokens), result.nll, result.perplexity));
  return Status::done;
}

}  // namespace weighbridge::cli
