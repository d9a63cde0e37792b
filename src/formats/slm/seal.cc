// SPDX-License-Identifier: Apache-2.0
// Seals a file.
#include "formats/slm/payload.h"

#include "base/endian.h"
#include "base/fail.h"
#include "formats/slm/content.h"
#include "formats/slm/layout.h"

namespace weighbridge::slm_format {
namespace {

// The written file as the Source that sum_payload() reads.
class Written final : public Source {
 public:
  explicit Written(const core::WrittenFile& file) : file_(file) {}
  std::uint64_t size() const noexcept override { return file_.size; }
  void read_at(std::uint64_t offset, std::span<std::byte> out) const override { file_.read(offset, out); }
  std::string_view name() const noexcept override { return "<output>"; }

 private:
  const core::WrittenFile& file_;
};

}  // namespace

void seal(const Sealed& sealed, const core::WrittenFile& file) {
  const Written source(file);
  const PayloadSums sums = sum_payload(source, sealed.ranges, {});
  if (!sums.bad.empty()) throw Error(bad_value_finding(sums.bad[0], source, sealed.names[sums.bad[0].tensor]));
  if (sums.checksum == 0)
    base::misuse("checksum",
                 "the checksum of the output comes out as 0, which an .slm cannot hold: "
                 "another order of tensors gives another one");
  std::byte bytes[kChecksumSize];
  base::store_le(bytes, sums.checksum);
  file.write(kChecksumAt, bytes);
}

}  // namespace weighbridge::slm_format
