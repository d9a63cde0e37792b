// SPDX-License-Identifier: Apache-2.0
// The content rules: bools are 0 or 1; the pickle of an object array names nothing harmful; and each readable member of
// an npz decodes and has the stated CRC-32.
#include <algorithm>
#include <mutex>
#include <vector>

#include "base/checked.h"
#include "codecs/checksum.h"
#include "core/archive/pickle_scan.h"
#include "core/model/progress.h"
#include "core/payload/content.h"
#include "core/payload/payload.h"
#include "formats/numpy/format.h"
#include "formats/numpy/header.h"
#include "io/caching_source.h"
#include "io/read.h"

namespace weighbridge::numpy {
namespace {

// Checks the pickle of an array of objects, which begins where the elements would. `bytes` are the bytes before it, and
// scan(start) reads the pickles. `in_place`: the array is stored uncompressed at `where`.
template <class Scan>
void check_objects(std::string_view bytes, const ArrayRules& rules, core::At where, bool in_place,
                   std::vector<Finding>& out, Scan scan) {
  Fault ignored;  // opening the file reported an invalid header
  const auto header = read_header(bytes, rules, ignored);
  if (!header || !header->objects) return;
  const std::size_t before = out.size();
  const wire::PickleError error = scan(header->data_at);
  if (error.fault == wire::PickleFault::none) return;
  if (in_place) *where.offset += error.offset;
  if (header->unsupported == &rules.kObject)
    return out.push_back(core::Findings::make(rules.kPickle, where, {}, {}, error.sentence));
  // Only a field may be called like the type of objects, so this may not be a pickle.
  const auto first = out.begin() + static_cast<std::ptrdiff_t>(before);
  out.erase(std::remove_if(first, out.end(), [](const Finding& each) { return each.severity != Severity::error; }),
            out.end());
}

constexpr core::PickleRules pickle_rules(const ArrayRules& rules) noexcept {
  return {rules.kDangerousGlobal, rules.kUnknownGlobal, rules.kUnreadPickle, rules.kPickle, core::is_harmless_global};
}

// Checks the members of an archive, several at once.
class Pass {
 public:
  Pass(const Model& model, const Context& context, std::vector<Finding>& out)
      : source_(io::cached(model.sources()[0])), model_(model), context_(context), out_(out) {}

  void run() {
    core::Draft names;
    const core::Zip zip = core::read_zip_again(*source_, context_.limits, kZipRules, names);
    std::uint64_t total = 0;
    for (const core::ZipMember& member : zip.members) {
      if (!core::can_check(member, context_.limits)) continue;
      members_.push_back(&member);
      total += member.stored;
    }
    // Longest first, so that a long one does not start when all others are done.
    std::ranges::stable_sort(members_, std::ranges::greater{}, &core::ZipMember::stored);
    core::Progress progress(context_, total);
    core::executor_of(context_).for_each(members_.size(),
                                         [&](std::uint64_t i) { check(*members_[base::to_size(i)], progress); });
    progress.finish();
    for (const core::ZipMember& member : zip.members) {
      if (member.broken || member.unreadable != nullptr) continue;
      look_for_objects(member);
      look_for_pickle(member);
    }
  }

 private:
  // numpy.load ignores a member that is a pickle, but torch.load accepts any archive with one.
  void look_for_pickle(const core::ZipMember& member) {
    const std::string_view name = array_name(member.name);
    if (name.size() < member.name.size() || model_.find(name)) return;
    std::string fault;
    const std::string first = core::zip_front(*source_, member, kFirst, context_, fault);
    if (!core::may_be_pickle(member.name, first)) return;
    const core::PickleRules rules = pickle_rules(kNpzRules);
    core::PickleScan(context_, rules, out_).member(*source_, member);
  }

  void look_for_objects(const core::ZipMember& member) {
    const std::string_view name = array_name(member.name);
    const auto tensor = model_.find(name);
    if (!tensor || tensor->unsupported() == nullptr) return;
    std::string fault;
    const std::string bytes =
        up_to_elements([&](std::size_t n) { return core::zip_front(*source_, member, n, context_, fault); });
    if (!fault.empty()) return;  // another rule reports that its bytes do not decode
    const core::PickleRules rules = pickle_rules(kNpzRules);
    core::PickleScan scan(context_, rules, out_);
    check_objects(bytes, kNpzRules, {.offset = member.offset, .tensor = name}, member.encoding == Encoding::raw, out_,
                  [&](std::uint64_t start) { return scan.member(*source_, member, start); });
  }

  void check(const core::ZipMember& member, core::Progress& progress) {
    const std::string_view name = array_name(member.name);
    const auto tensor = model_.find(name);
    if (!tensor && name.size() < member.name.size() && model_.attribute(name) == nullptr)
      return;  // opening the file reported it
    const bool bools = tensor && tensor->dtype() == DType::boolean && tensor->part_count() == 1;
    // The range of the elements in the member's bytes.
    std::uint64_t begin = 0, end = 0;
    if (bools) {
      const Part part = tensor->main();
      const auto cut = core::cut_of(part);
      begin = cut ? cut->first : part.extent()->offset - member.offset;
      end = begin + part.size();
    }
    std::uint64_t at = 0;
    std::optional<std::uint64_t> bad;
    std::byte bad_byte{};
    constexpr core::ZipMemberRules kRules{.encoding = npz::kDeflate, .crc = npz::kCrc};
    const core::At where{.offset = member.offset, .tensor = name};
    auto wrong =
        core::check_zip_member(*source_, member, kRules, where, progress, [&](std::span<const std::byte> piece) {
          for (std::size_t i = 0; bools && !bad && i < piece.size(); ++i)
            if (piece[i] > std::byte{1} && at + i >= begin && at + i < end) {
              bad = at + i;
              bad_byte = piece[i];
            }
          at += piece.size();
        });
    if (wrong) {
      const bool decodes = wrong->rule != npz::kDeflate.id;
      add(*std::move(wrong));
      if (!decodes) return;
    }
    if (bad)
      add(core::Findings::make(
          npz::kBoolByte, {.offset = member.offset + (member.encoding == Encoding::raw ? *bad : 0), .tensor = name},
          "0 or 1", std::to_integer<unsigned>(bad_byte), {"element ", *bad - begin}));
  }

  void add(Finding finding) {
    const std::lock_guard lock(mutex_);
    out_.push_back(std::move(finding));
  }

  static constexpr std::size_t kFirst = 8;  // bytes that show whether it is a pickle

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
  const Source& source = *model.sources()[0];
  const auto front = [&](std::size_t n) { return io::head_of(source, n); };
  const core::PickleRules rules = pickle_rules(kNpyRules);
  core::PickleScan scan(context, rules, found);
  check_objects(up_to_elements(front), kNpyRules, {.offset = 0}, true, found, [&](std::uint64_t start) {
    return start > source.size() ? wire::PickleError{}
                                 : scan.row(core::input_of(source, 0, source.size()), start, 0, 0, {});
  });
  for (Finding& finding : found) findings.report(std::move(finding));
}

void check_npz(const Model& model, const Context& context, core::Findings& findings) {
  std::vector<Finding> found;
  Pass(model, context, found).run();
  core::report_sorted(std::move(found), findings);
}

}  // namespace weighbridge::numpy
