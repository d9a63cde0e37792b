// SPDX-License-Identifier: Apache-2.0
// Tables of word vectors as a family: a text's vector is the mean of the rows of its tokens, without [CLS] and [SEP]
// and without unknown tokens. That is what the package model2vec computes with a StaticEmbedding of
// sentence-transformers.
#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <string>
#include <vector>

#include "base/checked.h"
#include "base/fail.h"
#include "core/model/floats.h"
#include "core/model/words.h"
#include "runtime/embed/family.h"
#include "runtime/embed/modules.h"
#include "runtime/kernels/kernels.h"
#include "runtime/kernels/team.h"
#include "tokenizers/characters.h"

namespace weighbridge::embed {
namespace {

// As model2vec names the table, and as sentence-transformers does.
constexpr std::string_view kTables[] = {"embeddings", "embedding.weight"};
// Of a vocabulary whose vectors were clustered: the row of each id, and the factor of each id.
constexpr std::string_view kRows = "mapping", kFactors = "weights";
constexpr std::uint64_t kUsualLength = 512;
constexpr std::size_t kTextsAtOnce = 16;  // that a thread takes

std::optional<Tensor> find_table(const Model& model) {
  for (const std::string_view name : kTables)
    if (const auto found = model.find(name); found && found->has_shape() && found->shape().size() == 2) return found;
  return std::nullopt;
}

const Value* setting(const Model& model, std::string_view key) {
  const Value* const own = model.attribute(key);
  return own != nullptr ? own : model.attribute("hf." + std::string(key));
}

// 0: no limit.
std::uint64_t read_max_length(const Model& model) {
  const Value* const value = setting(model, "max_length");
  if (value != nullptr && value->to_text() == "null") return 0;
  return positive("max_length", value).value_or(kUsualLength);
}

// A tensor with one number for each id; empty if the model has none. `rows` becomes their number.
std::vector<float> column(const Model& model, std::string_view name, std::uint64_t& rows) {
  const auto tensor = model.find(name);
  if (!tensor) return {};
  if (const Finding* why = tensor->unsupported()) throw Error(*why);
  if (!tensor->has_shape() || tensor->shape().size() != 1 || (rows != 0 && tensor->shape()[0] != rows))
    fail("shape", tensor->name(),
         "tensor '" + std::string(name) + "' has " +
             (tensor->has_shape() ? "the shape " + core::shape_text(tensor->shape()) : "no known shape") + ", where " +
             (rows != 0 ? "[" + std::to_string(rows) + "]" : "one dimension") + " is needed");
  rows = tensor->shape()[0];
  const core::Floats values(*tensor);
  if (!kernels::kernels().all_finite(values.data(), values.size()))
    fail("not-finite", tensor->name(), "tensor '" + std::string(name) + "' holds a value that is not a finite number");
  return {values.data(), values.data() + values.size()};
}

// How many characters half of the tokens have at most: texts are cut to that times the length before they are divided.
std::uint64_t median_length(const WordPiece& tokenizer) {
  std::vector<std::uint64_t> lengths;
  for (std::uint32_t id = 0; id < tokenizer.size(); ++id)
    if (const auto token = tokenizer.token(id))
      lengths.push_back(static_cast<std::uint64_t>(
          std::count_if(token->begin(), token->end(), [](char c) { return (c & 0xC0) != 0x80; })));
  if (lengths.empty()) return 0;
  std::sort(lengths.begin(), lengths.end());
  const std::size_t half = lengths.size() / 2;
  return lengths.size() % 2 == 1 ? lengths[half] : (lengths[half - 1] + lengths[half]) / 2;
}

class WordTable : public Family {
 public:
  WordTable(const Model& model, const EmbedOptions& options)
      : model_(model), table_(*find_table(model_)), team_(threads_for(options)) {
    if (const Finding* why = table_.unsupported()) throw Error(*why);
    if (options.precision != Precision::f32)
      base::misuse("precision", "a table of word vectors is always computed in f32");
    if (options.pooling && *options.pooling != Pooling::mean)
      base::misuse("pooling", "a table of word vectors has mean pooling only");
    const std::uint64_t rows = table_.shape()[0], width = table_.shape()[1];
    if (rows == 0 || width == 0 || rows > UINT32_MAX)
      fail("shape", table_.name(),
           "tensor '" + std::string(table_.name()) + "' has the shape " + core::shape_text(table_.shape()) +
               ", which has no row for a token");
    std::uint64_t ids = 0;
    read_rows(ids, rows);
    factors_ = column(model_, kFactors, ids);
    chain_ = Chain(model_, modules_of(model_), width);
    for (const core::SentenceModule& module : modules_of(model_))
      if (module.type == core::SentenceModule::Type::weighted_layers)
        bad_key(core::kSentenceModules, *model_.attribute(core::kSentenceModules), "a table has no layers to weight");
    facts_ = {.dimension = kept_numbers(model_, chain_.outputs()),
              .vocabulary = ids == 0 ? rows : ids,
              .max_length = options.max_length != 0 ? options.max_length : read_max_length(model_),
              .positions = UINT64_MAX,
              .pooling = {Pooling::mean},
              .normalize = options.normalize ? *options.normalize
                                             : truth("normalize", setting(model_, "normalize")).value_or(false),
              .precision = Precision::f32};
    const auto lowers =
        options.lower_case ? options.lower_case : truth("do_lower_case", model_.attribute("do_lower_case"));
    tokenizer_ = make_tokenizer(model_, options, {.lower_case = lowers.value_or(true), .frames = false},
                                facts_.vocabulary, std::string(table_.name()));
    if (tokenizer_) {
      unknown_ = tokenizer_->special("unk");
      if (facts_.max_length != 0)
        max_characters_ = base::checked_mul(facts_.max_length, median_length(*tokenizer_)).value_or(UINT64_MAX);
    }
    if (facts_.max_length == 0) facts_.max_length = UINT64_MAX;
    vectors_.emplace(table_);
  }

  const Facts& facts() const noexcept override { return facts_; }
  unsigned threads() const noexcept override { return team_.size(); }
  const WordPiece* tokenizer() const noexcept override { return tokenizer_ ? &*tokenizer_ : nullptr; }

  EmbedDigests digests(const Context& context) const override {
    const auto counted = [&](std::string_view name) -> std::optional<std::string_view> {
      if (name == table_.name()) return "table";
      return name == kRows || name == kFactors || is_of_module(model_, name) ? std::optional(name) : std::nullopt;
    };
    KindLines lines = {{"lower_case", tokenizer_ && tokenizer_->options().lower_case ? "yes" : "no"}};
    add_module_lines(model_, lines);
    return digests_of(model_, facts_, lines, counted, tokenizer(), context);
  }

  void embed(std::span<const std::string_view> texts, std::string_view prompt, std::span<float> out,
             std::span<Embedded> what) override {
    share(texts.size(), [&](std::size_t i, std::vector<std::uint32_t>& ids) {
      const std::string prompted = prompt.empty() ? std::string() : std::string(prompt).append(texts[i]);
      const std::string_view given = prompt.empty() ? texts[i] : prompted;
      const std::string_view text = cut(given);
      const std::uint64_t room = std::min(facts_.max_length, tokenizer_->max_ids(text.size()));
      if (ids.size() < room) ids.resize(base::to_size(room));
      const Encoded encoded = tokenizer_->encode(text, std::span(ids).first(base::to_size(room)), {.special = false});
      if (!what.empty()) what[i] = {encoded.count, encoded.replaced, encoded.truncated || text.size() < given.size()};
      const auto end = ids.begin() + static_cast<std::ptrdiff_t>(encoded.count);
      const auto known = unknown_ ? std::remove(ids.begin(), end, *unknown_) : end;
      mean({ids.data(), static_cast<std::size_t>(known - ids.begin())}, row_of(out, i));
    });
  }

  void embed_ids(std::span<const std::span<const std::uint32_t>> texts, std::span<float> out) override {
    share(texts.size(), [&](std::size_t i, std::vector<std::uint32_t>&) { mean(texts[i], row_of(out, i)); });
  }

 private:
  static unsigned threads_for(const EmbedOptions& options) { return thread_executor(options.threads)->concurrency(); }

  void read_rows(std::uint64_t& ids, std::uint64_t rows) {
    for (const float value : column(model_, kRows, ids)) {
      if (!(value >= 0) || static_cast<std::uint64_t>(value) >= rows || value >= 16'777'216.0F)
        fail("shape", kRows,
             "tensor 'mapping' names row " + std::to_string(static_cast<std::int64_t>(value)) + ", and '" +
                 std::string(table_.name()) + "' has " + std::to_string(rows) + " rows");
      rows_.push_back(static_cast<std::uint32_t>(value));
    }
  }

  std::span<float> row_of(std::span<float> out, std::size_t i) const {
    const auto width = base::to_size(facts_.dimension);
    return out.subspan(i * width, width);
  }

  // The part of a text that is divided into tokens.
  std::string_view cut(std::string_view text) const {
    if (text.size() <= max_characters_) return text;
    std::size_t at = 0;
    for (std::uint64_t characters = 0; at < text.size() && characters < max_characters_; ++characters)
      at += tokenizers::decode_replacing(text, at).length;
    return text.substr(0, at);
  }

  // Calls body(i, a thread's own buffer of ids) for each i.
  template <class Body> void share(std::size_t count, const Body& body) {
    const std::lock_guard lock(mutex_);
    std::vector<std::exception_ptr> failures(team_.size());
    std::atomic<std::size_t> next{0};
    const auto work = [&](const kernels::Crew& crew) {
      std::vector<std::uint32_t> ids;
      try {
        for (std::size_t begin = next.fetch_add(kTextsAtOnce); begin < count; begin = next.fetch_add(kTextsAtOnce))
          for (std::size_t i = begin; i < std::min(count, begin + kTextsAtOnce); ++i) body(i, ids);
      } catch (...) {
        failures[crew.rank] = std::current_exception();
        next.store(count);
      }
    };
    if (count <= kTextsAtOnce)
      work({});
    else
      team_.run(work);
    for (const std::exception_ptr& failure : failures)
      if (failure) std::rethrow_exception(failure);
  }

  // The mean of the rows, and what is computed of it.
  void mean(std::span<const std::uint32_t> ids, std::span<float> out) const {
    const kernels::Kernels& kernels = kernels::kernels();
    if (chain_.empty() && out.size() == chain_.inputs()) {
      mean_of_rows(ids, out);
      if (facts_.normalize && !ids.empty()) kernels.normalize(out.data(), out.size());
      return;
    }
    std::vector<float> scratch(chain_.scratch());
    const std::span<float> whole(scratch.data(), chain_.outputs());
    mean_of_rows(ids, {scratch.data(), chain_.inputs()});
    chain_.run(scratch, whole);
    if (facts_.normalize) kernels.normalize(whole.data(), whole.size());
    std::copy_n(whole.data(), out.size(), out.data());
  }

  // In the order of the ids, as NumPy adds rows.
  void mean_of_rows(std::span<const std::uint32_t> ids, std::span<float> out) const {
    const kernels::Kernels& kernels = kernels::kernels();
    std::fill(out.begin(), out.end(), 0.0F);
    for (const std::uint32_t id : ids) {
      const float* const row = vectors_->data() + out.size() * (rows_.empty() ? id : rows_[id]);
      if (factors_.empty())
        kernels.add(out.data(), row, out.data(), out.size());
      else
        for (std::size_t k = 0; k < out.size(); ++k) out[k] += row[k] * factors_[id];
    }
    if (ids.empty()) return;
    const auto count = static_cast<float>(ids.size());
    for (float& value : out) value /= count;
    if (!kernels.all_finite(out.data(), out.size()))
      fail("not-finite", table_.name(),
           "tensor '" + std::string(table_.name()) + "' has a number that is not finite in a row that a text needs");
  }

  const Model model_;
  const Tensor table_;
  Facts facts_;
  Chain chain_;
  std::vector<std::uint32_t> rows_;  // of each id; empty: row = id
  std::vector<float> factors_;       // of each id; empty: 1
  std::optional<WordPiece> tokenizer_;
  std::optional<std::uint32_t> unknown_;
  std::uint64_t max_characters_ = UINT64_MAX;
  std::optional<core::Floats> vectors_;
  std::mutex mutex_;
  kernels::Team team_;
};

}  // namespace

bool is_word_table(const Model& model) {
  return find_table(model).has_value() && !model.find("embeddings.word_embeddings.weight") &&
         !model.find("bert.embeddings.word_embeddings.weight");
}

std::unique_ptr<Family> make_word_table(const Model& model, const EmbedOptions& options) {
  return std::make_unique<WordTable>(model, options);
}

}  // namespace weighbridge::embed
