// SPDX-License-Identifier: Apache-2.0
// BERT's layers over kernels. Every step shares its rows, heads or columns among the crew and ends with a barrier where
// the next step reads what others wrote.
#include "runtime/bert/encoder.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace weighbridge::bert {
namespace {

using kernels::Crew;

std::size_t hidden_of(const Config& config) { return static_cast<std::size_t>(config.hidden); }
std::size_t intermediate_of(const Config& config) { return static_cast<std::size_t>(config.intermediate); }

struct Rows {
  const float* values;
  std::size_t stride;
};

// One matrix applied to all tokens, as this member's share of it. Rows are shared out only where there are fewer panels
// than members: a member's weights then stay in its cache.
class Step {
 public:
  Step(const Workspace& space, Precision precision, std::size_t tokens, const Crew& crew)
      : space_(space), precision_(precision), tokens_(tokens), crew_(crew) {}

  // Codes of the rows that the products to come read; nothing where those read f32.
  void quantise(Rows rows, std::size_t k) const {
    if (precision_ != Precision::int8) return;
    const auto [begin, end] = crew_.share(tokens_);
    const std::size_t stride = kernels::int8_depth(k);
    for (std::size_t row = begin; row < end; ++row)
      kernels::kernels().quantise_row(rows.values + row * rows.stride, k, space_.codes + row * stride,
                                      space_.code_scale[row], space_.code_zero[row]);
    crew_.sync();
  }

  void apply(const Linear& linear, Rows in, kernels::Activation activation, const float* residual, float* out,
             std::size_t out_stride) const {
    const kernels::Product common{.n = linear.n,
                                  .k = linear.k,
                                  .bias = linear.bias.data(),
                                  .activation = activation,
                                  .residual = residual,
                                  .residual_stride = out_stride,
                                  .c = out,
                                  .c_stride = out_stride};
    if (precision_ == Precision::int8) {
      const kernels::ProductI8 product{common,
                                       space_.codes,
                                       kernels::int8_depth(linear.k),
                                       space_.code_scale,
                                       space_.code_zero,
                                       reinterpret_cast<const std::int8_t*>(linear.packed),
                                       linear.scale.data(),
                                       linear.sum.data()};
      each_range(linear.n, [&](const kernels::Range& range) { kernels::kernels().product_i8(product, range); });
    } else if (precision_ == Precision::f16) {
      const kernels::ProductF16 product{common, in.values, in.stride,
                                        reinterpret_cast<const std::uint16_t*>(linear.packed)};
      each_range(linear.n, [&](const kernels::Range& range) { kernels::kernels().product_f16(product, range); });
    } else {
      const kernels::ProductF32 product{common, in.values, in.stride, reinterpret_cast<const float*>(linear.packed)};
      each_range(linear.n, [&](const kernels::Range& range) { kernels::kernels().product_f32(product, range); });
    }
  }

 private:
  template <class Call> void each_range(std::size_t n, Call call) const {
    const std::size_t panels = kernels::panel_count(n);
    const std::size_t slices = panels >= crew_.size
                                   ? 1
                                   : std::min<std::size_t>((tokens_ + kernels::kTileRows - 1) / kernels::kTileRows,
                                                           (crew_.size + panels - 1) / panels);
    const auto [begin, end] = crew_.share(panels * slices);
    for (std::size_t i = begin; i < end;) {
      const std::size_t slice = i / panels, panel = i % panels, count = std::min(panels - panel, end - i);
      const std::size_t rows = kernels::round_up((tokens_ + slices - 1) / slices, kernels::kTileRows);
      const std::size_t row = std::min(slice * rows, tokens_);
      call(kernels::Range{row, std::min(row + rows, tokens_), panel, panel + count});
      i += count;
    }
  }

  const Workspace& space_;
  const Precision precision_;
  const std::size_t tokens_;
  const Crew& crew_;
};

void normalise_rows(const Config& config, const Norm& norm, float* x, std::size_t tokens, const Crew& crew) {
  const auto [begin, end] = crew.share(tokens);
  kernels::kernels().layer_norm(x + begin * hidden_of(config), end - begin, hidden_of(config), norm.gamma.data(),
                                norm.beta.data(), config.epsilon);
}

}  // namespace

Workspace::Workspace(const Config& config, Precision precision, std::size_t tokens, std::size_t longest,
                     unsigned members) {
  const std::size_t hidden = hidden_of(config), intermediate = intermediate_of(config);
  const std::size_t line = kernels::kLanes * sizeof(float);
  scratch_size_ = kernels::round_up(
      kernels::attention_scratch(longest, static_cast<std::size_t>(config.hidden / config.heads)), kernels::kLanes);
  const std::size_t code_width = precision == Precision::int8 ? kernels::int8_depth(std::max(hidden, intermediate)) : 0;
  const std::size_t sizes[] = {tokens * hidden * sizeof(float),
                               tokens * 3 * hidden * sizeof(float),
                               tokens * hidden * sizeof(float),
                               tokens * intermediate * sizeof(float),
                               members * scratch_size_ * sizeof(float),
                               tokens * code_width,
                               tokens * sizeof(float),
                               tokens * sizeof(std::int32_t)};
  std::size_t total = 0;
  for (const std::size_t size : sizes) total += kernels::round_up(size, line);
  block_ = Block(total);
  std::byte* at = block_.as<std::byte>();
  std::byte* places[std::size(sizes)];
  for (std::size_t i = 0; i < std::size(sizes); ++i) {
    places[i] = at;
    at += kernels::round_up(sizes[i], line);
  }
  const auto floats = [&](std::size_t i) { return reinterpret_cast<float*>(places[i]); };
  x = floats(0);
  query_key_value = floats(1);
  context = floats(2);
  wide = floats(3);
  scratch_ = floats(4);
  codes = reinterpret_cast<std::uint8_t*>(places[5]);
  code_scale = floats(6);
  code_zero = reinterpret_cast<std::int32_t*>(places[7]);
}

void Encoder::run(std::span<const Sequence> sequences, Workspace& space, const Crew& crew) const noexcept {
  std::size_t tokens = 0;
  for (const Sequence& sequence : sequences) tokens += sequence.length;
  if (crew.rank == 0) {
    space.failure = nullptr;
    try {
      embed(sequences, space);
    } catch (...) {
      space.failure = std::current_exception();
    }
  }
  crew.sync();
  if (space.failure) return;
  normalise_rows(config_, weights_.embedding_norm, space.x, tokens, crew);
  crew.sync();
  for (const Layer& each : weights_.layers) layer(each, sequences, tokens, space, crew);
  std::size_t row = 0;
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    if (i % crew.size == crew.rank) pool(sequences[i], space.x + row * hidden_of(config_));
    row += sequences[i].length;
  }
  crew.sync();
}

// The rows of word embeddings are checked here, where they are used: checking the whole table would read all of it.
void Encoder::embed(std::span<const Sequence> sequences, Workspace& space) const {
  const std::size_t hidden = hidden_of(config_);
  float* out = space.x;
  for (const Sequence& sequence : sequences) {
    for (std::size_t i = 0; i < sequence.length; ++i, out += hidden) {
      const float* word = weights_.words.row(sequence.ids[i], {out, hidden});
      if (!kernels::kernels().all_finite(word, hidden))
        fail("not-finite", weights_.words.name(),
             "tensor '" + std::string(weights_.words.name()) + "' holds a value that is not a finite number in row " +
                 std::to_string(sequence.ids[i]));
      kernels::kernels().add(word, weights_.places.data() + i * hidden, out, hidden);
    }
  }
}

void Encoder::layer(const Layer& layer, std::span<const Sequence> sequences, std::size_t tokens, Workspace& space,
                    const Crew& crew) const {
  const std::size_t hidden = hidden_of(config_);
  const Rows x{space.x, hidden}, context{space.context, hidden}, wide{space.wide, intermediate_of(config_)};
  const auto plain = kernels::Activation::none;
  const Step step(space, precision_, tokens, crew);
  step.quantise(x, hidden);
  step.apply(layer.query, x, plain, nullptr, space.query_key_value, 3 * hidden);
  step.apply(layer.key, x, plain, nullptr, space.query_key_value + hidden, 3 * hidden);
  step.apply(layer.value, x, plain, nullptr, space.query_key_value + 2 * hidden, 3 * hidden);
  crew.sync();
  attend(sequences, space, crew);
  crew.sync();
  step.quantise(context, hidden);
  step.apply(layer.attention_out, context, plain, space.x, space.x, hidden);
  crew.sync();
  normalise_rows(config_, layer.attention_norm, space.x, tokens, crew);
  crew.sync();
  step.quantise(x, hidden);
  step.apply(layer.up, x, config_.activation, nullptr, space.wide, wide.stride);
  crew.sync();
  step.quantise(wide, wide.stride);
  step.apply(layer.down, wide, plain, space.x, space.x, hidden);
  crew.sync();
  normalise_rows(config_, layer.out_norm, space.x, tokens, crew);
  crew.sync();
}

void Encoder::attend(std::span<const Sequence> sequences, Workspace& space, const Crew& crew) const {
  const std::size_t hidden = hidden_of(config_), heads = static_cast<std::size_t>(config_.heads), head = hidden / heads;
  const auto [begin, end] = crew.share(sequences.size() * heads);
  std::size_t row = 0;
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    for (std::size_t h = 0; h < heads; ++h) {
      if (i * heads + h < begin || i * heads + h >= end) continue;
      const float* at = space.query_key_value + row * 3 * hidden + h * head;
      kernels::kernels().attention({.q = at,
                                    .k = at + hidden,
                                    .v = at + 2 * hidden,
                                    .stride = 3 * hidden,
                                    .length = sequences[i].length,
                                    .head = head,
                                    .scale = 1.0F / std::sqrt(static_cast<float>(head)),
                                    .out = space.context + row * hidden + h * head,
                                    .out_stride = hidden,
                                    .scratch = space.scratch(crew.rank)});
    }
    row += sequences[i].length;
  }
}

void Encoder::pool(const Sequence& sequence, const float* rows) const {
  const std::size_t hidden = hidden_of(config_);
  switch (config_.pooling) {
    case Pooling::mean: kernels::kernels().mean(rows, sequence.length, hidden, sequence.out); break;
    case Pooling::max: kernels::kernels().max(rows, sequence.length, hidden, sequence.out); break;
    case Pooling::cls: std::memcpy(sequence.out, rows, hidden * sizeof(float)); break;
  }
  if (config_.normalize) kernels::kernels().normalize(sequence.out, hidden);
}

}  // namespace weighbridge::bert
