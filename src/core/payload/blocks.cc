// SPDX-License-Identifier: Apache-2.0
// Makes blocks dense: splits the main part where its type allows, and reads what each piece needs of the other parts.
#include "core/payload/elements.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "base/checked.h"
#include "base/fail.h"
#include "core/payload/dense.h"
#include "core/payload/payload.h"

namespace weighbridge::core {

codecs::BlockForm block_form(const BlockTypeInfo& type, Shape shape, std::span<const Value::Entry> attributes,
                             std::span<const DType> dtypes) {
  codecs::BlockForm form;
  form.type = &type;
  form.rank = static_cast<std::uint32_t>(shape.size());
  if (!shape.empty()) {
    form.row = shape.back();
    form.rows = shape.size() > 1 ? shape[0] : 1;
    // On overflow, keep the number of columns, which then fails the check of sizes.
    form.columns = base::element_count(shape.size() > 1 ? shape.subspan(1) : shape).value_or(UINT64_MAX);
  }
  std::ranges::copy(dtypes.first(std::min(dtypes.size(), form.dtypes.size())), form.dtypes.begin());
  for (const std::string_view key : type.parameters) {
    const Value* const value = find(attributes, key);
    if (!value) continue;
    if (key == "zero_point") {  // {form: "implied", value: 8}
      if (const Value* const zero = value->kind() == Value::Kind::map ? find(value->map(), "value") : nullptr)
        form.zero = zero->as_i64().value_or(0);
    } else if (key == "packing" &&
               value->kind() == Value::Kind::map) {  // {word: "u32", order: "lsb_first", per_word: 8}
      const Value *const word = find(value->map(), "word"), *const order = find(value->map(), "order"),
                         *const count = find(value->map(), "per_word");
      if (word && word->as_text()) form.packing.word = dtype_from_name(*word->as_text()).value_or(DType::unknown);
      if (count)
        form.packing.codes_per_word =
            static_cast<std::uint32_t>(std::min<std::uint64_t>(count->as_u64().value_or(0), UINT32_MAX));
      form.msb_first = order && order->as_text() == "msb_first";
    } else if (key == "packing") {
      if (value->as_text()) form.packing = codecs::parse_packing(*value->as_text()).value_or(codecs::Packing{});
    } else if (key == "bits") {
      form.bits = static_cast<std::uint32_t>(std::min<std::uint64_t>(value->as_u64().value_or(0), UINT32_MAX));
    } else {
      form.group = value->as_u64().value_or(0);  // block_size, group_size
    }
  }
  return form;
}

codecs::BlockForm block_form(const Tensor& tensor) {
  const BlockTypeInfo& type = *tensor.block_type();
  std::array<DType, codecs::kMaxRoles> dtypes{};
  for (std::size_t i = 0; i < type.roles.size(); ++i)
    if (const auto part = tensor.part(type.roles[i])) dtypes[i] = part->dtype();
  const Attributes attributes = tensor.attributes();
  return block_form(type, tensor.shape(), attributes, std::span(dtypes).first(type.roles.size()));
}

namespace {

// Whether each part has the size that the form requires; only if block_problem() is empty.
bool has_sizes(const Tensor& tensor, const codecs::BlockForm& form) {
  for (std::size_t i = 0; i < form.type->roles.size(); ++i) {
    const auto part = tensor.part(form.type->roles[i]);
    if (!part || part->size() != codecs::block_part_size(form, i)) return false;
  }
  return true;
}

// A part other than the main one, read in ascending order: in windows if it is stored uncompressed, else loaded whole.
class Window {
 public:
  Window(const Tensor& tensor, std::string_view role, const Context& context) : part_(*tensor.part(role)) {
    if (!is_direct(part_)) {
      whole_ = whole_part(tensor, role, context);
      window_ = whole_.span();
    }
  }

  std::span<const std::byte> bytes(const codecs::ByteRange& range) {
    if (range.offset < begin_ || !base::fits(range.offset - begin_, range.length, window_.size())) {
      begin_ = range.offset / kUnit * kUnit;
      const std::uint64_t wanted = std::max(kWindow, range.offset - begin_ + range.length);
      buffer_.resize(base::to_size(std::min((wanted + kUnit - 1) / kUnit * kUnit, part_.size() - begin_)));
      read_direct(part_, begin_, buffer_);
      window_ = buffer_;
    }
    return window_.subspan(base::to_size(range.offset - begin_), base::to_size(range.length));
  }

 private:
  static constexpr std::uint64_t kWindow = std::uint64_t{1} << 18;
  static constexpr std::uint64_t kUnit = 8;  // the alignment of read_direct()
  Part part_;
  WholePart whole_;
  std::vector<std::byte> buffer_;
  std::span<const std::byte> window_;
  std::uint64_t begin_ = 0;
};

class Decoder {
 public:
  Decoder(const Tensor& tensor, const codecs::BlockForm& form, const Context& context, const ElementSink& sink)
      : form_(form),
        codec_(*form.type->codec),
        sink_(sink),
        elements_(form.elements()),
        step_(codec_.step(form)),
        step_bytes_(codec_.range(form, 0, 0, std::min(step_, elements_)).length) {
    for (std::size_t i = 1; i < form.type->roles.size(); ++i)
      windows_.emplace_back(tensor, form.type->roles[i], context);
  }

  // Returns whether to continue.
  bool add(std::span<const std::byte> piece) {
    const std::uint64_t batch = std::max<std::uint64_t>(codec_.batch / step_, 1) * step_bytes_;
    while (!piece.empty()) {
      const bool needs_carry = !carried_.empty() || piece.size() < step_bytes_;
      const std::uint64_t whole = std::min<std::uint64_t>(piece.size() / step_bytes_ * step_bytes_, batch);
      const std::uint64_t take =
          needs_carry ? std::min<std::uint64_t>(piece.size(), step_bytes_ - carried_.size()) : whole;
      const std::span<const std::byte> bytes = piece.first(static_cast<std::size_t>(take));  // at most the piece
      piece = piece.subspan(bytes.size());
      if (!needs_carry) {
        if (!decode(bytes)) return false;
        continue;
      }
      carried_.insert(carried_.end(), bytes.begin(), bytes.end());
      if (carried_.size() < step_bytes_) continue;
      if (!decode(carried_)) return false;
      carried_.clear();
    }
    return true;
  }

 private:
  bool decode(std::span<const std::byte> bytes) {
    const std::uint64_t count = std::min(bytes.size() / step_bytes_ * step_, elements_ - at_);
    std::array<std::span<const std::byte>, codecs::kMaxRoles> parts{bytes};
    for (std::size_t i = 0; i < windows_.size(); ++i)
      parts[i + 1] = windows_[i].bytes(codec_.range(form_, i + 1, at_, count));
    dense_.resize(base::to_size(count));
    codec_.decode(form_, at_, count, std::span(parts).first(windows_.size() + 1), dense_.data());
    at_ += count;
    return sink_(std::as_bytes(std::span(dense_)));
  }

  const codecs::BlockForm& form_;
  const codecs::BlockCodec& codec_;
  const ElementSink& sink_;
  const std::uint64_t elements_, step_, step_bytes_;
  std::vector<Window> windows_;
  std::vector<std::byte> carried_;  // the beginning of a step that spans several pieces
  std::vector<float> dense_;
  std::uint64_t at_ = 0;  // elements done
};

class BlockElements final : public Elements {
 public:
  BlockElements(const Tensor& tensor, const codecs::BlockForm& form)
      : Elements(DType::f32, form.elements()),
        tensor_(tensor),
        form_(form),
        codec_(*form.type->codec),
        step_(codec_.step(form)) {
    for (const std::string_view role : form.type->roles) {
      parts_.push_back(*tensor.part(role));
      in_order_ = in_order_ || !is_direct(parts_.back()) || info(parts_.back().dtype()).bits % 8 != 0;
    }
  }
  std::uint64_t granularity() const noexcept override { return step_; }
  std::uint64_t at_once() const noexcept override { return in_order_ ? count() : kAtOnce; }

  void read(std::uint64_t first, std::uint64_t n, std::span<std::byte> out, const Context& context,
            codecs::CastTally* tally) const override {
    if (in_order_) return read_in_order(first, n, out, context, tally);
    // Read as many elements as make an efficient read, then decode them in batches that suit the decoder.
    const std::uint64_t window = std::max<std::uint64_t>(kWindow / step_, 1) * step_;
    const std::uint64_t batch = std::max<std::uint64_t>(codec_.batch / step_, 1) * step_;
    const std::uint64_t end = first + n;
    std::array<Held, codecs::kMaxRoles> held;
    std::vector<float> dense;
    for (std::uint64_t from = first / step_ * step_; from < end;) {
      const std::uint64_t until = std::min({from + window, (end + step_ - 1) / step_ * step_, count()});
      for (std::size_t i = 0; i < parts_.size(); ++i)
        fetch(i, codec_.range(form_, i, from, until - from), held[i], context);
      for (; from < until; from += batch) {
        const std::uint64_t made = std::min(batch, until - from);
        std::array<std::span<const std::byte>, codecs::kMaxRoles> parts;
        for (std::size_t i = 0; i < parts_.size(); ++i) parts[i] = held[i].at(codec_.range(form_, i, from, made));
        dense.resize(base::to_size(made));
        codec_.decode(form_, from, made, std::span(parts).first(parts_.size()), dense.data());
        const std::uint64_t begin = std::max(from, first), to = std::min(from + made, end);
        std::memcpy(out.data() + (begin - first) * sizeof(float), dense.data() + (begin - from),
                    base::to_size((to - begin) * sizeof(float)));
      }
      from = until;
    }
  }

  void stream(const Context& context, const ElementSink& sink, codecs::CastTally* tally) const override {
    if (count() == 0) return;
    if (!in_order_ && divides(*this, kPiece)) return Elements::stream(context, sink, tally);
    Decoder decoder(tensor_, form_, context, sink);
    parts_[0].stream(context, [&](std::span<const std::byte> piece) { return decoder.add(piece); });
  }

 private:
  static constexpr std::uint64_t kWindow = std::uint64_t{1} << 18;
  struct Held {
    std::uint64_t offset = 0;
    std::vector<std::byte> bytes{};
    std::span<const std::byte> at(const codecs::ByteRange& range) const {
      return std::span(bytes).subspan(base::to_size(range.offset - offset), base::to_size(range.length));
    }
  };
  // Reads the whole elements of the part that contain the range.
  void fetch(std::size_t i, const codecs::ByteRange& range, Held& to, const Context& context) const {
    const std::uint64_t width = info(parts_[i].dtype()).bits / 8, first = range.offset / width;
    const std::uint64_t last = (range.offset + range.length + width - 1) / width;
    to.offset = first * width;
    to.bytes.resize(base::to_size((last - first) * width));
    parts_[i].read_range(first, last - first, to.bytes, context);
  }

  const Tensor tensor_;
  const codecs::BlockForm form_;
  const codecs::BlockCodec& codec_;
  const std::uint64_t step_;
  std::vector<Part> parts_;  // in the order of the roles
  bool in_order_ = false;    // a part cannot be read at any offset
};

}  // namespace

std::optional<codecs::BlockForm> readable_blocks(const Tensor& tensor) {
  if (!tensor.block_type() || !tensor.has_shape()) return std::nullopt;
  const codecs::BlockForm form = block_form(tensor);
  return codecs::block_problem(form).empty() && has_sizes(tensor, form) ? std::optional(form) : std::nullopt;
}

ElementsPtr block_elements(const Tensor& tensor) {
  const std::string quoted = "\"" + std::string(tensor.name()) + "\"";
  if (!tensor.block_type())
    base::unsupported("unsupported/quantization",
                      fmt::format("tensor {} of layout \"{}\" is quantized as \"{}\", which this build does not know",
                                  quoted, tensor.layout_name(), tensor.type_name()));
  const codecs::BlockForm form = block_form(tensor);
  for (const std::string_view role : form.type->roles)
    if (!tensor.part(role))
      base::unsupported("unsupported/part", fmt::format("tensor {} has no part \"{}\"", quoted, role));
  if (const std::string problem = codecs::block_problem(form); !problem.empty())
    base::unsupported("unsupported/quantization",
                      fmt::format("tensor {} cannot be read as {}: {}", quoted, form.type->name, problem));
  if (form.elements() > 0 && !has_sizes(tensor, form))
    base::malformed(
        "part/quantized",
        fmt::format("the parts of quantized tensor {} do not have the sizes that its shape demands", quoted));
  return std::make_shared<BlockElements>(tensor, form);
}

}  // namespace weighbridge::core
