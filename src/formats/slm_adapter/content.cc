// SPDX-License-Identifier: Apache-2.0
// The rules that read the payloads of a package: their checksum, which is serial over all of them, finite values,
// ascending element numbers and zero padding.
#include <algorithm>
#include <array>
#include <mutex>
#include <vector>

#include "base/checked.h"
#include "base/endian.h"
#include "base/record.h"
#include "codecs/indexed_checksum.h"
#include "core/model/draft.h"
#include "core/model/progress.h"
#include "core/payload/content.h"
#include "formats/slm_adapter/format.h"
#include "io/read.h"

namespace weighbridge::slm_adapter {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 18;  // stays in the cache between its checks

class Pass {
 public:
  Pass(const Model& model, const Context& context)
      : source_(*model.sources()[0]), progress_(context, 2 * source_.size()) {
    quiet_ = progress_.inner();
    header_ = io::record_of<Header>(source_, 0);
    for (std::uint32_t t = 0; t < model.size(); ++t)
      for (std::uint32_t p = 0; p < model[t].part_count(); ++p) parts_.emplace_back(model[t], model[t].part(p));
    core::executor_of(context).for_each(parts_.size() + 1,
                                        [&](std::uint64_t i) { i == 0 ? chain() : part(base::to_size(i - 1)); });
    progress_.finish();
  }

  // The checksum covers the whole file, so it comes first; the rest is sorted by offset and rule.
  void report(core::Findings& findings) {
    for (Finding& finding : whole_) findings.report(std::move(finding));
    core::report_sorted(std::move(found_), findings);
  }

 private:
  // Checks the padding between the directory and the first payload. Opening has checked that it is shorter than the
  // alignment.
  void check_head_padding() {
    const std::uint64_t end = kHeaderSize + kEntrySize * header_.entry_count;
    std::array<std::byte, kAlignment> bytes{};
    const auto gap = std::span(bytes).first(base::to_size(header_.data_offset - end));
    source_.read_at(end, gap);
    check_padding(gap, end);
  }

  void chain() {
    check_head_padding();
    codecs::IndexedChecksum sum;
    std::vector<Extent> extents;
    for (const auto& [tensor, part] : parts_) extents.push_back(*part.extent());
    std::ranges::sort(extents, {}, &Extent::offset);
    std::size_t next = 0;
    std::uint64_t covered = header_.data_offset;  // bytes before it are payload or have been checked
    const auto take = [&](std::uint64_t at, std::span<const std::byte> piece) {
      sum.update(piece);
      const std::uint64_t end = at + piece.size();
      while (covered < end) {
        while (next < extents.size() && extents[next].offset <= covered) {
          covered = std::max(covered, extents[next].offset + extents[next].length);
          ++next;
        }
        if (covered >= end) break;
        const std::uint64_t stop = next < extents.size() ? std::min(end, extents[next].offset) : end;
        check_padding(piece.subspan(base::to_size(covered - at), base::to_size(stop - covered)), covered);
        covered = stop;
      }
      progress_.add(piece.size());
      return true;
    };
    io::read_pieces(source_, header_.data_offset, source_.size(), take, kPiece);
    if (sum.value() != header_.payload_checksum)
      whole_.push_back(core::Findings::make(rules::kPayloadChecksum, {.offset = kPayloadChecksumAt},
                                            codecs::checksum_text(header_.payload_checksum),
                                            codecs::checksum_text(sum.value())));
  }

  void check_padding(std::span<const std::byte> bytes, std::uint64_t offset) {
    const auto at = std::ranges::find_if(bytes, [](std::byte b) { return b != std::byte{0}; });
    if (padding_ || at == bytes.end()) return;  // one finding per file is enough
    padding_ = true;
    add(rules::kPadding, offset + static_cast<std::uint64_t>(at - bytes.begin()), {}, "0", std::to_integer<int>(*at));
  }

  void part(std::size_t i) {
    const Tensor& tensor = parts_[i].first;
    const Part& part = parts_[i].second;
    const std::uint64_t width = info(part.dtype()).bits / 8, begin = part.extent()->offset;
    const std::uint64_t elements = part.dtype() == DType::u64 ? element_count(tensor.shape()) : 0;
    std::uint64_t at = 0, before = 0;
    bool first = true;
    part.stream(quiet_, [&](std::span<const std::byte> piece) {
      for (std::size_t k = 0; k < piece.size(); k += width, at += width) {
        if (part.dtype() == DType::f32) {
          const auto bits = base::load_le<std::uint32_t>(piece.data() + k);
          if ((bits & 0x7f800000U) != 0x7f800000U) continue;
          add(rules::kNotFinite, begin + at, tensor.name(), "a finite value",
              (bits & 0x7fffffU) != 0 ? "NaN" : "infinity");
          return false;  // one finding per payload is enough
        }
        const auto index = base::load_le<std::uint64_t>(piece.data() + k);
        if (index >= elements) {
          add(rules::kIndexRange, begin + at, tensor.name(), {"below ", elements}, index);
          return false;
        }
        if (!first && index <= before) {
          add(rules::kIndexOrder, begin + at, tensor.name(), {"more than ", before}, index);
          return false;
        }
        before = index;
        first = false;
      }
      progress_.add(piece.size());
      return true;
    });
  }

  static std::uint64_t element_count(Shape shape) {
    std::uint64_t count = 1;  // checked on opening
    for (const std::uint64_t d : shape) count *= d;
    return count;
  }

  void add(const Rule& rule, std::uint64_t offset, std::optional<std::string_view> tensor, const core::Said& expected,
           const core::Said& found) {
    const std::lock_guard lock(mutex_);
    found_.push_back(core::Findings::make(rule, {.offset = offset, .tensor = tensor}, expected, found));
  }

  const Source& source_;
  core::Progress progress_;
  Context quiet_;
  Header header_;
  std::vector<std::pair<Tensor, Part>> parts_;
  bool padding_ = false;
  std::mutex mutex_;
  std::vector<Finding> whole_, found_;
};

}  // namespace

void check_content(const Model& model, const Context& context, core::Findings& findings) {
  if (model.size() == 0) return;
  Pass(model, context).report(findings);
}

}  // namespace weighbridge::slm_adapter
