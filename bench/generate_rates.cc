// SPDX-License-Identifier: Apache-2.0
// Times a language model. Makes models of known shapes with random weights, and runs a loop that times on request, so
// that generate.py can take turns with peers. Before the first figure it checks that tokens fed together and one by one
// give the same logits.
//
// usage: generate_rates make SHAPE FORM OUT.slm      SHAPE 15M, 110M; FORM f32, q8_0, q4_0
//        generate_rates run MODEL.slm THREADS PRECISION
//                                                    then lines on standard input: "decode SECONDS", "prompt SECONDS";
//                                                    prints "BEST MEDIAN" for each, in tokens per second
//        generate_rates read BYTES THREADS           then "read SECONDS": the roof of decoding, whose weights are read
//                                                    once per token; the same in bytes per second
#ifdef __linux__
#include <sys/mman.h>
#endif

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <iostream>
#include <memory>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "weighbridge/convert.h"
#include "weighbridge/generate.h"
#include "weighbridge/open.h"

namespace {

namespace wb = weighbridge;
using Clock = std::chrono::steady_clock;
using Ids = std::vector<std::uint32_t>;

constexpr std::size_t kTokens = 128;  // of a prompt, and of a decoded sequence

struct Shape {
  std::string_view name;
  std::uint64_t hidden, layers, heads, ffn, vocabulary, context;
};
constexpr Shape kShapes[] = {{"15M", 288, 6, 6, 768, 32000, 1024}, {"110M", 768, 12, 12, 2048, 32000, 1024}};

// Uniform values about 0.02 wide: the results depend on their sum of squares, not on their distribution.
wb::Bytes noise(std::uint64_t count, std::uint64_t seed) {
  auto values = std::make_shared<std::vector<float>>(count);
  std::uint64_t state = seed * 0x9e3779b97f4a7c15U + 1;
  for (float& value : *values) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    value = static_cast<float>(static_cast<std::int32_t>(state >> 32)) / 2147483648.0F * 0.035F;
  }
  return {std::as_bytes(std::span(*values)), values};
}
wb::Bytes ones(std::uint64_t count) {
  auto values = std::make_shared<std::vector<float>>(count, 1.0F);
  return {std::as_bytes(std::span(*values)), values};
}

wb::Tokenizer tokenizer(std::uint64_t vocabulary) {
  wb::Tokenizer out;
  out.kind = wb::Tokenizer::Kind::bpe;
  out.vocab_size = static_cast<std::uint32_t>(vocabulary);
  out.special = {{"bos", 256}, {"eos", 257}, {"pad", 258}, {"unk", 259}};
  return out;
}

wb::Model make(const Shape& s) {
  wb::Builder builder;
  const auto number = [&](const char* key, std::uint64_t value) {
    builder.attribute("slm." + std::string(key), wb::Value::integer(value, wb::DType::u32));
  };
  number("model_type", 1), number("flags", 1), number("vocab_size", s.vocabulary), number("special_token_count", 4);
  number("hidden_size", s.hidden), number("layer_count", s.layers), number("head_count", s.heads);
  number("kv_head_count", s.heads), number("head_dim", s.hidden / s.heads), number("ffn_size", s.ffn);
  number("max_context", s.context);
  builder.attribute("slm.rope_theta", wb::Value::real(10000, wb::DType::f32));
  builder.attribute("slm.rms_norm_epsilon", wb::Value::real(static_cast<double>(1e-5F), wb::DType::f32));
  builder.tokenizer(tokenizer(s.vocabulary));
  std::uint64_t seed = 0;
  const auto matrix = [&](const std::string& name, std::uint64_t rows, std::uint64_t columns) {
    builder.tensor(name + ".weight", wb::DType::f32, {rows, columns}, noise(rows * columns, ++seed));
  };
  const auto norm = [&](const std::string& name) {
    builder.tensor(name + ".weight", wb::DType::f32, {s.hidden}, ones(s.hidden));
  };
  matrix("tok_embeddings", s.vocabulary, s.hidden);
  for (std::uint64_t i = 0; i < s.layers; ++i) {
    const std::string at = "layers." + std::to_string(i) + ".";
    norm(at + "attention_norm");
    for (const char* which : {"wq", "wk", "wv", "wo"}) matrix(at + which, s.hidden, s.hidden);
    norm(at + "ffn_norm");
    matrix(at + "w1", s.ffn, s.hidden), matrix(at + "w2", s.hidden, s.ffn), matrix(at + "w3", s.ffn, s.hidden);
  }
  norm("norm");
  return builder.build();
}

int make_file(const std::string& shape, const std::string& form, const std::string& path) {
  const auto* found =
      std::find_if(std::begin(kShapes), std::end(kShapes), [&](const Shape& s) { return s.name == shape; });
  if (found == std::end(kShapes)) return 2;
  wb::Options options;
  options.replace = true;
  if (form != "f32") options.quantize = form;
  wb::plan(make(*found), "slm", options).execute(path, {.executor = wb::thread_executor()});
  return 0;
}

Ids prompt(const wb::Generator& generator) {
  Ids out;
  for (std::uint32_t i = 0; i < kTokens; ++i)
    out.push_back((17 + i * 13) % static_cast<std::uint32_t>(generator.vocabulary()));
  return out;
}

void decode(wb::Session& session, const Ids& ids) {
  session.rewind();
  for (const std::uint32_t id : ids) session.feed(std::span(&id, 1));
}
void feed(wb::Session& session, const Ids& ids) {
  session.rewind();
  session.feed(ids);
}

bool consistent(const wb::Generator& generator) {
  const Ids ids = prompt(generator);
  wb::Session one = generator.session(), all = generator.session();
  decode(one, ids);
  feed(all, ids);
  return std::ranges::equal(one.logits(), all.logits());
}

// Answers each line of standard input, whose first word is one of `known`, with the best and the median of the rates
// that measure(word) returns until the line's seconds are over.
template <class Measure> int serve(std::initializer_list<std::string_view> known, Measure measure) {
  std::string what;
  double seconds = 0;
  while (std::cin >> what >> seconds) {
    if (std::ranges::find(known, what) == known.end()) return 2;
    std::vector<double> rates;
    const auto end = Clock::now() + std::chrono::duration<double>(seconds);
    do rates.push_back(measure(what));
    while (Clock::now() < end);
    std::ranges::sort(rates);
    std::printf("%.1f %.1f\n", rates.back(), rates[rates.size() / 2]);
    std::fflush(stdout);
  }
  return 0;
}

int run(const std::string& path, unsigned threads, const std::string& precision) {
  wb::GeneratorOptions options{.threads = threads};
  options.set("precision", precision);
  const wb::Generator generator(wb::open(path, {}, {.access = wb::Access::mapped, .checks = wb::Checks::structure}),
                                options);
  if (!consistent(generator)) {
    std::cerr << "tokens fed together and one by one have other logits\n";
    return 1;
  }
  const Ids ids = prompt(generator);
  wb::Session session = generator.session();
  return serve({"decode", "prompt"}, [&](std::string_view what) {
    const auto begin = Clock::now();
    what == "decode" ? decode(session, ids) : feed(session, ids);
    return static_cast<double>(ids.size()) / std::chrono::duration<double>(Clock::now() - begin).count();
  });
}

// ---- the roof ----

using Line [[gnu::vector_size(64)]] = std::uint64_t;
constexpr std::size_t kLargePage = std::size_t{2} << 20, kAtOnce = 4;

// Sums lines at `streams` places side by side, each `apart` lines from the last. A core requests more lines from memory
// at once if they are on several pages.
[[gnu::target_clones("avx512f", "avx2", "default")]] std::uint64_t sum_of_lines(const Line* lines, std::size_t apart,
                                                                                std::size_t streams) {
  constexpr std::size_t kAhead = 32;  // lines
  Line sums[kAtOnce] = {};
  for (std::size_t i = 0; i < apart; i += kAtOnce)
    for (std::size_t s = 0; s < streams; ++s)
#pragma GCC unroll 4  // which keeps the sums in registers
      for (std::size_t j = 0; j < kAtOnce; ++j) {
        const Line* at = lines + s * apart + i + j;
        if (streams > 1) __builtin_prefetch(at + kAhead);
        sums[j] += *at;
      }
  std::uint64_t total = 0;
  for (const Line& one : sums)
    for (std::size_t i = 0; i < 8; ++i) total += one[i];
  return total;
}

// Memory that threads read over and over, each its own part.
class Reader {
 public:
  Reader(std::size_t bytes, unsigned threads) : threads_(threads), share_(bytes / threads / sizeof(Line)) {
    const std::size_t size = bytes / kLargePage * kLargePage + kLargePage;
    lines_.reset(static_cast<Line*>(::operator new(size, std::align_val_t(kLargePage))));
#ifdef __linux__
    madvise(lines_.get(), size, MADV_HUGEPAGE);  // weights have large pages; a hint: ignore the result
#endif
    std::fill_n(lines_.get(), size / sizeof(Line), Line{1, 1, 1, 1, 1, 1, 1, 1});
  }

  // Bytes per second of the fastest of several ways to read: one stream from caches, several from memory.
  double rate() const { return std::max({rate(1), rate(8), rate(24)}); }

 private:
  struct Free {
    void operator()(Line* lines) const { ::operator delete(lines, std::align_val_t(kLargePage)); }
  };

  double rate(std::size_t streams) const {
    const std::size_t apart = share_ / streams / kAtOnce * kAtOnce, lines = apart * streams;
    const std::size_t passes = (std::size_t{128} << 20) / (lines * sizeof(Line)) + 1;
    std::barrier together(threads_);
    const auto work = [&](unsigned rank) {
      together.arrive_and_wait();
      const auto begin = Clock::now();
      std::uint64_t total = 0;
      for (std::size_t i = 0; i < passes; ++i) total += sum_of_lines(lines_.get() + rank * share_, apart, streams);
      if (total != 8 * lines * passes) throw std::logic_error("a wrong sum of what was read");
      together.arrive_and_wait();
      return std::chrono::duration<double>(Clock::now() - begin).count();
    };
    std::vector<std::jthread> others;
    for (unsigned rank = 1; rank < threads_; ++rank) others.emplace_back(work, rank);
    return static_cast<double>(lines * sizeof(Line) * threads_ * passes) / work(0);
  }

  const unsigned threads_;
  const std::size_t share_;  // lines of a thread
  std::unique_ptr<Line, Free> lines_;
};

int read(std::size_t bytes, unsigned threads) {
  const Reader reader(bytes, threads);
  return serve({"read"}, [&](std::string_view) { return reader.rate(); });
}

}  // namespace

int main(int count, char** words) {
  const std::vector<std::string> args(words + 1, words + count);
  try {
    if (args.size() == 4 && args[0] == "make") return make_file(args[1], args[2], args[3]);
    if (args.size() == 4 && args[0] == "run")
      return run(args[1], static_cast<unsigned>(std::atoi(args[2].c_str())), args[3]);
    if (args.size() == 3 && args[0] == "read" && std::atoll(args[1].c_str()) >= 1 << 20 &&
        std::atoi(args[2].c_str()) > 0)
      return read(static_cast<std::size_t>(std::atoll(args[1].c_str())),
                  static_cast<unsigned>(std::atoi(args[2].c_str())));
    std::cerr
        << "usage: generate_rates make SHAPE FORM OUT.slm | run MODEL.slm THREADS PRECISION | read BYTES THREADS\n";
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  return 2;
}
