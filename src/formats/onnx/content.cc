// SPDX-License-Identifier: Apache-2.0
// The rules that read tensor data: booleans, numbers that must fit their type, unused bits, the indices of sparse
// tensors, checksums of external files. Another walk over the messages finds the tensors to check.
#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <vector>

#include "base/checked.h"
#include "base/endian.h"
#include "codecs/checksum.h"
#include "core/model/progress.h"
#include "core/model/words.h"
#include "core/payload/content.h"
#include "formats/onnx/format.h"
#include "formats/onnx/walk.h"
#include "io/read.h"

namespace weighbridge::onnx {
namespace {

// The first value whose indices do not follow those of the previous one in row-major order.
void check_order(const Tensor& tensor, const Context& context, std::vector<Finding>& out) {
  const auto coords = tensor.part(core::kCoords);
  const auto values = tensor.part(core::kValues);
  const std::uint64_t count = values ? values->count() : 0;
  // The positions so far, computed dimension by dimension in bounded memory.
  if (!coords || count < 2 || count > context.limits.memory / 8) return;
  std::vector<std::uint64_t> linear(base::to_size(count));
  const Shape shape = tensor.shape();
  std::uint64_t i = 0;
  bool inside = true;
  coords->stream(context, [&](std::span<const std::byte> piece) {
    for (; piece.size() >= 8; piece = piece.subspan(8), ++i) {
      const auto d = base::to_size(i / count);
      std::uint64_t& at = linear[base::to_size(i % count)];
      const auto index = base::load_le<std::uint64_t>(piece.data());
      inside = inside && index < shape[d];
      at = at * shape[d] + index;
    }
    return inside;
  });
  if (!inside) return;  // reported as an error already
  const auto bad = std::ranges::adjacent_find(linear, std::ranges::greater{});
  if (bad != linear.end())
    out.push_back(core::Findings::make(rules::kIndexOrder, {.tensor = tensor.name()}, {}, {},
                                       {"value ", bad - linear.begin() + 1}));
}

// Elements of 4 or 2 bits need not fill the last byte.
void check_spare_bits(const Tensor& tensor, const Context& context, std::vector<Finding>& out) {
  const std::uint32_t bits = info(tensor.dtype()).bits;
  if (tensor.layout() != Layout::dense || tensor.unsupported() || bits == 0 || 8 % bits != 0) return;
  const Part part = tensor.main();
  const std::uint64_t rest = part.count() % (8 / bits);
  if (rest == 0) return;
  std::array<std::byte, 1> last{};
  part.read_range(part.count() - rest, rest, last, context);
  if (const auto spare = std::to_integer<unsigned>(last[0]) >> (rest * bits); spare != 0)
    out.push_back(core::Findings::make(rules::kSpareBits, {.tensor = tensor.name()}, "0", spare));
}

void check_checksums(const std::vector<StatedChecksum>& stated, core::Progress& progress, std::vector<Finding>& out) {
  std::map<const Source*, std::string> digests;
  for (const StatedChecksum& each : stated) {
    auto [found, is_new] = digests.try_emplace(each.file.get());
    if (is_new) {
      codecs::Sha1 sum;
      io::read_pieces(*each.file, 0, each.file->size(), [&](std::uint64_t, std::span<const std::byte> piece) {
        sum.update(piece);
        progress.add(piece.size());
        return true;
      });
      found->second = codecs::to_hex(sum.finish());
    }
    std::string lower = each.digits;
    for (char& c : lower) c = c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c;
    if (lower != found->second)
      out.push_back(core::Findings::make(rules::kExternalChecksum, {.offset = each.at, .tensor = each.tensor},
                                         core::excerpted(each.digits), found->second,
                                         core::excerpted(each.location, 200)));
  }
}

}  // namespace

void check_content(const Model& model, const Context& context, core::Findings& findings) {
  // Opening the file has reported errors in the messages.
  Report report;
  core::Findings ignored(report, core::Findings::Mode::all);
  core::Draft draft;
  const std::shared_ptr<const Source> source = model.sources()[0];
  draft.add_source(source);
  const Walked all = walk(*source, context, ignored, draft, {.content = true});

  std::vector<core::PartJob> jobs;
  for (const Tensor& tensor : model)
    if (tensor.layout() == Layout::dense && tensor.dtype() == DType::boolean && !tensor.unsupported() &&
        tensor.main().extent()) {
      core::PartJob job;
      job.tensor = tensor;
      job.part = tensor.main();
      job.bool_rule = &rules::kBoolByte;
      jobs.push_back(job);
    }
  std::uint64_t total = core::stored_bytes(jobs) + core::sparse_bytes(model);
  std::vector<const Source*> files;
  for (const StatedChecksum& each : all.checksums)
    if (std::ranges::find(files, each.file.get()) == files.end()) {
      files.push_back(each.file.get());
      total += each.file->size();
    }
  core::Progress progress(context, total);
  const Context quiet = progress.inner();
  std::vector<Finding> found;
  core::check_parts(jobs, context, progress, found);
  constexpr core::SparseRules kSparse{rules::kIndexRange, rules::kIndexRange, rules::kDuplicateEntries,
                                      rules::kUncheckedEntries};
  core::check_sparse(model, kSparse, context, progress, found);
  for (const Tensor& tensor : model) check_spare_bits(tensor, quiet, found);
  for (const Tensor& tensor : model)
    if (tensor.layout() == Layout::sparse_coo && !tensor.unsupported()) check_order(tensor, quiet, found);
  for (const Walked::Typed& each : all.typed)
    if (const auto bad = find_misfit(*source, each.field))
      found.push_back(
          core::Findings::make(each.field.dtype == DType::boolean ? rules::kBoolNumber : rules::kNumberRange,
                               {.offset = each.at, .tensor = each.tensor}, {}, bad->value, {"number ", bad->index}));
  check_checksums(all.checksums, progress, found);
  progress.finish();
  core::report_sorted(std::move(found), findings);
}

}  // namespace weighbridge::onnx
