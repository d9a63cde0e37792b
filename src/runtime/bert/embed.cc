// SPDX-License-Identifier: Apache-2.0
// The public Embedder: texts to ids in rounds, rounds to batches, batches to threads.
#include "weighbridge/embed.h"
#include "base/checked.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <future>
#include <mutex>
#include <string>

#include "base/fail.h"
#include "convert/own_names.h"
#include "core/words.h"
#include "runtime/bert/encoder.h"
#include "tokenizers/described.h"

namespace weighbridge {
namespace {

using bert::Sequence;

// Tokens that one thread takes through all layers together: enough to make loading the weights cheap, few enough that
// the activations between two products fit the second-level cache.
constexpr std::size_t kBatchTokens = 128;
constexpr std::uint64_t kRoundTokens = 16'384;

constexpr Pooling kPoolings[] = {Pooling::mean, Pooling::cls, Pooling::max};
constexpr Precision kPrecisions[] = {Precision::f32, Precision::f16, Precision::int8};

template <class Enum, std::size_t N> std::optional<Enum> of_name(const Enum (&all)[N], std::string_view text) noexcept {
  for (const Enum one : all)
    if (name(one) == text) return one;
  return std::nullopt;
}

std::optional<WordPiece> make_tokenizer(const Model& model, const bert::Config& config, const EmbedOptions& options) {
  const auto own = options.vocabulary != nullptr ? nullptr : tokenizers::describe(model).tokenizer;
  const Tokenizer* vocabulary = options.vocabulary != nullptr ? options.vocabulary : own.get();
  if (vocabulary == nullptr) return std::nullopt;
  WordPiece out(*vocabulary, {.lower_case = config.lower_case});
  if (out.size() > config.vocabulary)
    bert::fail("vocabulary", config.prefix + "embeddings.word_embeddings.weight",
               "the vocabulary has ids up to " + std::to_string(out.size() - 1) + ", and tensor '" + config.prefix +
                   "embeddings.word_embeddings.weight' has " + std::to_string(config.vocabulary) +
                   " rows in this model");
  return out;
}

}  // namespace

std::string_view name(Pooling pooling) noexcept {
  switch (pooling) {
    case Pooling::mean: return "mean";
    case Pooling::cls: return "cls";
    case Pooling::max: return "max";
  }
  return "";
}
std::string_view name(Precision precision) noexcept {
  switch (precision) {
    case Precision::f32: return "f32";
    case Precision::f16: return "f16";
    case Precision::int8: return "int8";
  }
  return "";
}

std::optional<Pooling> pooling_from_name(std::string_view text) noexcept { return of_name(kPoolings, text); }
std::optional<Precision> precision_from_name(std::string_view text) noexcept { return of_name(kPrecisions, text); }

std::vector<std::string_view> EmbedOptions::words(std::string_view option) {
  std::vector<std::string_view> out;
  if (option == "pooling")
    for (const Pooling one : kPoolings) out.push_back(name(one));
  if (option == "precision")
    for (const Precision one : kPrecisions) out.push_back(name(one));
  return out;
}

void EmbedOptions::set(std::string_view option, std::string_view text) {
  core::check_word(option, text, words(option));
  if (option == "pooling") pooling = pooling_from_name(text);
  if (option == "precision") precision = *precision_from_name(text);
}

struct Embedder::Rep {
  Rep(const Model& opened, const EmbedOptions& options)
      : model(convert::as_encoder(opened)),
        config(bert::read_config(model, options)),
        precision(options.precision),
        round_tokens(options.batch_tokens == 0 ? kRoundTokens : options.batch_tokens),
        executor(thread_executor(options.threads)),
        coming(
            std::async(executor->concurrency() > 1 ? std::launch::async | std::launch::deferred : std::launch::deferred,
                       [&] { return make_tokenizer(model, config, options); })),
        arithmetic(bert::arithmetic_of(precision)),
        weights(bert::load_weights(model, config, arithmetic, *executor)),
        encoder(config, weights, arithmetic),
        tokenizer(coming.get()),
        team(executor->concurrency()) {
    executor.reset();
  }

  const Model model;
  const bert::Config config;
  const Precision precision;
  const std::uint64_t round_tokens;
  std::shared_ptr<Executor> executor;            // used only for opening
  std::future<std::optional<WordPiece>> coming;  // the tokenizer, built while the weights are packed
  const bert::Arithmetic arithmetic;
  const bert::Weights weights;
  const bert::Encoder encoder;
  const std::optional<WordPiece> tokenizer;
  std::mutex turn;  // guards the members below
  kernels::Team team;
  std::vector<bert::Workspace> spaces;  // one per thread, made when first needed; the first also serves the whole crew
  std::size_t longest = 0;              // the longest sequence that `spaces` has room for

  void make_room(std::size_t length);
  void run(std::span<const Sequence> sequences);
  void run_together(std::span<const Sequence> batch);
};

// Grows with the longest text seen, up to the model's positions.
void Embedder::Rep::make_room(std::size_t length) {
  if (length <= longest) return;
  longest = std::min<std::size_t>(std::max({length, 2 * longest, kBatchTokens}),
                                  base::to_size(std::max<std::uint64_t>(config.positions, kBatchTokens)));
  spaces.clear();
  for (unsigned i = 0; i < team.size(); ++i)
    spaces.emplace_back(config, arithmetic, longest, longest, i == 0 ? team.size() : 1);
}

void Embedder::Rep::run_together(std::span<const Sequence> batch) {
  team.run([&](const kernels::Crew& crew) { encoder.run(batch, spaces[0], crew); });
  if (spaces[0].failure) std::rethrow_exception(spaces[0].failure);
}

// Each thread takes whole batches while there are enough to keep all threads busy; all threads share the remaining
// ones.
void Embedder::Rep::run(std::span<const Sequence> sequences) {
  std::size_t length = 0;
  for (const Sequence& sequence : sequences) length = std::max(length, sequence.length);
  make_room(length);
  std::vector<std::span<const Sequence>> batches;
  for (std::size_t begin = 0, end = 0; begin < sequences.size(); begin = end) {
    std::size_t tokens = sequences[end++].length;
    while (end < sequences.size() && tokens + sequences[end].length <= kBatchTokens) tokens += sequences[end++].length;
    batches.push_back(sequences.subspan(begin, end - begin));
  }
  const std::size_t alone = team.size() == 1 ? 0 : batches.size() / team.size() * team.size();
  if (alone > 0) {
    std::atomic<std::size_t> next{0};
    std::atomic<bool> failed{false};
    team.run([&](const kernels::Crew& crew) {
      for (std::size_t i = next.fetch_add(1); i < alone && !failed.load(); i = next.fetch_add(1)) {
        encoder.run(batches[i], spaces[crew.rank], {});
        if (spaces[crew.rank].failure) failed.store(true);
      }
    });
    for (const bert::Workspace& space : spaces)
      if (failed.load() && space.failure) std::rethrow_exception(space.failure);
  }
  for (std::size_t i = alone; i < batches.size(); ++i) run_together(batches[i]);
}

Embedder::Embedder(Model model, const EmbedOptions& options) : rep_(std::make_unique<Rep>(model, options)) {}
Embedder::~Embedder() = default;
Embedder::Embedder(Embedder&&) noexcept = default;
Embedder& Embedder::operator=(Embedder&&) noexcept = default;

std::uint64_t Embedder::dimension() const noexcept { return rep_->config.hidden; }
std::uint64_t Embedder::max_length() const noexcept { return rep_->config.max_length; }
Pooling Embedder::pooling() const noexcept { return rep_->config.pooling; }
bool Embedder::normalize() const noexcept { return rep_->config.normalize; }
Precision Embedder::precision() const noexcept { return rep_->precision; }
unsigned Embedder::threads() const noexcept { return rep_->team.size(); }
const WordPiece* Embedder::tokenizer() const noexcept { return rep_->tokenizer ? &*rep_->tokenizer : nullptr; }

namespace {

void check_room(std::size_t texts, std::uint64_t dimension, std::size_t room) {
  if (room != texts * dimension)
    base::misuse("embed", "the vectors of " + std::to_string(texts) + " texts need room for " +
                              std::to_string(texts * dimension) + " numbers, and there is room for " +
                              std::to_string(room));
}

}  // namespace

void Embedder::embed(std::span<const std::string_view> texts, std::span<float> out, std::span<Embedded> what) const {
  Rep& rep = *rep_;
  if (!rep.tokenizer)
    base::misuse("no-vocabulary", "the model has no vocabulary, which text needs: give one, or embed ids");
  check_room(texts.size(), dimension(), out.size());
  if (!what.empty() && what.size() != texts.size())
    base::misuse("embed", "there are " + std::to_string(texts.size()) + " texts, and room to tell of " +
                              std::to_string(what.size()));
  std::vector<std::uint32_t> ids;
  std::vector<Sequence> sequences;
  for (std::size_t next = 0; next < texts.size();) {
    ids.resize(base::to_size(rep.round_tokens + rep.config.max_length));
    sequences.clear();
    std::size_t used = 0;
    do {
      const Encoded encoded =
          rep.tokenizer->encode(texts[next], std::span(ids).subspan(used, base::to_size(rep.config.max_length)));
      const auto count = base::to_size(encoded.count);
      sequences.push_back({ids.data() + used, count, out.data() + next * base::to_size(dimension())});
      if (!what.empty()) what[next] = {encoded.count, encoded.replaced, encoded.truncated};
      used += count;
    } while (++next < texts.size() && used < rep.round_tokens);
    const std::lock_guard lock(rep.turn);
    rep.run(sequences);
  }
}

std::vector<float> Embedder::embed(std::string_view text) const {
  std::vector<float> out(base::to_size(dimension()));
  embed(std::span(&text, 1), out);
  return out;
}

void Embedder::embed_ids(std::span<const std::span<const std::uint32_t>> texts, std::span<float> out) const {
  Rep& rep = *rep_;
  check_room(texts.size(), dimension(), out.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].empty() || texts[i].size() > rep.config.positions)
      base::misuse("embed", "sequence " + std::to_string(i) + " has " + std::to_string(texts[i].size()) +
                                " ids, where 1 to " + std::to_string(rep.config.positions) + " are possible");
    for (const std::uint32_t id : texts[i])
      if (id >= rep.config.vocabulary)
        base::misuse("embed", "sequence " + std::to_string(i) + " has the id " + std::to_string(id) +
                                  ", where the model knows " + std::to_string(rep.config.vocabulary));
  }
  std::vector<Sequence> sequences;
  for (std::size_t next = 0; next < texts.size();) {
    sequences.clear();
    std::size_t used = 0;
    for (; next < texts.size() && used < rep.round_tokens; ++next) {
      sequences.push_back({texts[next].data(), texts[next].size(), out.data() + next * base::to_size(dimension())});
      used += texts[next].size();
    }
    const std::lock_guard lock(rep.turn);
    rep.run(sequences);
  }
}

}  // namespace weighbridge
