// SPDX-License-Identifier: Apache-2.0
// Makes sparse tensors dense, and lists the elements that they store.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "base/checked.h"
#include "base/endian.h"
#include "base/fail.h"
#include "codecs/sparse.h"
#include "core/payload/dense.h"
#include "core/payload/work.h"

namespace weighbridge::core {

WholePart whole_part(const Tensor& tensor, std::string_view role, const Context& context) {
  const auto part = tensor.part(role);
  if (!part) {
    base::unsupported("unsupported/part", fmt::format("tensor \"{}\" has no part \"{}\"", tensor.name(), role));
  }
  if (part->size() > context.limits.decoded) {
    base::over_limit("decoded",
                     fmt::format("part \"{}\" of tensor \"{}\" is larger than the limit of {} bytes", role,
                                 tensor.name(), context.limits.decoded),
                     part->size());
  }
  require_work(*part, part->size(), context.limits);
  const std::size_t size = base::to_size(part->size());
  WholePart whole{std::make_unique_for_overwrite<std::byte[]>(size), size, part->dtype()};
  std::uint64_t filled = 0;
  part->stream(context, [&](std::span<const std::byte> piece) {
    std::memcpy(whole.bytes.get() + filled, piece.data(), piece.size());
    filled += piece.size();
    return true;
  });
  return whole;
}

namespace {

[[noreturn]] void refuse_indices(const Tensor& tensor, std::uint64_t element) {
  base::malformed(
      "part/sparse",
      fmt::format("the indices of sparse tensor \"{}\" do not fit its shape (entry {}): see `weighbridge verify`",
                  tensor.name(), element));
}

// Whether all entries are for different elements, if there is enough memory to check; throws for indices outside the
// shape.
bool entries_are_distinct(const Tensor& tensor, const Context& context) {
  // Jobs look at several tensors at once.
  const std::uint64_t budget = context.limits.memory / 16;
  const auto values = tensor.part("values");
  const auto check = [&](auto& checker, const Part& part, auto take) {
    part.stream(context, [&](std::span<const std::byte> piece) {
      (checker.*take)(piece);
      return true;
    });
  };
  codecs::SparseReport report;
  if (tensor.layout() == Layout::sparse_csr) {
    const auto indptr = tensor.part("indptr"), indices = tensor.part("indices");
    if (!indptr || !indices || !values || tensor.shape().size() != 2) return false;
    codecs::CsrChecker checker(tensor.shape()[0], tensor.shape()[1], values->count(), indptr->dtype(), indices->dtype(),
                               budget);
    check(checker, *indptr, &codecs::CsrChecker::indptr);
    check(checker, *indices, &codecs::CsrChecker::indices);
    report = checker.finish();
  } else {
    const auto coords = tensor.part("coords");
    if (!coords || !values || tensor.shape().empty()) return false;
    codecs::CooChecker checker({tensor.shape().begin(), tensor.shape().end()}, values->count(), coords->dtype(),
                               budget);
    check(checker, *coords, &codecs::CooChecker::coords);
    report = checker.finish();
  }
  for (const codecs::SparseViolation& each : report.violations)
    if (each.fault != codecs::SparseFault::duplicate) refuse_indices(tensor, each.element);
  return report.total == 0 && report.duplicates_checked;
}

// The row-major index of each entry's element.
std::vector<std::uint64_t> elements_of_entries(const Tensor& tensor, std::uint64_t entries, const Context& context) {
  using codecs::sparse_detail::load_index;
  const Shape shape = tensor.shape();
  const auto require_count = [&](const WholePart& part, std::uint64_t count) {
    const auto size = base::checked_mul(count, info(part.dtype).bits / 8);
    if (!codecs::sparse_detail::is_index(part.dtype) || size != part.size) refuse_indices(tensor, 0);
  };
  std::vector<std::uint64_t> out(base::to_size(entries));
  if (tensor.layout() == Layout::sparse_csr) {
    const WholePart indptr = whole_part(tensor, "indptr", context), indices = whole_part(tensor, "indices", context);
    if (shape.size() != 2) base::unsupported("unsupported/layout", "a sparse_csr tensor has rank 2");
    require_count(indptr, base::checked_add(shape[0], 1).value_or(UINT64_MAX));
    require_count(indices, entries);
    for (std::uint64_t row = 0, begin = 0, end = 0; row < shape[0]; ++row, begin = end) {
      if (!load_index(indptr.dtype, indptr.bytes.get(), row + 1, end) || end < begin || end > entries)
        refuse_indices(tensor, row + 1);
      for (std::uint64_t i = begin; i < end; ++i) {
        std::uint64_t column = 0;
        if (!load_index(indices.dtype, indices.bytes.get(), i, column) || column >= shape[1]) refuse_indices(tensor, i);
        out[base::to_size(i)] = row * shape[1] + column;
      }
    }
    return out;
  }
  const WholePart coords = whole_part(tensor, "coords", context);
  require_count(coords, base::checked_mul(entries, shape.size()).value_or(UINT64_MAX));
  for (std::size_t d = 0; d < shape.size(); ++d)
    for (std::uint64_t i = 0; i < entries; ++i) {
      std::uint64_t at = 0;
      if (!load_index(coords.dtype, coords.bytes.get(), d * entries + i, at) || at >= shape[d])
        refuse_indices(tensor, i);
      std::uint64_t& element = out[base::to_size(i)];
      element = element * shape[d] + at;
    }
  return out;
}

}  // namespace

std::uint64_t stream_stored(const Tensor& tensor, const Context& context,
                            const std::function<bool(std::span<const std::byte>)>& sink) {
  const auto elements = base::element_count(tensor.shape());
  if (!elements)
    base::over_limit("decoded", fmt::format("tensor \"{}\" has 2^64 elements or more", tensor.name()), UINT64_MAX);
  if (entries_are_distinct(tensor, context)) {
    const Part values = *tensor.part("values");
    values.stream(context, sink);
    return *elements - values.count();
  }
  // Adds up the entries of each element, for a tensor with only these elements.
  const WholePart values = whole_part(tensor, "values", context);
  const std::uint64_t width = info(values.dtype).bits / 8;
  if (width == 0 || !codecs::can_be_sparse(values.dtype))
    base::unsupported("unsupported/elements",
                      fmt::format("sparse tensor \"{}\" has values of a type without a zero", tensor.name()));
  std::vector<std::uint64_t> places = elements_of_entries(tensor, values.size / width, context);
  std::vector<std::uint64_t> distinct = places;
  std::ranges::sort(distinct);
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  for (std::uint64_t& place : places)
    base::store_le(reinterpret_cast<std::byte*>(&place),
                   static_cast<std::uint64_t>(std::ranges::lower_bound(distinct, place) - distinct.begin()));
  const std::uint64_t shape[] = {distinct.size()};
  const std::span<const std::byte> coords[] = {std::as_bytes(std::span(places))};
  std::vector<std::byte> sums(distinct.size() * base::to_size(width));
  const codecs::SparseResult result =
      codecs::coo_to_dense(values.dtype, shape, DType::u64, coords, values.span(), 0, shape[0], sums);
  if (!result.ok()) refuse_indices(tensor, result.element);
  constexpr auto kStep = std::size_t{1} << 20;
  for (std::size_t at = 0; at < sums.size(); at += kStep)
    if (!sink(std::span(sums).subspan(at, std::min(kStep, sums.size() - at)))) break;
  return *elements - distinct.size();
}

void fill_sparse(const Tensor& tensor, const Context& context, std::span<std::byte> out) {
  const Shape shape = tensor.shape();
  const WholePart values = whole_part(tensor, "values", context);
  codecs::SparseResult result;
  if (tensor.layout() == Layout::sparse_csr) {
    const WholePart indices = whole_part(tensor, "indices", context), indptr = whole_part(tensor, "indptr", context);
    if (shape.size() != 2) base::unsupported("unsupported/layout", "a sparse_csr tensor has rank 2");
    result = codecs::csr_to_dense(values.dtype, shape[1], indptr.dtype, indptr.span(), indices.dtype, indices.span(),
                                  values.span(), out);
  } else {
    const WholePart all = whole_part(tensor, "coords", context);
    const std::size_t one = shape.empty() ? 0 : all.size / shape.size();
    if (shape.empty() || one * shape.size() != all.size)
      base::unsupported("unsupported/layout", "a sparse_coo tensor has coords for each dimension");
    std::vector<std::span<const std::byte>> coords;
    for (std::size_t d = 0; d < shape.size(); ++d) coords.push_back(all.span().subspan(d * one, one));
    result = codecs::coo_to_dense(values.dtype, shape, all.dtype, coords, values.span(), 0, shape[0], out);
  }
  if (!result.ok()) refuse_indices(tensor, result.element);
}

}  // namespace weighbridge::core
