// SPDX-License-Identifier: Apache-2.0
#include "core/elements.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/fail.h"
#include "core/coded.h"
#include "core/payload.h"
#include "core/state.h"
#include "core/words.h"

namespace weighbridge::core {
namespace {

class StoredElements final : public Elements {
 public:
  explicit StoredElements(const Part& part) : Elements(part.dtype(), part.count()), part_(part) {}
  // Strided elements are gathered in tiles. Frames of an encoded part are decoded whole, and only a table in the file
  // states how long they are, so encoded parts are not divided.
  std::uint64_t at_once() const noexcept override {
    if (part_.encoding() != Encoding::raw) return count();
    return part_.strides().empty() ? kAtOnce : kPiece * 8 / info(dtype()).bits;
  }
  void read(std::uint64_t first, std::uint64_t n, std::span<std::byte> out, const Context& context,
            codecs::CastTally*) const override {
    part_.read_range(first, n, out, context);
  }

 private:
  Part part_;
};

class CastElements final : public Elements {
 public:
  CastElements(Tensor tensor, std::shared_ptr<const Elements> from, DType to)
      : Elements(to, from->count()), tensor_(std::move(tensor)), from_(std::move(from)) {
    if (!codecs::can_cast(from_->dtype(), to))
      require_cast(tensor_, from_->dtype(), to, {codecs::CastStatus::not_allowed}, 0);
  }
  std::uint64_t granularity() const noexcept override { return from_->granularity(); }
  std::uint64_t at_once() const noexcept override { return from_->at_once(); }
  void read(std::uint64_t first, std::uint64_t n, std::span<std::byte> out, const Context& context,
            codecs::CastTally* tally) const override {
    const std::uint64_t step = 8 * granularity();  // whole bytes of every dtype
    const std::uint64_t most = std::max<std::uint64_t>(at_once() / step, 1) * step;
    std::vector<std::byte> piece;
    for (std::uint64_t done = 0; done < n;) {
      const std::uint64_t take = std::min(most, n - done);
      piece.resize(base::to_size(*packed_size(from_->dtype(), take)));
      from_->read(first + done, take, piece, context);
      const auto to = out.first(base::to_size(*packed_size(dtype(), take)));
      require_cast(tensor_, from_->dtype(), dtype(), codecs::cast(from_->dtype(), piece, dtype(), to, take, tally),
                   first + done);
      out = out.subspan(to.size());
      done += take;
    }
  }

 private:
  Tensor tensor_;
  std::shared_ptr<const Elements> from_;
};

std::shared_ptr<const Elements> own_elements(const Tensor& tensor) {
  if (tensor.unsupported()) return nullptr;
  if (is_quantized(tensor.layout())) return block_elements(tensor);
  if (tensor.layout() != Layout::dense) return nullptr;
  const Part part = tensor.main();
  const bool strided = part.encoding() == Encoding::raw && part.extent() && !part.strides().empty();
  if (info(part.dtype()).bits == 0) return nullptr;
  if (part.encoding() == Encoding::computed) return computed_elements(part);
  const bool random = is_direct(part) || ((strided || part.encoding() == Encoding::zstd_seekable) && !cut_of(part));
  return random ? std::make_shared<StoredElements>(part) : nullptr;
}

}  // namespace

std::shared_ptr<const Elements> computed_elements(const Part& part) {
  const std::uint32_t side = Access::record(part).side;
  return part.encoding() == Encoding::computed && side != kNone ? Access::state(part).part_sides[side].elements
                                                                : nullptr;
}

std::shared_ptr<const Elements> elements_of(const Tensor& tensor, DType dtype) {
  auto own = own_elements(tensor);
  if (own == nullptr || own->dtype() == dtype) return own;
  require_castable(tensor);
  return std::make_shared<CastElements>(tensor, std::move(own), dtype);
}

bool divides(const Elements& elements, std::uint64_t bytes) noexcept {
  const std::uint64_t least = std::max(elements.at_once(), 8 * elements.granularity());
  return least <= bytes * 8 / info(elements.dtype()).bits;
}

bool divides(const Tensor& tensor, DType dtype, std::uint64_t bytes) noexcept try {
  if (info(dtype).bits == 0 || bytes * 8 % info(dtype).bits != 0 || !codecs::can_cast(tensor.dtype(), dtype))
    return false;
  const auto elements = elements_of(tensor, dtype);
  return elements != nullptr && divides(*elements, bytes);
} catch (const std::exception&) {
  return false;
}

void stream(const Elements& elements, const Context& context,
            const std::function<bool(std::span<const std::byte>)>& sink, codecs::CastTally* tally) {
  const std::uint64_t step = 8 * elements.granularity();
  const std::uint64_t most = std::max<std::uint64_t>(kPiece * 8 / info(elements.dtype()).bits / step, 1) * step;
  std::vector<std::byte> piece;
  for (std::uint64_t done = 0; done < elements.count();) {
    const std::uint64_t n = std::min(most, elements.count() - done);
    piece.resize(base::to_size(*packed_size(elements.dtype(), n)));
    elements.read(done, n, piece, context, tally);
    if (!sink(piece)) return;
    done += n;
  }
}

void require_castable(const Tensor& tensor) {
  require_values(tensor, "its elements are not the numbers of a weight, and cannot be cast");
}

void require_cast(const Tensor& tensor, DType from, DType to, const codecs::CastResult& result, std::uint64_t first) {
  if (result.ok()) return;
  std::string why;
  if (result.status == codecs::CastStatus::nan || result.status == codecs::CastStatus::range)
    why = fmt::format(": element {} {}", first + result.index,
                      result.status == codecs::CastStatus::nan ? "is NaN, which the target lacks" : "does not fit");
  base::misuse("cast", fmt::format("tensor {} cannot be cast from {} to {}{}", quoted(tensor.name()), name(from),
                                   name(to), why));
}

}  // namespace weighbridge::core
