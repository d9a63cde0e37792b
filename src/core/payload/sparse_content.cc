// SPDX-License-Identifier: Apache-2.0
#include "core/payload/content.h"

#include <memory>
#include <mutex>
#include <optional>
#include <semaphore>
#include <string>
#include <utility>

#include "base/checked.h"
#include "base/fail.h"
#include "codecs/sparse.h"
#include "core/payload/payload.h"
#include "core/payload/work.h"

namespace weighbridge::core {
namespace {

// Indices that are computed have no place of their own in the file.
std::optional<std::uint64_t> offset_of(const Part& part) {
  const auto extent = part.extent();
  return extent ? std::optional(extent->offset) : std::nullopt;
}
std::uint64_t bytes_to_read(const Part& part) noexcept {
  const auto extent = part.extent();
  return extent ? extent->length : part.size();
}

// Checks indptr, indices and coords of sparse tensors, several tensors at once.
class SparsePass {
 public:
  SparsePass(const Model& model, const SparseRules& rules, const Context& context, Progress& progress,
             std::vector<Finding>& out)
      : rules_(rules), context_(context), quiet_(progress.inner()), progress_(progress), out_(out) {
    for (const Tensor& tensor : model)
      if (is_sparse(tensor)) tensors_.push_back(tensor);
  }

  void run() {
    Work work;
    for (const Tensor& tensor : tensors_)
      for (const Part& part : tensor.parts()) work.add(part);
    if (auto excess = work.excess(context_.limits)) {
      out_.push_back(*std::move(excess));
      return;
    }
    executor_of(context_).for_each(tensors_.size(), [this](std::uint64_t i) { check(tensors_[base::to_size(i)]); });
  }

 private:
  void check(const Tensor& tensor) {
    // Each share of the memory has a fixed size, so that findings do not depend on the number of threads.
    shares_.acquire();
    const std::unique_ptr<std::counting_semaphore<kShares>, Release> share(&shares_);
    try {
      if (tensor.layout() == Layout::sparse_csr)
        check_csr(tensor);
      else
        check_coo(tensor);
    } catch (const Error& error) {
      // The other pass reports stored bytes that do not decode.
      if (!base::refuses_input(error.kind())) throw;
    }
  }

  void check_csr(const Tensor& tensor) {
    const Part indptr = *tensor.part(kIndptr), indices = *tensor.part(kIndices), values = *tensor.part(kValues);
    codecs::CsrChecker checker(tensor.shape()[0], tensor.shape()[1], values.count(), indptr.dtype(), indices.dtype(),
                               budget_, rules_.order != nullptr);
    stream(indptr, [&](std::span<const std::byte> piece) { checker.indptr(piece); });
    stream(indices, [&](std::span<const std::byte> piece) { checker.indices(piece); });
    const codecs::SparseReport report = checker.finish();
    warn_unchecked(tensor, indices, report);
    for (const auto& violation : report.violations) {
      const bool in_indptr = violation.fault == codecs::SparseFault::indptr_start ||
                             violation.fault == codecs::SparseFault::indptr_order ||
                             violation.fault == codecs::SparseFault::indptr_end;
      add(tensor, in_indptr ? indptr : indices, violation);
    }
  }

  void check_coo(const Tensor& tensor) {
    const Part coords = *tensor.part(kCoords), values = *tensor.part(kValues);
    const Shape shape = tensor.shape();
    codecs::CooChecker checker({shape.begin(), shape.end()}, values.count(), coords.dtype(), budget_);
    stream(coords, [&](std::span<const std::byte> piece) { checker.coords(piece); });
    const codecs::SparseReport report = checker.finish();
    warn_unchecked(tensor, coords, report);
    for (const auto& violation : report.violations) add(tensor, coords, violation);
  }

  // Warns about a valid structure with too many entries to look for duplicates.
  void warn_unchecked(const Tensor& tensor, const Part& part, const codecs::SparseReport& report) {
    if (report.duplicates_checked || report.total > 0) return;
    Finding finding = Findings::make(
        rules_.unchecked, {.offset = offset_of(part), .tensor = tensor.name(), .hint = base::limit_hint("memory")});
    const std::lock_guard lock(mutex_);
    out_.push_back(std::move(finding));
  }

  template <class Use> void stream(const Part& part, Use use) {
    part.stream(quiet_, [&](std::span<const std::byte> piece) {
      use(piece);
      progress_.add(0);
      return true;
    });
    progress_.add(bytes_to_read(part));
  }

  void add(const Tensor& tensor, const Part& part, const codecs::SparseViolation& violation) {
    At at{.offset = offset_of(part), .tensor = tensor.name()};
    if (part.encoding() == Encoding::raw) {
      const auto cut = cut_of(part);
      *at.offset += cut ? place_in(*cut, part, violation.element) : violation.element * (info(part.dtype()).bits / 8);
    }
    Finding finding = Findings::make(rule_of(violation.fault), at, violation.expected, violation.found,
                                     {part.role(), "[", violation.element, "]"});
    const std::lock_guard lock(mutex_);
    out_.push_back(std::move(finding));
  }

  const Rule& rule_of(codecs::SparseFault fault) const noexcept {
    if (fault == codecs::SparseFault::index_range) return rules_.index_range;
    if (fault == codecs::SparseFault::order) return *rules_.order;
    return fault == codecs::SparseFault::duplicate ? rules_.duplicate : rules_.indptr;
  }

  const SparseRules& rules_;
  const Context& context_;
  const Context quiet_;
  Progress& progress_;
  std::vector<Finding>& out_;
  std::vector<Tensor> tensors_;
  static constexpr std::ptrdiff_t kShares = 4;
  struct Release {
    void operator()(std::counting_semaphore<kShares>* shares) const { shares->release(); }
  };
  const std::uint64_t budget_ = context_.limits.memory / kShares;
  std::counting_semaphore<kShares> shares_{kShares};
  std::mutex mutex_;
};

}  // namespace

bool is_sparse(const Tensor& tensor) noexcept {
  return !tensor.unsupported() && (tensor.layout() == Layout::sparse_csr || tensor.layout() == Layout::sparse_coo);
}

void check_sparse(const Model& model, const SparseRules& rules, const Context& context, Progress& progress,
                  std::vector<Finding>& out) {
  SparsePass(model, rules, context, progress, out).run();
}

std::uint64_t sparse_bytes(const Model& model) noexcept {
  std::uint64_t total = 0;
  for (const Tensor& tensor : model)
    for (const std::string_view role : {kIndptr, kIndices, kCoords})
      if (const auto part = tensor.part(role); part && !tensor.unsupported()) total += bytes_to_read(*part);
  return total;
}

}  // namespace weighbridge::core
