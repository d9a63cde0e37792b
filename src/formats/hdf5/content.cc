// SPDX-License-Identifier: Apache-2.0
// The content rules: chunks decode and match their checksums, booleans are 0 or 1; and in a .keras, each member has its
// CRC-32.
#include <mutex>
#include <vector>

#include "codecs/checksum.h"
#include "core/model/progress.h"
#include "core/payload/content.h"
#include "core/payload/payload.h"
#include "formats/hdf5/format.h"
#include "formats/hdf5/walk.h"
#include "io/caching_source.h"

namespace weighbridge::hdf5 {
namespace {

// Streams computed tensors, several at once.
void check_computed(const Model& model, const Context& context, std::vector<Finding>& out) {
  std::vector<Part> parts;
  std::vector<std::string_view> names;
  std::uint64_t total = 0;
  for (const Tensor& tensor : model) {
    if (tensor.part_count() != 1 || tensor.main().encoding() != Encoding::computed) continue;
    parts.push_back(tensor.main());
    names.push_back(tensor.name());
    total += tensor.main().size();
  }
  core::Progress progress(context, total);
  std::mutex mutex;
  core::executor_of(context).for_each(parts.size(), [&](std::uint64_t i) {
    const auto at = static_cast<std::size_t>(i);
    try {
      parts[at].stream(progress.inner(), [&](std::span<const std::byte> piece) {
        progress.add(piece.size());
        return true;
      });
    } catch (const Error& error) {
      if (error.kind() != Kind::malformed && error.kind() != Kind::limit) throw;
      Finding finding = error.finding();
      if (finding.message.starts_with(kNeverWritten)) return;  // too large to read, but with no bytes to check
      finding.tensor = names[at];
      finding.has_tensor = true;
      const std::lock_guard lock(mutex);
      out.push_back(std::move(finding));
    }
  });
  progress.finish_pass();
}

void check_bools(const Model& model, const Rule& rule, const Context& context, std::vector<Finding>& out) {
  std::vector<core::PartJob> jobs;
  for (const Tensor& tensor : model)
    if (tensor.dtype() == DType::boolean && tensor.part_count() == 1 && tensor.main().encoding() == Encoding::raw) {
      core::PartJob job;
      job.tensor = tensor;
      job.part = tensor.main();
      job.bool_rule = &rule;
      jobs.push_back(job);
    }
  core::check_parts(jobs, context, out);
}

void check_members(const Model& model, const Context& context, std::vector<Finding>& out) {
  const auto near = io::cached(model.sources()[0]);
  const Source& source = *near;
  core::Draft names;
  const core::Zip zip = core::read_zip_again(source, context.limits, kZipRules, names);
  std::uint64_t total = 0;
  for (const core::ZipMember& member : zip.members) total += member.stored;
  core::Progress progress(context, total);
  for (const core::ZipMember& member : zip.members) {
    if (!core::can_check(member, context.limits)) continue;
    constexpr core::ZipMemberRules kRules{.encoding = keras::kCrc, .crc = keras::kCrc};
    if (auto wrong = core::check_zip_member(source, member, kRules, {.offset = member.offset}, progress))
      out.push_back(*std::move(wrong));
  }
  progress.finish();
}

}  // namespace

void check_h5(const Model& model, const Context& context, core::Findings& findings) {
  std::vector<Finding> found;
  check_bools(model, h5::kBoolByte, context, found);
  check_computed(model, context, found);
  core::report_sorted(std::move(found), findings);
}

void check_keras(const Model& model, const Context& context, core::Findings& findings) {
  std::vector<Finding> found;
  check_members(model, context, found);
  check_bools(model, keras::kBoolByte, context, found);
  check_computed(model, context, found);
  core::report_sorted(std::move(found), findings);
}

}  // namespace weighbridge::hdf5
