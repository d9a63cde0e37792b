// SPDX-License-Identifier: Apache-2.0
// The content rules: bools are 0 or 1; and in an npz, each member that can be read decodes and has its CRC-32.
#include <algorithm>
#include <mutex>
#include <vector>

#include "base/checked.h"
#include "codecs/checksum.h"
#include "core/content.h"
#include "core/cut.h"
#include "core/encoding.h"
#include "core/progress.h"
#include "formats/numpy/archive.h"
#include "formats/numpy/format.h"

namespace weighbridge::numpy {
namespace {

// Checks the members of an archive, several at once.
class Pass {
 public:
  Pass(const Model& model, const Context& context, std::vector<Finding>& out)
      : source_(model.sources()[0]), model_(model), context_(context), out_(out) {}

  void run() {
    // What is wrong with the directory was found when the file was opened.
    Report report;
    core::Findings ignored(report, core::Findings::Mode::all);
    core::Draft draft;
    const auto zip = core::read_zip(*source_, context_.limits, kZipRules, ignored, draft);
    if (!zip) return;
    std::uint64_t total = 0;
    for (const core::ZipMember& member : zip->members) {
      if (member.broken || member.unreadable != nullptr || member.size > context_.limits.decoded) continue;
      members_.push_back(&member);
      total += member.stored;
    }
    // The longest first, so that one of them does not start when all others are done.
    std::ranges::stable_sort(members_, std::ranges::greater{}, &core::ZipMember::stored);
    core::Progress progress(context_, total);
    core::executor_of(context_).for_each(members_.size(),
                                         [&](std::uint64_t i) { check(*members_[base::to_size(i)], progress); });
    progress.finish();
  }

 private:
  void check(const core::ZipMember& member, core::Progress& progress) {
    const std::string_view name = array_name(member.name);
    const auto tensor = model_.find(name);
    if (!tensor && name.size() < member.name.size()) return;  // it was refused when the file was opened
    const bool bools = tensor && tensor->dtype() == DType::boolean && tensor->part_count() == 1;
    // The elements among the member's bytes.
    std::uint64_t begin = 0, end = 0;
    if (bools) {
      const Part part = tensor->main();
      const auto cut = core::cut_of(part);
      begin = cut ? cut->first : part.extent()->offset - member.offset;
      end = begin + part.size();
    }
    std::uint64_t at = 0;
    std::uint32_t crc = 0;
    std::optional<std::uint64_t> bad;
    std::byte bad_byte{};
    const Context quiet = progress.inner();
    const std::string fault = core::read_zip_member(*source_, member, quiet, [&](std::span<const std::byte> piece) {
      crc = codecs::crc32(piece, crc);
      for (std::size_t i = 0; bools && !bad && i < piece.size(); ++i)
        if (piece[i] > std::byte{1} && at + i >= begin && at + i < end) {
          bad = at + i;
          bad_byte = piece[i];
        }
      at += piece.size();
      if (member.encoding == Encoding::raw || at % (std::uint64_t{1} << 22) < piece.size())
        progress.add(member.encoding == Encoding::raw ? piece.size() : 0);
      return true;
    });
    if (member.encoding != Encoding::raw) progress.add(member.stored);
    const core::At where{.offset = member.offset, .tensor = name};
    if (!fault.empty()) return add(core::Findings::make(npz::kDeflate, where, {}, {}, fault));
    if (crc != member.crc32)
      add(core::Findings::make(npz::kCrc, where, codecs::to_hex(member.crc32), codecs::to_hex(crc)));
    if (bad)
      add(core::Findings::make(
          npz::kBoolByte, {.offset = member.offset + (member.encoding == Encoding::raw ? *bad : 0), .tensor = name},
          "0 or 1", std::to_string(std::to_integer<unsigned>(bad_byte)), "element " + std::to_string(*bad - begin)));
  }

  void add(Finding finding) {
    const std::lock_guard lock(mutex_);
    out_.push_back(std::move(finding));
  }

  const std::shared_ptr<const Source> source_;
  const Model& model_;
  const Context& context_;
  std::vector<Finding>& out_;
  std::vector<const core::ZipMember*> members_;
  std::mutex mutex_;
};

}  // namespace

void check_npy(const Model& model, const Context& context, core::Findings& findings) {
  std::vector<core::PartJob> jobs;
  for (const Tensor& tensor : model)
    if (tensor.dtype() == DType::boolean) {
      core::PartJob job;
      job.tensor = tensor;
      job.part = tensor.main();
      job.bool_rule = &npy::kBoolByte;
      jobs.push_back(job);
    }
  std::vector<Finding> found;
  core::check_parts(jobs, context, found);
  for (Finding& finding : found) findings.report(std::move(finding));
}

void check_npz(const Model& model, const Context& context, core::Findings& findings) {
  std::vector<Finding> found;
  Pass(model, context, found).run();
  core::sort_findings(found);
  for (Finding& finding : found) findings.report(std::move(finding));
}

}  // namespace weighbridge::numpy
