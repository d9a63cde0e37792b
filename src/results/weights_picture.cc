// SPDX-License-Identifier: Apache-2.0
// Draws the values of each tensor of a model as a small histogram: which tensors are drawn, and what is written beside.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "results/svg.h"
#include "weighbridge/picture.h"

namespace weighbridge {
namespace {

constexpr std::size_t kMaxShown = 300, kAcross = 4, kName = 28;
constexpr double kCell = (svg::kWidth - 2 * svg::kMargin) / kAcross, kGap = 12, kBars = 44, kRow = 98, kNoteTop = 72;

bool is_odd(const Stats& stats) {
  return stats.nans > 0 || stats.infinities > 0 || stats.outliers > 0 || stats.dead_rows > 0;
}

class Weights {
 public:
  explicit Weights(const Inspection& in) : in_(in) {}

  std::string draw() {
    std::uint64_t odd = 0;
    for (const Stats& stats : in_.stats) odd += is_odd(stats) ? 1U : 0U;
    choose(odd);
    legend();
    for (std::size_t i = 0; i < shown_.size(); ++i)
      cell(svg::kMargin + kCell * static_cast<double>(i % kAcross),
           kNoteTop + 20 + kRow * static_cast<double>(i / kAcross), in_.model[in_.tensors[shown_[i]]],
           in_.stats[shown_[i]]);
    double height = kNoteTop + 20 + kRow * std::ceil(static_cast<double>(shown_.size()) / kAcross) + svg::kMargin;
    if (shown_.size() < in_.stats.size()) {
      body_ += svg::text(svg::kMargin, height - 8, "quiet small",
                         fmt::format("... and {} more tensors, {} odd", in_.stats.size() - shown_.size(),
                                     odd > kMaxShown ? "some of them" : "none of them"));
      height += svg::kMargin;
    }
    return svg::document("Values of " + svg::base_name(in_.path),
                         fmt::format("{} tensors, {} with something odd", in_.stats.size(), odd), height, body_);
  }

 private:
  // At most kMaxShown: all that are odd, if they are not more, and of the others some in equal steps; in the order
  // given.
  void choose(std::uint64_t odd) {
    const std::size_t all = std::min(in_.stats.size(), in_.tensors.size());
    const std::uint64_t others = all - odd, places = kMaxShown - std::min<std::uint64_t>(kMaxShown, odd);
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < all && shown_.size() < kMaxShown; ++i) {
      if (is_odd(in_.stats[i])) {
        shown_.push_back(i);
      } else {
        // In equal steps: the one with which another place is reached.
        if (others <= places || (seen + 1) * places / others > seen * places / others) shown_.push_back(i);
        ++seen;
      }
    }
  }

  void legend() {
    body_ += svg::text(
        svg::kMargin, kNoteTop, "quiet small",
        "bars: how many elements (logarithmic) from the least to the greatest; line: zero; mean and deviation "
        "when the pointer is over a name");
  }

  static std::string oddities(const Stats& stats) {
    std::string out;
    const auto add = [&](std::uint64_t count, std::string_view what) {
      if (count > 0) out += fmt::format("{}{} {}", out.empty() ? "" : ", ", count, what);
    };
    add(stats.nans, "NaN");
    add(stats.infinities, "infinite");
    add(stats.dead_rows, stats.dead_rows == 1 ? "dead row" : "dead rows");
    add(stats.outliers, stats.outliers == 1 ? "outlier" : "outliers");
    return out;
  }

  void cell(double x, double y, const Tensor& tensor, const Stats& stats) {
    const Histogram& all = stats.histogram;
    const double width = kCell - kGap;
    body_ += svg::text(x, y + 10, "text small", label(tensor.name()) + about(tensor, stats));
    body_ += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" class=\"none\"/>\n", x,
                         y + 16, width, kBars);
    const double foot = y + 16 + kBars;
    if (all.counts.empty()) {
      body_ += svg::text(x + 4, foot - 16, "quiet small",
                         !stats.scheme.empty()  ? svg::fitted(stats.scheme, kName)
                         : tensor.unsupported() ? "cannot be read"
                         : stats.elements == 0  ? "no elements"
                                                : "no histogram");
    } else {
      const double maximum = std::log1p(static_cast<double>(*std::max_element(all.counts.begin(), all.counts.end())));
      const double step = width / static_cast<double>(all.counts.size());
      std::string path;
      for (std::size_t i = 0; i < all.counts.size(); ++i) {
        if (all.counts[i] == 0) continue;
        const double height = std::max(1.0, (kBars - 2) * std::log1p(static_cast<double>(all.counts[i])) / maximum);
        path += fmt::format("M{:.1f} {:.1f}v-{:.1f}h{:.1f}v{:.1f}z", x + step * static_cast<double>(i), foot, height,
                            std::max(step - 0.5, 0.5), height);
      }
      body_ += "<path class=\"much\" d=\"" + path + "\"/>\n";
      // Halves, because the distance of two finite numbers may overflow.
      const double half = all.to / 2 - all.from / 2;
      if (all.from < 0 && all.to > 0)
        body_ += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"1\" height=\"{:.1f}\" class=\"quiet\"/>\n",
                             x + width * (-all.from / 2) / half, y + 16, kBars);
      body_ += svg::text(x, foot + 11, "quiet small", fmt::format("{:.3g}", all.from));
      body_ += svg::text(x + width, foot + 11, "quiet small", fmt::format("{:.3g}", all.to), " text-anchor=\"end\"");
    }
    if (const std::string odd = oddities(stats); !odd.empty())
      body_ += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"2\" class=\"gone\"/>\n", x, foot,
                           width) +
               svg::text(x, foot + 23, "text small", odd);
  }

  // The layer is often in the part of a long name that is cut.
  static std::string label(std::string_view name) {
    const auto place = svg::place_of(name);
    if (name.size() <= kName || !place) return svg::fitted(name, kName);
    const std::string layer = std::to_string(place->layer) + " ";
    return layer + svg::fitted(name, kName - layer.size());
  }

  static std::string about(const Tensor& tensor, const Stats& stats) {
    std::string out = "<title>" + svg::safe(tensor.name()) + ": " + svg::safe(tensor.type_name());
    out += stats.scheme.empty() ? fmt::format(", {} elements, {} zeros", stats.elements, stats.zeros)
                                : ", codes of " + svg::safe(stats.scheme);
    if (!stats.histogram.counts.empty()) out += fmt::format(", mean {:.4g}, deviation {:.4g}", stats.mean, stats.std);
    return out + "</title>";
  }

  const Inspection& in_;
  std::vector<std::size_t> shown_;
  std::string body_;
};

}  // namespace

std::string to_svg(const Inspection& inspection) { return Weights(inspection).draw(); }

}  // namespace weighbridge
