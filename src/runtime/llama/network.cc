// SPDX-License-Identifier: Apache-2.0
// The layers, step by step. A crew shares the columns of every product and the heads of attention, with barriers in
// between. For a single token, each member makes the operands of its products by itself, because that takes less time
// than waiting.
#include "runtime/llama/network.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "runtime/llama/numbers.h"

namespace weighbridge::llama {

using kernels::kBlock, kernels::kLanes, kernels::kPanel, kernels::round_up;

// Weights of so many bytes stay in the third-level cache from token to token.
constexpr std::size_t kCached = std::size_t{24} << 20;

Network::Network(const Config& config, const Weights& weights) : config_(config), weights_(weights) {
  const double step = -2.0 / static_cast<double>(config.head) * logarithm(config.theta);
  for (std::size_t i = 0; i < config.head / 2; ++i)
    frequencies_.push_back(exponential(step * static_cast<double>(i)) /
                           (config.divisors.empty() ? 1.0 : config.divisors[i]));
}

Cache::Cache(const Config& config)
    : kv_heads_(config.kv_heads),
      keys_size_(round_up(config.context, kPanel) * config.head),
      values_size_(round_up(config.context * config.head + kLanes, kLanes)),
      block_(static_cast<std::size_t>(bytes(config))) {}

std::uint64_t Cache::bytes(const Config& c) noexcept {
  return std::uint64_t{c.layers} * c.kv_heads * sizeof(float) *
         (round_up(c.context, kPanel) * c.head + round_up(c.context * c.head + kLanes, kLanes));
}
float* Cache::keys(std::size_t layer, std::size_t kv_head) const noexcept {
  return block_.as<float>() + (layer * kv_heads_ + kv_head) * (keys_size_ + values_size_);
}
float* Cache::values(std::size_t layer, std::size_t kv_head) const noexcept {
  return keys(layer, kv_head) + keys_size_;
}

Workspace::Workspace(const Config& config, std::size_t members) {
  const std::size_t wide = std::max(config.hidden, config.ffn), m = kMaxTokens;
  kernels::BlockPlan plan;
  const auto floats = [&](std::size_t count) { return plan.add(count * sizeof(float)); };
  const std::array at{
      floats(m * config.hidden),     floats(m * config.hidden),   floats(m * config.kv_width()),
      floats(m * config.kv_width()), floats(m * config.hidden),   floats(m * config.ffn),
      floats(m * config.ffn),        floats(m * 2 * config.head), floats(kMaxLogits * config.vocabulary)};
  struct Places {
    std::size_t normed, bytes, rows, units, blocks;
  };
  const auto places = [&](std::size_t rows) {
    return Places{floats(rows * config.hidden), plan.add(4 * rows * round_up(wide, 64)),
                  plan.add(rows * sizeof(kernels::CodedRow)), floats(rows),
                  plan.add(std::max(kernels::q4_rows_size(rows, round_up(wide, kBlock)),
                                    rows * kernels::fixed_q4_size(round_up(wide, kBlock))))};
  };
  const Places common = places(m);
  std::vector<Places> each(members);
  for (Places& one : each) one = places(1);
  // Attention, and a panel of weights: as f32, which is larger than q4_wide_size().
  scratch_size_ = round_up(std::max(kernels::causal_scratch(config.context), kPanel * round_up(wide, kBlock)), kLanes);
  const std::size_t scratch_at = floats(members * scratch_size_);

  block_ = kernels::Block(plan.size());
  auto* base = block_.as<std::byte>();
  float** const arrays[] = {&x, &query, &key, &value, &context, &gate, &up, &turns, &logits};
  for (std::size_t i = 0; i < at.size(); ++i) *arrays[i] = reinterpret_cast<float*>(base + at[i]);
  const auto codes = [&](const Places& p) {
    return Codes{reinterpret_cast<float*>(base + p.normed), reinterpret_cast<std::uint8_t*>(base + p.bytes),
                 reinterpret_cast<kernels::CodedRow*>(base + p.rows), reinterpret_cast<float*>(base + p.units),
                 base + p.blocks};
  };
  shared = codes(common);
  for (const Places& one : each) own.push_back(codes(one));
  scratch_ = reinterpret_cast<float*>(base + scratch_at);
  best.resize(members);
}

// The input rows of products, in the forms that these need.
struct Network::Operand {
  std::size_t rows, width;
  const float* values;
  std::size_t stride;
  const Workspace::Codes* codes;
  float* scratch;
};

Network::Operand Network::prepare(const float* in, std::size_t width, const float* norm, std::size_t rows,
                                  std::span<const Linear* const> users, Workspace& space,
                                  const kernels::Crew& crew) const {
  const kernels::Kernels& set = kernels::kernels();
  const bool alone = rows == 1;
  const Workspace::Codes& codes = alone ? space.own[crew.rank] : space.shared;
  const auto uses = [&](Form form) {
    return std::ranges::any_of(users, [&](const Linear* linear) { return linear->form == form; });
  };
  const bool fast = weights_.precision == GeneratorPrecision::fast;
  const bool bytes = uses(Form::q8_0), blocks = uses(Form::q4_0) || uses(Form::q8_blocks);
  const std::size_t stride = round_up(width, 64);
  const auto [begin, end] = alone ? std::pair<std::size_t, std::size_t>{0, 1} : crew.share(rows);
  for (std::size_t row = begin; row < end; ++row) {
    const float* from = in + row * width;
    if (norm != nullptr) {
      set.rms_norm(from, width, norm, config_.epsilon, codes.normed + row * width);
      from = codes.normed + row * width;
    }
    if (bytes && fast) codes.rows[row] = set.quantize_row(from, width, codes.bytes + row * stride);
    if (bytes && !fast)
      codes.units[row] = set.fix_row_q8(from, width, reinterpret_cast<std::byte*>(codes.bytes) + 4 * row * stride);
    if (blocks && fast) set.quantize_blocks(from, width, row, kernels::q4_group(rows), codes.blocks);
    if (blocks && !fast)
      codes.units[row] = set.fix_row_q4(from, width, codes.blocks + row * kernels::fixed_q4_size(width));
  }
  if (!alone && (norm != nullptr || bytes || blocks)) crew.sync();
  return {rows, width, norm != nullptr ? codes.normed : in, width, &codes, space.scratch(crew.rank)};
}

void Network::product(const Linear& linear, const Linear& next, const Operand& in, const float* residual, float* out,
                      const kernels::Crew& crew) const {
  kernels::Product common{.n = linear.n,
                          .k = linear.k,
                          .bias = weights_.zeros.data(),
                          .activation = kernels::Activation::none,
                          .residual = residual,
                          .residual_stride = linear.n,
                          .c = out,
                          .c_stride = linear.n,
                          .ahead = weights_.packed_bytes <= kCached ? kernels::kAheadInCache : kernels::kAheadInMemory};
  const std::size_t panels = kernels::panel_count(linear.n), own_end = crew.share(panels).second;
  const auto call = [&](std::size_t begin, std::size_t end) {
    common.after = end < own_end ? linear.panel(end) : next.panel(crew.share(kernels::panel_count(next.n)).first);
    multiply(linear, in, common, {0, in.rows, begin, end});
  };
  // A row alone takes no longer than reading the weights, which is fastest without a stop.
  in.rows > 1 ? crew.each(panels, call) : crew.own(panels, call);
}

void Network::multiply(const Linear& linear, const Operand& in, const kernels::Product& common,
                       const kernels::Range& range) const {
  const kernels::Kernels& set = kernels::kernels();
  const bool fast = weights_.precision == GeneratorPrecision::fast;
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(linear.packed);
  switch (linear.form) {
    case Form::f32:
      return set.product_f32({common, in.values, in.stride, reinterpret_cast<const float*>(linear.packed)}, range);
    case Form::f16:
      return set.product_f16({common, in.values, in.stride, reinterpret_cast<const std::uint16_t*>(linear.packed)},
                             range);
    case Form::bf16:
      return set.product_bf16({common, in.values, in.stride, reinterpret_cast<const kernels::Bf16*>(linear.packed)},
                              range);
    case Form::q8_0: {
      const auto* w = reinterpret_cast<const std::int8_t*>(bytes);
      const std::size_t stride = round_up(in.width, 64);
      if (!fast)
        return set.product_fixed_q8({common, reinterpret_cast<const std::byte*>(in.codes->bytes), 4 * stride,
                                     in.codes->units, w, linear.scale.data(), linear.sum.data()},
                                    range);
      return set.product_i8(
          {common, in.codes->bytes, stride, in.codes->rows, w, linear.scale.data(), linear.sum.data()}, range);
    }
    case Form::q4_0:
      if (!fast)
        return set.product_fixed_q4(
            {common, in.codes->blocks, in.codes->units, bytes, reinterpret_cast<std::uint8_t*>(in.scratch)}, range);
      return set.product_q4(
          {common, in.codes->blocks, kernels::q4_group(in.rows), bytes, reinterpret_cast<std::uint8_t*>(in.scratch)},
          range);
    case Form::q8_blocks:
      if (!fast) return set.product_fixed_q8_blocks({common, in.codes->blocks, in.codes->units, bytes}, range);
      return set.product_q8_blocks({common, in.codes->blocks, kernels::q4_group(in.rows), bytes}, range);
  }
}

void Network::load(std::span<const std::uint32_t> ids, Workspace& space) const {
  for (std::size_t row = 0; row < ids.size(); ++row) weights_.words.row(ids[row], space.x + row * config_.hidden);
}

// The angles of a row's position.
void Network::begin(const Step& step, std::size_t row) const {
  float* at = step.space.turns + 2 * row * config_.head;
  for (const double frequency : frequencies_) {
    const Turn t = turn(static_cast<double>(step.position + row) * frequency);
    at[0] = at[1] = static_cast<float>(t.cosine);
    at[config_.head] = static_cast<float>(-t.sine);
    at[config_.head + 1] = static_cast<float>(t.sine);
    at += 2;
  }
}

void Network::forward(const Step& step, const kernels::Crew& crew) const noexcept {
  const auto [first, last] = crew.share(step.rows);
  for (std::size_t row = first; row < last; ++row) begin(step, row);
  crew.sync();
  for (std::size_t i = 0; i < config_.layers; ++i) layer(i, step, crew);
}

void Network::layer(std::size_t index, const Step& step, const kernels::Crew& crew) const {
  const Layer& l = weights_.layers[index];
  Workspace& space = step.space;
  const std::size_t rows = step.rows, hidden = config_.hidden, ffn = config_.ffn;
  const Linear* const attention[] = {&l.query, &l.key, &l.value};
  const Operand a = prepare(space.x, hidden, l.attention_norm.data(), rows, attention, space, crew);
  product(l.query, l.key, a, nullptr, space.query, crew);
  product(l.key, l.value, a, nullptr, space.key, crew);
  product(l.value, l.out, a, nullptr, space.value, crew);
  crew.sync();
  attend(index, step, crew);
  crew.sync();
  const Linear* const out[] = {&l.out};
  product(l.out, l.gate, prepare(space.context, hidden, nullptr, rows, out, space, crew), space.x, space.x, crew);
  crew.sync();

  const Linear* const first[] = {&l.gate, &l.up};
  const Operand f = prepare(space.x, hidden, l.ffn_norm.data(), rows, first, space, crew);
  product(l.gate, l.up, f, nullptr, space.gate, crew);
  product(l.up, l.down, f, nullptr, space.up, crew);
  if (rows > 1) crew.sync();  // others may have computed what this member reads now
  const auto [begin, end] = crew.share(kernels::panel_count(ffn));
  const std::size_t column = std::min(begin * kPanel, ffn), columns = std::min(end * kPanel, ffn) - column;
  for (std::size_t row = 0; row < rows && columns != 0; ++row)
    kernels::kernels().silu_product(space.gate + row * ffn + column, space.up + row * ffn + column, columns);
  crew.sync();
  const Linear* const second[] = {&l.down};
  const Linear& next = index + 1 < weights_.layers.size() ? weights_.layers[index + 1].query : weights_.output;
  product(l.down, next, prepare(space.gate, ffn, nullptr, rows, second, space, crew), space.x, space.x, crew);
  crew.sync();
}

// Each member takes some key/value heads and the query heads that read them. Those of a row alone stay with a member,
// which has their keys in its cache.
void Network::attend(std::size_t index, const Step& step, const kernels::Crew& crew) const {
  const kernels::Kernels& set = kernels::kernels();
  const std::size_t rows = step.rows, head = config_.head, group = config_.heads / config_.kv_heads;
  const std::size_t kv_width = config_.kv_width();
  const auto attend_heads = [&](std::size_t begin, std::size_t end) {
    for (std::size_t kv = begin; kv < end; ++kv) {
      float *keys = step.cache.keys(index, kv), *values = step.cache.values(index, kv);
      for (std::size_t row = 0; row < rows; ++row) {
        const std::size_t position = step.position + row;
        const float *cosines = step.space.turns + 2 * row * head, *sines = cosines + head;
        float* key = step.space.key + row * kv_width + kv * head;
        set.rotate(key, head, cosines, sines);
        float* lane = keys + position / kPanel * kPanel * head + position % kPanel;
        for (std::size_t d = 0; d < head; ++d) lane[d * kPanel] = key[d];
        std::copy_n(step.space.value + row * kv_width + kv * head, head, values + position * head);
        for (std::size_t q = kv * group; q < (kv + 1) * group; ++q)
          set.rotate(step.space.query + row * config_.hidden + q * head, head, cosines, sines);
      }
      set.causal_attention({step.space.query + kv * group * head, config_.hidden, rows, step.position + 1, head, group,
                            1.0F / std::sqrt(static_cast<float>(head)), keys, values,
                            step.space.context + kv * group * head, config_.hidden, step.space.scratch(crew.rank)});
    }
  };
  rows > 1 ? crew.each(config_.kv_heads, attend_heads) : crew.own(config_.kv_heads, attend_heads);
}

void Network::logits(Workspace& space, std::size_t first, std::size_t rows, const kernels::Crew& crew) const noexcept {
  const Linear* const users[] = {&weights_.output};
  const Operand in =
      prepare(space.x + first * config_.hidden, config_.hidden, weights_.norm.data(), rows, users, space, crew);
  const auto [begin, end] = crew.share(kernels::panel_count(config_.vocabulary));
  product(weights_.output, weights_.layers.front().query, in, nullptr, space.logits, crew);
  if (rows > 1) crew.sync();
  const std::size_t from = std::min(begin * kPanel, config_.vocabulary);
  const std::size_t count = std::min(end * kPanel, config_.vocabulary) - from;
  Workspace::Best& best = space.best[crew.rank];
  if (count == 0) {
    best = {-INFINITY, UINT32_MAX};
    return;
  }
  const float* last = space.logits + (rows - 1) * config_.vocabulary + from;
  const std::size_t at = kernels::kernels().largest(last, count);
  best = {last[at], static_cast<std::uint32_t>(from + at)};
}

}  // namespace weighbridge::llama
