// SPDX-License-Identifier: Apache-2.0
// Writes elements of a tensor as streams and files.
#include "weighbridge/extract.h"

#include <utility>

#include "base/checked.h"
#include "base/fail.h"
#include "core/model/coded.h"
#include "core/model/progress.h"
#include "core/model/words.h"
#include "core/payload/dense.h"
#include "core/payload/work.h"
#include "weighbridge/npy.h"
#include "weighbridge/output.h"

namespace weighbridge {
namespace {

// "'values', 'indices'"
std::string roles_of(const Tensor& tensor) {
  std::string out;
  for (const Part& part : tensor.parts()) out += (out.empty() ? "'" : ", '") + std::string(part.role()) + "'";
  return out;
}

[[noreturn]] void refuse_part(const Tensor& tensor, std::string_view role) {
  base::misuse("unknown-part", "tensor '" + std::string(tensor.name()) + "' has no part '" + std::string(role) +
                                   "', it has " + roles_of(tensor));
}

// Which part is the main one is known only of tensors that can be interpreted.
void require_main(const Tensor& tensor) {
  const Finding* const why = tensor.unsupported();
  if (why == nullptr || tensor.part_count() == 1) return;
  if (tensor.part_count() == 0) throw Error(*why);
  base::misuse("part-needed",
               "this build cannot interpret tensor '" + std::string(tensor.name()) +
                   "', so it cannot tell which of its parts to extract: name one of " + roles_of(tensor),
               base::option_hint("part"));
}

}  // namespace

Array read_rows(const Tensor& tensor, std::uint64_t first, std::uint64_t count, DType dtype, const Context& context) {
  if (const Finding* const reason = tensor.unsupported()) throw Error(*reason);
  const Shape dims = tensor.shape();
  if (dims.empty() || !base::fits(first, count, dims[0])) tensor.rows_into(first, count, dtype, {}, context);  // throws
  const auto row = base::element_count(dims.subspan(1));
  const auto elements = row ? base::checked_mul(*row, count) : std::nullopt;
  const auto size = elements ? packed_size(dtype, *elements) : std::nullopt;
  if (tensor.layout() == Layout::dense)
    core::require_work(tensor.main(), packed_size(tensor.dtype(), elements.value_or(UINT64_MAX)).value_or(UINT64_MAX),
                       context.limits);
  else
    core::require_dense_work(tensor, context.limits);
  if (!size || *size > context.limits.decoded)
    base::over_limit("decoded",
                     std::to_string(count) + " rows of tensor " + core::quoted(tensor.name()) +
                         " are larger than the limit of " + std::to_string(context.limits.decoded) + " bytes",
                     size.value_or(0));
  Array out = core::new_array(dtype, dims, *size);
  out.shape[0] = count;
  tensor.rows_into(first, count, dtype, {out.data.get(), base::to_size(*size)}, context);
  return out;
}

Elements::Elements(const Tensor& tensor, std::optional<Part> part, DType dtype, Shape shape)
    : tensor_(tensor), part_(std::move(part)) {
  facts_.tensor = tensor.name();
  if (part_) facts_.part = part_->role();
  if (core::is_codes(tensor)) facts_.scheme = core::coded(tensor)->name;
  facts_.dtype = dtype;
  facts_.shape.assign(shape.begin(), shape.end());
}

Elements Elements::part(const Tensor& tensor, std::string_view role) {
  if (role.empty()) require_main(tensor);
  const std::optional<Part> found = role.empty() ? tensor.main() : tensor.part(role);
  if (!found) refuse_part(tensor, role);
  if (const Finding* const reason = tensor.unsupported(); reason && found->encoding() == Encoding::unknown)
    throw Error(*reason);  // which names what was not decoded: a filter, a codec
  return {tensor, found, found->dtype(), found->shape()};
}

Elements Elements::dense(const Tensor& tensor, DType as) {
  if (const Finding* const reason = tensor.unsupported()) throw Error(*reason);
  core::require_values(tensor, "it has no dense form of numbers; its stored elements can be extracted as they are");
  return {tensor, std::nullopt, as == DType::unknown ? tensor.dtype() : as, tensor.shape()};
}

std::optional<std::uint64_t> Elements::size() const {
  if (part_) return part_->size();
  const std::optional<std::uint64_t> count = base::element_count(facts_.shape);
  return count ? packed_size(facts_.dtype, *count) : std::nullopt;
}

std::string Elements::npy_header() const {
  const std::string_view type = npy_type(facts_.dtype);
  if (type.empty()) {
    core::require_values(tensor_, "no .npy file can hold " + std::string(name(facts_.dtype)) +
                                      "; its bytes can be extracted as they are");
    if (const Finding* const why = tensor_.unsupported()) {
      Finding refused = *why;
      refused.message += "; its bytes can be extracted as they are";
      if (refused.hint.what == Hint::What::none) refused.hint = base::option_hint("raw");
      throw Error(std::move(refused));
    }
    base::misuse("npy-type",
                 "no .npy file can hold " + std::string(part_ ? part_->dtype_name() : name(facts_.dtype)) +
                     " of tensor '" + facts_.tensor +
                     "': ask for the dense tensor as f32, or for the bytes as they are",
                 base::option_hint("dense", "f32"));
  }
  return weighbridge::npy_header(type, facts_.shape);
}

void check_output(std::span<const Elements> elements, const Limits& limits) {
  core::Work work;
  std::uint64_t bytes = 0;
  for (const Elements& each : elements) {
    bytes = base::checked_add(bytes, each.size().value_or(UINT64_MAX)).value_or(UINT64_MAX);
    if (each.part_)
      work.add(*each.part_);
    else
      work.add_dense(each.tensor_);
  }
  work.require_output(bytes, limits);
}

void Elements::stream(const Context& context, const std::function<bool(std::span<const std::byte>)>& sink) const {
  check_output({this, 1}, context.limits);
  part_ ? part_->stream(context, sink) : tensor_.stream_dense(facts_.dtype, context, sink);
}

Extracted Elements::write(const std::string& path, const ElementsFile& as, const Context& context) const {
  const std::string header = as.npy ? npy_header() : std::string();
  check_output({this, 1}, context.limits);
  Extracted done = facts_;
  OutputFile file(path, as.replace, as.inputs);
  file.write(std::as_bytes(std::span(header)));
  core::Progress progress(context, size().value_or(0));
  stream(progress.inner(), [&](std::span<const std::byte> piece) {
    progress.add(piece.size());
    done.bytes += piece.size();
    file.write(piece);
    return true;
  });
  progress.finish_pass();
  file.publish();
  done.output = path;
  return done;
}

}  // namespace weighbridge
