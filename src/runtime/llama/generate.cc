// SPDX-License-Identifier: Apache-2.0
// The public Generator and Session: ids to steps, steps to threads, tokens to text.
#include "weighbridge/generate.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <mutex>
#include <new>
#include <optional>
#include <utility>

#include "base/fail.h"
#include "convert/naming.h"
#include "core/model/draft.h"
#include "core/model/progress.h"
#include "core/model/words.h"
#include "core/writing/options.h"
#include "runtime/llama/network.h"
#include "runtime/llama/numbers.h"
#include "runtime/llama/sampler.h"
#include "tokenizers/described.h"
#include "weighbridge/convert.h"

namespace weighbridge {
namespace {

// If the weights fit one core's own cache, one thread is faster than two that must synchronize.
constexpr std::size_t kOneThread = std::size_t{2} << 20;
constexpr core::Bound<GeneratorOptions> kGeneratorBound[] = {
#define WB_GENERATOR_OPTION(MEMBER, ...) WB_BOUND(GeneratorOptions, MEMBER)
#include "core/writing/option_rows.def"
};
constexpr core::Bound<GenerateOptions> kGenerateBound[] = {
#define WB_GENERATE_OPTION(MEMBER, ...) WB_BOUND(GenerateOptions, MEMBER)
#include "core/writing/option_rows.def"
};

BytePair make_tokenizer(const Model& model, const llama::Config& config, const BytePairOptions& options) {
  const tokenizers::Described own = tokenizers::describe(model, options);
  if (own.tokenizer == nullptr)
    llama::fail("tokenizer", {}, "the model has no tokenizer, without which texts cannot become tokens");
  BytePair out(*own.tokenizer, own.options);
  if (out.size() != config.vocabulary)
    llama::fail(
        "tokenizer", {},
        "the tokenizer has " + std::to_string(out.size()) + " ids, and the model " + std::to_string(config.vocabulary));
  return out;
}

void check_memory(const llama::Config& config, const Limits& limits) {
  if (llama::Cache::bytes(config) > limits.decoded)
    base::misuse("context",
                 "a context of " + std::to_string(config.context) + " tokens takes " +
                     core::bytes_text(llama::Cache::bytes(config)) + ", and the limit is " +
                     core::bytes_text(limits.decoded) + ": ask for a shorter one",
                 base::option_hint("context"));
}

}  // namespace

std::string_view name(Stopped stopped) noexcept {
  switch (stopped) {
    case Stopped::eos: return "eos";
    case Stopped::length: return "length";
    case Stopped::text: return "text";
    case Stopped::context: return "context";
    case Stopped::cancelled: return "cancelled";
  }
  return "";
}

std::string_view name(GeneratorPrecision precision) noexcept {
  switch (precision) {
    case GeneratorPrecision::exact: return "exact";
    case GeneratorPrecision::fast: return "fast";
  }
  return "";
}

void GeneratorOptions::set(std::string_view option, std::string_view text) {
  core::set<GeneratorOptions>(*this, OptionOf::generator, kGeneratorBound, option, text);
}

void GenerateOptions::set(std::string_view option, std::string_view text) {
  core::set<GenerateOptions>(*this, OptionOf::generate, kGenerateBound, option, text);
}

struct Generator::Rep {
  Rep(const Model& opened, const GeneratorOptions& options)
      : model(convert::as_slm(opened)),
        config(llama::read_config(model, options.context)),
        tokenizer(make_tokenizer(model, config, options.tokenizer)),
        executor(thread_executor(std::min(options.threads, thread_executor()->concurrency()))),
        weights(llama::load_weights(model, config, options.precision, *executor)),
        network(config, weights),
        team(options.threads == 0 && weights.packed_bytes <= kOneThread ? 1 : executor->concurrency()) {
    executor.reset();
  }

  const Model model;
  const llama::Config config;
  const BytePair tokenizer;
  std::shared_ptr<Executor> executor;  // used only for opening
  const llama::Weights weights;
  const llama::Network network;
  std::mutex team_mutex;  // guards team
  kernels::Team team;
};

struct Session::Rep {
  explicit Rep(Generator::Rep& owner) : generator(owner), cache(owner.config), space(owner.config, owner.team.size()) {}

  Generator::Rep& generator;
  llama::Cache cache;
  llama::Workspace space;
  std::vector<std::uint32_t> ids;
  bool has_logits = false;

  std::span<const float> last_logits() const { return {space.logits, generator.config.vocabulary}; }
  std::uint32_t likeliest() const;
  void require_logits() const;
  void check(std::span<const std::uint32_t> more) const;
  void require_numbers(const float* logits, std::size_t rows) const;
  // False if `proceed` was called and said no; the ids before that part are in the session then.
  bool feed(std::span<const std::uint32_t> more, const std::function<void(std::span<const float>)>* sink,
            const std::function<bool(std::uint64_t, std::uint64_t)>& proceed = {});
  void feed_piece(std::span<const std::uint32_t> piece, bool last,
                  const std::function<void(std::span<const float>)>* sink);
};

Generator::Generator(Model model, const GeneratorOptions& options) {
  core::require_whole(model, options.allow_part, "generate/part");
  check_memory(llama::read_config(convert::as_slm(model), options.context), options.limits);
  rep_ = std::make_unique<Rep>(model, options);
}
Generator::~Generator() = default;
Generator::Generator(Generator&&) noexcept = default;
Generator& Generator::operator=(Generator&&) noexcept = default;

std::uint64_t Generator::vocabulary() const noexcept { return rep_->config.vocabulary; }
std::uint64_t Generator::context() const noexcept { return rep_->config.context; }
unsigned Generator::threads() const noexcept { return rep_->team.size(); }
GeneratorPrecision Generator::precision() const noexcept { return rep_->weights.precision; }
const BytePair& Generator::tokenizer() const noexcept { return rep_->tokenizer; }

Session Generator::session() const {
  try {
    return Session(std::make_unique<Session::Rep>(*rep_));
  } catch (const std::bad_alloc&) {
    base::misuse("context",
                 "there is no memory for a context of " + std::to_string(rep_->config.context) +
                     " tokens: ask for a shorter one",
                 base::option_hint("context"));
  }
}

Session::Session(std::unique_ptr<Rep> rep) noexcept : rep_(std::move(rep)) {}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

std::span<const std::uint32_t> Session::ids() const noexcept { return rep_->ids; }

void Session::Rep::check(std::span<const std::uint32_t> more) const {
  if (more.empty()) base::misuse("generate", "there are no tokens to feed");
  if (more.size() > generator.config.context - ids.size())
    base::misuse("context", std::to_string(more.size()) + " tokens behind " + std::to_string(ids.size()) +
                                " are more than the context of " + std::to_string(generator.config.context));
  for (const std::uint32_t id : more)
    if (id >= generator.config.vocabulary)
      base::misuse("generate", "the id " + std::to_string(id) + " is not one of the " +
                                   std::to_string(generator.config.vocabulary) + " of the vocabulary");
}

bool Session::Rep::feed(std::span<const std::uint32_t> more, const std::function<void(std::span<const float>)>* sink,
                        const std::function<bool(std::uint64_t, std::uint64_t)>& proceed) {
  check(more);
  ids.reserve(ids.size() + more.size());
  has_logits = false;
  for (std::size_t at = 0; at < more.size(); at += llama::Workspace::kMaxTokens) {
    const auto piece = more.subspan(at, std::min(more.size() - at, llama::Workspace::kMaxTokens));
    if (proceed && !proceed(at, more.size())) return false;
    feed_piece(piece, at + piece.size() == more.size(), sink);
    ids.insert(ids.end(), piece.begin(), piece.end());
  }
  has_logits = true;
  return true;
}

void Session::Rep::require_numbers(const float* logits, std::size_t rows) const {
  if (kernels::kernels().all_finite(logits, rows * generator.config.vocabulary)) return;
  llama::fail("overflow", {}, "the model's logits are no finite numbers: its weights are too large to compute with");
}

void Session::Rep::feed_piece(std::span<const std::uint32_t> piece, bool last,
                              const std::function<void(std::span<const float>)>* sink) {
  const std::size_t maximum = llama::Workspace::kMaxLogits, vocabulary = generator.config.vocabulary;
  const llama::Network& network = generator.network;
  const auto run = [&](const std::function<void(const kernels::Crew&)>& body) {
    const std::lock_guard lock(generator.team_mutex);
    generator.team.run(body);
  };
  network.load(piece, space);
  run([&](const kernels::Crew& crew) {
    network.forward({piece.size(), ids.size(), cache, space}, crew);
    if (last && sink == nullptr) network.logits(space, piece.size() - 1, 1, crew);
  });
  if (sink == nullptr) {
    if (last) require_numbers(space.logits, 1);
    return;
  }
  for (std::size_t row = 0; row < piece.size(); row += maximum) {
    const std::size_t rows = std::min(maximum, piece.size() - row);
    run([&](const kernels::Crew& crew) { network.logits(space, row, rows, crew); });
    require_numbers(space.logits, rows);
    (*sink)({space.logits, rows * vocabulary});
    // logits() shows the first row, so move the last one there.
    if (row + rows == piece.size()) std::copy_n(space.logits + (rows - 1) * vocabulary, vocabulary, space.logits);
  }
}

void Session::feed(std::span<const std::uint32_t> ids) { rep_->feed(ids, nullptr); }
void Session::feed(std::span<const std::uint32_t> ids, const std::function<void(std::span<const float>)>& sink) {
  rep_->feed(ids, &sink);
}

void Session::Rep::require_logits() const {
  if (!has_logits) base::misuse("generate", "there are no logits before tokens have been fed");
}

std::uint32_t Session::Rep::likeliest() const {
  require_logits();
  llama::Workspace::Best best{-INFINITY, UINT32_MAX};
  for (const llama::Workspace::Best& one : space.best)
    if (one.id != UINT32_MAX && (best.id == UINT32_MAX || one.logit > best.logit)) best = one;
  return best.id;
}

std::span<const float> Session::logits() const {
  rep_->require_logits();
  return rep_->last_logits();
}
std::uint32_t Session::likeliest() const { return rep_->likeliest(); }

void Session::rewind(std::uint64_t count) {
  if (count > rep_->ids.size())
    base::misuse("generate", "a session of " + std::to_string(rep_->ids.size()) + " tokens cannot go back to " +
                                 std::to_string(count));
  rep_->ids.resize(static_cast<std::size_t>(count));
  rep_->has_logits = false;
}

struct Generation::Rep {
  Rep(Session::Rep& in, GenerateOptions asked)
      : session(in), options(std::move(asked)), stops(options.stop), sampler(options.sampling), decoder(tokenizer()) {}

  const BytePair& tokenizer() const { return session.generator.tokenizer; }
  void begin(std::string_view prompt);
  void say(const std::string& piece) { out.text += piece; }
  void end(Stopped why);
  bool step();

  Session::Rep& session;
  const GenerateOptions options;
  llama::StopTexts stops;
  llama::Sampler sampler;
  BytePair::Decoder decoder;
  Generated out;
  std::chrono::steady_clock::time_point began{};
  std::optional<std::uint32_t> unfed;  // drawn, but not yet fed to the session
  bool ended = false;
};

void Generation::Rep::begin(std::string_view prompt) {
  std::vector<std::uint32_t> fed = tokenizer().encode(prompt, {.bos = session.ids.empty()});
  if (fed.empty() && session.ids.empty()) fed.push_back(tokenizer().bos());  // something has to come first
  const std::size_t room = session.generator.config.context - session.ids.size();
  if (fed.size() >= room)
    base::misuse("prompt", "the prompt has " + std::to_string(fed.size()) + (fed.size() == 1 ? " token" : " tokens") +
                               ", and the context has room for " + std::to_string(room) +
                               ", one of them for an answer");
  for (const std::uint32_t id : fed) static_cast<void>(decoder.push(id));
  // An incomplete character at the end of the prompt is not part of the output. Directly after BOS a leading space is
  // dropped, so keep the decoder's state.
  if (fed.empty() || fed.back() != tokenizer().bos()) static_cast<void>(decoder.finish());
  out.prompt_tokens = fed.size();
  began = std::chrono::steady_clock::now();
  if (fed.empty()) {
    session.require_logits();
  } else if (const std::size_t before = session.ids.size(); !session.feed(fed, nullptr, options.on_prompt)) {
    session.ids.resize(before);
    return end(Stopped::cancelled);
  }
  began = std::chrono::steady_clock::now();
}

void Generation::Rep::end(Stopped why) {
  ended = true;
  out.stopped = why;
  if (why != Stopped::cancelled) {
    say(stops.push(decoder.finish()) + stops.finish());
    if (stops.found()) out.stopped = Stopped::text;
  }
  out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

bool Generation::Rep::step() {
  if (ended) return false;
  // Feed it now rather than when it was drawn, so that its text could be shown in the meantime.
  if (unfed) session.feed(std::span(&*unfed, 1), nullptr);
  unfed.reset();
  if (out.tokens.size() >= options.max_tokens) {
    end(Stopped::length);
    return false;
  }
  const std::uint32_t id = sampler.greedy() ? session.likeliest() : sampler.draw(session.last_logits());
  if (tokenizer().ends(id)) {
    end(Stopped::eos);
    return false;
  }
  out.tokens.push_back(id);
  say(stops.push(decoder.push(id)));
  if (stops.found())
    end(Stopped::text);
  else if (session.ids.size() == session.generator.config.context)
    end(Stopped::context);
  else
    unfed = id;
  return !ended;
}

Generation::Generation(std::unique_ptr<Rep> rep) noexcept : rep_(std::move(rep)) {}
Generation::~Generation() = default;
Generation::Generation(Generation&&) noexcept = default;
Generation& Generation::operator=(Generation&&) noexcept = default;

bool Generation::step() { return rep_->step(); }
void Generation::cancel() {
  if (!rep_->ended) rep_->end(Stopped::cancelled);
}
const Generated& Generation::result() const noexcept { return rep_->out; }

Generation Session::begin(std::string_view prompt, const GenerateOptions& options) {
  llama::check_sampling(options.sampling);
  auto rep = std::make_unique<Generation::Rep>(*rep_, options);
  rep->begin(prompt);
  return Generation(std::move(rep));
}

Generated Session::generate(std::string_view prompt, const GenerateOptions& options) {
  Generation generation = begin(prompt, options);
  std::size_t sent = 0;
  for (bool more = true; more;) {
    more = generation.step();
    const std::string_view text = generation.result().text;
    if (text.size() > sent && options.on_text && !options.on_text(text.substr(sent))) generation.cancel();
    sent = text.size();
  }
  return generation.result();
}

Perplexity perplexity(const Generator& generator, std::string_view text, const Context& context) {
  return perplexity(generator, generator.tokenizer().encode(text, {.bos = false}), context);
}

Perplexity perplexity(const Generator& generator, std::span<const std::uint32_t> ids, const Context& context) {
  if (ids.empty()) base::misuse("perplexity", "the text has no tokens");
  if (generator.context() < 2) base::misuse("perplexity", "the context has room for one token only");
  const auto vocabulary = static_cast<std::size_t>(generator.vocabulary());
  const auto window = static_cast<std::size_t>(generator.context() - 1);
  // A token is scored after the one before it, so without BOS the first token has no score.
  const bool adds_bos = generator.tokenizer().adds_bos();
  const std::size_t first = adds_bos ? 0 : 1;
  if (ids.size() <= first)
    base::misuse("perplexity", "the text has one token, and a model that puts no BOS before it predicts none of it");
  Session session = generator.session();
  Perplexity out;
  double total = 0;
  for (std::size_t at = first; at < ids.size(); at += window) {
    const auto scored = ids.subspan(at, std::min(window, ids.size() - at));
    std::vector<std::uint32_t> fed{adds_bos ? generator.tokenizer().bos() : ids[at - 1]};
    fed.insert(fed.end(), scored.begin(), scored.end() - 1);
    std::size_t next = 0;
    session.rewind();
    session.feed(fed, [&](std::span<const float> rows) {
      for (; !rows.empty(); rows = rows.subspan(vocabulary), ++next) {
        const float* row = rows.data();
        const float top = row[kernels::kernels().largest(row, vocabulary)];
        total += llama::logarithm(static_cast<double>(kernels::kernels().exp_sum(row, vocabulary, top))) +
                 static_cast<double>(top) - static_cast<double>(row[scored[next]]);
      }
      if (!core::goes_on(context, at + next, ids.size())) throw Cancelled();
    });
  }
  out.tokens = ids.size() - first;
  out.nll = total / static_cast<double>(out.tokens);
  out.perplexity = std::exp(out.nll);
  return out;
}

}  // namespace weighbridge
