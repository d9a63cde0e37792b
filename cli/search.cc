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
  std::string written;         // the file that keeps them now; empty: none, or it was there
};

std::vector<std::string> read_corpus(Session& session) {
  TextFile file(session, std::string(session.args.value(FlagId::corpus)),
                text_form(session.args, session.args.value(FlagId::corpus)));
  std::vector<std::string> out;
  for (std::string text; file.next(text);) out.push_back(text);
  return out;
}

// What the vectors depend on: the weights, the options and metadata that shape a vector, the vocabulary, the texts.
std::string digest_of_inputs(const Session& session, const Model& model, const Embedder& embedder,
                             const Corpus& corpus) {
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
  return file_sha256(*memory_source({std::as_bytes(std::span(*held)), held})).hex();
}

// What the key file says: of what vectors were made, and which file of vectors it belongs to, since runs side by side
// and people part files that were written together.
struct Key {
  std::string made_of, vectors;  // digests, 64 digits each

  std::string text() const { return "made-of=" + made_of + "\nvectors=" + vectors + "\n"; }
};

std::string key_path(const std::string& kept) { return kept + ".key"; }

// Nothing where the file is no key.
std::optional<Key> read_key(const std::string& path) {
  const auto source = open_file(path);
  Key key{std::string(64, '0'), std::string(64, '0')};
  std::string text = key.text();
  if (source->size() != text.size()) return std::nullopt;
  source->read_at(0, std::as_writable_bytes(std::span(text)));
  key = {text.substr(text.find('=') + 1, 64), text.substr(text.size() - 65, 64)};
  const bool digits = (key.made_of + key.vectors).find_first_not_of("0123456789abcdef") == std::string::npos;
  return digits && key.text() == text ? std::optional(key) : std::nullopt;
}

// The bytes of the NumPy file, which need not lie in memory a second time to be hashed.
class NpyBytes final : public Source {
 public:
  NpyBytes(std::string_view header, std::span<const float> vectors)
      : header_(std::as_bytes(std::span(header))), vectors_(std::as_bytes(vectors)) {}
  std::uint64_t size() const noexcept override { return header_.size() + vectors_.size(); }
  void read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    for (std::size_t i = 0; i < out.size();) {
      const auto at = static_cast<std::size_t>(offset) + i;
      const auto from = at < header_.size() ? header_.subspan(at) : vectors_.subspan(at - header_.size());
      const auto piece = from.first(std::min(from.size(), out.size() - i));
      std::ranges::copy(piece, out.subspan(i).begin());
      i += piece.size();
    }
  }
  std::string_view name() const noexcept override { return "<vectors>"; }

 private:
  std::span<const std::byte> header_, vectors_;
};

[[noreturn]] void refuse_vectors(std::string sentence) { raise(Kind::misuse, "misuse/vectors", std::move(sentence)); }

std::string header_of(const Corpus& corpus, std::uint64_t dimension) {
  const std::uint64_t shape[] = {corpus.texts.size(), dimension};
  return npy_header("<f4", shape);
}

// The vectors of --vectors where that file is there and was made for this corpus.
bool read_vectors(const std::string& path, const std::string& made_of, std::uint64_t dimension, Corpus& corpus) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return false;
  if (std::filesystem::is_directory(path, ignored))
    refuse_vectors("'" + path + "' is a directory: name a file for the vectors");
  const bool has_key = std::filesystem::exists(key_path(path), ignored);
  const std::optional<Key> key = has_key ? read_key(key_path(path)) : std::nullopt;
  if (!key)
    refuse_vectors("'" + path + "' was not made by search, which writes '" + key_path(path) +
                   "' beside its vectors: name another");
  if (key->made_of != made_of)
    refuse_vectors("'" + path + "' holds vectors of another corpus, model or options, says '" + key_path(path) +
                   "': remove it, or name another");
  const std::string header = header_of(corpus, dimension);
  const auto source = open_file(path);
  const std::uint64_t floats = corpus.texts.size() * dimension;
  if (source->size() != header.size() + floats * sizeof(float) || file_sha256(*source).hex() != key->vectors)
    refuse_vectors("'" + path + "' does not hold the vectors that '" + key_path(path) +
                   "' was written for: remove it, or name another");
  corpus.vectors.resize(static_cast<std::size_t>(floats));
  source->read_at(header.size(), std::as_writable_bytes(std::span(corpus.vectors)));
  return true;
}

// The vectors and their key, whose temporaries are there before the work, so that what cannot be written is said at
// once.
class KeptVectors {
 public:
  explicit KeptVectors(const std::string& path)
      : path_(path),
        key_path_(key_path(path)),
        key_left_(key_is_left(key_path_)),
        vectors_file_(path, false),
        key_file_(key_path_, key_left_) {}

  void write(const std::string& made_of, std::uint64_t dimension, const Corpus& corpus) {
    const std::string header = header_of(corpus, dimension);
    vectors_file_.write(std::as_bytes(std::span(header)));
    vectors_file_.write(std::as_bytes(std::span(corpus.vectors)));
    const std::string key = Key{made_of, file_sha256(NpyBytes(header, corpus.vectors)).hex()}.text();
    publish(key);
  }

 private:
  static void write_key(OutputFile& file, const std::string& key) {
    file.write(std::as_bytes(std::span(key)));
    file.publish();
  }

  // Whether a key is there, which a run that ended early has left without its vectors. Throws where it is anything
  // else, which is not this program's to replace.
  static bool key_is_left(const std::string& path) {
    std::error_code ignored;
    const std::filesystem::file_status there = std::filesystem::symlink_status(path, ignored);
    if (!std::filesystem::exists(there)) return false;
    if (!std::filesystem::is_regular_file(there))
      raise(Kind::misuse, "misuse/output-kind",
            "cannot write '" + path + "', the key of the vectors: it is " +
                (std::filesystem::is_directory(there) ? "a directory"
                 : std::filesystem::is_symlink(there) ? "a symbolic link"
                                                      : "no regular file"));
    if (!read_key(path))
      raise(Kind::misuse, "misuse/output-exists",
            "'" + path + "' exists, and is no key of vectors that search keeps: name another file for the vectors");
    return true;
  }

  // The key gets its name first, and of several runs one alone gives it: vectors without a key could not be told from
  // another's. One that was not there before goes again where they have got none, unless it is another run's.
  void publish(const std::string& key) {
    std::error_code ignored;
    if (key_left_) key_is_left(key_path_);
    if (std::filesystem::exists(path_, ignored))
      raise(Kind::misuse, "misuse/output-exists", "'" + path_ + "' exists: it was made in the meantime");
    try {
      write_key(key_file_, key);
      vectors_file_.publish();
    } catch (const Error& error) {
      if (!key_left_ && error.kind() != Kind::misuse && !std::filesystem::exists(path_, ignored))
        std::filesystem::remove(key_path_, ignored);
      throw;
    }
    // A run that found the key alone has taken it for one left over. The vectors are this run's, and so is their key.
    if (const std::optional<Key> now = read_key(key_path_); now && now->text() != key) {
      OutputFile again(key_path_, true);
      write_key(again, key);
    }
  }

  std::string path_, key_path_;
  bool key_left_;
  OutputFile vectors_file_, key_file_;
};

void require_no_input(const std::string& path, std::span<const std::shared_ptr<const Source>> inputs) {
  std::error_code ignored;
  for (const auto& input : inputs)
    if (std::filesystem::equivalent(path, std::string(input->name()), ignored))
      raise(Kind::misuse, "misuse/output-is-input", "'" + path + "' is a file that is being read");
}

void embed_corpus(Session& session, const Embedder& embedder, Corpus& corpus, Remarks& remarks) {
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
}

Corpus embedded_corpus(Session& session, const Model& model, const Embedder& embedder, Remarks& remarks) {
  Corpus corpus{read_corpus(session), {}, {}};
  const std::string kept(session.args.value(FlagId::vectors));
  if (kept.empty()) {
    embed_corpus(session, embedder, corpus, remarks);
    return corpus;
  }
  const auto inputs = inputs_of(session, model);
  for (const std::string& output : {kept, key_path(kept)}) require_no_input(output, inputs);
  const std::string made_of = digest_of_inputs(session, model, embedder, corpus);
  if (read_vectors(kept, made_of, embedder.dimension(), corpus)) return corpus;
  KeptVectors files(kept);
  embed_corpus(session, embedder, corpus, remarks);
  files.write(made_of, embedder.dimension(), corpus);
  corpus.written = kept;
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

void answer(Session& session, const Embedder& embedder, const Corpus& corpus, Remarks& remarks) {
  const std::size_t most = session.args.number(FlagId::top, 5U);
  for (std::size_t q = 1; q < session.args.operands.size(); ++q) {
    const std::string& query = session.args.operands[q];
    const std::vector<Scored> found = best(corpus, embed_one(embedder, query, remarks), most);
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
}

}  // namespace

Status run_search(Session& session) {
  const std::string& path = session.args.operands.front();
  if (!session.args.has(FlagId::corpus)) throw Misuse("search needs --corpus FILE, a text a line");
  Status status = Status::done;
  Model model;
  const auto embedder = open_embedder(session, path, status, &model);
  if (!embedder) return status;
  try {
    Remarks remarks;
    const Corpus corpus = embedded_corpus(session, model, *embedder, remarks);
    if (corpus.texts.empty() && !session.quiet)
      complain(quote(session.args.value(FlagId::corpus)) + " holds no text, so there is nothing to find");
    session.tell_written(corpus.written, [&] { answer(session, *embedder, corpus, remarks); });
    remarks.say(session, path, *embedder);
  } catch (const Error& error) {
    return session.fail(path, error);
  }
  return Status::done;
}

}  // namespace weighbridge::cli
