// SPDX-License-Identifier: Apache-2.0
// embed and similarity: vectors of texts, and the cosine of two of them.
#include <fmt/format.h>

#include <optional>
#include <utility>
#include <vector>

#include "arrow_stream.h"
#include "embedding.h"
#include "weighbridge/hash.h"
#include "weighbridge/json.h"
#include "weighbridge/npy.h"
#include "weighbridge/output.h"

namespace weighbridge::cli {
namespace {

enum class Form : std::uint8_t { jsonl, npy, f32, arrow };

// Writes vectors in one of the forms, to standard output or to a file.
class Vectors {
 public:
  Vectors(Session& session, const Model& model, const Embedder& embedder)
      : session_(session), dimension_(embedder.dimension()) {
    const std::string_view path = session.args.value(FlagId::output);
    form_ = form_of(session.args.value(FlagId::output_format), path);
    const bool to_file = !path.empty() && path != "-";
    if (form_ == Form::npy && !to_file)
      throw Misuse(
          "--output-format npy needs -o FILE, because its header states the number of vectors; f32 and arrow can be "
          "piped");
    if (form_ != Form::jsonl && !to_file && session.json)
      throw Misuse("with --json, vectors in this form cannot go to standard output: give -o FILE");
    if (form_ != Form::jsonl && !to_file && session.out.columns() > 0)
      raise(Kind::misuse, "misuse/terminal",
            "refusing to write binary data to a terminal: give -o FILE, or pipe the output to a program");
    if (to_file) file_.emplace(std::string(path), session.args.has(FlagId::overwrite), inputs_of(session, model));
    if (to_file && form_ == Form::jsonl && !session.args.has(FlagId::output_format)) require_fitting_name(path);
    if (form_ == Form::npy) write(header(0));
    if (form_ == Form::arrow) write(schema(model, embedder));
  }
  void add(std::uint64_t index, const Embedded& what, std::span<const float> vector) {
    ++count_;
    switch (form_) {
      case Form::jsonl:
        write(to_json(EmbeddedText{index, what.tokens, what.replaced, what.truncated, vector}) + "\n");
        break;
      case Form::npy:
      case Form::f32: write(std::as_bytes(vector)); break;
      case Form::arrow:
        batch_.insert(batch_.end(), vector.begin(), vector.end());
        if (batch_.size() >= kBatch) write_batch();
        break;
    }
  }
  std::uint64_t count() const noexcept { return count_; }
  // Publishes the file, and reports it if nothing else is printed.
  void publish() {
    if (form_ == Form::npy) {
      const std::string again = header(count_);
      file_->rewrite(0, std::as_bytes(std::span(again)));
    }
    if (form_ == Form::arrow) {
      write_batch();
      write(arrow_end());
    }
    if (!file_) return;
    file_->publish();
    if (session_.json || session_.quiet) return;
    const std::string_view path = session_.args.value(FlagId::output);
    session_.print_written(path, [&] {
      session_.out.text(shown(path) + ": " + grouped(count_) + (count_ == 1 ? " vector of " : " vectors of ") +
                        grouped(dimension_) + " floats, written\n");
    });
  }

 private:
  static constexpr std::size_t kBatch = std::size_t{1} << 18;  // floats

  // By the flag, else by the name, as extract does.
  static Form form_of(std::string_view named, std::string_view path) {
    constexpr std::pair<std::string_view, Form> kForms[] = {
        {"jsonl", Form::jsonl}, {"npy", Form::npy}, {"f32", Form::f32}, {"arrow", Form::arrow}};
    for (const auto& [name, form] : kForms)
      if (named == name || (named.empty() && form != Form::jsonl && path.ends_with("." + std::string(name))))
        return form;
    return Form::jsonl;
  }
  // Refuses lines under the name of another kind of file.
  static void require_fitting_name(std::string_view path) {
    constexpr std::string_view kOthers[] = {".csv",     ".tsv",     ".txt", ".npz",
                                            ".parquet", ".feather", ".pt",  ".safetensors"};
    if (const std::string extension = extension_of(path); std::ranges::find(kOthers, extension) != std::end(kOthers))
      throw Misuse("embed writes lines of JSON, NumPy, bare floats and Arrow, not " + extension +
                   ": name the output .jsonl, .npy, .f32 or .arrow, or give --output-format");
  }
  std::string schema(const Model& model, const Embedder& embedder) const {
    const std::pair<std::string, std::string> metadata[] = {
        {"weighbridge.model", content_digest(model, session_.context()).text()},
        {"weighbridge.pooling", embedder.poolings()},
        {"weighbridge.precision", std::string(name(embedder.precision()))},
        {"weighbridge.normalized", embedder.normalize() ? "true" : "false"}};
    return arrow_schema("embedding", dimension_, metadata);
  }
  void write_batch() {
    if (batch_.empty()) return;
    write(arrow_batch(batch_.size() / dimension_, dimension_));
    write(std::as_bytes(std::span(batch_)));
    if (batch_.size() % 2 != 0) write(std::string(4, '\0'));
    batch_.clear();
  }
  // Has the same length for any count.
  std::string header(std::uint64_t count) const {
    const std::uint64_t shape[] = {count, dimension_};
    return npy_header("<f4", shape);
  }
  void write(std::span<const std::byte> bytes) {
    if (file_)
      file_->write(bytes);
    else
      session_.out.text({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  void write(const std::string& text) { write(std::as_bytes(std::span(text))); }

  Session& session_;
  std::uint64_t dimension_, count_ = 0;
  Form form_ = Form::jsonl;
  std::vector<float> batch_;  // vectors of arrow that are not yet written
  std::optional<OutputFile> file_;
};

}  // namespace

Status run_embed(Session& session) {
  const std::string& path = session.args.operands.front();
  Texts texts(session, 1);
  Model model;
  const auto embedder = open_embedder(session, path, &model);
  Vectors vectors(session, model, *embedder);
  Remarks remarks;
  if (session.args.has(FlagId::input)) session.progress().about(session.args.value(FlagId::input));
  embed_all(
      session, *embedder, session.args.operands.size() - 1,
      [&](std::string& text) { return !session.out.closed() && texts.next(text); },
      [&](std::uint64_t index, const std::string&, const Embedded& what, std::span<const float> vector) {
        vectors.add(index, what, vector);
      },
      remarks);
  vectors.publish();
  if (vectors.count() == 0 && !session.quiet)
    complain((session.args.has(FlagId::input) ? quote(session.args.value(FlagId::input)) : "standard input") +
             " contains no text, so there are no vectors");
  remarks.say(session, path, *embedder);
  return Status::done;
}

Status run_similarity(Session& session) {
  const std::string& path = session.args.operands.front();
  const auto embedder = open_embedder(session, path);
  std::vector<std::string> texts;
  Texts given(session, 1);
  for (std::string text; given.next(text);) texts.push_back(text);
  if (texts.size() < 2) throw Misuse("similarity needs another TEXT: standard input has " + grouped(texts.size()));
  std::vector<std::vector<float>> vectors;
  Remarks remarks;
  for (const std::string& text : texts) vectors.push_back(embed_one(*embedder, text, remarks));
  std::vector<Scored> scores;
  for (std::size_t i = 1; i < texts.size(); ++i) scores.push_back({i - 1, cosine(vectors[0], vectors[i]), texts[i]});
  if (session.json) {
    session.object(to_json(texts[0], scores));
  } else {
    for (const Scored& score : scores) {
      session.out.text(fmt::format("{:.6f}", score.score) +
                       (scores.size() == 1 ? std::string() : "  " + shown(score.text)) + "\n");
    }
  }
  remarks.say(session, path, *embedder);
  return Status::done;
}

}  // namespace weighbridge::cli
