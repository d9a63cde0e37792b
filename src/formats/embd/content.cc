// SPDX-License-Identifier: Apache-2.0
// The two content rules of EMBD (reading E1): the checksums of the tensor data and of the file.
#include "base/checked.h"
#include "core/draft.h"
#include "core/progress.h"
#include "formats/embd/format.h"
#include "formats/embd/layout.h"
#include "formats/embd/metadata.h"

namespace weighbridge::embd {

void check_content(const Model& model, const Context& context, core::Findings& findings) {
  const std::string_view kept = core::retained_header(model);
  // The reader keeps header and footer in front of the index, unless they were too broken to use.
  if (kept.size() < kHeaderSize + kFooterSize) return;
  const Header header = base::load_record<Header>(kept.data());
  const Footer footer = base::load_record<Footer>(kept.data() + kHeaderSize);
  const std::shared_ptr<const Source> held = model.sources()[0];
  const Source& source = *held;
  const std::uint64_t end = source.size() - kFooterSize;
  if ((header.flags & kChecksumEnabled) == 0 ||
      !base::fits(header.tensor_data_offset, header.tensor_data_size, end))  // which opening reported
    return;
  core::Progress progress(context, end);
  const Sums sums = sum(
      {header.tensor_data_offset, header.tensor_data_offset + header.tensor_data_size, end},
      [&](std::uint64_t offset, std::span<std::byte> out) { source.read_at(offset, out); }, core::executor_of(context),
      progress);
  progress.finish();
  if (sums.data != footer.data_checksum)
    findings.report(rules::kDataChecksum, {.offset = end}, crc_text(footer.data_checksum), crc_text(sums.data));
  if (sums.file != footer.file_checksum)
    findings.report(rules::kFileChecksum, {.offset = end + 4}, crc_text(footer.file_checksum), crc_text(sums.file));
}

}  // namespace weighbridge::embd
