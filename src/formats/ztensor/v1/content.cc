// SPDX-License-Identifier: Apache-2.0
// The content rules of zTensor 1.x: digests, zstd frames and bools in one pass over the payload, then the index parts
// of sparse tensors, then the bytes between the components.
#include <algorithm>
#include <memory>
#include <vector>

#include "base/checked.h"
#include "core/model/draft.h"
#include "core/payload/content.h"
#include "core/payload/extents.h"
#include "formats/ztensor/v1/format.h"
#include "formats/ztensor/v1/layout.h"
#include "io/read.h"

namespace weighbridge::ztensor1 {
namespace {

// Checks the bytes between the components: overlaps, gaps, padding that is not zero.
class LayoutPass {
 public:
  LayoutPass(const Model& model, std::vector<Finding>& out) : model_(model), out_(out) {}

  void run() {
    const std::shared_ptr<const Source> held = model_.sources()[0];
    const Source& source = *held;
    const std::uint64_t manifest = source.size() - kFooterSize - core::retained_header(model_).size();
    const core::Sharing owners = core::sharing(model_);
    std::uint64_t end = kMagicSize;
    core::Extents::of(model_).walk([&](const core::Range& range, core::Relation relation, const core::Range*) {
      if (relation == core::Relation::overlap)
        report(rules::kOverlap, range.offset, owners.tensor[range.item], {"the bytes before ", end});
      between(end, std::max(end, range.offset));
      end = std::max(end, range.end());
    });
    between(end, manifest);
    check_padding(source);
  }

 private:
  void report(const Rule& rule, std::uint64_t offset, std::optional<std::uint32_t> tensor, const core::Said& found) {
    core::At at{.offset = offset};
    if (tensor) at.tensor = model_.name(*tensor);
    out_.push_back(core::Findings::make(rule, at, {}, found));
  }

  void between(std::uint64_t begin, std::uint64_t end) {
    if (begin == end) return;
    if (end - begin >= kAlignment)
      report(rules::kGap, begin, std::nullopt, {end - begin, " bytes"});
    else
      holes_.push_back({begin, end - begin});
  }

  // One read covers neighboring holes, including small components between them.
  void check_padding(const Source& source) {
    // In a file, a page costs as much as a call.
    const std::uint64_t maximum = io::piece_of(source, std::size_t{64} << 10), apart = io::piece_of(source, 4096);
    std::vector<std::byte> bytes;
    for (std::size_t first = 0; first < holes_.size();) {
      const std::uint64_t begin = holes_[first].offset;
      std::uint64_t end = begin + holes_[first].length;
      std::size_t last = first + 1;
      for (; last < holes_.size(); ++last) {
        const std::uint64_t next = holes_[last].offset + holes_[last].length;
        if (holes_[last].offset - end > apart || next - begin > maximum) break;
        end = next;
      }
      bytes.resize(base::to_size(end - begin));
      source.read_at(begin, bytes);
      for (; first < last; ++first) {
        const auto hole =
            std::span(bytes).subspan(base::to_size(holes_[first].offset - begin), base::to_size(holes_[first].length));
        const auto bad = std::ranges::find_if(hole, [](std::byte b) { return b != std::byte{0}; });
        if (bad != hole.end())
          report(rules::kPadding, holes_[first].offset + static_cast<std::uint64_t>(bad - hole.begin()), std::nullopt,
                 std::to_integer<unsigned>(*bad));
      }
    }
  }

  struct Hole {
    std::uint64_t offset, length;
  };
  const Model& model_;
  std::vector<Finding>& out_;
  std::vector<Hole> holes_;
};

}  // namespace

void check_share(const Model& model, const Share& share, const Context& context, core::Findings& findings) {
  constexpr core::StatedRules kRules{
      core::parse_digest,
      rules::kDigestRule,
      rules::kZstd,
      &rules::kBool,
      {rules::kIndptr, rules::kIndexRange, rules::kDuplicateEntries, rules::kDuplicatesUnchecked}};
  core::check_stated(model, kRules, share, context, findings, [&](core::Progress&, std::vector<Finding>& found) {
    // If a component is broken, its bytes would look like a gap, so this pass needs an error-free file.
    if (findings.errors() == 0) LayoutPass(model, found).run();
  });
}

}  // namespace weighbridge::ztensor1
