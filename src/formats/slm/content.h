// SPDX-License-Identifier: Apache-2.0
// The rules that need the whole file: the file checksum, finite values, positive scales (reading M2). Also owns the
// seeds of the checksums, and the explanation of a mismatch.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "codecs/indexed_checksum.h"
#include "core/model/draft.h"
#include "core/reading/findings.h"
#include "weighbridge/context.h"
#include "weighbridge/source.h"

namespace weighbridge::slm_format {

// The content rules of SLM over a file that arrives in pieces: every f32 value is finite, every scale finite and
// positive. Each byte is checked once per rule, however many directory entries refer to it (reading G13). Only the
// first bad value of a range is reported.

enum class ValueRule : std::uint8_t { finite, positive };

// f32 values in the file that must all satisfy a rule. `tensor` is for the caller's use.
struct ValueRange {
  std::uint64_t offset = 0, length = 0;  // length is a multiple of 4
  std::uint32_t tensor = 0;
  ValueRule rule = ValueRule::finite;
};
struct BadValue {
  std::uint64_t offset = 0;
  std::uint32_t tensor = 0;
  ValueRule rule = ValueRule::finite;
};

class ValueScan {
 public:
  // A piece must repeat this many bytes of the previous one, because a value may straddle two pieces.
  static constexpr std::uint64_t kCarry = 3;

  explicit ValueScan(std::vector<ValueRange> ranges);
  // Pieces must come in file order without gaps; `offset` is that of the first byte.
  void piece(std::uint64_t offset, std::span<const std::byte> bytes);
  // The first bad value of each range that has one, by offset, then tensor.
  std::vector<BadValue> take();

 private:
  // The ranges of one rule whose offsets have the same remainder modulo 4, so that one walk covers all of them.
  struct Lane {
    ValueRule rule = ValueRule::finite;
    std::vector<ValueRange> ranges;     // sorted by offset
    std::size_t first = 0, opened = 0;  // [first, opened) have begun and have no bad value so far
    std::uint64_t at = 0, open_end = 0;
  };
  void open(Lane&, std::uint64_t before);
  void walk(Lane&, std::uint64_t offset, std::span<const std::byte> bytes);
  void blame(Lane&, std::uint64_t offset);

  std::vector<Lane> lanes_;
  std::vector<BadValue> bad_;
};

// The result of one pass over a file: its checksum with bytes 100..108 as zero, and the first bad value of each range.
struct PayloadSums {
  std::uint64_t checksum = 0;
  std::vector<BadValue> bad;
};
// [reads] With two threads, one computes the serial checksum while the other reads ahead and checks values, so the
// checksum alone limits the speed. The file must have at least a header. Throws Error{io}, Cancelled.
PayloadSums sum_payload(const Source&, std::vector<ValueRange> ranges, const Context&,
                        codecs::ChecksumForm = codecs::ChecksumForm::add);

// Does that pass for a file that was read, and reports its findings: the checksum first, then values by offset.
// `stated` is the header's checksum; the walker has already reported a 0. Throws Error{io}, Cancelled, core::Stop.
void check_payload(const core::Draft&, const Source&, std::uint64_t stated, const Context&, core::Findings&);

// The finding of a bad value.
Finding bad_value_finding(const BadValue&, const Source&, std::string_view tensor);

// The checksums of an .slm file ("File Checksum", "Tokenizer Checksum"): the seeds, and the explanation of a mismatch.
// codecs/indexed_checksum.h has the function and describes what the specification leaves open about it.

using codecs::checksum_text, codecs::ChecksumForm;
using Checksum = codecs::IndexedChecksum;
inline constexpr std::uint64_t kFileSeed = codecs::kSlmFileSeed;

inline std::uint64_t tokenizer_checksum(std::string_view section, ChecksumForm form = ChecksumForm::add) noexcept {
  return codecs::indexed_checksum(std::as_bytes(std::span(section)), codecs::kSlmTokenizerSeed, form);
}

// If the checksum does not match, files up to this size are summed again in the other forms.
inline constexpr std::uint64_t kMaxForOtherForms = std::uint64_t{64} << 20;
// [reads] The form other than `taken` that gives `stated` for this file, with bytes 100..108 as zero; null if none
// does. The message names it, because another writer may use that form. The file stays invalid unless the caller asks
// for it.
const codecs::NamedChecksumForm* other_form(const Source&, std::uint64_t stated, ChecksumForm taken);

}  // namespace weighbridge::slm_format
