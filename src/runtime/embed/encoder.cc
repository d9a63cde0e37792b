// SPDX-License-Identifier: Apache-2.0
// BERT's layers over the kernels. Every step shares its rows, heads or columns among the crew, and ends with a barrier
// if the next step reads what others wrote.
#include "runtime/embed/encoder.h"

#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "runtime/kernels/half.h"

namespace weighbridge::bert {
namespace {

using kernels::Crew;

std::size_t hidden_of(const Config& config) { return base::to_size(config.hidden); }
std::size_t intermediate_of(const Config& config) { return base::to_size(config.intermediate); }

struct Rows {
  const float* values;
  std::size_t stride;
};

// Bytes of one activation in the form that products read; 0 if they read the f32.
std::size_t code_size(Arithmetic arithmetic) {
  switch (arithmetic) {
    case Arithmetic::half: return sizeof(std::uint32_t);
    case Arithmetic::bf16: return kernels::kernels().bf16_bytes;
    case Arithmetic::int8: return sizeof(std::uint8_t);
    default: return 0;
  }
}

// Bytes of a panel, except the last.
std::size_t panel_bytes(std::size_t k, Arithmetic arithmetic) {
  switch (arithmetic) {
    case Arithmetic::f32: return kernels::kPanel * k * sizeof(float);
    case Arithmetic::widened: return kernels::kPanel * k * sizeof(std::uint16_t);
    case Arithmetic::half: return kernels::kHalfPanel * k * sizeof(std::uint16_t);
    case Arithmetic::bf16: return kernels::kPanel * kernels::bf16_depth(k) * sizeof(kernels::Bf16);
    case Arithmetic::int8: return kernels::kPanel * kernels::int8_depth(k);
  }
  return 0;
}

}  // namespace

// One member's share of applying a matrix to all tokens. Rows are shared only if there are fewer panels than members,
// so that a member's weights stay in its cache.
class Step {
 public:
  Step(const Workspace& space, Arithmetic arithmetic, std::size_t tokens, const Crew& crew)
      : space_(space), arithmetic_(arithmetic), tokens_(tokens), crew_(crew) {}

  // Prepares this member's share of the rows for the next products. A barrier must follow. As int8, a row of the hidden
  // state has its largest element set apart: some channels of a trained model are many times larger than the others,
  // and without this they cost two thirds of the precision. Rows of contexts and of the wide layer gain nothing by it.
  void prepare(Rows rows, std::size_t k, bool hidden_state) const {
    const kernels::Kernels& set = kernels::kernels();
    const auto quantize = hidden_state ? set.quantize_row_apart : set.quantize_row;
    const auto [begin, end] = crew_.share(tokens_);
    for (std::size_t row = begin; row < end; ++row) {
      const float* values = rows.values + row * rows.stride;
      if (arithmetic_ == Arithmetic::half)
        kernels::half_kernels()->halve_row(values, k, halves() + row * k, space_.code_scale[row]);
      else if (arithmetic_ == Arithmetic::bf16)
        space_.code_scale[row] = set.pair_row(values, k, space_.codes + row * kernels::bf16_depth(k) * set.bf16_bytes);
      else if (arithmetic_ == Arithmetic::int8)
        space_.coded[row] = quantize(values, k, bytes() + row * kernels::int8_depth(k));
    }
  }
  // The same with the barrier; does nothing if products read the f32.
  void prepare_all(Rows rows, std::size_t k) const {
    if (code_size(arithmetic_) == 0) return;
    prepare(rows, k, false);
    crew_.sync();
  }

  // `next` is the matrix applied afterwards; null if none.
  void apply(const Linear& linear, const Linear* next, Rows in, kernels::Activation activation, const float* residual,
             float* out, std::size_t out_stride) const {
    kernels::Product common{.n = linear.n,
                            .k = linear.k,
                            .bias = linear.bias.data(),
                            .activation = activation,
                            .residual = residual,
                            .residual_stride = out_stride,
                            .c = out,
                            .c_stride = out_stride};
    const kernels::Kernels& set = kernels::kernels();
    each_range(linear, next, [&](const kernels::Range& range, const void* after) {
      common.after = after;
      switch (arithmetic_) {
        case Arithmetic::f32:
          return set.product_f32({common, in.values, in.stride, reinterpret_cast<const float*>(linear.packed)}, range);
        case Arithmetic::widened:
          return set.product_f16({common, in.values, in.stride, reinterpret_cast<const std::uint16_t*>(linear.packed)},
                                 range);
        case Arithmetic::half:
          return kernels::half_kernels()->product(
              {common, halves(), linear.k, space_.code_scale, reinterpret_cast<const std::uint16_t*>(linear.packed),
               linear.scale.data()},
              range);
        case Arithmetic::bf16:
          return set.product_bf16_pairs({common, space_.codes, space_.code_scale,
                                         reinterpret_cast<const kernels::Bf16*>(linear.packed), linear.scale.data()},
                                        range);
        case Arithmetic::int8:
          return set.product_i8(
              {common, bytes(), kernels::int8_depth(linear.k), space_.coded,
               reinterpret_cast<const std::int8_t*>(linear.packed), linear.scale.data(), linear.sum.data()},
              range);
      }
    });
  }

 private:
  std::uint32_t* halves() const noexcept { return reinterpret_cast<std::uint32_t*>(space_.codes); }
  std::uint8_t* bytes() const noexcept { return reinterpret_cast<std::uint8_t*>(space_.codes); }

  std::size_t panel_count(std::size_t n) const noexcept {
    return arithmetic_ == Arithmetic::half ? kernels::half_panel_count(n) : kernels::panel_count(n);
  }
  const std::byte* panel_of(const Linear& linear, std::size_t panel) const noexcept {
    return linear.packed + panel * panel_bytes(linear.k, arithmetic_);
  }

  // Calls call(range, the weights needed after it) for what this member computes.
  template <class Call> void each_range(const Linear& linear, const Linear* next, Call call) const {
    const std::size_t panels = panel_count(linear.n);
    const std::size_t slices = panels >= crew_.size
                                   ? 1
                                   : std::min<std::size_t>((tokens_ + kernels::kTileRows - 1) / kernels::kTileRows,
                                                           (crew_.size + panels - 1) / panels);
    const std::size_t rows = kernels::round_up((tokens_ + slices - 1) / slices, kernels::kTileRows);
    const std::size_t own_end = crew_.share(panels * slices).second;
    crew_.each(panels * slices, [&](std::size_t i, std::size_t end) {
      while (i < end) {
        const std::size_t slice = i / panels, panel = i % panels, count = std::min(panels - panel, end - i);
        const std::size_t row = std::min(slice * rows, tokens_);
        i += count;
        const void* after = nullptr;
        if (i < own_end && i % panels != 0)
          after = panel_of(linear, i % panels);
        else if (next != nullptr)
          after = panel_of(*next, crew_.share(panel_count(next->n)).first);
        call(kernels::Range{row, std::min(row + rows, tokens_), panel, panel + count}, after);
      }
    });
  }

  const Workspace& space_;
  const Arithmetic arithmetic_;
  const std::size_t tokens_;
  const Crew& crew_;
};

namespace {

// Normalizes this member's share of x and prepares it for the next products. A barrier must follow.
void normalize(const Config& config, const Norm& norm, float* x, std::size_t tokens, const Step& step,
               const Crew& crew) {
  const std::size_t hidden = hidden_of(config);
  const auto [begin, end] = crew.share(tokens);
  kernels::kernels().layer_norm(x + begin * hidden, end - begin, hidden, norm.gamma.data(), norm.beta.data(),
                                config.epsilon);
  step.prepare({x, hidden}, hidden, true);
}

}  // namespace

Workspace::Workspace(const Config& config, const embed::Chain& chain, Arithmetic arithmetic, std::size_t tokens,
                     std::size_t longest, unsigned members)
    : vector(members) {
  const std::size_t hidden = hidden_of(config), intermediate = intermediate_of(config);
  const std::size_t line = kernels::kLanes * sizeof(float);
  scratch_size_ = kernels::round_up(kernels::attention_scratch(longest, base::to_size(config.hidden / config.heads)),
                                    kernels::kLanes);
  const std::size_t code_width = code_size(arithmetic) * kernels::int8_depth(std::max(hidden, intermediate));
  // The wide layer needs no memory of its own: by then nobody reads queries, keys, values and contexts. In a BERT it is
  // as wide as the four together, and the second-level cache then holds a batch.
  const std::size_t sizes[] = {tokens * hidden * sizeof(float),
                               tokens * std::max(4 * hidden, intermediate) * sizeof(float),
                               members * scratch_size_ * sizeof(float),
                               tokens * code_width,
                               tokens * sizeof(float),
                               tokens * sizeof(kernels::CodedRow)};
  std::size_t total = 0;
  for (const std::size_t size : sizes) total += kernels::round_up(size, line);
  block_ = kernels::Block(total);
  std::byte* at = block_.as<std::byte>();
  std::byte* places[std::size(sizes)];
  for (std::size_t i = 0; i < std::size(sizes); ++i) {
    places[i] = at;
    at += kernels::round_up(sizes[i], line);
  }
  const auto floats = [&](std::size_t i) { return reinterpret_cast<float*>(places[i]); };
  x = floats(0);
  query_key_value = wide = floats(1);
  context = query_key_value + tokens * 3 * hidden;
  scratch_ = floats(2);
  codes = places[3];
  code_scale = floats(4);
  coded = reinterpret_cast<kernels::CodedRow*>(places[5]);
  if (config.first_layer) mixed.resize(tokens * hidden);
  if (!chain.empty() || config.kept != chain.outputs())
    for (std::vector<float>& each : vector) each.resize(chain.scratch());
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
  const Step step(space, arithmetic_, tokens, crew);
  normalize(config_, weights_.embedding_norm, space.x, tokens, step, crew);
  if (config_.first_layer) mix(0, tokens, space, crew);
  crew.sync();
  for (std::size_t i = 0; i < weights_.layers.size(); ++i)
    layer(weights_.layers[i], i + 1 < weights_.layers.size() ? &weights_.layers[i + 1].query : nullptr, sequences,
          tokens, space, step, crew);
  std::size_t row = 0;
  const float* const states = config_.first_layer ? space.mixed.data() : space.x;
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    if (i % crew.size == crew.rank) finish(sequences[i], states + row * hidden_of(config_), space.vector[crew.rank]);
    row += sequences[i].length;
  }
  crew.sync();
}

// Checks rows of word embeddings for finite values when they are used: checking the whole table would read all of it.
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

// x is normalized and prepared on entry and on return.
void Encoder::layer(const Layer& layer, const Linear* next, std::span<const Sequence> sequences, std::size_t tokens,
                    Workspace& space, const Step& step, const Crew& crew) const {
  const std::size_t hidden = hidden_of(config_);
  const Rows x{space.x, hidden}, context{space.context, hidden}, wide{space.wide, intermediate_of(config_)};
  const auto plain = kernels::Activation::none;
  step.apply(layer.query, &layer.key, x, plain, nullptr, space.query_key_value, 3 * hidden);
  step.apply(layer.key, &layer.value, x, plain, nullptr, space.query_key_value + hidden, 3 * hidden);
  step.apply(layer.value, &layer.attention_out, x, plain, nullptr, space.query_key_value + 2 * hidden, 3 * hidden);
  crew.sync();
  attend(sequences, space, crew);
  crew.sync();
  step.prepare_all(context, hidden);
  step.apply(layer.attention_out, &layer.up, context, plain, space.x, space.x, hidden);
  crew.sync();
  normalize(config_, layer.attention_norm, space.x, tokens, step, crew);
  crew.sync();
  step.apply(layer.up, &layer.down, x, config_.activation, nullptr, space.wide, wide.stride);
  crew.sync();
  step.prepare_all(wide, wide.stride);
  step.apply(layer.down, next, wide, plain, space.x, space.x, hidden);
  crew.sync();
  normalize(config_, layer.out_norm, space.x, tokens, step, crew);
  if (config_.first_layer) mix(static_cast<std::size_t>(&layer - weights_.layers.data()) + 1, tokens, space, crew);
  crew.sync();
}

void Encoder::mix(std::size_t state, std::size_t tokens, Workspace& space, const Crew& crew) const {
  const auto first = base::to_size(*config_.first_layer);
  if (state < first) return;
  const std::size_t hidden = hidden_of(config_);
  const auto [begin, end] = crew.share(tokens);
  add_weighted(space.x + begin * hidden, (end - begin) * hidden, weights_.layer_weights[state - first], state == first,
               space.mixed.data() + begin * hidden);
}

void Encoder::attend(std::span<const Sequence> sequences, Workspace& space, const Crew& crew) const {
  const std::size_t hidden = hidden_of(config_), heads = base::to_size(config_.heads), head = hidden / heads;
  crew.each(sequences.size() * heads, [&](std::size_t begin, std::size_t end) {
    std::size_t row = 0;
    for (std::size_t i = 0; i < sequences.size() && i * heads < end; row += sequences[i++].length) {
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
    }
  });
}

// `scratch` holds the vector while it is not yet what the caller gets.
void Encoder::finish(const Sequence& sequence, const float* rows, std::vector<float>& scratch) const {
  const std::size_t hidden = hidden_of(config_), kept = base::to_size(config_.kept);
  float* const vector = scratch.empty() ? sequence.out : scratch.data();
  for (std::size_t i = 0; i < config_.pooling.size(); ++i)
    pool(config_.pooling[i], rows, sequence.length, sequence.apart, hidden, vector + i * hidden);
  if (scratch.empty()) {
    if (config_.normalize) kernels::kernels().normalize(vector, kept);
    return;
  }
  const std::span<float> whole(vector, weights_.chain.outputs());
  weights_.chain.run(scratch, whole);
  if (config_.normalize) kernels::kernels().normalize(vector, whole.size());
  std::copy_n(vector, kept, sequence.out);
}

}  // namespace weighbridge::bert
