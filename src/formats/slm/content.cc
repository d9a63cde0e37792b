// SPDX-License-Identifier: Apache-2.0
// The one pass over the file for its checksum and values.
#include "formats/slm/content.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <string>
#include <tuple>

#include "base/checked.h"
#include "base/endian.h"
#include "core/model/progress.h"
#include "formats/slm/format.h"
#include "formats/slm/header.h"
#include "formats/slm/layout.h"
#include "io/read.h"

namespace weighbridge::slm_format {
namespace {

// Size of a piece; two are in memory. With two threads, a piece is large enough to make the handover cheap. With one,
// it stays in the cache while it is read, checked and summed.
constexpr std::size_t kSharedPiece = std::size_t{1} << 20, kOwnPiece = std::size_t{1} << 17;

// Adds the range of a stored part if a rule applies to its values. Codes may be any byte.
void add_range(std::uint32_t tensor, Layout layout, DType dtype, const Extent& extent, std::vector<ValueRange>& out) {
  if (dtype != DType::f32) return;
  const bool scales = layout != Layout::dense;
  out.push_back({extent.offset, extent.length, tensor, scales ? ValueRule::positive : ValueRule::finite});
}

class Pass {
 public:
  Pass(const Source& source, std::vector<ValueRange> ranges, const Context& context, ChecksumForm form)
      : source_(source),
        executor_(core::executor_of(context)),
        progress_(context, source.size()),
        piece_(io::piece_of(source, executor_.concurrency() > 1 ? kSharedPiece : kOwnPiece)),
        scan_(std::move(ranges)),
        sum_(kFileSeed, form) {
    const auto size = static_cast<std::size_t>(std::min(piece_, source.size()) + ValueScan::kCarry);
    for (auto& buffer : buffers_) buffer = std::make_unique_for_overwrite<std::byte[]>(size);
  }

  void run() {
    const std::uint64_t pieces = (source_.size() + piece_ - 1) / piece_;
    if (pieces > 0) prepare(0);
    for (std::uint64_t i = 0; i < pieces; ++i) {
      executor_.for_each(i + 1 < pieces ? 2 : 1, [&](std::uint64_t task) {
        if (task == 0)
          sum_.update(piece(i));
        else
          prepare(i + 1);
      });
      progress_.add(length(i));
    }
    progress_.finish();
  }

  std::uint64_t checksum() const noexcept { return sum_.value(); }
  std::vector<BadValue> bad_values() { return scan_.take(); }

 private:
  std::uint64_t length(std::uint64_t i) const noexcept { return std::min(piece_, source_.size() - i * piece_); }
  // A buffer begins with the bytes that it repeats from the previous piece.
  std::span<std::byte> piece(std::uint64_t i) noexcept {
    return {buffers_[i & 1].get() + ValueScan::kCarry, base::to_size(length(i))};
  }

  void prepare(std::uint64_t i) {
    const std::span<std::byte> bytes = piece(i);
    source_.read_at(i * piece_, bytes);
    std::uint64_t carry = 0;
    if (i == 0) {
      std::ranges::fill(bytes.subspan(kChecksumAt, kChecksumSize), std::byte{0});
    } else {
      carry = ValueScan::kCarry;
      std::memcpy(bytes.data() - carry, piece(i - 1).last(ValueScan::kCarry).data(), ValueScan::kCarry);
    }
    scan_.piece(i * piece_ - carry, {bytes.data() - carry, bytes.size() + static_cast<std::size_t>(carry)});
  }

  const Source& source_;
  Executor& executor_;
  core::Progress progress_;
  const std::uint64_t piece_;
  ValueScan scan_;
  Checksum sum_;
  std::unique_ptr<std::byte[]> buffers_[2];
};

void report_checksum(const Source& source, std::uint64_t stated, ChecksumForm taken, std::uint64_t computed,
                     core::Findings& findings) {
  core::At where{.offset = kChecksumAt};
  std::string detail;
  if (source.size() <= kMaxForOtherForms) {
    if (const auto* const form = other_form(source, stated, taken)) {
      detail = "it is that of the form \"" + std::string(form->name) + "\", " + std::string(form->formula);
      where.hint = {Hint::What::option, "checksum-form", std::string(form->name)};
    }
  }
  findings.report(rules::kChecksum, std::move(where), checksum_text(computed), checksum_text(stated), detail);
}

// Checks values piece by piece.

constexpr std::uint32_t kInfinity = 0x7f800000U;

constexpr bool bad(ValueRule rule, std::uint32_t bits) noexcept {
  // Positive and finite are the patterns 1 to kInfinity - 1: one unsigned comparison.
  return rule == ValueRule::finite ? (bits & kInfinity) == kInfinity : bits - 1 >= kInfinity - 1;
}

// The index of the first bad value, or `count`. Checks whole blocks without branches, so that the compiler vectorizes
// the loop.
template <ValueRule rule> std::uint64_t first_bad(const std::byte* values, std::uint64_t count) noexcept {
  constexpr std::uint64_t kBlock = 64;
  std::uint64_t i = 0;
  for (; count - i >= kBlock; i += kBlock) {
    std::uint32_t any = 0;
    for (std::uint64_t k = 0; k < kBlock; ++k)
      any |= bad(rule, base::load_le<std::uint32_t>(values + 4 * (i + k))) ? 1U : 0U;
    if (any != 0) break;
  }
  while (i < count && !bad(rule, base::load_le<std::uint32_t>(values + 4 * i))) ++i;
  return i;
}

}  // namespace

PayloadSums sum_payload(const Source& source, std::vector<ValueRange> ranges, const Context& context,
                        ChecksumForm form) {
  Pass pass(source, std::move(ranges), context, form);
  pass.run();
  return {pass.checksum(), pass.bad_values()};
}

Finding bad_value_finding(const BadValue& bad, const Source& source, std::string_view tensor) {
  std::byte bytes[4];
  source.read_at(bad.offset, bytes);
  const float value = std::bit_cast<float>(base::load_le<std::uint32_t>(bytes));
  return core::Findings::make(bad.rule == ValueRule::finite ? rules::kNotFinite : rules::kScaleValue,
                              {.offset = bad.offset, .tensor = tensor}, {}, Value::real(value, DType::f32).to_text());
}

// `names` returns the name of a tensor.
void check_ranges(std::vector<ValueRange> ranges, const auto& names, const Source& source, std::uint64_t stated,
                  ChecksumForm form, const Context& context, core::Findings& findings) {
  const PayloadSums sums = sum_payload(source, std::move(ranges), context, form);
  if (stated != 0 && stated != sums.checksum) report_checksum(source, stated, form, sums.checksum, findings);
  for (const BadValue& bad : sums.bad) {
    if (findings.errors() < Report::kMaxFindings)
      findings.report(bad_value_finding(bad, source, names.name(bad.tensor)));
    else  // beyond the limit, errors are only counted
      findings.report(bad.rule == ValueRule::finite ? rules::kNotFinite : rules::kScaleValue, {});
  }
}

void check_payload(const core::Draft& draft, const Source& source, std::uint64_t stated, const Context& context,
                   core::Findings& findings) {
  std::vector<ValueRange> ranges;
  draft.for_each_stored([&](std::uint32_t tensor, Layout layout, DType dtype, const Extent& extent) {
    add_range(tensor, layout, dtype, extent, ranges);
  });
  check_ranges(std::move(ranges), draft, source, stated, draft.checksum_form, context, findings);
}

void check_content(const Model& model, const Context& context, core::Findings& findings) {
  if (model.checked() || model.sources().empty()) return;
  const std::shared_ptr<const Source> held = model.sources()[0];
  const Source& source = *held;
  std::vector<ValueRange> ranges;
  for (const Tensor& tensor : model)
    for (const Part& part : tensor.parts())
      add_range(tensor.index(), tensor.layout(), part.dtype(), *part.extent(), ranges);
  const ChecksumForm form = codecs::checksum_form(model.checksum_form()).value_or(ChecksumForm::add);
  check_ranges(std::move(ranges), model, source, io::record_of<Header>(source, 0).checksum, form, context, findings);
}

// Looks for the form of a checksum.

const codecs::NamedChecksumForm* other_form(const Source& source, std::uint64_t stated, ChecksumForm taken) {
  std::vector<Checksum> sums;
  for (const auto& known : codecs::kChecksumForms) sums.emplace_back(kFileSeed, known.form);
  io::read_pieces(source, 0, source.size(), [&](std::uint64_t at, std::span<std::byte> piece) {
    if (at == 0) std::ranges::fill(piece.subspan(kChecksumAt, kChecksumSize), std::byte{0});
    for (Checksum& sum : sums) sum.update(piece);
    return true;
  });
  for (std::size_t i = 0; i < sums.size(); ++i)
    if (codecs::kChecksumForms[i].form != taken && sums[i].value() == stated) return &codecs::kChecksumForms[i];
  return nullptr;
}

ValueScan::ValueScan(std::vector<ValueRange> ranges) {
  std::ranges::stable_sort(ranges, {}, [](const ValueRange& r) { return std::tuple(r.rule, r.offset % 4, r.offset); });
  for (const ValueRange& range : ranges) {
    if (range.length == 0) continue;
    const bool same = !lanes_.empty() && lanes_.back().rule == range.rule &&
                      lanes_.back().ranges.front().offset % 4 == range.offset % 4;
    if (!same) lanes_.push_back({.rule = range.rule, .ranges = {}});
    lanes_.back().ranges.push_back(range);
  }
}

void ValueScan::piece(std::uint64_t offset, std::span<const std::byte> bytes) {
  for (Lane& lane : lanes_) walk(lane, offset, bytes);
}

void ValueScan::open(Lane& lane, std::uint64_t before) {
  while (lane.opened < lane.ranges.size() && lane.ranges[lane.opened].offset < before) {
    const ValueRange& range = lane.ranges[lane.opened++];
    lane.open_end = std::max(lane.open_end, range.offset + range.length);
  }
}

void ValueScan::walk(Lane& lane, std::uint64_t offset, std::span<const std::byte> bytes) {
  const std::uint64_t end = offset + bytes.size();
  while (lane.first < lane.ranges.size()) {
    if (lane.first == lane.opened) {  // no open range: continue where the next one begins
      lane.at = std::max(lane.at, lane.ranges[lane.opened].offset);
      if (lane.at >= end) return;
      open(lane, lane.at + 1);
    }
    if (lane.at >= lane.open_end) {
      lane.first = lane.opened;
      continue;
    }
    const std::uint64_t count = (std::min(lane.open_end, end) - lane.at) / 4;
    const std::byte* const values = bytes.data() + (lane.at - offset);
    const std::uint64_t good = lane.rule == ValueRule::finite ? first_bad<ValueRule::finite>(values, count)
                                                              : first_bad<ValueRule::positive>(values, count);
    lane.at += 4 * good;
    open(lane, lane.at + 1);  // ranges that began on the way
    if (good < count) {
      blame(lane, lane.at);
      lane.at += 4;
    } else if (lane.at < lane.open_end && end - lane.at < 4) {
      return;  // the rest, perhaps part of a value, is repeated at the start of the next piece
    }
  }
}

void ValueScan::blame(Lane& lane, std::uint64_t offset) {
  for (; lane.first < lane.opened; ++lane.first) {
    const ValueRange& range = lane.ranges[lane.first];
    if (offset - range.offset < range.length) bad_.push_back({offset, range.tensor, lane.rule});
  }
}

std::vector<BadValue> ValueScan::take() {
  std::ranges::sort(bad_, {}, [](const BadValue& b) { return std::tuple(b.offset, b.rule, b.tensor); });
  return std::move(bad_);
}

}  // namespace weighbridge::slm_format
