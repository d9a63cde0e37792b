// SPDX-License-Identifier: Apache-2.0
// Makes embedders from flags, and embeds in batches.
#include "embedding.h"

#include <cmath>

#include "interrupt.h"
#include "output.h"

namespace weighbridge::cli {
namespace {

constexpr std::size_t kMaxTexts = 1024, kMaxBytes = 64 << 10;  // of a batch; Ctrl-C takes effect between batches

EmbedOptions embed_options(const Arguments& args) {
  EmbedOptions options;
  args.apply(options, OptionOf::embed);
  options.threads = args.number(FlagId::threads, 0U);
  return options;
}

bool is_about_vocabulary(const Error& error) {
  const std::string& rule = error.finding().rule;
  return rule == "embed/vocabulary" || rule.starts_with("tokenizer/");
}

}  // namespace

std::unique_ptr<Embedder> open_embedder(Session& session, const std::string& path, Model* model) {
  EmbedOptions options = embed_options(session.args);
  end_on_bus_error();  // the weights stay mapped
  const Input input = open_input(session, path);
  if (model) *model = input.model;
  try {
    const auto vocabulary = vocabulary_of(session);
    if (vocabulary) options.vocabulary = &*vocabulary;
    session.progress().busy("packing the weights");
    auto embedder = std::make_unique<Embedder>(input.model, options);
    session.progress().clear();
    if (!session.quiet)
      for (const std::string& note : embedder->notes()) complain(shown(path) + ": " + shown(note));
    if (!embedder->tokenizer())
      raise(Kind::misuse, "misuse/no-vocabulary", "the model has no vocabulary: give it one, as a vocab.txt has it", {},
            {Hint::What::option, "vocabulary", "vocab.txt"});
    return embedder;
  } catch (const Error& error) {
    const bool of_vocabulary = options.vocabulary != nullptr && is_about_vocabulary(error);
    throw of_vocabulary ? error.in(session.args.value(FlagId::vocab)) : error;
  }
}

std::vector<std::shared_ptr<const Source>> inputs_of(const Session& session, const Model& model) {
  std::vector<std::shared_ptr<const Source>> out(model.sources().begin(), model.sources().end());
  for (const FlagId id : {FlagId::input, FlagId::vocab})
    if (const std::string path(session.args.value(id)); !path.empty() && path != "-") out.push_back(open_file(path));
  for (const std::string& path : corpus_files(session.args))
    if (path != "-") out.push_back(open_file(path));
  return out;
}

void Remarks::add(const Embedded& what) {
  truncated_ += what.truncated ? 1 : 0;
  damaged_ += what.replaced > 0 ? 1 : 0;
  replaced_ += what.replaced;
}

void Remarks::say(const Session& session, std::string_view path, const Embedder& embedder) const {
  if (session.quiet) return;
  const auto texts = [](std::uint64_t n, const char* one, const char* many) {
    return grouped(n) + (n == 1 ? one : many);
  };
  if (truncated_ > 0)
    complain(shown(path) + ": " + texts(truncated_, " text was", " texts were") + " cut to " +
             grouped(embedder.max_length()) + " tokens (--max-length)");
  if (replaced_ > 0)
    complain(shown(path) + ": " + texts(damaged_, " text held", " texts held") + " invalid UTF-8, read as " +
             texts(replaced_, " replacement character", " replacement characters"));
}

void embed_all(Session& session, const Embedder& embedder, std::uint64_t total,
               const std::function<bool(std::string&)>& next, const UseVector& use, Remarks& remarks, TextRole role) {
  const auto dimension = static_cast<std::size_t>(embedder.dimension());
  std::vector<std::string> texts;
  std::vector<std::string_view> views;
  std::vector<float> vectors;
  std::vector<Embedded> what;
  std::uint64_t index = 0;
  const auto show_progress = session.progress().hook("texts");
  const auto flush = [&] {
    if (!show_progress(index, total)) throw Cancelled{};
    views.assign(texts.begin(), texts.end());
    vectors.resize(texts.size() * dimension);
    what.resize(texts.size());
    embedder.embed(views, vectors, what, embedder.prompt(role));
    for (const Embedded& one : what) remarks.add(one);
    for (std::size_t i = 0; i < texts.size(); ++i)
      use(index++, texts[i], what[i], std::span(vectors).subspan(i * dimension, dimension));
    texts.clear();
  };
  std::size_t bytes = 0;
  for (std::string text; next(text);) {
    bytes += text.size();
    texts.push_back(std::move(text));
    if (texts.size() < kMaxTexts && bytes < kMaxBytes) continue;
    flush();
    bytes = 0;
  }
  if (!texts.empty()) flush();
  if (!show_progress(index, total)) throw Cancelled{};  // before a caller publishes what an interrupted run made
  session.progress().clear();
}

std::vector<float> embed_one(const Embedder& embedder, std::string_view text, Remarks& remarks, TextRole role) {
  std::vector<float> out(static_cast<std::size_t>(embedder.dimension()));
  Embedded what;
  embedder.embed(std::span(&text, 1), out, std::span(&what, 1), embedder.prompt(role));
  remarks.add(what);
  return out;
}

double dot(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

double cosine(std::span<const float> a, std::span<const float> b) {
  const double lengths = std::sqrt(dot(a, a) * dot(b, b));
  return lengths > 0 ? dot(a, b) / lengths : 0;
}

}  // namespace weighbridge::cli
