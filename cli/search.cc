// SPDX-License-Identifier: Apache-2.0
// search: the lines of a corpus nearest in meaning to a query. Owns keeping the corpus' vectors between runs.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <vector>

#include "embedding.h"
#include "weighbridge/hash.h"
#include "weighbridge/json.h"
#include "weighbridge/npy.h"
#include "weighbridge/output.h"

namespace weighbridge::cli {
namespace {

struct Corpus {
  std::vector<std::string> texts;
  std::vector<float> vectors;  // texts x dimension
};

std::vector<std::string> read_corpus(Session& session) {
  TextFile file(session, std::string(session.args.value(FlagId::corpus)),
                text_form(session.args, session.args.value(FlagId::corpus)));
  std::vector<std::string> out;
  for (std::string text; file.next(text);) out.push_back(text);
  return out;
}

// What the vectors depend on: the weights, the options and metadata that shape a vector, the vocabulary, the texts.
std::string key_of(const Session& session, const Model& model, const Embedder& embedder, const Corpus& corpus) {
  std::string all = content_digest(model, session.context()).hex();
  for (const std::string_view part : {name(embedder.pooling()), name(embedder.precision()),
                                      std::string_view(embedder.normalize() ? "normalized" : "as they are")})
    all.append("\n").append(part);
  all.append("\n").append(std::to_string(embedder.max_length())).append("\n").append(session.args.value(FlagId::heads));
  for (const std::string_view key : {"num_attention_heads", "layer_norm_eps", "hidden_act", "do_lower_case"})
    if (const Value* value = model.attributes().find(key))
      all.append("\n").append(key).append(" ").append(value->to_text());
  const WordPiece& words = *embedder.tokenizer();
  for (std::uint32_t id = 0; id < words.size(); ++id) all.append("\n").append(words.token(id).value_or(""));
  for (const std::string& text : corpus.texts)
    all.append("\n").append(std::to_string(text.size())).append(" ").append(text);
  const auto held = std::make_shared<const std::string>(std::move(all));
  return file_sha256(*memory_source({std::as_bytes(std::span(*held)), held})).hex() + "\n";
}

std::string read_text(const std::string& path) {
  const auto source = open_file(path);
  std::string text(static_cast<std::size_t>(std::min<std::uint64_t>(source->size(), 4096)), '\0');
  source->read_at(0, std::as_writable_bytes(std::span(text)));
  return text;
}

// The vectors of --vectors where that file is there and was made for this corpus.
bool read_vectors(const std::string& path, const std::string& key, std::uint64_t dimension, Corpus& corpus) {
  std::error_code ignored;
  if (path.empty() || !std::filesystem::exists(path, ignored)) return false;
  if (std::filesystem::is_directory(path, ignored))
    raise(Kind::misuse, "misuse/vectors", "'" + path + "' is a directory: name a file for the vectors");
  if (!std::filesystem::exists(path + ".key", ignored))
    raise(Kind::misuse, "misuse/vectors",
          "'" + path + "' was not made by search, which writes '" + path + ".key' beside its vectors: name another");
  if (read_text(path + ".key") != key)
    raise(Kind::misuse, "misuse/vectors",
          "'" + path + "' holds vectors of another corpus, model or options, says '" + path +
              ".key': remove it, or name another");
  const std::uint64_t shape[] = {corpus.texts.size(), dimension};
  const std::string header = npy_header("<f4", shape);
  const auto source = open_file(path);
  const std::uint64_t size = header.size() + corpus.texts.size() * dimension * sizeof(float);
  std::string there(header.size(), '\0');
  if (source->size() == size) source->read_at(0, std::as_writable_bytes(std::span(there)));
  if (there != header)
    raise(Kind::misuse, "misuse/vectors",
          "'" + path + "' does not hold the " + grouped(corpus.texts.size()) + " vectors of " + grouped(dimension) +
              " floats that this corpus has: remove it, or name another");
  corpus.vectors.resize(corpus.texts.size() * static_cast<std::size_t>(dimension));
  source->read_at(header.size(), std::as_writable_bytes(std::span(corpus.vectors)));
  return true;
}

// The key gets its name first: vectors without it would be another corpus'. It goes again where they
// have got none.
void write_vectors(OutputFile& out, const std::string& path, const std::string& key, std::uint64_t dimension,
                   const Corpus& corpus) {
  const std::uint64_t shape[] = {corpus.texts.size(), dimension};
  const std::string header = npy_header("<f4", shape);
  out.write(std::as_bytes(std::span(header)));
  out.write(std::as_bytes(std::span(corpus.vectors)));
  OutputFile key_file(path + ".key", true);
  key_file.write(std::as_bytes(std::span(key)));
  try {
    key_file.publish();
    out.publish();
  } catch (...) {
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) std::filesystem::remove(path + ".key", ignored);
    throw;
  }
}

Corpus embedded_corpus(Session& session, const Model& model, const Embedder& embedder, Remarks& remarks) {
  Corpus corpus{read_corpus(session), {}};
  const std::string kept(session.args.value(FlagId::vectors));
  const std::string key = kept.empty() ? std::string() : key_of(session, model, embedder, corpus);
  if (read_vectors(kept, key, embedder.dimension(), corpus)) return corpus;
  std::optional<OutputFile> out;
  if (!kept.empty()) out.emplace(kept, false);  // before the work, so that what cannot be written is said at once
  std::size_t next = 0;
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
      remarks);
  if (out) write_vectors(*out, kept, key, embedder.dimension(), corpus);
  return corpus;
}

bool blank(std::string_view text) { return text.find_first_not_of(" \t\r\n\v\f") == std::string_view::npos; }

// Best first; of equal scores the earlier text. Blank lines are near to everything that says little, and no answer.
std::vector<Scored> best(const Corpus& corpus, std::span<const float> query, std::size_t most) {
  std::vector<Scored> all;
  for (std::size_t i = 0; i < corpus.texts.size(); ++i)
    if (!blank(corpus.texts[i]))
      all.push_back(
          {i, cosine(query, std::span(corpus.vectors).subspan(i * query.size(), query.size())), corpus.texts[i]});
  const auto middle = all.begin() + static_cast<std::ptrdiff_t>(std::min(most, all.size()));
  std::partial_sort(all.begin(), middle, all.end(), [](const Scored& a, const Scored& b) {
    return a.score != b.score ? a.score > b.score : a.index < b.index;
  });
  all.erase(middle, all.end());
  return all;
}

}  // namespace

Status run_search(Session& session) {
  const std::string& path = session.args.operands.front();
  if (!session.args.has(FlagId::corpus)) throw Misuse("search needs --corpus FILE, a text a line");
  const std::size_t most = session.args.number(FlagId::top, 5U);
  Status status = Status::done;
  Model model;
  const auto embedder = open_embedder(session, path, status, &model);
  if (!embedder) return status;
  try {
    Remarks remarks;
    const Corpus corpus = embedded_corpus(session, model, *embedder, remarks);
    if (corpus.texts.empty() && !session.quiet)
      complain(quote(session.args.value(FlagId::corpus)) + " holds no text, so there is nothing to find");
    for (std::size_t q = 1; q < session.args.operands.size(); ++q) {
      const std::string& query = session.args.operands[q];
      const std::vector<Scored> found = best(corpus, embed_one(*embedder, query, remarks), most);
      if (session.json) {
        const bool alone = session.args.operands.size() == 2;
        session.out.text(std::string(alone ? "" : q == 1 ? "[" : ",\n") + to_json(query, found));
        if (q + 1 == session.args.operands.size()) session.out.text(alone ? "\n" : "]\n");
        continue;
      }
      if (session.args.operands.size() > 2) session.out.text(shown(query) + "\n");
      for (const Scored& one : found) {
        session.out.text(fmt::format("{:7.4f}  {}: ", one.score, one.index + 1) + shown(one.text) + "\n");
      }
    }
    remarks.say(session, path, *embedder);
  } catch (const Error& error) {
    return session.fail(path, error);
  }
  return Status::done;
}

}  // namespace weighbridge::cli
