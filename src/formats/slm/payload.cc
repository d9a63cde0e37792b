// SPDX-License-Identifier: Apache-2.0
// Streams values, and quantizes groups of them.
#include "formats/slm/payload.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/checked.h"
#include "base/fail.h"
#include "codecs/quantize.h"
#include "core/words.h"
#include "formats/slm/format.h"

namespace weighbridge::slm_format {
namespace {

using Sink = std::function<void(std::span<const std::byte>)>;
using Encoder = codecs::ScaledEncoder;
using FloatSink = std::function<void(std::span<const float>)>;

constexpr std::size_t kTile = std::size_t{1} << 16;  // values
// Groups up to this many values are held in memory; the scale of a longer one takes a separate pass.
constexpr std::uint64_t kMostHeld = std::uint64_t{1} << 20;

// Streams the tensor's values unchanged, in pieces of at most kTile.
void stream_plain(const Tensor& tensor, const Context& context, const FloatSink& sink) {
  std::vector<float> tile;
  tensor.stream_dense(DType::f32, context, [&](std::span<const std::byte> piece) {
    while (!piece.empty()) {
      const std::span<const std::byte> part = piece.first(std::min(piece.size(), kTile * sizeof(float)));
      tile.resize(part.size() / sizeof(float));
      std::memcpy(tile.data(), part.data(), part.size());
      sink(tile);
      piece = piece.subspan(part.size());
    }
    return true;
  });
}

// Row j x half + i of a head, j 0 or 1, becomes row 2i + j: the two rows of a rotation become neighbors.
void pair_rows(std::span<const float> head, std::size_t row, std::vector<float>& out) {
  const std::size_t half = head.size() / row / 2;
  out.clear();
  for (std::size_t i = 0; i < half; ++i)
    for (const std::size_t from : {i, half + i}) {
      const auto one = head.subspan(from * row, row);
      out.insert(out.end(), one.begin(), one.end());
    }
}

void stream_heads(const Values& values, const Context& context, const FloatSink& sink) {
  const std::uint64_t buffers = values.paired_row == 0 ? 1 : 2;
  if (values.head > context.limits.memory / sizeof(float) / buffers)
    base::over_limit("memory", "one head of tensor " + core::quoted(values.tensor.name()) +
                                   " is larger than the limit of " + std::to_string(context.limits.memory) +
                                   " bytes allows");
  std::vector<float> head, paired;
  head.reserve(base::to_size(values.head));
  stream_plain(values.tensor, context, [&](std::span<const float> piece) {
    while (!piece.empty()) {
      const std::size_t n = std::min(piece.size(), base::to_size(values.head) - head.size());
      head.insert(head.end(), piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(n));
      piece = piece.subspan(n);
      if (head.size() < values.head) continue;
      if (values.paired_row != 0) {
        pair_rows(head, base::to_size(values.paired_row), paired);
        head.swap(paired);
      }
      for (std::uint64_t i = 0; i < values.times; ++i) sink(head);
      head.clear();
    }
  });
}

void stream(const Values& values, const Context& context, const FloatSink& sink) {
  if (values.head == 0)
    stream_plain(values.tensor, context, sink);
  else
    stream_heads(values, context, sink);
  const std::vector<float> zeros(static_cast<std::size_t>(std::min<std::uint64_t>(kTile, values.added_zeros)));
  for (std::uint64_t left = values.added_zeros; left > 0;) {
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(left, zeros.size()));
    sink(std::span(zeros).first(n));
    left -= n;
  }
}

float scale_of(const Encoder& encoder, float largest, const Tensor& tensor) {
  if (!std::isfinite(largest))
    base::malformed(rules::kNotFinite.id,
                    "a value of tensor " + core::quoted(tensor.name()) + " is not finite, so it cannot be quantized");
  return encoder.scale(largest);
}

// Streams the scale of each group in order.
void stream_scales(const Values& values, const Encoder& encoder, std::uint64_t group, const Context& context,
                   const std::function<void(float)>& sink) {
  float largest = 0;
  std::uint64_t left = group;
  stream(values, context, [&](std::span<const float> piece) {
    while (!piece.empty()) {
      const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(left, piece.size()));
      largest = codecs::largest_magnitude(piece.first(n), largest);
      piece = piece.subspan(n);
      left -= n;
      if (left > 0) continue;
      sink(scale_of(encoder, largest, values.tensor));
      largest = 0;
      left = group;
    }
  });
}

class Coder {
 public:
  Coder(const Encoder& encoder, const Sink& sink) : encoder_(encoder), sink_(sink) {}
  void code(std::span<const float> values, float scale) {
    const std::size_t at = out_.size();
    out_.resize(at + values.size() / encoder_.values_per_byte);
    encoder_.encode(values, scale, out_.data() + at);
    if (out_.size() >= kTile) flush();
  }
  void flush() {
    if (!out_.empty()) sink_(out_);
    out_.clear();
  }

 private:
  const Encoder& encoder_;
  const Sink& sink_;
  std::vector<std::byte> out_;
};

void code_held_groups(const Values& values, const Encoder& encoder, std::uint64_t group, const Context& context,
                      Coder& coder) {
  const auto width = base::to_size(group);
  const std::size_t room = std::max<std::size_t>(1, kTile / width) * width;
  std::vector<float> held;
  const auto code = [&] {
    for (std::size_t at = 0; at < held.size(); at += width) {
      const auto one = std::span(held).subspan(at, width);
      coder.code(one, scale_of(encoder, codecs::largest_magnitude(one), values.tensor));
    }
    held.clear();
  };
  stream(values, context, [&](std::span<const float> piece) {
    while (!piece.empty()) {
      const std::size_t n = std::min(piece.size(), room - held.size());
      held.insert(held.end(), piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(n));
      piece = piece.subspan(n);
      if (held.size() == room) code();
    }
  });
  code();
}

// For groups too long to be held in memory. Only rows of q8_0 can be that long.
void code_long_groups(const Values& values, const Encoder& encoder, std::uint64_t group, const Context& context,
                      Coder& coder) {
  std::vector<float> scales;
  stream_scales(values, encoder, group, context, [&](float scale) { scales.push_back(scale); });
  std::uint64_t at = 0;
  stream(values, context, [&](std::span<const float> piece) {
    while (!piece.empty()) {
      const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(group - at % group, piece.size()));
      coder.code(piece.first(n), scales[base::to_size(at / group)]);
      piece = piece.subspan(n);
      at += n;
    }
  });
}

}  // namespace

Make make_values(Values values) {
  return [values](const Context& context, const Sink& sink) {
    stream(values, context, [&](std::span<const float> piece) { sink(std::as_bytes(piece)); });
  };
}

Make make_codes(Values values, const Encoder& encoder, std::uint64_t group) {
  return [values, encoder, group](const Context& context, const Sink& sink) {
    Coder coder(encoder, sink);
    if (group <= kMostHeld)
      code_held_groups(values, encoder, group, context, coder);
    else
      code_long_groups(values, encoder, group, context, coder);
    coder.flush();
  };
}

Make make_scales(Values values, const Encoder& encoder, std::uint64_t group) {
  return [values, encoder, group](const Context& context, const Sink& sink) {
    std::vector<float> scales;
    const auto flush = [&] {
      if (!scales.empty()) sink(std::as_bytes(std::span(scales)));
      scales.clear();
    };
    stream_scales(values, encoder, group, context, [&](float scale) {
      scales.push_back(scale);
      if (scales.size() == kTile) flush();
    });
    flush();
  };
}

}  // namespace weighbridge::slm_format
