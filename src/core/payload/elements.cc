// SPDX-License-Identifier: Apache-2.0
#include "core/payload/elements.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/fail.h"
#include "core/model/coded.h"
#include "core/model/state.h"
#include "core/model/words.h"
#include "core/payload/dense.h"
#include "core/payload/payload.h"
#include "core/payload/widen.h"
#include "core/reading/format.h"

namespace weighbridge::core {

std::size_t bytes_of(DType dtype, std::uint64_t n) { return base::to_size(*packed_size(dtype, n)); }
std::uint64_t elements_in(std::uint64_t bytes, DType dtype) noexcept {
  return bytes * 8 / std::max(info(dtype).bits, std::uint32_t{1});
}

namespace {

class StoredElements final : public Elements {
 public:
  explicit StoredElements(const Part& part) : Elements(part.dtype(), part.count()), part_(part) {}
  // Strided elements are gathered in tiles. Frames of an encoded part are decoded whole, and only a table in the file
  // states how long they are, so encoded parts are not divided.
  std::uint64_t at_once() const noexcept override {
    if (is_direct(part_)) return kAtOnce;
    const bool strided = part_.encoding() == Encoding::raw && !part_.strides().empty() && !cut_of(part_);
    return strided ? elements_in(kPiece, dtype()) : count();
  }
  void read(std::uint64_t first, std::uint64_t n, std::span<std::byte> out, const Context& context,
            codecs::CastTally*) const override {
    part_.read_range(first, n, out, context);
  }
  void stream(const Context& context, const ElementSink& sink, codecs::CastTally*) const override {
    part_.stream(context, sink);
  }

 private:
  Part part_;
};

class MadeElements final : public Elements {
 public:
  MadeElements(DType dtype, std::uint64_t count, MakeElements make) : Elements(dtype, count), make_(std::move(make)) {}
  void read(std::uint64_t first, std::uint64_t n, std::span<std::byte> out, const Context& context,
            codecs::CastTally*) const override {
    make_(first, n, out, context);
  }

 private:
  MakeElements make_;
};

class MappedElements final : public Elements {
 public:
  MappedElements(ElementsPtr from, Mapping map)
      : Elements(map.dtype, from->count() / map.from * map.to), from_(std::move(from)), map_(std::move(map)) {}

  std::uint64_t granularity() const noexcept override { return units(from_->granularity()) * map_.to; }
  std::uint64_t at_once() const noexcept override {
    return from_->at_once() >= from_->count() ? count() : units(from_->at_once()) * map_.to;
  }

  void read(std::uint64_t first, std::uint64_t n, std::span<std::byte> out, const Context& context,
            codecs::CastTally* tally) const override {
    const std::uint64_t maximum = tile(units(from_->at_once()), context), end = (first + n + map_.to - 1) / map_.to;
    std::vector<std::byte> in, whole;
    for (std::uint64_t unit = first / map_.to; unit < end;) {
      const std::uint64_t take = std::min(maximum, end - unit), all = take * map_.to;
      in.resize(bytes_of(from_->dtype(), take * map_.from));
      from_->read(unit * map_.from, take * map_.from, in, context);
      const std::uint64_t begin = std::max(unit * map_.to, first), until = std::min(unit * map_.to + all, first + n);
      const auto to = out.subspan(bytes_of(dtype(), begin - first), bytes_of(dtype(), until - begin));
      if (until - begin == all) {
        map_.make(unit, in, to, context, tally);
      } else {  // a part of the first or the last unit
        whole.resize(bytes_of(dtype(), all));
        map_.make(unit, in, whole, context, tally);
        std::memcpy(to.data(), whole.data() + bytes_of(dtype(), begin - unit * map_.to), to.size());
      }
      unit += take;
    }
  }

  void stream(const Context& context, const ElementSink& sink, codecs::CastTally* tally) const override {
    if (divides(*from_, kPiece)) return Elements::stream(context, sink, tally);
    std::vector<std::byte> out;
    std::uint64_t unit = 0;
    const std::uint64_t all = from_->count() / map_.from;
    Chunks chunks(bytes_of(from_->dtype(), tile(units(kAtOnce), context) * map_.from),
                  [&](std::span<const std::byte> in) {
                    const std::uint64_t n = std::min(elements_in(in.size(), from_->dtype()) / map_.from, all - unit);
                    if (n == 0) return true;
                    out.resize(bytes_of(dtype(), n * map_.to));
                    map_.make(unit, in.first(bytes_of(from_->dtype(), n * map_.from)), out, context, tally);
                    unit += n;
                    return sink(out);
                  });
    from_->stream(context, [&](std::span<const std::byte> piece) { return chunks.add(piece); });
    chunks.finish();
  }

 private:
  std::uint64_t units(std::uint64_t elements) const noexcept { return (elements + map_.from - 1) / map_.from; }
  // About so many units, in whole bytes of either dtype.
  std::uint64_t tile(std::uint64_t wanted, const Context& context) const {
    const bool whole = info(from_->dtype()).bits % 8 == 0 && info(dtype()).bits % 8 == 0;
    const std::uint64_t step = std::lcm(units(from_->granularity()), std::uint64_t{whole ? 1U : 8U});
    const std::uint64_t minimum = bytes_of(from_->dtype(), map_.from * step) + bytes_of(dtype(), map_.to * step);
    if (minimum > context.limits.memory)
      base::over_limit("memory",
                       fmt::format("{} elements that are encoded together do not fit in the limit of {} bytes",
                                   map_.from * step, context.limits.memory));
    return std::max<std::uint64_t>(wanted / step, 1) * step;
  }

  ElementsPtr from_;
  Mapping map_;
};

class HeadElements final : public Elements {
 public:
  HeadElements(ElementsPtr from, const Heads& heads)
      : Elements(from->dtype(), from->count() * heads.times + heads.added_zeros),
        from_(std::move(from)),
        heads_(heads),
        head_(heads.head == 0 ? std::max<std::uint64_t>(from_->count(), 1) : heads.head) {}

  std::uint64_t at_once() const noexcept override {
    return from_->at_once() >= from_->count() ? count() : from_->at_once();
  }

  void read(std::uint64_t first, std::uint64_t n, std::span<std::byte> out, const Context& context,
            codecs::CastTally*) const override {
    const std::uint64_t end = first + n, made = count() - heads_.added_zeros;
    const Fetch fetch = [&](std::uint64_t from, std::uint64_t many, std::span<std::byte> to) {
      from_->read(from, many, to, context);
    };
    for (std::uint64_t at = first; at < end;) {
      const std::uint64_t in = at % head_;
      const std::uint64_t take = at < made ? std::min(end - at, head_ - in) : end - at;
      const auto to = out.subspan(bytes_of(dtype(), at - first), bytes_of(dtype(), take));
      if (at < made)
        arrange(at / head_ / heads_.times * head_, in, take, to, fetch);
      else
        std::ranges::fill(to, std::byte{0});
      at += take;
    }
  }

  // One head is in memory at a time.
  void stream(const Context& context, const ElementSink& sink, codecs::CastTally* tally) const override {
    if (divides(*from_, kPiece)) return Elements::stream(context, sink, tally);
    bool going = true;
    const auto pass = [&](std::span<const std::byte> bytes) { return going = going && sink(bytes); };
    if (heads_.head == 0) {
      from_->stream(context, pass);
    } else {
      const std::size_t size = bytes_of(dtype(), head_);
      if (size > context.limits.memory / 2)
        base::over_limit("memory", fmt::format("a head of {} bytes does not fit in the limit of {} bytes", size,
                                               context.limits.memory));
      std::vector<std::byte> out(size);
      Chunks chunks(size, [&](std::span<const std::byte> head) {
        if (head.size() < size) return true;
        arrange(0, 0, head_, out, [&](std::uint64_t from, std::uint64_t, std::span<std::byte> to) {
          std::memcpy(to.data(), head.data() + bytes_of(dtype(), from), to.size());
        });
        for (std::uint64_t i = 0; going && i < heads_.times; ++i) pass(out);
        return going;
      });
      from_->stream(context, [&](std::span<const std::byte> piece) { return chunks.add(piece); });
    }
    const std::vector<std::byte> zeros(bytes_of(dtype(), std::min(kAtOnce, heads_.added_zeros)));
    for (std::uint64_t left = bytes_of(dtype(), heads_.added_zeros), n = 0; going && left > 0; left -= n)
      pass(std::span(zeros).first(base::to_size(n = std::min<std::uint64_t>(left, zeros.size()))));
  }

 private:
  // Reads elements of from_.
  using Fetch = std::function<void(std::uint64_t first, std::uint64_t n, std::span<std::byte> out)>;

  // The elements [in, in + n) of one head, whose first element is `base` of from_.
  void arrange(std::uint64_t base, std::uint64_t in, std::uint64_t n, std::span<std::byte> out,
               const Fetch& fetch) const {
    if (heads_.row == 0) return fetch(base + in, n, out);
    const std::uint64_t row = heads_.row, half = head_ / row / 2;
    const std::size_t width = bytes_of(dtype(), row);
    std::vector<std::byte> rows;
    while (n > 0) {
      const std::uint64_t r = in / row, column = in % row, count = n / row;
      std::uint64_t done = 0;
      if (column != 0 || count == 0) {  // a part of a row
        done = std::min(n, row - column);
        fetch(base + (r % 2 * half + r / 2) * row + column, done, out.first(bytes_of(dtype(), done)));
      } else {  // rows of either half, of which each has neighbors in from_
        const std::uint64_t many = std::min(count, std::max<std::uint64_t>(2, kAtOnce / row));
        done = many * row;
        for (std::uint64_t k = 0; k < std::min<std::uint64_t>(many, 2); ++k) {
          const std::uint64_t from = (r + k) % 2 * half + (r + k) / 2, of = (many - k + 1) / 2;
          rows.resize(base::to_size(of) * width);
          fetch(base + from * row, of * row, rows);
          for (std::size_t i = 0; i < of; ++i)
            std::memcpy(out.data() + (2 * i + base::to_size(k)) * width, rows.data() + i * width, width);
        }
      }
      out = out.subspan(bytes_of(dtype(), done));
      in += done;
      n -= done;
    }
  }

  ElementsPtr from_;
  Heads heads_;
  std::uint64_t head_;
};

ElementsPtr own_elements(const Tensor& tensor) {
  switch (tensor.layout()) {
    case Layout::dense: return elements_of(tensor.main());
    case Layout::sparse_csr:
    case Layout::sparse_coo: return sparse_elements(tensor);
    case Layout::quantized_group:
    case Layout::quantized_row:
    case Layout::quantized_block: return block_elements(tensor);
    case Layout::structural: break;
  }
  base::unsupported("unsupported/layout",
                    fmt::format("tensor {} has layout \"{}\", of which this build knows no dense form",
                                quoted(tensor.name()), tensor.layout_name()));
}

}  // namespace

void Elements::stream(const Context& context, const ElementSink& sink, codecs::CastTally* tally) const {
  const std::uint64_t step = std::lcm(granularity(), std::uint64_t{8});
  const std::uint64_t maximum = std::max<std::uint64_t>(elements_in(kPiece, dtype_) / step, 1) * step;
  std::vector<std::byte> piece;
  for (std::uint64_t done = 0; done < count_;) {
    const std::uint64_t n = std::min(maximum, count_ - done);
    piece.resize(bytes_of(dtype_, n));
    read(done, n, piece, context, tally);
    if (!sink(piece)) return;
    done += n;
  }
}

void Elements::read_in_order(std::uint64_t first, std::uint64_t n, std::span<std::byte> out, const Context& context,
                             codecs::CastTally* tally) const {
  Excerpt excerpt(bytes_of(dtype_, first), out, first + n == count_);
  stream(
      context, [&](std::span<const std::byte> piece) { return excerpt.add(piece); }, tally);
  if (!excerpt.is_full()) base::malformed("part/size", "a part holds fewer bytes than the shape of its tensor");
}

ElementsPtr elements_of(const Part& part) {
  const std::uint32_t side = Access::record(part).side;
  if (part.encoding() == Encoding::computed && side != kNone)
    if (const auto& own = Access::state(part).part_sides[side].elements) return own;
  return std::make_shared<StoredElements>(part);
}

ElementsPtr elements_of(const Tensor& tensor, DType dtype) {
  if (const Finding* why = tensor.unsupported()) throw Error(*why);
  ElementsPtr own = own_elements(tensor);
  if (own->dtype() == dtype) return own;
  require_castable(tensor);
  return cast_of(tensor, std::move(own), dtype);
}

ElementsPtr cast_of(const Tensor& tensor, ElementsPtr own, DType dtype) {
  const DType from = own->dtype();
  if (from == dtype) return own;
  if (!codecs::can_cast(from, dtype)) require_cast(tensor, from, dtype, {codecs::CastStatus::not_allowed}, 0);
  const auto make = [tensor, from, dtype, count = own->count()](std::uint64_t first, std::span<const std::byte> in,
                                                                std::span<std::byte> out, const Context&,
                                                                codecs::CastTally* tally) {
    const std::uint64_t n = std::min(elements_in(out.size(), dtype), count - first);
    require_cast(tensor, from, dtype, codecs::cast(from, in, dtype, out, n, tally), first);
  };
  return mapped(std::move(own), {.dtype = dtype, .make = make});
}

bool divides(const Elements& elements, std::uint64_t bytes) noexcept {
  const std::uint64_t bits = info(elements.dtype()).bits;
  const std::uint64_t minimum = std::max(elements.at_once(), 8 * elements.granularity());
  return bits > 0 && bytes * 8 % bits == 0 && minimum <= bytes * 8 / bits;
}

bool divides(const Tensor& tensor, DType dtype, std::uint64_t bytes) noexcept try {
  return codecs::can_cast(tensor.dtype(), dtype) && divides(*elements_of(tensor, dtype), bytes);
} catch (const std::exception&) {
  return false;
}

ElementsPtr made_elements(DType dtype, std::uint64_t count, MakeElements make) {
  return std::make_shared<MadeElements>(dtype, count, std::move(make));
}
ElementsPtr held_elements(DType dtype, std::uint64_t count, Bytes bytes) {
  return made_elements(
      dtype, count,
      [dtype, bytes = std::move(bytes)](std::uint64_t first, std::uint64_t, std::span<std::byte> out, const Context&) {
        std::ranges::copy(bytes.span.subspan(bytes_of(dtype, first), out.size()), out.begin());
      });
}
ElementsPtr mapped(ElementsPtr from, Mapping map) {
  return std::make_shared<MappedElements>(std::move(from), std::move(map));
}

ElementsPtr widened(const Part& part) {
  require_index(part.dtype());
  return mapped(elements_of(part),
                {.dtype = DType::u64,
                 .make = [from = part.dtype()](std::uint64_t, std::span<const std::byte> in, std::span<std::byte> out,
                                               const Context&, codecs::CastTally*) { widen(from, in, out); }});
}

ElementsPtr with_heads(ElementsPtr from, const Heads& heads) {
  if (heads.head == 0 && heads.added_zeros == 0) return from;
  return std::make_shared<HeadElements>(std::move(from), heads);
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
