// SPDX-License-Identifier: Apache-2.0
// Counts the elements that are not zero, decides, and makes the parts. Each part is a pass over the tensor.
#include "core/model/view.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/checked.h"
#include "base/endian.h"
#include "base/fail.h"
#include "codecs/sparse.h"
#include "core/model/plan_text.h"
#include "core/model/progress.h"
#include "core/model/state.h"
#include "core/model/words.h"
#include "core/payload/content.h"
#include "core/payload/dense.h"
#include "core/payload/extents.h"
#include "core/payload/payload.h"

namespace weighbridge::core {
namespace {

using Sink = std::function<bool(std::span<const std::byte>)>;
using Make = std::function<void(const Context&, const Sink&)>;

constexpr std::uint64_t kIndex = 8;  // bytes of an index: every published reader reads u64 (reading Y4)
// Places of elements that are held at once: 64 MiB. With more, each dimension takes a pass over the tensor.
constexpr std::uint64_t kHeld = std::uint64_t{8} << 20;
// Row bounds up to this size are always made.
constexpr std::uint64_t kBounds = std::uint64_t{1} << 20;

[[noreturn]] void refuse(const Tensor& tensor, const char* why) {
  base::malformed("part/sparse", "tensor " + quoted(tensor.name()) + " " + why + ": see `weighbridge verify`");
}

// Calls use(i) for each element of the piece that is not zero.
template <std::size_t Width, class Use> void visit(std::span<const std::byte> piece, Use use) {
  for (std::size_t i = 0; i < piece.size() / Width; ++i) {
    std::uint64_t low = 0, high = 0;
    std::memcpy(&low, piece.data() + i * Width, std::min<std::size_t>(Width, 8));
    if constexpr (Width == 16) std::memcpy(&high, piece.data() + i * Width + 8, 8);
    if ((low | high) != 0) use(i);
  }
}
template <class Use> void visit_set(std::uint64_t width, std::span<const std::byte> piece, Use use) {
  switch (width) {
    case 1: return visit<1>(piece, use);
    case 2: return visit<2>(piece, use);
    case 4: return visit<4>(piece, use);
    case 8: return visit<8>(piece, use);
    default: return visit<16>(piece, use);
  }
}
std::size_t width_of(const Tensor& tensor) noexcept { return info(tensor.dtype()).bits / 8; }

// Passes bytes on in pieces.
class Out {
 public:
  explicit Out(const Sink& sink) : sink_(sink) {}
  void bytes(std::span<const std::byte> bytes) {
    made_.insert(made_.end(), bytes.begin(), bytes.end());
    if (made_.size() >= kRoom) flush();
  }
  void index(std::uint64_t value) {
    std::byte bytes[kIndex];
    base::store_le(bytes, value);
    this->bytes(bytes);
  }
  void flush() {
    if (!stopped_ && !made_.empty()) stopped_ = !sink_(made_);
    made_.clear();
  }
  bool stopped() const noexcept { return stopped_; }

 private:
  static constexpr std::size_t kRoom = std::size_t{256} << 10;
  const Sink& sink_;
  std::vector<std::byte> made_;
  bool stopped_ = false;
};

// Calls use(element, bytes of the piece, index in it) for each element of a dense tensor that is not zero.
template <class Use> void each_set(const Tensor& tensor, const Context& context, Use use) {
  const std::size_t width = width_of(tensor);
  std::uint64_t before = 0;
  tensor.main().stream(context, [&](std::span<const std::byte> piece) {
    visit_set(width, piece, [&](std::size_t i) { use(before + i, piece.subspan(i * width, width)); });
    before += piece.size() / width;
    return true;
  });
}

Make dense_values(const Tensor& tensor) {
  return [tensor](const Context& context, const Sink& sink) {
    Out out(sink);
    each_set(tensor, context, [&](std::uint64_t, std::span<const std::byte> value) { out.bytes(value); });
    out.flush();
  };
}

Make dense_columns(const Tensor& tensor) {
  return [tensor](const Context& context, const Sink& sink) {
    Out out(sink);
    const std::uint64_t columns = tensor.shape()[1];
    each_set(tensor, context, [&](std::uint64_t element, std::span<const std::byte>) { out.index(element % columns); });
    out.flush();
  };
}

Make dense_bounds(const Tensor& tensor) {
  return [tensor](const Context& context, const Sink& sink) {
    Out out(sink);
    const std::uint64_t rows = tensor.shape()[0], columns = tensor.shape()[1];
    std::uint64_t row = 0, count = 0;  // bounds of rows before `row` are out
    each_set(tensor, context, [&](std::uint64_t element, std::span<const std::byte>) {
      for (; row <= element / columns; ++row) out.index(count);
      ++count;
    });
    for (; row <= rows; ++row) out.index(count);
    out.flush();
  };
}

Make dense_coords(const Tensor& tensor, std::uint64_t count) {
  return [tensor, count](const Context& context, const Sink& sink) {
    Out out(sink);
    const Shape shape = tensor.shape();
    std::vector<std::uint64_t> held;
    if (count <= kHeld) {
      held.reserve(base::to_size(count));
      each_set(tensor, context, [&](std::uint64_t element, std::span<const std::byte>) {
        if (held.size() < count) held.push_back(element);
      });
    }
    std::uint64_t inner = *base::element_count(shape);
    for (const std::uint64_t size : shape) {
      inner /= size;
      const auto coordinate = [&](std::uint64_t element) { out.index(element / inner % size); };
      if (size == 1)
        for (std::uint64_t i = 0; i < count && !out.stopped(); ++i) out.index(0);
      else if (count <= kHeld)
        for (const std::uint64_t element : held) coordinate(element);
      else
        each_set(tensor, context, [&](std::uint64_t element, std::span<const std::byte>) { coordinate(element); });
    }
    out.flush();
  };
}

// Passes on the elements of an index part as u64.
void stream_indices(const Tensor& tensor, const Part& part, const Context& context,
                    const std::function<void(std::uint64_t)>& use) {
  const std::uint64_t width = info(part.dtype()).bits / 8;
  part.stream(context, [&](std::span<const std::byte> piece) {
    for (std::uint64_t i = 0; i < piece.size() / width; ++i) {
      std::uint64_t value = 0;
      if (!codecs::sparse_detail::load_index(part.dtype(), piece.data(), i, value))
        refuse(tensor, "has a negative index");
      use(value);
    }
    return true;
  });
}

Make as_it_is(const Tensor& tensor, std::string_view role) {
  return [part = *tensor.part(role)](const Context& context, const Sink& sink) { part.stream(context, sink); };
}

// The row of each entry, then its column.
Make coords_of_csr(const Tensor& tensor) {
  return [tensor](const Context& context, const Sink& sink) {
    Out out(sink);
    const std::uint64_t count = tensor.main().count();
    std::uint64_t bounds = 0, last = 0;
    stream_indices(tensor, *tensor.part(kIndptr), context, [&](std::uint64_t bound) {
      if (bounds == 0 ? bound != 0 : bound < last || bound > count) refuse(tensor, "has row bounds that do not rise");
      for (; last < bound; ++last) out.index(bounds - 1);
      ++bounds;
    });
    if (last != count) refuse(tensor, "has row bounds that do not cover its values");
    stream_indices(tensor, *tensor.part(kIndices), context, [&](std::uint64_t column) { out.index(column); });
    out.flush();
  };
}

// The entries of a sparse_coo tensor of rank 2, by row.
class ByRow {
 public:
  ByRow(const Tensor& tensor, const Context& context) : coords_(whole_part(tensor, kCoords, context)) {
    count_ = tensor.main().count();
    const std::uint64_t rows = tensor.shape()[0];
    std::uint64_t before = 0;
    bool sorted = true;
    for (std::uint64_t i = 0; i < count_; ++i) {
      std::uint64_t row = 0;
      if (!load(i, row) || row >= rows) refuse(tensor, "has an index outside its shape");
      sorted &= row >= before;
      before = row;
    }
    if (sorted) return;
    order_.resize(base::to_size(count_));
    std::iota(order_.begin(), order_.end(), std::uint64_t{0});
    // Entries of one element keep their order, in which they add up.
    std::ranges::stable_sort(order_, {}, [&](std::uint64_t i) { return row_of(i); });
  }

  // use(entry, its row, its column)
  template <class Use> void each(Use use) const {
    for (std::uint64_t i = 0; i < count_; ++i) {
      const std::uint64_t entry = order_.empty() ? i : order_[base::to_size(i)];
      std::uint64_t column = 0;
      if (!load(count_ + entry, column)) column = UINT64_MAX;  // out of range, as it was
      use(entry, row_of(entry), column);
    }
  }

 private:
  bool load(std::uint64_t i, std::uint64_t& value) const {
    return codecs::sparse_detail::load_index(coords_.dtype, coords_.bytes.get(), i, value);
  }
  std::uint64_t row_of(std::uint64_t i) const {
    std::uint64_t row = 0;
    load(i, row);
    return row;
  }
  WholePart coords_;
  std::uint64_t count_ = 0;
  std::vector<std::uint64_t> order_;  // empty: as they are
};

Make bounds_of_coo(const Tensor& tensor) {
  return [tensor](const Context& context, const Sink& sink) {
    Out out(sink);
    const std::uint64_t rows = tensor.shape()[0];
    std::uint64_t row = 0, count = 0;
    ByRow(tensor, context).each([&](std::uint64_t, std::uint64_t of, std::uint64_t) {
      for (; row <= of; ++row) out.index(count);
      ++count;
    });
    for (; row <= rows && !out.stopped(); ++row) out.index(count);
    out.flush();
  };
}
Make columns_of_coo(const Tensor& tensor) {
  return [tensor](const Context& context, const Sink& sink) {
    Out out(sink);
    ByRow(tensor, context).each([&](std::uint64_t, std::uint64_t, std::uint64_t column) { out.index(column); });
    out.flush();
  };
}
Make values_of_coo(const Tensor& tensor) {
  return [tensor](const Context& context, const Sink& sink) {
    Out out(sink);
    const std::size_t width = width_of(tensor);
    const WholePart values = whole_part(tensor, kValues, context);
    ByRow(tensor, context).each([&](std::uint64_t entry, std::uint64_t, std::uint64_t) {
      out.bytes(values.span().subspan(base::to_size(entry) * width, width));
    });
    out.flush();
  };
}

std::uint64_t csr_bytes(std::uint64_t rows, std::uint64_t count, std::uint64_t width) noexcept {
  const auto entries = base::checked_mul(count, kIndex + width), bounds = base::checked_mul(rows, kIndex);
  const auto all = entries && bounds ? base::checked_add(*entries, *bounds) : std::nullopt;
  return all && *all <= UINT64_MAX - kIndex ? *all + kIndex : UINT64_MAX;
}
std::uint64_t coo_bytes(std::size_t rank, std::uint64_t count, std::uint64_t width) noexcept {
  return base::checked_mul(count, kIndex * rank + width).value_or(UINT64_MAX);
}

class SparseMaker {
 public:
  SparseMaker(const Model& model, Layout layout, double density, std::string_view no_digest, const Context& context)
      : model_(model), layout_(layout), density_(density), no_digest_(no_digest), context_(context) {}

  Derived run() {
    find_shared();
    counts_.resize(model_.size());
    count();
    draft_.begin_view(model_);
    for (std::uint32_t i = 0; i < model_.size(); ++i) {
      const Tensor tensor = model_[i];
      if (counts_[i])
        add(tensor, *counts_[i]);
      else
        draft_.adopt(tensor.name(), tensor);
    }
    draft_.index_names();
    const auto attributes = model_.attributes();
    draft_.set_attributes({attributes.begin(), attributes.end()});
    return {.model = draft_.finish(), .losses = {}, .changes = std::move(changes_)};
  }

 private:
  void find_shared() {
    const Sharing sharing = core::sharing(model_);
    shared_.assign(model_.size(), false);
    for (std::uint32_t i = 0; i < sharing.tensor.size(); ++i) {
      for (const std::uint32_t other : {sharing.first[i], sharing.partly[i]})
        if (other != kNone && sharing.tensor[other] != sharing.tensor[i])
          shared_[sharing.tensor[i]] = shared_[sharing.tensor[other]] = true;
    }
  }

  bool fits(const Tensor& tensor) const {
    if (tensor.unsupported() || !tensor.has_shape() || shared_[tensor.index()]) return false;
    const Layout from = tensor.layout();
    const bool dense = from == Layout::dense && tensor.part_count() == 1;
    const bool sparse = (from == Layout::sparse_coo || from == Layout::sparse_csr) && from != layout_;
    if (!(dense || sparse) || !codecs::can_be_sparse(tensor.dtype())) return false;
    for (const Part& part : tensor.parts())
      if (part.extra().size() > 0) return false;
    return layout_ == Layout::sparse_csr ? tensor.shape().size() == 2 : !tensor.shape().empty();
  }

  // Counts what the chosen tensors will hold.
  void count() {
    std::vector<std::uint32_t> dense;
    std::uint64_t total = 0;
    for (std::uint32_t i = 0; i < model_.size(); ++i) {
      const Tensor tensor = model_[i];
      if (!fits(tensor)) continue;
      if (tensor.layout() == Layout::dense) {
        dense.push_back(i);
        total += tensor.main().size();
      } else if (const std::uint64_t count = tensor.main().count(); may_change(tensor, count)) {
        counts_[i] = count;
      }
    }
    Progress progress(context_, total);
    const Context quiet = progress.inner();
    executor_of(context_).for_each(dense.size(), [&](std::uint64_t k) {
      const std::uint32_t i = dense[base::to_size(k)];
      const Tensor tensor = model_[i];
      const std::uint64_t width = width_of(tensor);
      std::uint64_t count = 0;
      tensor.main().stream(quiet, [&](std::span<const std::byte> piece) {
        visit_set(width, piece, [&](std::size_t) { ++count; });
        progress.add(piece.size());
        return true;
      });
      if (is_worth_it(tensor, count)) counts_[i] = count;
    });
    if (!dense.empty()) progress.finish_pass();
  }

  bool is_worth_it(const Tensor& tensor, std::uint64_t count) const {
    const std::uint64_t all = tensor.main().count(), width = width_of(tensor);
    if (all == 0) return false;
    if (density_ > 0) return static_cast<double>(count) <= density_ * static_cast<double>(all);
    const std::uint64_t bytes = layout_ == Layout::sparse_csr ? csr_bytes(tensor.shape()[0], count, width)
                                                              : coo_bytes(tensor.shape().size(), count, width);
    return bytes < tensor.main().size();
  }

  // A few entries in a shape of very many rows would become as many row bounds.
  bool may_change(const Tensor& tensor, std::uint64_t count) const {
    if (layout_ == Layout::sparse_coo) return true;
    const std::uint64_t there = coo_bytes(2, count, width_of(tensor));
    const std::uint64_t bytes = csr_bytes(tensor.shape()[0], count, width_of(tensor));
    return bytes <= kBounds || bytes / 16 <= there;
  }

  void add(const Tensor& tensor, std::uint64_t count) {
    const Shape shape = tensor.shape();
    const std::uint32_t t = draft_.add_tensor(tensor.name(), layout_, tensor.dtype(), shape);
    const auto attributes = tensor.attributes(), extra = tensor.extra();
    if (!attributes.empty()) draft_.tensor(t).attributes({attributes.begin(), attributes.end()});
    if (!extra.empty()) draft_.tensor(t).extra({extra.begin(), extra.end()});
    changes_.push_back(
        {LossKind::layout, subject(tensor), std::string(tensor.layout_name()), std::string(name(layout_))});
    for (const Part& part : tensor.parts())
      if (!part.digest().empty())
        changes_.push_back(
            {LossKind::extra, subject(tensor, part), std::string(part.digest()), std::string(no_digest_)});
    const bool dense = tensor.layout() == Layout::dense, csr = layout_ == Layout::sparse_csr;
    const std::uint64_t counts[] = {count};
    part(kValues, tensor.dtype(), counts,
         dense ? dense_values(tensor)
         : csr ? values_of_coo(tensor)
               : as_it_is(tensor, kValues));
    if (csr) {
      const std::uint64_t bounds[] = {shape[0] + 1};
      part(kIndices, DType::u64, counts, dense ? dense_columns(tensor) : columns_of_coo(tensor));
      part(kIndptr, DType::u64, bounds, dense ? dense_bounds(tensor) : bounds_of_coo(tensor));
    } else {
      const std::uint64_t places[] = {shape.size(), count};
      part(kCoords, DType::u64, places, dense ? dense_coords(tensor, count) : coords_of_csr(tensor));
    }
  }

  void part(std::string_view role, DType dtype, Shape shape, Make make) {
    const std::uint64_t size = *base::element_count(shape) * (info(dtype).bits / 8);
    const std::uint32_t p = draft_.add_part(role, dtype, shape, Encoding::computed, {}, size);
    draft_.part(p).make(std::move(make));
  }

  const Model& model_;
  const Layout layout_;
  const double density_;
  const std::string_view no_digest_;
  const Context& context_;
  Draft draft_;
  std::vector<bool> shared_;                          // tensors that share bytes with another
  std::vector<std::optional<std::uint64_t>> counts_;  // of entries; nullopt: the tensor stays as it is
  std::vector<Item> changes_;
};

}  // namespace

Derived sparsified(const Model& model, Layout layout, double density, std::string_view no_digest,
                   const Context& context) {
  return SparseMaker(model, layout, density, no_digest, context).run();
}

}  // namespace weighbridge::core
