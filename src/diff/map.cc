// SPDX-License-Identifier: Apache-2.0
// difference_map(): the differences of a pair of tensors, block by block.
#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "base/checked.h"
#include "base/fail.h"
#include "codecs/cast.h"
#include "codecs/pairs.h"
#include "core/model/coded.h"
#include "core/model/progress.h"
#include "core/payload/work.h"
#include "diff/steps.h"
#include "diff/values.h"
#include "weighbridge/diff.h"

namespace weighbridge {
namespace {

using comparison::Elements;

constexpr std::uint32_t kMaxBlocks = 1024;  // on a side

Elements readable(const Model& model, std::string_view name, const Limits& limits) {
  const Tensor tensor = model[name];
  if (const Finding* const why = tensor.unsupported()) throw Error(*why);
  core::require_values(tensor, "there are no numbers to compare");
  Elements out = comparison::elements_of(tensor);
  if (comparison::is_too_sparse(out, limits))
    base::over_limit("memory", "the dense form of a sparse tensor takes more memory than the limit", out.stream.size);
  return out;
}

// Elements of whole bytes in place; others as f64, which holds each of them.
class Numbers {
 public:
  explicit Numbers(DType dtype) : from_(dtype), dtype_(info(dtype).bits % 8 == 0 ? dtype : DType::f64) {}
  DType dtype() const noexcept { return dtype_; }
  std::size_t width() const noexcept { return info(dtype_).bits / 8; }
  std::span<const std::byte> of(std::span<const std::byte> packed, std::size_t count) {
    if (dtype_ == from_) return packed;
    held_.resize(count * width());
    static_cast<void>(codecs::cast(from_, packed, dtype_, held_, count));
    return held_;
  }

 private:
  const DType from_, dtype_;
  std::vector<std::byte> held_;
};

}  // namespace

std::uint64_t DifferenceMap::begin(std::uint32_t i, std::uint64_t of, std::uint32_t blocks) noexcept {
  if (blocks == 0) return 0;
  return of / blocks * i + of % blocks * i / blocks;  // i * of / blocks, which could overflow
}

DifferenceMap difference_map(const Model& a, const Model& b, const TensorPair& pair, std::uint32_t grid_rows,
                             std::uint32_t grid_columns, const DiffOptions& options, const Context& context) {
  if (grid_rows == 0 || grid_columns == 0 || grid_rows > kMaxBlocks || grid_columns > kMaxBlocks)
    base::misuse("map", "a map has 1 to " + std::to_string(kMaxBlocks) + " blocks on each side");
  const comparison::Selection in = comparison::select(a, b, options, context);
  const Elements x = readable(in.a, pair.a, context.limits), y = readable(in.b, pair.b, context.limits);
  if (x.count != y.count)
    base::misuse("map", "the tensors have " + std::to_string(x.count) + " and " + std::to_string(y.count) +
                            " elements: only tensors with as many have a map");
  if (!codecs::can_pair(x.dtype, y.dtype)) base::misuse("map", "complex numbers are not compared with real ones");
  core::Work work;
  comparison::add_work(work, x);
  comparison::add_work(work, y);
  work.require(context.limits);

  DifferenceMap out;
  out.columns = x.shape.empty() ? x.count : x.shape.back();
  out.rows = out.columns == 0 ? 0 : x.count / out.columns;
  out.grid_rows = static_cast<std::uint32_t>(std::min<std::uint64_t>(grid_rows, out.rows));
  out.grid_columns = static_cast<std::uint32_t>(std::min<std::uint64_t>(grid_columns, out.rows == 0 ? 0 : out.columns));
  out.blocks.resize(std::size_t{out.grid_rows} * out.grid_columns);
  core::Progress progress(context, x.stream.size + y.stream.size);
  const Context inner = progress.inner();

  Numbers of_x(x.dtype), of_y(y.dtype);
  std::uint64_t column = 0, row = 0;
  std::uint32_t i = 0, j = 0;
  comparison::read_pairs(
      x, y, inner, [&](std::span<const std::byte> packed_x, std::span<const std::byte> packed_y, std::uint64_t count) {
        const auto elements = base::to_size(count);
        const auto xs = of_x.of(packed_x, elements), ys = of_y.of(packed_y, elements);
        for (std::size_t at = 0; at < elements;) {
          const std::uint64_t end = DifferenceMap::begin(j + 1, out.columns, out.grid_columns);
          const auto n = base::to_size(std::min<std::uint64_t>(elements - at, end - column));
          codecs::PairAccumulator pairs(of_x.dtype(), of_y.dtype(), {});
          pairs.update(xs.subspan(at * of_x.width(), n * of_x.width()), ys.subspan(at * of_y.width(), n * of_y.width()),
                       n);
          const codecs::PairDifferences& found = pairs.result();
          DifferenceMap::Block& block = out.blocks[std::size_t{i} * out.grid_columns + j];
          block.max_abs = std::max(block.max_abs, found.max_abs);
          block.changed += found.changed;
          block.not_finite += found.nans + found.infinite;
          at += n;
          column += n;
          if (column < end) continue;
          if (++j < out.grid_columns) continue;
          j = 0;
          column = 0;
          if (++row == DifferenceMap::begin(i + 1, out.rows, out.grid_rows)) ++i;
        }
        progress.add(packed_x.size() + packed_y.size());
        return true;
      });
  progress.finish();
  return out;
}

}  // namespace weighbridge
