// SPDX-License-Identifier: Apache-2.0
// search: finds the lines of a corpus that are nearest in meaning to a query. kept_vectors.h keeps the corpus' vectors.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "embedding.h"
#include "kept_vectors.h"
#include "weighbridge/hash.h"
#include "weighbridge/json.h"

namespace weighbridge::cli {
namespace {

struct Corpus {
  std::vector<std::string> texts;
  std::vector<std::string> files;   // that they are from
  std::vector<std::size_t> firsts;  // the first line of each file
  std::vector<std::size_t> lines;   // of each text; empty if each line is one
  std::vector<float> vectors;       // texts x dimension
  std::string written;              // the file that this run wrote them to; empty if it wrote none
};

// Whether a text has no token: it would score high against any short query.
bool blank(const WordPiece& words, std::string_view text) {
  std::uint32_t first = 0;
  return words.encode(text, std::span(&first, 1), {.special = false}).count == 0;
}

// Kept vectors have one for each line, so that each row of their file is that of a line. Otherwise lines without a text
// take no memory.
Corpus read_corpus(Session& session, const WordPiece& words, bool each_line) {
  Corpus out;
  std::size_t line = 0;
  for (std::string& path : corpus_files(session.args)) {
    TextFile file(session, path, text_form(session.args, path));
    out.firsts.push_back(line);
    for (std::string text; file.next(text); ++line) {
      if (!each_line && blank(words, text)) continue;
      if (!each_line) out.lines.push_back(line);
      out.texts.push_back(text);
    }
    out.files.push_back(std::move(path));
  }
  return out;
}

// Says which file a text is from, if there are several.
void locate(const Corpus& corpus, Scored& scored) {
  if (corpus.files.size() < 2) return;
  const auto after = std::ranges::upper_bound(corpus.firsts, scored.index);
  const auto file = static_cast<std::size_t>(after - corpus.firsts.begin()) - 1;
  scored.file = corpus.files[file];
  scored.line = scored.index - corpus.firsts[file] + 1;
}

// The digest of everything that the vectors depend on: weights, options, metadata, vocabulary and texts. Vectors that
// 0.1 kept must stay valid, so its words stay as they are: "normalised" is hashed, never shown.
std::string digest_of_inputs(const Session& session, const Model& model, const Embedder& embedder, const Corpus& corpus,
                             std::uint32_t version) {
  std::string all = content_digest(model, session.context(), true, version).text();
  const std::string poolings = embedder.poolings();
  for (const std::string_view part : {std::string_view(poolings), name(embedder.precision()),
                                      std::string_view(embedder.normalize() ? "normalised" : "as they are")})
    all.append("\n").append(part);
  all.append("\n").append(std::to_string(embedder.max_length())).append("\n").append(session.args.value(FlagId::heads));
  for (const std::string_view key : {"num_attention_heads", "layer_norm_eps", "hidden_act", "do_lower_case"})
    if (const Value* value = model.attribute(key)) all.append("\n").append(key).append(" ").append(value->to_text());
  // What few models have, so that vectors of the others stay valid. The kind covers the weights of modules.
  if (const std::string_view prompt = embedder.prompt(TextRole::document); !prompt.empty())
    all.append("\nprompt ").append(std::to_string(prompt.size())).append(" ").append(prompt);
  if (model.attribute("sentence_modules")) all.append("\nkind ").append(embedder.kind(session.context()));
  for (const std::string_view key :
       {"include_prompt", "truncate_dim", "strip_accents", "tokenize_chinese_chars", "tokenizer_rules"})
    if (const Value* value = model.attribute(key)) all.append("\n").append(key).append(" ").append(value->to_text());
  for (const std::string& note : embedder.notes()) all.append("\n").append(note);
  const WordPiece& words = *embedder.tokenizer();
  for (std::uint32_t id = 0; id < words.size(); ++id) all.append("\n").append(words.token(id).value_or(""));
  for (const std::string& text : corpus.texts)
    all.append("\n").append(std::to_string(text.size())).append(" ").append(text);
  const auto held = std::make_shared<const std::string>(std::move(all));
  return file_sha256(*memory_source({std::as_bytes(std::span(*held)), held})).hex();
}

void require_no_input(const std::string& path, std::span<const std::shared_ptr<const Source>> inputs) {
  std::error_code ignored;
  for (const auto& input : inputs)
    if (std::filesystem::equivalent(path, std::string(input->path()), ignored))
      raise(Kind::misuse, "misuse/output-is-input", "the output is one of the input files", path);
}

void embed_corpus(Session& session, const Embedder& embedder, Corpus& corpus, Remarks& remarks) {
  std::size_t next = 0;
  session.progress().about("the corpus");
  embed_all(
      session, embedder, corpus.texts.size(),
      [&](std::string& text) {
        if (next == corpus.texts.size()) return false;
        text = corpus.texts[next++];
        return true;
      },
      [&](std::uint64_t, const std::string&, const Embedded&, std::span<const float> vector) {
        corpus.vectors.insert(corpus.vectors.end(), vector.begin(), vector.end());
      },
      remarks, TextRole::document);
}

Corpus embedded_corpus(Session& session, const Model& model, const Embedder& embedder, Remarks& remarks) {
  const std::string kept(session.args.value(FlagId::vectors));
  Corpus corpus = read_corpus(session, *embedder.tokenizer(), !kept.empty());
  if (kept.empty()) {
    embed_corpus(session, embedder, corpus, remarks);
    return corpus;
  }
  const auto inputs = inputs_of(session, model);
  for (const std::string& output : {kept, key_path(kept)}) require_no_input(output, inputs);
  // weighbridge 0.1 kept vectors under a content digest of version 1.
  const MadeOf made_of = [&](std::uint32_t version) {
    return digest_of_inputs(session, model, embedder, corpus, version);
  };
  if (auto vectors = read_vectors(kept, made_of, corpus.texts.size(), embedder.dimension())) {
    corpus.vectors = std::move(*vectors);
    return corpus;
  }
  KeptVectors files(kept);
  embed_corpus(session, embedder, corpus, remarks);
  files.write(made_of(kDigestVersion), embedder.dimension(), corpus.vectors);
  corpus.written = kept;
  return corpus;
}

// Best first; equal scores in the order of the texts. Lines without a text are left out.
std::vector<Scored> best(const Corpus& corpus, const WordPiece& words, std::span<const float> query,
                         std::size_t maximum) {
  std::vector<Scored> all;
  for (std::size_t i = 0; i < corpus.texts.size(); ++i)
    if (!corpus.lines.empty() || !blank(words, corpus.texts[i]))
      all.push_back({corpus.lines.empty() ? i : corpus.lines[i],
                     cosine(query, std::span(corpus.vectors).subspan(i * query.size(), query.size())),
                     corpus.texts[i]});
  const auto middle = all.begin() + static_cast<std::ptrdiff_t>(std::min(maximum, all.size()));
  std::partial_sort(all.begin(), middle, all.end(), [](const Scored& a, const Scored& b) {
    return a.score != b.score ? a.score > b.score : a.index < b.index;
  });
  all.erase(middle, all.end());
  for (Scored& one : all) locate(corpus, one);
  return all;
}

void answer(Session& session, const Embedder& embedder, const Corpus& corpus, std::span<const std::string> queries,
            Remarks& remarks) {
  const std::size_t maximum = session.args.number<std::size_t>(FlagId::top);
  const bool alone = queries.size() == 1;  // several queries make an array
  JsonWriter json;
  if (!alone) json.begin_array();
  for (const std::string& query : queries) {
    const std::vector<Scored> found =
        best(corpus, *embedder.tokenizer(), embed_one(embedder, query, remarks, TextRole::query), maximum);
    if (session.json) {
      json.raw(to_json(query, found));
      session.out.text(json.take());
      continue;
    }
    if (!alone) session.out.text(shown(query) + "\n");
    for (const Scored& one : found) {
      const std::string where =
          one.line > 0 ? shown(one.file) + ":" + std::to_string(one.line) : std::to_string(one.index + 1);
      session.out.text(fmt::format("{:7.4f}  {}: ", one.score, where) + shown(one.text) + "\n");
    }
  }
  if (!session.json) return;
  if (!alone) json.end_array();
  session.out.text(json.take() + "\n");
}

}  // namespace

Status run_search(Session& session) {
  const std::string& path = session.args.operands.front();
  Model model;
  const auto embedder = open_embedder(session, path, &model);
  Remarks remarks;
  std::vector<std::string> queries;
  Texts given(session, 1);
  for (std::string query; given.next(query);) queries.push_back(query);
  const Corpus corpus = embedded_corpus(session, model, *embedder, remarks);
  if (corpus.texts.empty() && !session.quiet)
    complain(quote(session.args.value(FlagId::corpus)) +
             (corpus.files.size() > 1 ? " and the other files contain" : " contains") +
             " no text, so there is nothing to search");
  session.print_written(corpus.written, [&] { answer(session, *embedder, corpus, queries, remarks); });
  remarks.say(session, path, *embedder);
  return Status::done;
}

}  // namespace weighbridge::cli
