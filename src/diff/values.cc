// SPDX-License-Identifier: Apache-2.0
// Reads two streams at once: one calls back, and the other is read at any offset, or ahead by a thread of its own.
#include "diff/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "base/checked.h"
#include "codecs/cast.h"
#include "core/model/draft.h"
#include "core/model/progress.h"
#include "core/payload/content.h"
#include "core/payload/payload.h"

namespace weighbridge::comparison {
namespace {

constexpr std::uint64_t kWindow = std::uint64_t{1} << 20;
constexpr std::size_t kBlock = 16384;  // elements that are compared at once, a whole number of bytes of each dtype

[[noreturn]] void wrong_size() {
  base::malformed("part/size", "a part does not hold as many bytes as the shape of its tensor");
}

std::size_t bytes_of(DType dtype, std::uint64_t elements) { return base::to_size(*packed_size(dtype, elements)); }

// Delivers a stream piece by piece to a caller that asks.
class Reader {
 public:
  virtual ~Reader() = default;
  // Fills `out`, or throws if there are fewer bytes.
  void read(std::span<std::byte> out) {
    while (!out.empty()) {
      if (left_.empty() && (left_ = next()).empty()) wrong_size();
      const std::size_t take = std::min(out.size(), left_.size());
      std::memcpy(out.data(), left_.data(), take);
      out = out.subspan(take);
      left_ = left_.subspan(take);
    }
  }

 protected:
  virtual std::span<const std::byte> next() = 0;  // empty at the end; valid until the next call

 private:
  std::span<const std::byte> left_{};
};

class DirectReader : public Reader {
 public:
  DirectReader(const core::Elements& elements, const Context& context) : elements_(elements), context_(context) {}

 private:
  std::span<const std::byte> next() override {
    const std::uint64_t n = std::min(kWindow * 8 / info(elements_.dtype()).bits, elements_.count() - at_);
    window_.resize(bytes_of(elements_.dtype(), n));
    elements_.read(at_, n, window_, context_);
    at_ += n;
    return window_;
  }
  const core::Elements& elements_;
  const Context& context_;
  std::uint64_t at_ = 0;
  std::vector<std::byte> window_;
};

// A thread that reads at most two pieces ahead. Where none can be started, the stream is held in memory.
class AheadReader : public Reader {
 public:
  AheadReader(const Stream& stream, const Context& context) {
    const auto produce = [this, &stream, context] {
      try {
        stream.produce(context, [this](std::span<const std::byte> piece) { return put(piece); });
      } catch (...) {
        const std::lock_guard lock(mutex_);
        error_ = std::current_exception();
      }
      const std::lock_guard lock(mutex_);
      ended_ = true;
      changed_.notify_all();
    };
    try {
      thread_ = std::thread(produce);
    } catch (const std::system_error&) {
      if (stream.size > context.limits.decoded)
        base::over_limit("decoded",
                         fmt::format("comparing these tensors without threads takes more than the limit of {} bytes",
                                     context.limits.decoded),
                         stream.size);
      maximum_ = SIZE_MAX;
      produce();
    }
  }
  ~AheadReader() override {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

 private:
  bool put(std::span<const std::byte> piece) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return pieces_.size() < maximum_ || stopped_; });
    if (stopped_) return false;
    pieces_.emplace_back(piece.begin(), piece.end());
    changed_.notify_all();
    return true;
  }
  std::span<const std::byte> next() override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !pieces_.empty() || ended_; });
    if (pieces_.empty()) {
      if (error_) std::rethrow_exception(error_);
      return {};
    }
    now_ = std::move(pieces_.front());
    pieces_.pop_front();
    changed_.notify_all();
    return now_.empty() ? std::span<const std::byte>() : std::span<const std::byte>(now_);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::vector<std::byte>> pieces_;
  std::size_t maximum_ = 2;
  std::vector<std::byte> now_;
  std::exception_ptr error_;
  bool ended_ = false, stopped_ = false;
  std::thread thread_;
};

std::unique_ptr<Reader> reader_of(const Stream& stream, const Context& context) {
  if (stream.direct) return std::make_unique<DirectReader>(*stream.direct, context);
  return std::make_unique<AheadReader>(stream, context);
}

// Cuts a stream of `total` elements into blocks of kBlock: sink(bytes, elements).
template <class Take>
void in_blocks(const Stream& stream, DType dtype, std::uint64_t total, const Context& context, Take take) {
  std::uint64_t left = total;
  bool going = true;
  core::Chunks blocks(bytes_of(dtype, kBlock), [&](std::span<const std::byte> bytes) {
    const std::uint64_t n = std::min<std::uint64_t>(left, kBlock);
    if (bytes.size() != bytes_of(dtype, n)) wrong_size();
    left -= n;
    return going = take(bytes, n);
  });
  stream.produce(context, [&](std::span<const std::byte> piece) { return blocks.add(piece); });
  blocks.finish();
  if (going && left != 0) wrong_size();
}

}  // namespace

Stream stream_of(const Part& part) {
  Stream out;
  out.size = part.size();
  out.produce = [part](const Context& context, const Sink& sink) { part.stream(context, sink); };
  if (auto elements = core::elements_of(part); core::divides(*elements, kWindow)) out.direct = std::move(elements);
  return out;
}

std::vector<std::uint64_t> shape_of(const Tensor& tensor) {
  if (!tensor.has_shape()) return {};
  const Shape shape = tensor.shape();
  return {shape.begin(), shape.end()};
}

Elements elements_of(const Tensor& tensor) {
  Elements out{.tensor = tensor, .dtype = tensor.dtype(), .shape = shape_of(tensor)};
  out.count = tensor.has_shape() ? base::element_count(out.shape).value_or(0) : tensor.main().count();
  if (tensor.layout() == Layout::dense) {
    out.stream = stream_of(tensor.main());
  } else {
    out.stream.size = packed_size(out.dtype, out.count).value_or(0);
    out.stream.produce = [tensor](const Context& context, const Sink& sink) {
      tensor.stream_dense(tensor.dtype(), context, sink);
    };
    if (core::readable_blocks(tensor) && core::divides(tensor, out.dtype, kWindow))
      out.stream.direct = core::elements_of(tensor, out.dtype);
  }
  return out;
}

std::uint64_t keep_common_rows(Elements& a, Elements& b) {
  if (a.count == b.count || a.shape.size() != 2 || b.shape.size() != 2 || a.shape[1] != b.shape[1]) return 0;
  const std::uint64_t rows = std::min(a.shape[0], b.shape[0]), count = rows * a.shape[1];
  const auto can_end = [&](const Elements& side) {
    return count % 8 * info(side.dtype).bits % 8 == 0 && !core::is_sparse(side.tensor);
  };
  if (rows == 0 || !can_end(a) || !can_end(b)) return 0;
  for (Elements* const side : {&a, &b}) {
    if (side->count == count) continue;
    side->count = count;
    side->shape[0] = rows;
    side->stream.size = *packed_size(side->dtype, count);
    side->stream.produce = [all = std::move(side->stream.produce), size = side->stream.size](const Context& context,
                                                                                             const Sink& sink) {
      std::uint64_t left = size;
      all(context, [&](std::span<const std::byte> piece) {
        const auto taken = piece.first(base::to_size(std::min<std::uint64_t>(piece.size(), left)));
        left -= taken.size();
        return sink(taken) && left > 0;
      });
    };
  }
  return rows;
}

bool is_too_sparse(const Elements& of, const Limits& limits) noexcept {
  return core::is_sparse(of.tensor) && of.stream.size > limits.memory;
}

void add_work(core::Work& work, const Elements& of) {
  for (const Part& part : of.tensor.parts()) work.add(part);
  if (core::is_sparse(of.tensor)) work.add(of.tensor.main(), of.stream.size);
}

bool same_bytes(const Stream& a, const Stream& b, const Context& context) {
  if (a.size != b.size) return false;
  const bool second_calls = a.direct && !b.direct;
  const std::unique_ptr<Reader> other = reader_of(second_calls ? a : b, context);
  std::vector<std::byte> room;
  bool same = true;
  (second_calls ? b : a).produce(context, [&](std::span<const std::byte> piece) {
    room.resize(piece.size());
    other->read(room);
    return same = std::memcmp(room.data(), piece.data(), piece.size()) == 0;
  });
  return same;
}

void read_pairs(const Elements& a, const Elements& b, const Context& context, const TakePairs& take) {
  if (a.count == 0) return;
  const bool second_calls = a.stream.direct && !b.stream.direct;
  const Elements &caller = second_calls ? b : a, &read = second_calls ? a : b;
  const std::unique_ptr<Reader> reader = reader_of(read.stream, context);
  std::vector<std::byte> room(bytes_of(read.dtype, kBlock));
  in_blocks(caller.stream, caller.dtype, a.count, context, [&](std::span<const std::byte> bytes, std::uint64_t n) {
    const auto other = std::span(room).first(bytes_of(read.dtype, n));
    reader->read(other);
    return second_calls ? take(other, bytes, n) : take(bytes, other, n);
  });
}

Compared compare(const Elements& a, const Elements& b, codecs::Tolerance tolerance, const Context& context,
                 const Did& did) {
  Compared out;
  codecs::PairAccumulator sums(a.dtype, b.dtype, tolerance);
  read_pairs(a, b, context, [&](std::span<const std::byte> x, std::span<const std::byte> y, std::uint64_t n) {
    if (a.dtype == b.dtype) out.same_bits = out.same_bits && std::ranges::equal(x, y);
    sums.update(x, y, n);
    did(x.size() + y.size());
    return true;
  });
  out.values = sums.result();
  return out;
}

Compared compare_transposed(const Elements& a, const Elements& b, codecs::Tolerance tolerance, const Context& context) {
  // Elements that do not begin at a byte are held as f32, which has their values.
  const DType dtype = info(b.dtype).bits % 8 == 0 ? b.dtype : DType::f32;
  const std::size_t width = info(dtype).bits / 8;
  const Array held = b.tensor.to_dense(dtype, context);
  const std::uint64_t rows = a.shape[0], columns = a.shape[1];
  codecs::PairAccumulator sums(a.dtype, dtype, tolerance);
  std::vector<std::byte> room(kBlock * width);
  std::uint64_t row = 0, column = 0;
  Compared out;
  in_blocks(a.stream, a.dtype, a.count, context, [&](std::span<const std::byte> bytes, std::uint64_t n) {
    for (std::size_t i = 0; i < n; ++i) {
      std::memcpy(room.data() + i * width, held.data.get() + base::to_size(column * rows + row) * width, width);
      if (++column == columns) column = 0, ++row;
    }
    const auto other = std::span(room).first(base::to_size(n) * width);
    if (a.dtype == dtype) out.same_bits = out.same_bits && std::ranges::equal(bytes, other);
    sums.update(bytes, other, n);
    return true;
  });
  out.values = sums.result();
  return out;
}

bool same_stored(const Tensor& a, const Tensor& b, const Context& context) {
  if (a.part_count() == 0) return false;  // nothing shows that they are
  if (a.layout_name() != b.layout_name() || a.type_name() != b.type_name() || a.part_count() != b.part_count() ||
      shape_of(a) != shape_of(b) || !std::ranges::equal(a.attributes(), b.attributes()))
    return false;
  for (const Part& one : a.parts()) {
    const auto other = b.part(one.role());
    if (!other) return false;
    const auto from = one.extent(), to = other->extent();
    if (!from || !to || from->length != to->length || one.dtype_name() != other->dtype_name() ||
        one.encoding_name() != other->encoding_name() || one.order() != other->order() ||
        !std::ranges::equal(one.strides(), other->strides()))
      return false;
    std::vector<std::byte> x, y;
    for (std::uint64_t at = 0; at < from->length; at += kWindow) {
      core::check_cancelled(context);
      x.resize(base::to_size(std::min(kWindow, from->length - at)));
      y.resize(x.size());
      core::source_of(one).read_at(from->offset + at, x);
      core::source_of(*other).read_at(to->offset + at, y);
      if (x != y) return false;
    }
  }
  return true;
}

DType hashed_as(DType dtype) noexcept {
  const DTypeInfo& facts = info(dtype);
  const bool narrow = facts.kind != DTypeKind::complex && dtype != DType::i64 && dtype != DType::u64;
  return narrow && codecs::can_cast(dtype, DType::f64) ? DType::f64 : dtype;
}

codecs::Hash128 hash_values(const Elements& of, const Context& context) {
  codecs::Xxh3_128 hash;
  if (of.count == 0) return hash.finish();
  const bool real = hashed_as(of.dtype) == DType::f64;
  std::vector<double> values(real ? kBlock : 0);
  in_blocks(of.stream, of.dtype, of.count, context, [&](std::span<const std::byte> bytes, std::uint64_t n) {
    if (!real) {
      hash.update(bytes);
      return true;
    }
    const auto wide = std::span(values).first(base::to_size(n));
    codecs::cast(of.dtype, bytes, DType::f64, std::as_writable_bytes(wide), n);
    for (double& value : wide) value = std::isnan(value) ? std::numeric_limits<double>::quiet_NaN() : value + 0.0;
    hash.update(std::as_bytes(wide));
    return true;
  });
  return hash.finish();
}

namespace {

template <class Take> void hash_each_row(const Elements& of, DType as, const Context& context, Take&& take_hash) {
  const std::uint64_t row = of.count / of.shape[0];
  const std::size_t size = bytes_of(as, row);
  codecs::Xxh3_128 hash;
  std::size_t filled = 0;
  of.tensor.stream_dense(as, context, [&](std::span<const std::byte> piece) {
    while (!piece.empty()) {
      const std::size_t take = std::min(size - filled, piece.size());
      hash.update(piece.first(take));
      piece = piece.subspan(take);
      if ((filled += take) < size) continue;
      take_hash(hash.finish());
      hash.reset();
      filled = 0;
    }
    return true;
  });
}

std::vector<codecs::Hash128> hash_rows(const Elements& of, DType as, const Context& context) {
  std::vector<codecs::Hash128> out;
  hash_each_row(of, as, context, [&](const codecs::Hash128& row) { out.push_back(row); });
  return out;
}

}  // namespace

RowOrder find_row_order(const Elements& a, const Elements& b, const Context& context) {
  const std::uint64_t rows = a.shape[0];
  const DType as = a.dtype == b.dtype ? a.dtype : DType::f64;
  if (a.count == 0 || rows < 2 || !codecs::can_cast(a.dtype, as) || !codecs::can_cast(b.dtype, as)) return {};
  if ((a.count / rows * info(as).bits) % 8 != 0) return {};
  if (rows > context.limits.memory / (4 * sizeof(codecs::Hash128))) return {};
  const std::vector<codecs::Hash128> x = hash_rows(a, as, context), y = hash_rows(b, as, context);
  auto sorted_x = x, sorted_y = y;
  const auto key = [](const codecs::Hash128& hash) { return std::pair(hash.high, hash.low); };
  std::ranges::sort(sorted_x, {}, key);
  std::ranges::sort(sorted_y, {}, key);
  if (sorted_x != sorted_y) return {};
  // Rows j x half + i of a head, j 0 or 1, that are rows 2i + j in the other: neighbors, as llama.cpp has them.
  for (std::uint64_t head = 4; head <= std::min<std::uint64_t>(rows, 1024); head += 2) {
    if (rows % head != 0) continue;
    const auto is_order = [&](const auto& halves, const auto& neighbors) {
      for (std::uint64_t r = 0; r < rows; ++r) {
        const std::uint64_t in = r % head, j = in / (head / 2), i = in % (head / 2);
        if (halves[base::to_size(r)] != neighbors[base::to_size(r - in + 2 * i + j)]) return false;
      }
      return true;
    };
    if (is_order(x, y)) return {true, fmt::format("halves of heads of {} became neighbors", head)};
    if (is_order(y, x)) return {true, fmt::format("neighbors in heads of {} became halves", head)};
  }
  return {true, {}};
}

bool has_rows(const Elements& of) noexcept {
  return of.shape.size() > 1 && of.shape[0] > 1 && of.count > 0 && codecs::can_cast(of.dtype, of.dtype) &&
         (of.count / of.shape[0] * info(of.dtype).bits) % 8 == 0;
}

codecs::Hash128 hash_of_rows(const Elements& of, const Context& context) {
  codecs::Hash128 sum{};
  hash_each_row(of, of.dtype, context, [&](const codecs::Hash128& row) {
    sum.high += row.high;
    sum.low += row.low;
  });
  return sum;
}

}  // namespace weighbridge::comparison
