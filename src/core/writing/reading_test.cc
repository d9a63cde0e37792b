// SPDX-License-Identifier: Apache-2.0
// Part::read_range() against stream(), how much it reads, and jobs that stop soon after the caller's hook asks.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <vector>

#include "codecs/codec.h"
#include "core/model/draft.h"
#include "core/payload/asking_source.h"
#include "core/payload/elements.h"
#include "core/reading/format.h"
#include "core/reading/json_file.h"
#include "core/writing/layout.h"
#include "core/writing/plan_items.h"
#include "io/forwarding_source.h"
#include "support/random.h"
#include "support/thrown.h"
#include "weighbridge/block_type.h"
#include "weighbridge/hash.h"

namespace weighbridge::core {
namespace {

using test::noise;

// Counts bytes read, in total and after `stopped`.
class Watched final : public Source {
 public:
  explicit Watched(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}
  std::uint64_t size() const noexcept override { return bytes_.size(); }
  std::string_view name() const noexcept override { return "<watched>"; }
  void read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    read += out.size();
    if (stopped) after += out.size();
    if (!out.empty()) std::memcpy(out.data(), bytes_.data() + offset, out.size());
  }
  mutable std::atomic<std::uint64_t> read{0}, after{0};
  mutable std::atomic<bool> stopped{false};

 private:
  std::vector<std::byte> bytes_;
};

struct Made {
  std::shared_ptr<Watched> source;
  Model model;
};

Made one(std::vector<std::byte> stored, DType dtype, std::vector<std::uint64_t> shape, Encoding encoding,
         std::uint64_t size, Order order = Order::little, std::vector<std::int64_t> strides = {}) {
  Made out;
  const std::uint64_t length = stored.size();
  out.source = std::make_shared<Watched>(std::move(stored));
  Draft draft;
  const std::uint32_t source = draft.add_source(out.source);
  draft.add_tensor("w", Layout::dense, dtype, shape);
  const std::uint32_t part = draft.add_part("data", dtype, shape, encoding, {source, 0, length}, size);
  draft.part(part).order(order);
  if (!strides.empty()) draft.part(part).strides(std::move(strides));
  draft.index_names();
  out.model = draft.finish();
  return out;
}

std::vector<std::byte> all_of(const Part& part) {
  std::vector<std::byte> out;
  part.stream({}, [&](std::span<const std::byte> piece) {
    out.insert(out.end(), piece.begin(), piece.end());
    return true;
  });
  return out;
}

TEST(ReadRange, GivesWhatStreamGives) {
  const std::vector<std::byte> bytes = noise(60 * 4);
  const Made kinds[] = {
      one(bytes, DType::f32, {3, 4, 5}, Encoding::raw, bytes.size()),
      one(bytes, DType::f32, {3, 4, 5}, Encoding::raw, bytes.size(), Order::big),
      one(bytes, DType::f32, {3, 4, 5}, Encoding::raw, bytes.size(), Order::little, {1, 3, 12}),
      one(bytes, DType::f32, {3, 4, 5}, Encoding::raw, bytes.size(), Order::big, {-20, 5, 1}),
      one(codecs::encode(codecs::kZstd, bytes), DType::f32, {3, 4, 5}, Encoding::zstd, bytes.size()),
      one(codecs::encode(codecs::kDeflate, bytes), DType::f32, {3, 4, 5}, Encoding::deflate, bytes.size()),
      one(bytes, DType::boolean, {6, 40}, Encoding::raw, bytes.size()),
  };
  for (const Made& made : kinds) {
    const Part part = made.model[0U].main();
    const std::vector<std::byte> all = all_of(part);
    const std::uint64_t width = all.size() / part.count();
    for (std::uint64_t first = 0; first <= part.count(); first += 7) {
      for (const std::uint64_t count : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{13}, part.count() - first}) {
        if (first + count > part.count()) continue;
        std::vector<std::byte> out(count * width);
        part.read_range(first, count, out);
        EXPECT_TRUE(std::ranges::equal(out, std::span(all).subspan(first * width, count * width))) << first << count;
      }
    }
  }
}

TEST(ReadRange, ReadsNoMoreThanTheEncodingForces) {
  const std::vector<std::byte> bytes = noise(1 << 20);
  std::vector<std::byte> out(100);
  const Made raw = one(bytes, DType::u8, {1 << 20}, Encoding::raw, bytes.size());
  raw.model[0U].main().read_range(500'000, 100, out);
  EXPECT_EQ(raw.source->read, 100U);
  const Made rows = one(bytes, DType::u8, {1024, 1024}, Encoding::raw, bytes.size(), Order::little, {1, 1024});
  std::vector<std::byte> two(2048);
  rows.model[0U].main().read_range(5 * 1024, 2048, two);
  EXPECT_LE(rows.source->read, 1U << 20);
  const Made coded = one(codecs::encode(codecs::kZstd, bytes), DType::u8, {1 << 20}, Encoding::zstd, bytes.size());
  coded.model[0U].main().read_range(0, 100, out);
  EXPECT_TRUE(std::ranges::equal(out, std::span(bytes).first(100)));
}

// A file far away: how many calls it gets, and with how many ranges. Each byte is a function of its offset.
class FarAway final : public Source {
 public:
  std::uint64_t size() const noexcept override { return std::uint64_t{1} << 40; }
  std::string_view name() const noexcept override { return "<far away>"; }
  ReadCost cost() const noexcept override { return {.gap = 1U << 20}; }
  void read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    const ReadRange range{offset, out};
    read({&range, 1});
  }
  void read(std::span<const ReadRange> ranges) const override {
    ++calls;
    maximum = std::max(maximum, ranges.size());
    for (const ReadRange& range : ranges) {
      bytes += range.out.size();
      for (std::size_t i = 0; i < range.out.size(); ++i) range.out[i] = at(range.offset + i);
    }
  }
  static std::byte at(std::uint64_t offset) { return static_cast<std::byte>(offset * 0x9E3779B97F4A7C15U >> 56); }
  mutable std::size_t calls = 0, maximum = 0, bytes = 0;
};

// Each element was a call, if they are more than 4 KiB apart.
TEST(ReadRange, StridedElementsThatAreFarApartAreReadManyWithOneCall) {
  const struct {
    std::vector<std::uint64_t> shape;
    std::vector<std::int64_t> strides;
    std::size_t calls;
  } cases[] = {
      {{1000}, {2000}, 1},             // a column
      {{1000}, {-2000}, 1},            // from its end
      {{100'000}, {5000}, 7},          // more ranges than one call has
      {{50, 20}, {2000, 200'000}, 1},  // two dimensions
      {{200, 100}, {1, 5000}, 1},      // a transposed matrix: runs of neighbors, all with one call
      {{100, 3, 7}, {40'000, 2000, -3}, 1},
  };
  for (const auto& c : cases) {
    std::int64_t low = 0, high = 0;
    std::uint64_t count = 1;
    for (std::size_t d = 0; d < c.shape.size(); ++d) {
      const std::int64_t reach = static_cast<std::int64_t>(c.shape[d] - 1) * c.strides[d];
      (reach < 0 ? low : high) += reach;
      count *= c.shape[d];
    }
    const auto source = std::make_shared<FarAway>();
    Draft draft;
    draft.add_source(source);
    draft.add_tensor("w", Layout::dense, DType::f32, c.shape);
    const std::uint32_t part = draft.add_part("data", DType::f32, c.shape, Encoding::raw,
                                              {0, 64, 4 * static_cast<std::uint64_t>(high - low + 1)}, 4 * count);
    draft.part(part).strides(c.strides);
    draft.index_names();
    const Model model = draft.finish();
    const std::vector<std::byte> got = all_of(model[0U].main());
    EXPECT_EQ(source->calls, c.calls) << count;
    EXPECT_LE(source->maximum, std::size_t{1} << 14);
    std::vector<std::byte> expected;
    std::vector<std::uint64_t> index(c.shape.size());
    for (std::uint64_t i = 0; i < count; ++i) {
      std::int64_t at = -low;
      for (std::size_t d = 0; d < index.size(); ++d) at += static_cast<std::int64_t>(index[d]) * c.strides[d];
      for (std::uint64_t byte = 0; byte < 4; ++byte)
        expected.push_back(FarAway::at(64 + 4 * static_cast<std::uint64_t>(at) + byte));
      for (std::size_t d = index.size(); d-- > 0;) {
        if (++index[d] < c.shape[d]) break;
        index[d] = 0;
      }
    }
    EXPECT_EQ(got, expected) << count;
  }
}

// It did not forward this, and read ranges of more than 4 MiB one by one.
TEST(AskingSource, ForwardsAllAndReadsManyRangesWithFewCalls) {
  class WithAHole final : public io::ForwardingSource {
   public:
    using ForwardingSource::ForwardingSource;
    std::uint64_t written_end() const noexcept override { return 50; }
  };
  const FarAway far;
  const WithAHole source(far);
  const Context context;
  const AskingSource asking(source, context);
  EXPECT_EQ(asking.written_end(), 50U);
  EXPECT_EQ(asking.cost().gap, 1U << 20);
  std::vector<std::byte> bytes(std::size_t{13} << 20);
  std::vector<ReadRange> ranges;
  std::size_t at = 0;
  for (const std::size_t length : {2U << 20, 2U << 20, 1U << 20, 0U, 8U << 20}) {
    ranges.push_back({1000 + 2 * at, std::span(bytes).subspan(at, length)});
    at += length;
  }
  asking.read(ranges);
  EXPECT_EQ(far.calls, 4U) << "two of 2 MiB, 1 MiB and nothing, two pieces of 8 MiB";
  for (const ReadRange& range : ranges)
    for (const std::size_t i : {std::size_t{0}, range.out.size() / 2, range.out.size() - 1})
      if (!range.out.empty()) {
        EXPECT_EQ(range.out[i], FarAway::at(range.offset + i));
      }
}

TEST(ReadRange, RefusesWhatIsNotThere) {
  const Made made = one(noise(64), DType::f32, {16}, Encoding::raw, 64);
  const Part part = made.model[0U].main();
  std::vector<std::byte> four(4), eight(8);
  EXPECT_EQ(test::thrown([&] { part.read_range(16, 1, four); }).rule, "misuse/range");
  EXPECT_EQ(test::thrown([&] { part.read_range(UINT64_MAX, 2, eight); }).rule, "misuse/range");
  EXPECT_EQ(test::thrown([&] { part.read_range(0, 1, eight); }).rule, "misuse/range");
  const Made nibbles = one(noise(8), DType::f4, {16}, Encoding::raw, 8);
  std::vector<std::byte> two(2);
  const Part packed = nibbles.model[0U].main();
  packed.read_range(4, 4, two);
  EXPECT_EQ(test::thrown([&] { packed.read_range(3, 4, two); }).rule, "misuse/range");
}

// Every job over one part reads at most 16 MiB after the hook returns false.
TEST(Cancel, StopsEveryJobSoon) {
  constexpr std::uint64_t kSize = std::uint64_t{40} << 20;
  const std::vector<std::byte> bytes = noise(kSize);
  const std::vector<std::uint64_t> square{kSize / 4096, 1024};
  const auto jobs = std::to_array<std::function<void(const Tensor&, const Context&)>>({
      [](const Tensor& t, const Context& c) { t.to_dense(c); },
      [](const Tensor& t, const Context& c) { t.to_dense(DType::f64, c); },
      [](const Tensor& t, const Context& c) { t.main().stream(c, [](std::span<const std::byte>) { return true; }); },
      [](const Tensor& t, const Context& c) { content_digest(t, c); },
      [](const Tensor& t, const Context& c) {
        std::vector<std::byte> out(t.main().size());
        t.main().read_range(0, t.main().count(), out, c);
      },
      [](const Tensor& t, const Context& c) {
        std::vector<std::byte> out(t.main().size());
        t.rows_into(0, t.shape()[0], t.dtype(), out, c);
      },
  });
  const auto columns = std::vector<std::int64_t>{1, static_cast<std::int64_t>(square[0])};
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    const Made kinds[] = {
        one(bytes, DType::f32, square, Encoding::raw, kSize),
        one(bytes, DType::f32, square, Encoding::raw, kSize, Order::little, columns),
        // Incompressible data, as long as its elements.
        one(codecs::encode(codecs::kZstd, bytes, 1), DType::f32, square, Encoding::zstd, kSize),
    };
    for (const Made& made : kinds) {
      Context context;
      context.progress = [&](std::uint64_t, std::uint64_t) {
        if (made.source->read < (std::uint64_t{1} << 20)) return true;
        made.source->stopped = true;
        return false;
      };
      EXPECT_THROW(jobs[j](made.model[0U], context), Cancelled) << j;
      EXPECT_LE(made.source->after, std::uint64_t{16} << 20) << j;
      EXPECT_LE(made.source->read, std::uint64_t{24} << 20) << j;
    }
  }
}

// A tensor of whole blocks with arbitrary bytes, for types that have one part.
Made blocks(const BlockTypeInfo& type, std::uint64_t rows, std::uint64_t row) {
  const std::uint64_t size = rows * row / type.block_elements * type.block_bytes, shape[] = {rows, row};
  Made out;
  out.source = std::make_shared<Watched>(noise(size));
  Draft draft;
  const std::uint32_t source = draft.add_source(out.source);
  const std::uint32_t at = draft.add_tensor("w", type.layout, DType::f32, shape);
  draft.add_part(type.roles[0], DType::u8, std::span(&size, 1), Encoding::raw, {source, 0, size}, size);
  draft.tensor(at).block_type(&type);
  draft.index_names();
  out.model = draft.finish();
  return out;
}

TEST(Rows, OfBlocksReadTheBlocksOfTheRowAndNoOthers) {
  const BlockTypeInfo& type = *find_block_type("ggml.q4_k");
  const Made made = blocks(type, 400, 1024);
  const std::uint64_t row = 1024 / type.block_elements * type.block_bytes;
  std::vector<float> out(1024);
  for (const std::uint64_t r : {399U, 0U, 200U}) {
    made.source->read = 0;
    made.model["w"].rows_into(r, 1, DType::f32, std::as_writable_bytes(std::span(out)));
    EXPECT_EQ(made.source->read, row);
  }
  made.source->read = 0;
  std::vector<std::uint16_t> halves(1024);
  for (std::uint64_t r = 0; r < 400; ++r)
    made.model["w"].rows_into(r, 1, DType::f16, std::as_writable_bytes(std::span(halves)));
  EXPECT_EQ(made.source->read, 400 * row);
}

TEST(Rows, OfEveryTypeOfBlocksAreRowsOfTheWhole) {
  std::size_t types = 0;
  for (const BlockTypeInfo& type : all_block_types()) {
    if (!type.id.starts_with("ggml.")) continue;
    ++types;
    const Made made = blocks(type, 9, 512);
    const codecs::BlockForm form = block_form(made.model["w"]);
    std::vector<float> whole(form.elements());
    const auto stored = all_of(made.model["w"].main());
    const std::span<const std::byte> part(stored);
    type.codec->decode(form, 0, form.elements(), {&part, 1}, whole.data());
    for (std::uint64_t first = 0; first < 9; ++first)
      for (const std::uint64_t count : {std::uint64_t{1}, 9 - first}) {
        std::vector<float> out(count * 512);
        made.model["w"].rows_into(first, count, DType::f32, std::as_writable_bytes(std::span(out)));
        EXPECT_EQ(std::memcmp(out.data(), whole.data() + first * 512, out.size() * sizeof(float)), 0) << type.id;
      }
  }
  EXPECT_GT(types, 20U);
}

TEST(Elements, AColumnOfARowMajorTensorIsReadAlone) {
  constexpr std::uint64_t kRows = 500, kColumns = 3000;
  const std::vector<std::byte> bytes = noise(kRows * kColumns * 4);
  const Made column = one(bytes, DType::f32, {kRows}, Encoding::raw, kRows * 4, Order::little, {kColumns});
  std::vector<std::byte> out(kRows * 4);
  elements_of(column.model["w"], DType::f32)->read(0, kRows, out, {});
  for (std::uint64_t r = 0; r < kRows; ++r)
    ASSERT_EQ(std::memcmp(out.data() + r * 4, bytes.data() + r * kColumns * 4, 4), 0) << r;
  EXPECT_EQ(column.source->read, kRows * 4);
  // As another dtype, and only some of it.
  column.source->read = 0;
  std::vector<std::byte> some(20 * 8);
  elements_of(column.model["w"], DType::f64)->read(100, 20, some, {});
  EXPECT_EQ(column.source->read, 20U * 4);
}

TEST(Elements, AStridedViewOverASourceWithRoundTripsTakesOneCall) {
  constexpr std::uint64_t kRows = 1000, kStride = 5000;
  const auto source = std::make_shared<FarAway>();
  Draft draft;
  draft.add_source(source);
  const std::uint64_t shape[] = {kRows, 3};
  draft.add_tensor("w", Layout::dense, DType::f32, shape);
  const std::uint32_t part =
      draft.add_part("data", DType::f32, shape, Encoding::raw, {0, 64, 4 * ((kRows - 1) * kStride + 5)}, 4 * 3 * kRows);
  draft.part(part).strides({kStride, 2});
  draft.index_names();
  const Model model = draft.finish();
  std::vector<std::byte> out(200 * 3 * 4);
  elements_of(model["w"], DType::f32)->read(300, 600, out, {});
  EXPECT_EQ(source->calls, 1U);
  EXPECT_LE(source->bytes, 200U * 5 * 4) << "an element between two is read with them";
  EXPECT_EQ(out[0], FarAway::at(64 + 4 * (100 * kStride)));
}

TEST(Elements, RowsOfSeekableZstdDecodeTheirFrames) {
  constexpr std::uint64_t kRow = 4096, kRows = 2048;  // 8 MiB
  const std::vector<std::byte> bytes = noise(kRow * kRows);
  const Made made = one(codecs::encode(codecs::kZstdSeekable, bytes), DType::u8, {kRows, kRow}, Encoding::zstd_seekable,
                        bytes.size());
  const std::uint64_t stored = made.model["w"].main().extent()->length;
  std::vector<std::byte> out(kRow);
  for (const std::uint64_t r : {std::uint64_t{0}, kRows / 2, kRows - 1}) {
    made.source->read = 0;
    made.model["w"].rows_into(r, 1, DType::u8, out);
    EXPECT_TRUE(std::ranges::equal(out, std::span(bytes).subspan(r * kRow, kRow))) << r;
    EXPECT_LT(made.source->read, stored / 3) << r;
  }
}

// What is read at once is what is read in order, from a source of either kind.
TEST(Elements, AnyRangeIsThatOfTheStream) {
  constexpr std::uint64_t kCount = 4 * 6 * 10;
  std::vector<float> numbers(kCount);
  for (std::size_t i = 0; i < kCount; ++i) numbers[i] = static_cast<float>(i) - 100;
  const auto as = std::as_bytes(std::span(numbers));
  const std::vector<std::byte> bytes(as.begin(), as.end());
  const Made kinds[] = {
      one(bytes, DType::f32, {24, 10}, Encoding::raw, bytes.size()),
      one(codecs::encode(codecs::kZstd, bytes), DType::f32, {24, 10}, Encoding::zstd, bytes.size()),
  };
  std::vector<std::vector<std::byte>> first_kind;
  for (const Made& made : kinds) {
    const ElementsPtr own = elements_of(made.model["w"], DType::f32);
    const ElementsPtr all[] = {
        own,
        elements_of(made.model["w"], DType::f16),
        with_heads(own, {.head = 60, .row = 10}),
        with_heads(own, {.head = 60, .times = 3}),
        with_heads(own, {.head = 120, .times = 2, .row = 10, .added_zeros = 7}),
        with_heads(own, {.added_zeros = 30}),
        mapped(own, {.dtype = DType::u8,
                     .from = 12,
                     .to = 5,
                     .make =
                         [](std::uint64_t unit, std::span<const std::byte> in, std::span<std::byte> out, const Context&,
                            codecs::CastTally*) {
                           for (std::size_t i = 0; i < out.size(); ++i)
                             out[i] = in[i / 5 * 48 + i % 5 * 4 + 2] ^ static_cast<std::byte>(unit + i / 5);
                         }}),
    };
    for (std::size_t k = 0; k < std::size(all); ++k) {
      const Elements& each = *all[k];
      const std::uint64_t width = info(each.dtype()).bits / 8;
      std::vector<std::byte> whole;
      each.stream({}, [&](std::span<const std::byte> piece) {
        whole.insert(whole.end(), piece.begin(), piece.end());
        return true;
      });
      ASSERT_EQ(whole.size(), each.count() * width) << k;
      if (&made == kinds)
        first_kind.push_back(whole);
      else
        EXPECT_EQ(whole, first_kind[k]) << k;
      for (std::uint64_t first = 0; first < each.count(); first += 7)
        for (const std::uint64_t n : {std::uint64_t{1}, std::uint64_t{26}, each.count() - first}) {
          if (first + n > each.count()) continue;
          std::vector<std::byte> out(n * width);
          each.read(first, n, out, {});
          ASSERT_TRUE(std::ranges::equal(out, std::span(whole).subspan(first * width, n * width)))
              << k << " " << first << " " << n;
        }
      // As the bytes of a payload, which need not begin or end with an element.
      Payload payload;
      fill_with(payload, all[k]);
      ASSERT_TRUE(payload.make_range);
      std::vector<std::byte> out(9);
      payload.make_range({}, 5, out);
      EXPECT_TRUE(std::ranges::equal(out, std::span(whole).subspan(5, 9))) << k;
    }
  }
  // Rows i and i + half of a head of six became neighbors.
  float second = 0;
  std::memcpy(&second, first_kind[2].data() + 10 * sizeof(float), sizeof second);
  EXPECT_EQ(second, 30 - 100);
}

// A head is held only where it cannot be read in parts.
TEST(Elements, AHeadOfACompressedTensorMustFitTheLimit) {
  const std::vector<std::byte> bytes = noise(std::size_t{16} << 20);
  const Made made = one(codecs::encode(codecs::kZstd, bytes), DType::f32, {4096, 1024}, Encoding::zstd, bytes.size());
  const ElementsPtr heads = with_heads(elements_of(made.model["w"], DType::f32), {.head = 2048 * 1024, .row = 1024});
  Context context;
  context.limits.memory = 15 << 20;
  const auto thrown = test::thrown([&] { heads->stream(context, [](std::span<const std::byte>) { return true; }); });
  EXPECT_EQ(thrown.rule, "limit/memory");
}

// Rows with one scale, of which each is encoded as a whole.
TEST(Elements, UnitsThatDoNotFitTheLimitAreRefused) {
  const Made made = one(noise(4 << 20), DType::f32, {1, 1 << 20}, Encoding::raw, 4 << 20);
  const ElementsPtr codes = mapped(elements_of(made.model["w"], DType::f32),
                                   {.dtype = DType::u8,
                                    .from = 1 << 20,
                                    .to = 1 << 20,
                                    .make = [](std::uint64_t, std::span<const std::byte>, std::span<std::byte>,
                                               const Context&, codecs::CastTally*) {}});
  Context context;
  context.limits.memory = 5 << 20;
  std::vector<std::byte> out(1 << 20);
  codes->read(0, out.size(), out, context);
  context.limits.memory = (5 << 20) - 1;
  EXPECT_EQ(test::thrown([&] { codes->read(0, out.size(), out, context); }).rule, "limit/memory");
}

TEST(JsonText, MembersAreLeftOutOrGetNewValues) {
  const auto edited = [](std::string_view json) {
    return core::with_members(json, [](std::string_view name, std::string_view) {
      return name == "x"   ? std::optional<std::string>("")
             : name == "n" ? std::optional<std::string>("1")
                           : std::nullopt;
    });
  };
  for (const auto& [before, after] :
       {std::pair{R"({"x": 0})", "{}"}, std::pair{R"({"x": {"y": 1} , "a": 2})", R"({ "a": 2})"},
        std::pair{R"({"a": 2, "x": 0})", R"({"a": 2})"},
        std::pair{R"({"a": 2, "x": 0, "n": 3})", R"({"a": 2, "n": 1})"},
        std::pair{R"({"x": 0, "x": 1, "b": {"n": 9, "x": [1, 2]}})", R"({ "b": {"n": 1}})"},
        std::pair{R"({"a": [{"x": 0}]})", R"({"a": [{"x": 0}]})"}, std::pair{"[1]", "[1]"},
        std::pair{R"({"n": 2)", R"({"n": 1)"}})
    EXPECT_EQ(edited(before), after) << before;
}

}  // namespace
}  // namespace weighbridge::core
