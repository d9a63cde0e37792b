// SPDX-License-Identifier: Apache-2.0
// Sparse and quantized tensors made dense.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "base/checked.h"
#include "base/fail.h"
#include "codecs/quantize.h"
#include "codecs/sparse.h"
#include "core/dense.h"
#include "core/logical.h"
#include "core/payload.h"
#include "core/state.h"
#include "weighbridge/text.h"

namespace weighbridge::core {

namespace {

struct Whole {
  std::unique_ptr<std::byte[]> bytes;
  std::size_t size = 0;
  DType dtype = DType::unknown;
  std::span<const std::byte> span() const noexcept { return {bytes.get(), size}; }
};

Whole read_whole(const Tensor& tensor, std::string_view role, const Context& context) {
  const auto part = tensor.part(role);
  if (!part) {
    base::unsupported("unsupported/part",
                      fmt::format("tensor \"{}\" has no part \"{}\"", escape_for_display(tensor.name()), role));
  }
  if (part->size() > context.limits.decoded) {
    base::malformed("limit/decoded", fmt::format("part \"{}\" of tensor \"{}\" is larger than the limit of {} bytes "
                                                 "(Limits::decoded, --limit decoded=BYTES)",
                                                 role, escape_for_display(tensor.name()), context.limits.decoded));
  }
  const std::size_t size = base::to_size(part->size());
  Whole whole{std::make_unique_for_overwrite<std::byte[]>(size), size, part->dtype()};
  std::uint64_t filled = 0;
  part->stream(context, [&](std::span<const std::byte> piece) {
    std::memcpy(whole.bytes.get() + filled, piece.data(), piece.size());
    filled += piece.size();
    return true;
  });
  return whole;
}

}  // namespace

void fill_sparse(const Tensor& tensor, const Context& context, std::span<std::byte> out) {
  const Shape shape = tensor.shape();
  const Whole values = read_whole(tensor, "values", context);
  codecs::SparseResult result;
  if (tensor.layout() == Layout::sparse_csr) {
    const Whole indices = read_whole(tensor, "indices", context), indptr = read_whole(tensor, "indptr", context);
    if (shape.size() != 2) base::unsupported("unsupported/layout", "a sparse_csr tensor has rank 2");
    result = codecs::csr_to_dense(values.dtype, shape[1], indptr.dtype, indptr.span(), indices.dtype, indices.span(),
                                  values.span(), out);
  } else {
    const Whole all = read_whole(tensor, "coords", context);
    const std::size_t one = shape.empty() ? 0 : all.size / shape.size();
    if (shape.empty() || one * shape.size() != all.size)
      base::unsupported("unsupported/layout", "a sparse_coo tensor has coords for each dimension");
    std::vector<std::span<const std::byte>> coords;
    for (std::size_t d = 0; d < shape.size(); ++d) coords.push_back(all.span().subspan(d * one, one));
    result = codecs::coo_to_dense(values.dtype, shape, all.dtype, coords, values.span(), 0, shape[0], out);
  }
  if (!result.ok()) {
    base::malformed(
        "part/sparse",
        fmt::format("the indices of sparse tensor \"{}\" do not fit its shape (entry {}): see `weighbridge verify`",
                    escape_for_display(tensor.name()), result.element));
  }
}

codecs::QuantizedGroup quantized_group_of(const Tensor& tensor) {
  codecs::QuantizedGroup group;
  const Shape shape = tensor.shape();
  if (shape.size() == 2) group.rows = shape[0], group.cols = shape[1];
  const Attributes attributes = tensor.attributes();
  const auto number = [&](std::string_view key) -> std::uint64_t {
    const Value* value = attributes.find(key);
    return value ? value->as_u64().value_or(0) : 0;
  };
  group.bits = static_cast<std::uint32_t>(std::min<std::uint64_t>(number("bits"), UINT32_MAX));
  group.group_size = number("group_size");
  if (const Value* packing = attributes.find("packing"); packing && packing->as_text()) {
    group.packing = codecs::parse_packing(*packing->as_text()).value_or(codecs::Packing{});
  }
  if (const auto scales = tensor.part("scales")) group.scales = scales->dtype();
  if (const auto zeros = tensor.part("zeros")) group.zeros = zeros->dtype();
  return group;
}

void stream_quantized_group(const Tensor& tensor, const Context& context,
                            const std::function<bool(std::span<const std::byte>)>& sink) {
  const codecs::QuantizedGroup group = quantized_group_of(tensor);
  if (std::string problem = group.problem(); !problem.empty()) {
    base::unsupported("unsupported/quantisation",
                      fmt::format("tensor \"{}\": {}", escape_for_display(tensor.name()), problem));
  }
  const Whole scales = read_whole(tensor, "scales", context), zeros = read_whole(tensor, "zeros", context);
  const Part packed = tensor.main();
  const std::uint64_t word_row =
      group.cols * group.word_bytes();  // bytes; the shape's size in f32 was checked by the caller
  if (group.rows == 0 || group.cols == 0) return;
  // Whole word rows whose decoded rows fit a piece; one at least.
  const std::uint64_t n = group.packing.codes_per_word;
  const std::uint64_t rows_bytes = n * group.cols * sizeof(float);
  const std::uint64_t word_rows_at_once = std::max<std::uint64_t>(1, kPiece / std::max<std::uint64_t>(1, rows_bytes));
  std::vector<std::byte> words;
  std::vector<float> dense;
  std::uint64_t row = 0;
  const std::uint64_t scale_width = info(group.scales).bits / 8 * group.cols,
                      zero_width = info(group.zeros).bits / 8 * group.cols;
  bool stopped = false;
  const auto flush = [&] {
    const std::uint64_t rows = std::min(words.size() / word_row * n, group.rows - row);
    if (rows == 0) return true;
    dense.resize(base::to_size(rows * group.cols));
    const std::uint64_t first_group = row / group.group_size;
    if (!base::fits(first_group * scale_width, 0, scales.size) ||
        !base::fits(first_group * zero_width, 0, zeros.size) ||
        !codecs::dequantize_rows(group, row, rows, words,
                                 scales.span().subspan(base::to_size(first_group * scale_width)),
                                 zeros.span().subspan(base::to_size(first_group * zero_width)), dense)) {
      base::malformed("part/quantised",
                      fmt::format("the parts of quantized tensor \"{}\" are shorter than its shape demands",
                                  escape_for_display(tensor.name())));
    }
    row += rows;
    words.clear();
    return sink(std::as_bytes(std::span(dense)));
  };
  packed.stream(context, [&](std::span<const std::byte> piece) {
    while (!piece.empty()) {
      const std::size_t take =
          base::to_size(std::min<std::uint64_t>(piece.size(), word_rows_at_once * word_row - words.size()));
      words.insert(words.end(), piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(take));
      piece = piece.subspan(take);
      if (words.size() == word_rows_at_once * word_row && !flush()) return !(stopped = true);
    }
    return true;
  });
  if (!stopped && flush() && row != group.rows) {
    base::malformed("part/quantised", fmt::format("the packed words of tensor \"{}\" hold {} of its {} rows",
                                                  escape_for_display(tensor.name()), row, group.rows));
  }
}

std::optional<ScaledCodes> scaled_codes(Layout layout, std::string_view type, Shape shape,
                                        std::uint64_t block_size) noexcept {
  ScaledCodes out;
  const auto elements = base::element_count(shape);
  if (shape.empty() || !elements || !packed_size(DType::f32, *elements)) return std::nullopt;
  out.elements = *elements;
  const std::uint64_t columns = base::element_count(shape.size() > 1 ? shape.subspan(1) : shape).value_or(0);
  if (layout == Layout::quantized_row && type == "q8_0") {
    if (block_size != columns) return std::nullopt;
  } else if (layout == Layout::quantized_block && type == "q4_0") {
    out.nibbles = true;
    if (block_size == 0 || block_size % 2 != 0 || columns % block_size != 0) return std::nullopt;
  } else {
    return std::nullopt;
  }
  out.group = block_size;
  return out;
}

std::optional<ScaledCodes> scaled_codes_of(const Tensor& tensor) {
  const Value* const block = tensor.attribute("block_size");
  const auto data = tensor.part("data"), scales = tensor.part("scales");
  if (!block || !data || !scales || !tensor.has_shape()) return std::nullopt;
  const auto out =
      scaled_codes(tensor.layout(), tensor.type_name(), tensor.shape(), block->as_u64().value_or(UINT64_MAX));
  const bool fits = out && data->dtype() == (out->nibbles ? DType::u8 : DType::i8) && scales->dtype() == DType::f32 &&
                    data->size() == out->data_size() && scales->size() == out->scale_count() * sizeof(float);
  return fits ? out : std::nullopt;
}

namespace {

// The scales of a tensor in ascending order: in windows where they are stored as they are, else all of them.
class Scales {
 public:
  Scales(const Tensor& tensor, const Context& context) : part_(*tensor.part("scales")) {
    if (!is_direct(part_)) {
      whole_ = read_whole(tensor, "scales", context);
      window_ = whole_.span();
    }
  }

  float operator[](std::uint64_t i) {
    if (!base::fits(4 * i - begin_, sizeof(float), window_.size())) {
      begin_ = 4 * i / 8 * 8;  // read_direct() begins at multiples of 8
      buffer_.resize(static_cast<std::size_t>(std::min(kWindow, part_.size() - begin_)));
      read_direct(part_, begin_, buffer_);
      window_ = buffer_;
    }
    float scale;
    std::memcpy(&scale, window_.data() + (4 * i - begin_), sizeof scale);
    return scale;
  }

 private:
  static constexpr std::uint64_t kWindow = std::uint64_t{1} << 18;
  Part part_;
  Whole whole_;
  std::vector<std::byte> buffer_;
  std::span<const std::byte> window_;
  std::uint64_t begin_ = 0;
};

}  // namespace

void stream_scaled_codes(const Tensor& tensor, const Context& context,
                         const std::function<bool(std::span<const std::byte>)>& sink) {
  const auto codes = scaled_codes_of(tensor);
  if (!codes) {
    base::unsupported(
        "unsupported/quantisation",
        fmt::format("tensor \"{}\" of layout \"{}\" and type \"{}\" is not quantized in a way that this "
                    "build can undo",
                    escape_for_display(tensor.name()), tensor.layout_name(), escape_for_display(tensor.type_name())));
  }
  Scales scales(tensor, context);
  const std::uint64_t per_byte = codes->nibbles ? 2 : 1;
  std::vector<float> dense;
  std::uint64_t at = 0;  // elements done
  tensor.part("data").value().stream(context, [&](std::span<const std::byte> piece) {
    constexpr std::size_t kBlock = std::size_t{1} << 16;
    for (; !piece.empty(); piece = piece.subspan(std::min(piece.size(), kBlock))) {
      const std::span<const std::byte> block = piece.first(std::min(piece.size(), kBlock));
      dense.resize(base::to_size(block.size() * per_byte));
      for (std::size_t done = 0; done < dense.size();) {
        const std::uint64_t left_of_group = codes->group - at % codes->group;
        const std::size_t n = static_cast<std::size_t>(std::min<std::uint64_t>(left_of_group, dense.size() - done));
        const auto part = block.subspan(base::to_size(done / per_byte), base::to_size(n / per_byte));
        const float scale = scales[at / codes->group];
        if (codes->nibbles)
          codecs::q4_decode(part, scale, dense.data() + done);
        else
          codecs::q8_decode(part, scale, dense.data() + done);
        done += n;
        at += n;
      }
      if (!sink(std::as_bytes(std::span(dense)))) return false;
    }
    return true;
  });
}

}  // namespace weighbridge::core
