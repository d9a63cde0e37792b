// SPDX-License-Identifier: Apache-2.0
// Tokenizes, embeds and generates.
#include <chrono>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "functions.h"
#include "models.h"
#include "weighbridge/embed.h"
#include "weighbridge/generate.h"
#include "weighbridge/json.h"
#include "weighbridge/tokenize.h"

namespace weighbridge::web {
namespace {

Table<Embedder>& embedders() {
  static Table<Embedder> table;
  return table;
}
Table<std::shared_ptr<Generator>>& generators() {
  static Table<std::shared_ptr<Generator>> table;
  return table;
}

// A running generation: its text, its session, and how much of the text JavaScript has received.
struct Writing {
  std::shared_ptr<Generator> generator;  // outlives the session
  Session session;
  std::unique_ptr<Generation> generation;
  std::size_t sent = 0;
};
Table<Writing>& writings() {
  static Table<Writing> table;
  return table;
}

TextRole role_of(std::string_view word) {
  if (word == "query") return TextRole::query;
  if (word == "document") return TextRole::document;
  return TextRole::text;
}

std::vector<std::string> texts_of(const val& list) { return emscripten::vecFromJSArray<std::string>(list); }

}  // namespace

std::string tokenize(int model, const std::string& text, bool special) {
  return answer({}, [&] { return to_json(TextTokenizer(models().get(model), {.special = special})(text)); });
}

std::string make_embedder(int model, const val& options) {
  return answer({}, [&] {
    auto asked = made<EmbedOptions>(OptionOf::embed, options);
    asked.threads = 1;
    Tokenizer vocabulary;
    for (const std::string& path : option_texts(options, "vocabulary")) {
      vocabulary = WordPiece::vocabulary(*open_file(path));
      asked.vocabulary = &vocabulary;
    }
    Embedder embedder(models().get(model), asked);
    const std::uint64_t dimension = embedder.dimension(), max_length = embedder.max_length();
    const std::vector<std::string> notes = embedder.notes();
    return object([&](JsonWriter& out) {
      out.member("embedder", embedders().add(std::move(embedder)));
      out.member("dimension", dimension);
      out.member("max_length", max_length);
      out.key("notes").begin_array();
      for (const std::string& note : notes) out.string(note);
      out.end_array();
    });
  });
}

val embed(int embedder, const val& list, const std::string& role) {
  return answer_value({}, [&] {
    const Embedder& made = embedders().get(embedder);
    const std::vector<std::string> texts = texts_of(list);
    const std::vector<std::string_view> views(texts.begin(), texts.end());
    std::vector<float> out(views.size() * static_cast<std::size_t>(made.dimension()));
    made.embed(views, out, {}, made.prompt(role_of(role)));
    return copied(std::span<const float>(out));
  });
}

void close_embedder(int embedder) { embedders().remove(embedder); }

std::string make_generator(int model, const val& options) {
  return answer({}, [&] {
    auto asked = made<GeneratorOptions>(OptionOf::generator, options);
    asked.threads = 1;
    const auto generator = std::make_shared<Generator>(models().get(model), asked);
    return object([&](JsonWriter& out) {
      out.member("generator", generators().add(generator));
      out.member("vocabulary", std::uint64_t{generator->vocabulary()});
      out.member("context", std::uint64_t{generator->context()});
    });
  });
}

std::string generate(int generator, const std::string& prompt, const val& options) {
  return answer({}, [&] {
    const auto asked = made<GenerateOptions>(OptionOf::generate, options);
    const std::shared_ptr<Generator> running = generators().get(generator);
    Writing writing{running, running->session(), nullptr};
    writing.generation = std::make_unique<Generation>(writing.session.begin(prompt, asked));
    const std::uint64_t tokens = writing.generation->result().prompt_tokens;
    return object([&](JsonWriter& out) {
      out.member("generation", writings().add(std::move(writing)));
      out.member("prompt_tokens", tokens);
    });
  });
}

std::string next(int generation, double milliseconds) {
  return answer({}, [&] {
    using Clock = std::chrono::steady_clock;
    Writing& writing = writings().get(generation);
    const auto until = Clock::now() + std::chrono::duration<double, std::milli>(milliseconds);
    bool more = true;
    do more = writing.generation->step();
    while (more && Clock::now() < until);
    const Generated& made = writing.generation->result();
    return object([&](JsonWriter& out) {
      out.member("text", std::string_view(made.text).substr(writing.sent));
      out.member("tokens", std::uint64_t{made.tokens.size()});
      out.flag("done", !more);
      writing.sent = made.text.size();
      if (more) return;
      const double rate = made.seconds > 0 ? static_cast<double>(made.tokens.size()) / made.seconds : 0;
      out.key("result");
      out.raw(to_json(GeneratedText{made.prompt_tokens, made.tokens, made.text, name(made.stopped), rate,
                                    name(writing.generator->precision())}));
    });
  });
}

void close_generation(int generation) { writings().remove(generation); }
void close_generator(int generator) { generators().remove(generator); }

}  // namespace weighbridge::web
