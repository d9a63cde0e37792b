// SPDX-License-Identifier: Apache-2.0
// The content rules: each readable member of an archive decodes and has the stated CRC-32; bools are 0 or 1; indices of
// sparse tensors are in range; and no pickle names anything harmful.
#include <algorithm>
#include <memory>
#include <mutex>
#include <vector>

#include "base/checked.h"
#include "codecs/checksum.h"
#include "core/archive/pickle_scan.h"
#include "core/model/progress.h"
#include "core/payload/content.h"
#include "core/payload/payload.h"
#include "formats/pytorch/archive.h"
#include "formats/pytorch/format.h"
#include "formats/pytorch/globals.h"
#include "io/caching_source.h"
#include "io/read.h"

namespace weighbridge::pytorch {
namespace {

constexpr core::PickleRules kPickleRules{rules::kDangerousGlobal, rules::kUnknownGlobal, rules::kUnreadPickle,
                                         rules::kPickle, is_known};
// For TorchScript archives, which define their own classes as code.
constexpr core::PickleRules kScriptRules{rules::kDangerousGlobal, rules::kUnknownGlobal, rules::kUnreadPickle,
                                         rules::kPickle, [](std::string_view module, std::string_view name) noexcept {
                                           return module == "__torch__" || module.starts_with("__torch__.") ||
                                                  is_known(module, name);
                                         }};

// How much of a file is checked.
enum class Coverage : bool { pickles, all };

// Checks the members of an archive, several at once, then the pickles among them.
class Pass {
 public:
  Pass(const Source& source, Coverage content, const Context& context, std::vector<Finding>& out)
      : source_(source), content_(content), context_(context), out_(out) {}

  // The bytes to be read.
  std::uint64_t plan() {
    zip_ = core::read_zip_again(source_, context_.limits, kZipRules, names_);
    std::uint64_t total = 0;
    for (std::uint32_t i = 0; i < zip_.members.size(); ++i) {
      order_.push_back(i);
      total += zip_.members[i].stored;
    }
    // Longest first, so that a long one does not start when all others are done.
    std::ranges::stable_sort(order_, std::ranges::greater{}, [&](std::uint32_t i) { return zip_.members[i].stored; });
    return total;
  }

  void run(core::Progress& progress) {
    core::executor_of(context_).for_each(order_.size(),
                                         [&](std::uint64_t i) { check(order_[base::to_size(i)], progress); });
    std::ranges::sort(pickles_);
    const std::string_view top = top_folder(zip_);
    const std::string code = std::string(top).append(kCode);
    const bool script = !top.empty() && std::ranges::any_of(zip_.members, [&](const core::ZipMember& each) {
      return each.name.starts_with(code);
    });
    const core::PickleRules& pickle_rules = script ? kScriptRules : kPickleRules;
    core::PickleScan scan(context_, pickle_rules, out_);
    for (const std::uint32_t i : pickles_) scan.member(source_, zip_.members[i]);
  }

 private:
  void check(std::uint32_t i, core::Progress& progress) {
    const core::ZipMember& member = zip_.members[i];
    std::string first;
    std::optional<Finding> wrong;
    if (content_ == Coverage::pickles) {
      if (member.offset > 0 && member.encoding != Encoding::unknown && !member.broken && member.unreadable == nullptr) {
        std::string ignored;
        first = core::zip_front(source_, member, kFirst, context_, ignored);
      }
    } else if (core::can_check(member, context_.limits)) {
      constexpr core::ZipMemberRules kRules{.encoding = rules::kDeflate, .crc = rules::kCrc};
      const core::At where{.offset = member.offset, .tensor = member.name};
      wrong = core::check_zip_member(source_, member, kRules, where, progress, [&](std::span<const std::byte> piece) {
        if (first.empty())
          first.assign(reinterpret_cast<const char*>(piece.data()), std::min<std::size_t>(kFirst, piece.size()));
      });
    } else {
      progress.add(member.stored);
    }
    // Flags and headers may lie, but stored data can be read in any case.
    if (first.empty() && member.offset > 0 && member.encoding == Encoding::raw && member.stored > 0) {
      first = io::text_of(source_, member.offset, std::min<std::uint64_t>(kFirst, member.stored));
    }
    const std::lock_guard lock(mutex_);
    if (core::may_be_pickle(member.name, first)) pickles_.push_back(i);
    if (wrong) out_.push_back(*std::move(wrong));
  }

  static constexpr std::size_t kFirst = 8;  // bytes by which a pickle is known

  const Source& source_;
  const Coverage content_;
  const Context& context_;
  std::vector<Finding>& out_;
  core::Zip zip_;
  core::Draft names_;
  std::vector<std::uint32_t> order_, pickles_;
  std::mutex mutex_;
};

// A bool of a compressed member among other elements.
void check_cut_bools(const Tensor& tensor, const Part& part, const core::Cut& cut, const Context& context,
                     std::vector<Finding>& out) {
  std::uint64_t at = 0;
  const auto look = [&](std::span<const std::byte> piece) {
    const auto bad = std::ranges::find_if(piece, [](std::byte b) { return b > std::byte{1}; });
    if (bad == piece.end()) {
      at += piece.size();
      return true;
    }
    at += static_cast<std::uint64_t>(bad - piece.begin());
    out.push_back(core::Findings::make(rules::kBoolByte, {.offset = part.extent()->offset, .tensor = tensor.name()},
                                       "0 or 1", std::to_integer<unsigned>(*bad), {"element ", at}));
    return false;
  };
  try {
    core::stream_cut(part, cut, context, look);
  } catch (const Error& error) {
    if (error.kind() == Kind::io) throw;
    // The check of the member reports that it cannot be decoded.
  }
}

constexpr std::uint64_t kLook = 4096;  // as detection does

// Whether the model's file, or one of the files of its folder, may be a checkpoint.
bool may_be_checkpoint(const Source& source, std::string_view head, bool alone) {
  return source.size() > 0 &&
         (alone || form_of(head) != Form::pickle || is_pickle(head, source.size(), source.extension()));
}

}  // namespace

void check_content(const Model& model, const Context& context, core::Findings& findings) {
  std::vector<Finding> of_parts;
  std::vector<core::PartJob> bools;
  for (const Tensor& tensor : model)
    for (const Part& part : tensor.parts()) {
      if (part.dtype() != DType::boolean || !part.extent() || tensor.unsupported() != nullptr) continue;
      if (const auto cut = core::cut_of(part)) {
        check_cut_bools(tensor, part, *cut, context, of_parts);
        continue;
      }
      core::PartJob job;
      job.tensor = tensor;
      job.part = part;
      job.bool_rule = &rules::kBoolByte;
      bools.push_back(job);
    }
  const auto sources = model.sources();
  std::vector<std::shared_ptr<const Source>> near(sources.size());
  std::vector<std::unique_ptr<Pass>> passes(sources.size());
  std::vector<std::vector<Finding>> found(sources.size());
  std::uint64_t total = core::stored_bytes(bools) + core::sparse_bytes(model);
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const std::string head = io::head_of(*sources[i], kLook);
    if (!may_be_checkpoint(*sources[i], head, sources.size() == 1)) continue;
    if (form_of(head) == Form::archive) {
      near[i] = io::cached(sources[i]);
      passes[i] = std::make_unique<Pass>(*near[i], Coverage::all, context, found[i]);
      total += passes[i]->plan();
    } else {
      core::PickleScan(context, kPickleRules, found[i]).file(*sources[i]);
    }
  }
  core::Progress progress(context, total);
  for (const auto& pass : passes)
    if (pass) pass->run(progress);
  core::check_parts(bools, context, progress, of_parts);
  constexpr core::SparseRules kSparse{rules::kIndptr, rules::kIndexRange, rules::kDuplicateEntries,
                                      rules::kDuplicatesUnchecked};
  core::check_sparse(model, kSparse, context, progress, of_parts);
  progress.finish();
  if (sources.size() == 1) std::move(of_parts.begin(), of_parts.end(), std::back_inserter(found[0]));
  for (std::size_t i = 0; i < sources.size(); ++i) {
    core::Findings to = sources.size() == 1 ? findings : findings.in(sources[i]);
    core::report_sorted(std::move(found[i]), to);
  }
  if (sources.size() == 1) return;
  core::report_sorted(std::move(of_parts), findings);
}

void check_pickles(const Source& source, const Context& context, core::Findings& findings) {
  std::vector<Finding> found;
  const std::string head = io::head_of(source, kLook);
  if (form_of(head) == Form::archive) {
    Pass pass(source, Coverage::pickles, context, found);
    pass.plan();
    core::Progress progress(context, 0);
    pass.run(progress);
  } else if (core::packing_of(head.substr(0, core::kPackingHead)).name.empty()) {
    core::PickleScan(context, kPickleRules, found).file(source);
  } else {
    core::PickleScan(context, kPickleRules, found).packed_file(source);
  }
  core::report_sorted(std::move(found), findings);
}

}  // namespace weighbridge::pytorch
