// SPDX-License-Identifier: Apache-2.0
// BERT encoders as a family: texts to ids in rounds, rounds to batches, batches to threads.
#include <algorithm>
#include <atomic>
#include <bit>
#include <future>
#include <mutex>

#include "base/checked.h"
#include "base/fail.h"
#include "runtime/embed/encoder.h"
#include "runtime/embed/family.h"

namespace weighbridge::bert {
namespace {

using embed::Family;

// Tokens that one thread takes through all layers together: enough to make loading the weights cheap, few enough that
// the activations between two products fit the second-level cache.
constexpr std::size_t kBatchTokens = 128;
constexpr std::uint64_t kRoundTokens = 16'384;

class Bert : public Family {
 public:
  Bert(const Model& model, const EmbedOptions& options)
      : model_(model),
        config_(read_config(model_, options)),
        known_{.dimension = config_.kept,
               .vocabulary = config_.vocabulary,
               .max_length = config_.max_length,
               .positions = config_.positions,
               .pooling = config_.pooling,
               .normalize = config_.normalize,
               .precision = options.precision},
        round_tokens_(options.batch_tokens == 0 ? kRoundTokens : options.batch_tokens),
        executor_(thread_executor(options.threads)),
        coming_(std::async(
            executor_->concurrency() > 1 ? std::launch::async | std::launch::deferred : std::launch::deferred,
            [&] {
              return embed::make_tokenizer(model_, options, {.lower_case = config_.lower_case}, config_.vocabulary,
                                           config_.prefix + "embeddings.word_embeddings.weight");
            })),
        arithmetic_(arithmetic_of(options.precision)),
        weights_(load_weights(model_, config_, arithmetic_, *executor_)),
        encoder_(config_, weights_, arithmetic_),
        words_(coming_.get()),
        team_(executor_->concurrency()) {
    executor_.reset();
  }

  const Facts& facts() const noexcept override { return known_; }
  unsigned threads() const noexcept override { return team_.size(); }
  const WordPiece* tokenizer() const noexcept override { return words_ ? &*words_ : nullptr; }
  EmbedDigests digests(const Context& context) const override;
  void embed(std::span<const std::string_view> texts, std::string_view prompt, std::span<float> out,
             std::span<Embedded> what) override;
  void embed_ids(std::span<const std::span<const std::uint32_t>> texts, std::span<float> out) override;

 private:
  const Model model_;
  const Config config_;
  const Facts known_;
  const std::uint64_t round_tokens_;
  std::shared_ptr<Executor> executor_;            // used only for opening
  std::future<std::optional<WordPiece>> coming_;  // the tokenizer, built while the weights are packed
  const Arithmetic arithmetic_;
  const Weights weights_;
  const Encoder encoder_;
  const std::optional<WordPiece> words_;
  std::mutex mutex_;  // guards the members below
  kernels::Team team_;
  std::vector<Workspace> spaces_;  // one per thread, made when first needed; the first also serves the whole crew
  std::size_t longest_ = 0;        // the longest sequence that `spaces_` has room for

  std::size_t apart(std::string_view prompt) const;
  void make_room(std::size_t length);
  void run(std::span<const Sequence> sequences);
  void run_together(std::span<const Sequence> batch);
};

EmbedDigests Bert::digests(const Context& context) const {
  embed::KindLines lines = {{"lower_case", config_.lower_case ? "yes" : "no"},
                            {"heads", std::to_string(config_.heads)},
                            {"activation", std::to_string(static_cast<int>(config_.activation))},
                            {"epsilon", std::to_string(std::bit_cast<std::uint32_t>(config_.epsilon))}};
  if (!config_.include_prompt) lines.emplace_back("include_prompt", "no");
  embed::add_module_lines(model_, lines);
  // What loading takes: other tensors, such as the ids of positions, are in some containers and not in others.
  const auto counted = [&](std::string_view name) -> std::optional<std::string_view> {
    if (embed::is_of_module(model_, name)) return name;
    if (!name.starts_with(config_.prefix)) return std::nullopt;
    name.remove_prefix(config_.prefix.size());
    const bool encoder = name.starts_with("embeddings.") || name.starts_with("encoder.");
    return encoder && !name.ends_with("position_ids") ? std::optional(name) : std::nullopt;
  };
  return embed::digests_of(model_, known_, lines, counted, tokenizer(), context);
}

// Grows with the longest text seen, up to the positions of the model.
void Bert::make_room(std::size_t length) {
  if (length <= longest_) return;
  longest_ = std::min<std::size_t>(std::max({length, 2 * longest_, kBatchTokens}),
                                   base::to_size(std::max<std::uint64_t>(config_.positions, kBatchTokens)));
  spaces_.clear();
  for (unsigned i = 0; i < team_.size(); ++i)
    spaces_.emplace_back(config_, weights_.chain, arithmetic_, longest_, longest_, i == 0 ? team_.size() : 1);
}

void Bert::run_together(std::span<const Sequence> batch) {
  team_.run([&](const kernels::Crew& crew) { encoder_.run(batch, spaces_[0], crew); });
  if (spaces_[0].failure) std::rethrow_exception(spaces_[0].failure);
}

// Each thread takes whole batches while there are enough to keep all threads busy; all threads share the remaining
// ones.
void Bert::run(std::span<const Sequence> sequences) {
  std::size_t length = 0;
  for (const Sequence& sequence : sequences) length = std::max(length, sequence.length);
  make_room(length);
  std::vector<std::span<const Sequence>> batches;
  for (std::size_t begin = 0, end = 0; begin < sequences.size(); begin = end) {
    std::size_t tokens = sequences[end++].length;
    while (end < sequences.size() && tokens + sequences[end].length <= kBatchTokens) tokens += sequences[end++].length;
    batches.push_back(sequences.subspan(begin, end - begin));
  }
  const std::size_t alone = team_.size() == 1 ? 0 : batches.size() / team_.size() * team_.size();
  if (alone > 0) {
    std::atomic<std::size_t> next{0};
    std::atomic<bool> failed{false};
    team_.run([&](const kernels::Crew& crew) {
      for (std::size_t i = next.fetch_add(1); i < alone && !failed.load(); i = next.fetch_add(1)) {
        encoder_.run(batches[i], spaces_[crew.rank], {});
        if (spaces_[crew.rank].failure) failed.store(true);
      }
    });
    for (const Workspace& space : spaces_)
      if (failed.load() && space.failure) std::rethrow_exception(space.failure);
  }
  for (std::size_t i = alone; i < batches.size(); ++i) run_together(batches[i]);
}

// The tokens of a prompt that pooling leaves out: [CLS] and its own, not [SEP].
std::size_t Bert::apart(std::string_view prompt) const {
  if (config_.include_prompt || prompt.empty()) return 0;
  return words_->encode(prompt, {.max_length = config_.max_length}).size() - 1;
}

void Bert::embed(std::span<const std::string_view> texts, std::string_view prompt, std::span<float> out,
                 std::span<Embedded> what) {
  const auto width = base::to_size(config_.kept);
  const std::size_t left_out = apart(prompt);
  std::string whole;
  std::vector<std::uint32_t> ids;
  std::vector<Sequence> sequences;
  for (std::size_t next = 0; next < texts.size();) {
    ids.resize(base::to_size(round_tokens_ + config_.max_length));
    sequences.clear();
    std::size_t used = 0;
    do {
      std::string_view text = texts[next];
      if (!prompt.empty()) text = whole.assign(prompt).append(text);
      const Encoded encoded = words_->encode(text, std::span(ids).subspan(used, base::to_size(config_.max_length)));
      const auto count = base::to_size(encoded.count);
      if (left_out >= count)
        base::misuse("prompt", "the prompt has all of the " + std::to_string(count) +
                                   " tokens that are read of a text, and the model leaves a prompt out of its pooling");
      sequences.push_back({ids.data() + used, count, out.data() + next * width, left_out});
      if (!what.empty()) what[next] = {encoded.count, encoded.replaced, encoded.truncated};
      used += count;
    } while (++next < texts.size() && used < round_tokens_);
    const std::lock_guard lock(mutex_);
    run(sequences);
  }
}

void Bert::embed_ids(std::span<const std::span<const std::uint32_t>> texts, std::span<float> out) {
  const auto width = base::to_size(config_.kept);
  std::vector<Sequence> sequences;
  for (std::size_t next = 0; next < texts.size();) {
    sequences.clear();
    std::size_t used = 0;
    for (; next < texts.size() && used < round_tokens_; ++next) {
      sequences.push_back({texts[next].data(), texts[next].size(), out.data() + next * width});
      used += texts[next].size();
    }
    const std::lock_guard lock(mutex_);
    run(sequences);
  }
}

}  // namespace
}  // namespace weighbridge::bert

namespace weighbridge::embed {

std::unique_ptr<Family> make_bert(const Model& model, const EmbedOptions& options) {
  return std::make_unique<bert::Bert>(model, options);
}

}  // namespace weighbridge::embed
