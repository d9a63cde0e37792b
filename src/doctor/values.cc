// SPDX-License-Identifier: Apache-2.0
// Tensors with NaN or infinity, and bytes that belong to no tensor.
#include <algorithm>
#include <mutex>

#include "codecs/stats.h"
#include "core/archive/zip.h"
#include "core/model/coded.h"
#include "core/model/progress.h"
#include "core/payload/content.h"
#include "core/payload/dense.h"
#include "core/payload/payload.h"
#include "core/payload/work.h"
#include "core/reading/findings.h"
#include "doctor/damage.h"
#include "io/read.h"

namespace weighbridge::doctor {
namespace {

bool may_be_odd(const Tensor& tensor) {
  const DTypeKind kind = info(tensor.dtype()).kind;
  return tensor.unsupported() == nullptr && core::coded(tensor) == nullptr &&
         (kind == DTypeKind::real || kind == DTypeKind::complex);
}

// Masks add an infinity to what they hide.
bool is_mask(std::string_view name) { return name.find("mask") != name.npos; }

constexpr std::uint64_t kMaxPadding = std::uint64_t{64} << 10;  // of onnx: pages of Windows

// Whether a range fills up to a multiple of what writers align to: elements and cache lines, and pages of 4, 16, 64
// KiB.
bool aligns(std::uint64_t begin, std::uint64_t end) {
  for (std::uint64_t to = 2; to <= kMaxPadding; to *= 2)
    if ((to <= 4096 || to == 16384 || to == kMaxPadding) && base::align_up(begin, to) == end) return true;
  return false;
}

// The bytes of a range that no extent covers, without padding: zeros, and with `aligned` only as many as align a
// tensor.
std::uint64_t uncovered(const Source& source, const ByteRange& range, const std::vector<ByteRange>& sorted,
                        bool aligned) {
  std::uint64_t out = 0, at = range.offset;
  const std::uint64_t end = range.offset + range.length;
  const auto gap = [&](std::uint64_t until) {
    if (until <= at) return;
    const std::uint64_t length = until - at;
    if (length > kMaxPadding || (aligned && !aligns(at, until)) ||
        io::text_of(source, at, length).find_first_not_of('\0') != std::string::npos)
      out += length;
  };
  for (auto next = std::ranges::lower_bound(sorted, range.offset, {}, &ByteRange::offset); next != sorted.end();
       ++next) {
    if (next->offset >= end) break;
    gap(next->offset);
    at = std::max(at, next->offset + next->length);
  }
  gap(end);
  return out;
}

}  // namespace

std::vector<NotFinite> find_not_finite(const Model& model, const Context& context) {
  core::Work work;
  std::uint64_t total = 0;
  std::vector<std::uint32_t> tensors;
  for (std::uint32_t i = 0; i < model.size(); ++i)
    if (may_be_odd(model[i])) {
      tensors.push_back(i);
      core::is_sparse(model[i]) ? work.add(model[i].main()) : work.add_dense(model[i]);
      total += model[i].main().size();
    }
  if (work.excess(context.limits)) return {{.tensor = std::string(model.name(tensors[0])), .unread = true}};
  core::Progress progress(context, total);
  std::vector<NotFinite> found(tensors.size());
  core::executor_of(context).for_each(tensors.size(), [&](std::uint64_t i) {
    const Tensor tensor = model[tensors[base::to_size(i)]];
    NotFinite& out = found[base::to_size(i)];
    out.tensor = tensor.name();
    codecs::StatsAccumulator seen(tensor.dtype());
    const Context inner = progress.inner();
    const auto look = [&](std::span<const std::byte> piece) {
      seen.update(piece);
      progress.add(piece.size());
      return true;
    };
    try {  // the zeros of a sparse tensor are finite
      core::is_sparse(tensor) ? tensor.main().stream(inner, look) : tensor.stream_dense(tensor.dtype(), inner, look);
    } catch (const Error& error) {
      if (error.kind() == Kind::io) throw;
      out.unread = true;  // verify() has reported it, or a limit forbids it
      return;
    }
    const codecs::Statistics stats = seen.finish();
    out.nans = stats.nan;
    out.infinities = is_mask(tensor.name()) ? 0 : stats.infinite;
  });
  progress.finish();
  std::erase_if(found, [](const NotFinite& each) { return each.nans + each.infinities == 0 && !each.unread; });
  return found;
}

std::vector<Unused> find_unused(const Model& model, const Context& context) {
  const bool archive = model.format() == "pytorch";
  if (!archive && model.format() != "onnx") return {};
  const auto sources = model.sources();
  std::vector<std::vector<ByteRange>> covered(sources.size());
  for (const Tensor& tensor : model)
    for (const Part& part : tensor.parts()) {
      const auto extent = part.extent();
      if (!extent || extent->source >= sources.size()) return {};  // computed, or another place
      covered[extent->source].push_back({extent->offset, extent->length});
    }
  std::vector<Unused> out;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const Source& source = *sources[i];
    std::vector<ByteRange> ranges;
    core::Draft names;
    if (!archive) {
      if (i > 0) ranges.push_back({0, source.size()});
    } else if (io::head_of(source, core::kZipMember.size()) == core::kZipMember) {
      for (const core::ZipMember& member : core::read_zip_again(source, context.limits, core::kQuietZip, names).members)
        if (member.name.find("/data/") != member.name.npos && !member.broken)
          ranges.push_back({member.offset, member.stored});
    }
    std::ranges::sort(covered[i], {}, &ByteRange::offset);
    Unused unused{.file = std::string(source.name())};
    for (const ByteRange& range : ranges) {
      unused.bytes += uncovered(source, range, covered[i], !archive);
      unused.of += range.length;
    }
    if (unused.bytes > 0) out.push_back(std::move(unused));
  }
  return out;
}

}  // namespace weighbridge::doctor
