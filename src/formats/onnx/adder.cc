// SPDX-License-Identifier: Apache-2.0
// Adds tensors in the order of the file; drops those with a repeated name at the end.
#include "formats/onnx/adder.h"

#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "base/utf8.h"
#include "core/model/words.h"
#include "core/payload/content.h"
#include "core/payload/part_digest.h"
#include "core/reading/rules.h"
#include "formats/onnx/format.h"
#include "io/read.h"

namespace weighbridge::onnx {
namespace {

std::string_view name_of_type(const TensorMessage& tensor) {
  const auto number = static_cast<std::uint32_t>(tensor.type.value_or(0));
  return number < kElementTypeCount ? kElementTypes[number].name : "another type";
}

}  // namespace

void Adder::add_sparse(TensorMessage& shape, const TensorMessage& values, const TensorMessage& indices,
                       const std::string& name, std::uint64_t at) {
  const auto entries = find_elements(reading_, files_, values, name);
  const auto where = find_elements(reading_, files_, indices, name);
  if (!entries || !where) return;
  const auto fail = [&](const Rule& rule, std::uint64_t offset, const core::Said& expected = {},
                        const core::Said& found = {}) {
    findings_.report(rule, {.offset = offset, .tensor = name}, expected, found);
  };
  if (shape.rank == 0) return fail(rules::kSparseScalar, at);
  if (entries->unsupported || where->absent) {
    Elements none = entries->unsupported ? *entries : *where;
    none.dtype = entries->dtype;
    none.shape = shape.dims;
    if (shape.rank > kMaxRank || std::ranges::any_of(shape.dims, [](std::uint64_t d) { return d >> 63 != 0; }))
      return fail(rules::kRank, shape.dims_at);
    return add(none, name, {.message = shape.message, .at = at});
  }
  // The dense tensor of this shape and type must have a size.
  if (shape.rank > kMaxRank) return fail(rules::kRank, shape.dims_at, core::at_most(kMaxRank), shape.rank);
  for (const std::uint64_t dim : shape.dims)
    if (dim >> 63 != 0) return fail(rules::kDimension, shape.dims_at, {}, static_cast<std::int64_t>(dim));
  const auto all = base::element_count(shape.dims);
  const auto size = all ? packed_size(entries->dtype, *all) : std::nullopt;
  if (!size || *size >> 63 != 0) return fail(rules::kSizeOverflow, shape.dims_at);
  if (entries->shape.size() != 1 || info(entries->dtype).bits % 8 != 0)
    return fail(rules::kSparseValues, values.at, "a shape of one dimension", core::of_shape(entries->shape));
  const std::uint64_t count = entries->count, rank = shape.dims.size();
  const bool linear = std::ranges::equal(where->shape, std::vector<std::uint64_t>{count});
  const bool per_dimension = std::ranges::equal(where->shape, std::vector<std::uint64_t>{count, rank});
  if (where->dtype != DType::i64 || (!linear && !per_dimension))
    return fail(rules::kSparseIndices, indices.at,
                {core::of_shape(std::vector<std::uint64_t>{count}), " or ",
                 core::of_shape(std::vector<std::uint64_t>{count, rank}), " of INT64"},
                {core::of_shape(where->shape), " of ", name_of_type(indices)});
  // Each linear index becomes `rank` coordinates.
  const auto numbers = base::checked_mul(count, rank);
  if (!numbers || *numbers > UINT64_MAX / 16) return fail(rules::kSizeOverflow, shape.dims_at);
  if (!counted()) return;
  reading_.keep(name.size());
  const std::uint32_t t = draft_.add_tensor(name, Layout::sparse_coo, entries->dtype, shape.dims);
  add_part(core::kValues, *entries, entries->shape);
  const std::vector<std::uint64_t> coords{rank, count};
  // One dimension: the indices are the coordinates.
  if (rank == 1)
    add_part(core::kCoords, *where, coords);
  else
    add_coordinates(*where, coords, {shape.dims, per_dimension, {}});
  describe(t, values);
  out_.places.push_back(place({.message = shape.message, .at = at}));
  collect(*entries, name, values.at);
  collect(*where, name, indices.at);
}

void Adder::add_coordinates(const Elements& indices, const std::vector<std::uint64_t>& shape, Coordinates coordinates) {
  coordinates.indices = [source = draft_.sources()[indices.extent.source], own = held_, at = indices.extent,
                         numbers = indices.numbers](const std::function<bool(std::span<const std::byte>)>& sink) {
    if (numbers) return stream_numbers(*own, *numbers, sink);
    io::read_pieces(*source, at.offset, at.offset + at.length,
                    [&](std::uint64_t, std::span<const std::byte> piece) { return sink(piece); });
  };
  const std::uint64_t size = shape[0] * shape[1] * 8;  // no overflow: the caller has checked
  const std::uint32_t p = draft_.add_part(core::kCoords, DType::i64, shape, Encoding::computed, {}, size);
  draft_.part(p).make(
      [coordinates = std::move(coordinates)](
          const Context&, const std::function<bool(std::span<const std::byte>)>& sink) { coordinates.stream(sink); });
}

void Adder::add_part(std::string_view role, const Elements& elements, Shape shape) {
  const bool made = elements.numbers.has_value();
  const std::uint32_t p = draft_.add_part(role, elements.dtype, shape, made ? Encoding::computed : Encoding::raw,
                                          elements.extent, elements.size);
  if (made && !wanted_.content)  // nobody reads the tensors of a walk for its typed numbers
    draft_.part(p).make([own = held_, numbers = *elements.numbers](
                            const Context&, const std::function<bool(std::span<const std::byte>)>& sink) {
      stream_numbers(*own, numbers, sink);
    });
}

void Adder::add(const TensorMessage& tensor, std::string name) {
  if (!reading_.good() || !check_name(name, tensor.at)) return;
  const auto elements = find_elements(reading_, files_, tensor, name);
  if (!elements) return;
  const std::uint32_t before = draft_.size();
  add(*elements, name, {.message = tensor.message, .at = tensor.at, .tensor = true});
  if (draft_.size() > before) describe(before, tensor);
}

void Adder::add(const Elements& elements, const std::string& name, Place at) {
  if (!check_name(name, at.at) || !counted()) return;
  reading_.keep(name.size());
  if (elements.unsupported) {
    const DType dtype = elements.absent ? elements.dtype : DType::unknown;
    core::TensorDraft tensor = draft_.tensor(draft_.add_tensor(name, Layout::dense, dtype, elements.shape));
    tensor.unsupported(elements.unsupported);
    if (!elements.absent) {
      const std::uint64_t count[] = {elements.size};
      const std::uint32_t p =
          draft_.add_part("data", DType::unknown, count, Encoding::raw, elements.extent, elements.size);
      draft_.part(p).dtype_name(elements.type_name);
      tensor.type_name(elements.type_name);
    }
    if (elements.unsupported->severity != Severity::error)
      findings_.report(*elements.unsupported);
    else if (!draft_.is_incomplete())
      draft_.set_incomplete({.why = elements.unsupported->message});
    at.tensor = false;
  } else {
    draft_.add_tensor(name, Layout::dense, elements.dtype, elements.shape);
    add_part("data", elements, elements.shape);
    collect(elements, name, at.at);
  }
  out_.places.push_back(place(std::move(at)));
}

void Adder::describe(std::uint32_t tensor, const TensorMessage& message) {
  if (message.doc && message.doc->size() > 0)
    draft_.tensor(tensor).attribute("onnx.doc_string", text_value(reading_, *message.doc));
  for (const auto& [key, value] : message.metadata) draft_.tensor(tensor).attribute(key, value);
}

void Adder::collect(const Elements& elements, const std::string& name, std::uint64_t at) {
  if (elements.stated && stated_.insert(elements.stated->location).second)
    draft_.add_checksum(std::string(core::kFileChecksum) + core::excerpt(elements.stated->location, 200),
                        "sha1:" + core::excerpt(elements.stated->digits, 40));
  if (!wanted_.content) return;
  if (elements.numbers) out_.typed.push_back({name, at, *elements.numbers});
  if (elements.stated) out_.checksums.push_back(*elements.stated);
}

Place Adder::place(Place at) {
  if (wanted_.within) at.within = around_;
  return at;
}

bool Adder::check_name(const std::string& name, std::uint64_t at) {
  if (base::is_utf8(name)) return true;
  return findings_.fail(rules::kNameUtf8, {.offset = at}, {}, core::excerpted(name));
}

bool Adder::counted() {
  if (draft_.size() < reading_.limits.tensors) return true;
  if (!std::exchange(too_many_, true))
    findings_.report(core::rules::kLimitTensors, {.offset = 0}, core::at_most(reading_.limits.tensors));
  return false;
}

Walked Adder::finish() {
  const std::vector<std::uint32_t> again = draft_.drop_same_names([&](std::uint32_t, std::uint32_t later) {
    findings_.report(rules::kDuplicateName, {.offset = out_.places[later].at, .tensor = draft_.name(later)});
  });
  std::size_t kept = 0, next = 0;
  for (std::size_t i = 0; i < out_.places.size(); ++i) {
    if (next < again.size() && again[next] == i)
      ++next;
    else if (kept++ != i)
      out_.places[kept - 1] = std::move(out_.places[i]);
  }
  out_.places.resize(kept);
  return std::move(out_);
}

}  // namespace weighbridge::onnx
