// SPDX-License-Identifier: Apache-2.0
// The content rules of zTensor 1.x: digests, zstd frames and bools in one pass over the payload, then the index parts
// of sparse tensors, then the bytes between the components.
#include <algorithm>
#include <memory>
#include <mutex>
#include <semaphore>
#include <vector>

#include "base/checked.h"
#include "base/fail.h"
#include "codecs/sparse.h"
#include "core/content.h"
#include "core/draft.h"
#include "core/encoding.h"
#include "core/extents.h"
#include "core/part_digest.h"
#include "core/progress.h"
#include "core/work.h"
#include "formats/ztensor1/format.h"
#include "formats/ztensor1/layout.h"
#include "formats/ztensor1/rules.h"

namespace weighbridge::ztensor1 {
namespace {

std::vector<core::PartJob> jobs_of(const Model& model) {
  std::vector<core::PartJob> jobs;
  for (std::uint32_t t = 0; t < model.size(); ++t) {
    const Tensor tensor = model[t];
    for (std::uint32_t i = 0; i < tensor.part_count(); ++i) {
      core::PartJob job;
      job.tensor = tensor;
      job.part = tensor.part(i);
      const core::DigestText digest = core::parse_digest(job.part.digest());
      job.digest = digest.kind;
      job.expected = digest.digits;
      job.digest_rule = &rules::kDigestRule;
      if (job.part.dtype() == DType::boolean && job.part.encoding() != Encoding::unknown) job.bool_rule = &rules::kBool;
      if (core::is_coded(job.part.encoding())) job.encoding_rule = &rules::kZstd;
      if (job.digest != core::PartDigest::none || job.bool_rule || job.encoding_rule) jobs.push_back(job);
    }
  }
  return jobs;
}

const Rule& rule_of(codecs::SparseFault fault) noexcept {
  if (fault == codecs::SparseFault::index_range) return rules::kIndexRange;
  if (fault == codecs::SparseFault::duplicate) return rules::kDuplicateEntries;
  return rules::kIndptr;
}

// Checks indptr, indices and coords of sparse tensors, several tensors at once.
class SparsePass {
 public:
  SparsePass(const Model& model, const Context& context, core::Progress& progress, std::vector<Finding>& out)
      : context_(context), quiet_(progress.inner()), progress_(progress), out_(out) {
    for (const Tensor& tensor : model) {
      const Layout layout = tensor.layout();
      if ((layout == Layout::sparse_csr || layout == Layout::sparse_coo) && !tensor.unsupported())
        tensors_.push_back(tensor);
    }
  }

  void run() {
    core::Work work;
    for (const Tensor& tensor : tensors_)
      for (const Part& part : tensor.parts()) work.add(part);
    if (auto excess = work.excess(context_.limits)) {
      out_.push_back(*std::move(excess));
      return;
    }
    core::executor_of(context_).for_each(tensors_.size(),
                                         [this](std::uint64_t i) { check(tensors_[base::to_size(i)]); });
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
                               budget_);
    stream(indptr, [&](std::span<const std::byte> piece) { checker.indptr(piece); });
    stream(indices, [&](std::span<const std::byte> piece) { checker.indices(piece); });
    const codecs::SparseReport report = checker.finish();
    remark_unchecked(tensor, indices, report);
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
    remark_unchecked(tensor, coords, report);
    for (const auto& violation : report.violations) add(tensor, coords, violation);
  }

  // Warns about a valid structure with too many entries to look for duplicates.
  void remark_unchecked(const Tensor& tensor, const Part& part, const codecs::SparseReport& report) {
    if (report.duplicates_checked || report.total > 0) return;
    Finding finding = core::Findings::make(
        rules::kDuplicatesUnchecked,
        {.offset = part.extent()->offset, .tensor = tensor.name(), .hint = base::limit_hint("memory")});
    const std::lock_guard lock(mutex_);
    out_.push_back(std::move(finding));
  }

  template <class Use> void stream(const Part& part, Use use) {
    part.stream(quiet_, [&](std::span<const std::byte> piece) {
      use(piece);
      progress_.add(0);
      return true;
    });
    progress_.add(part.extent()->length);
  }

  void add(const Tensor& tensor, const Part& part, const codecs::SparseViolation& violation) {
    const std::uint64_t begin = part.extent()->offset;
    const bool raw = part.encoding() == Encoding::raw;
    const core::At at{.offset = raw ? begin + violation.element * (info(part.dtype()).bits / 8) : begin,
                      .tensor = tensor.name()};
    Finding finding = core::Findings::make(rule_of(violation.fault), at, violation.expected, violation.found,
                                           std::string(part.role()) + "[" + std::to_string(violation.element) + "]");
    const std::lock_guard lock(mutex_);
    out_.push_back(std::move(finding));
  }

  const Context& context_;
  const Context quiet_;
  core::Progress& progress_;
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

// Checks the bytes between the components: overlaps, gaps, padding that is not zero.
class LayoutPass {
 public:
  LayoutPass(const Model& model, std::vector<Finding>& out) : model_(model), out_(out) {}

  void run() {
    const std::shared_ptr<const Source> held = model_.sources()[0];
    const Source& source = *held;
    const std::uint64_t manifest = source.size() - kFooterSize - core::retained_header(model_).size();
    const core::Sharing owners = core::sharing(model_);
    std::uint64_t end = kMagicSize;
    core::Extents::of(model_).walk([&](const core::Range& range, core::Meeting meeting, const core::Range*) {
      if (meeting == core::Meeting::overlap)
        report(rules::kOverlap, range.offset, owners.tensor[range.item], "the bytes before " + std::to_string(end));
      between(end, std::max(end, range.offset));
      end = std::max(end, range.end());
    });
    between(end, manifest);
    check_padding(source);
  }

 private:
  void report(const Rule& rule, std::uint64_t offset, std::optional<std::uint32_t> tensor, std::string found) {
    core::At at{.offset = offset};
    if (tensor) at.tensor = model_.name(*tensor);
    out_.push_back(core::Findings::make(rule, at, {}, std::move(found)));
  }

  void between(std::uint64_t begin, std::uint64_t end) {
    if (begin == end) return;
    if (end - begin >= kAlignment)
      report(rules::kGap, begin, std::nullopt, std::to_string(end - begin) + " bytes");
    else
      holes_.push_back({begin, end - begin});
  }

  // One read covers neighboring holes, including small components between them.
  void check_padding(const Source& source) {
    constexpr std::uint64_t kWindow = std::uint64_t{64} << 10, kApart = 4096;
    std::vector<std::byte> bytes;
    for (std::size_t first = 0; first < holes_.size();) {
      const std::uint64_t begin = holes_[first].offset;
      std::uint64_t end = begin + holes_[first].length;
      std::size_t last = first + 1;
      for (; last < holes_.size(); ++last) {
        const std::uint64_t next = holes_[last].offset + holes_[last].length;
        if (holes_[last].offset - end > kApart || next - begin > kWindow) break;
        end = next;
      }
      bytes.resize(base::to_size(end - begin));
      source.read_at(begin, bytes);
      for (; first < last; ++first) {
        const auto hole =
            std::span(bytes).subspan(base::to_size(holes_[first].offset - begin), base::to_size(holes_[first].length));
        const auto bad = std::ranges::find_if(hole, [](std::byte b) { return b != std::byte{0}; });
        if (bad != hole.end())
          report(rules::kPadding, holes_[first].offset + static_cast<std::uint64_t>(bad - hole.begin()), std::nullopt,
                 std::to_string(std::to_integer<unsigned>(*bad)));
      }
    }
  }

  struct Hole {
    std::uint64_t offset, length;
  };
  const Model& model_;
  std::vector<Finding>& out_;
  std::vector<Hole> holes_;
};

std::uint64_t index_bytes(const Model& model) noexcept {
  std::uint64_t total = 0;
  for (const Tensor& tensor : model)
    for (const std::string_view role : {kIndptr, kIndices, kCoords})
      if (const auto part = tensor.part(role); part && !tensor.unsupported()) total += part->extent()->length;
  return total;
}

}  // namespace

void check_content(const Model& model, const Context& context, core::Findings& findings) {
  const std::vector<core::PartJob> jobs = jobs_of(model);
  std::vector<Finding> found;
  core::Progress progress(context, core::stored_bytes(jobs) + index_bytes(model));
  core::check_parts(jobs, context, progress, found);
  SparsePass(model, context, progress, found).run();
  // If a component is broken, its bytes would look like a gap, so this pass needs an error-free file.
  if (findings.errors() == 0) LayoutPass(model, found).run();
  progress.finish();
  core::sort_findings(found);
  for (Finding& finding : found) findings.report(std::move(finding));
}

}  // namespace weighbridge::ztensor1
