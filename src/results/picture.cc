// SPDX-License-Identifier: Apache-2.0
// Draws what diff() found: the geometry, and what each color says.
#include "weighbridge/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "results/svg.h"

namespace weighbridge {
namespace {

using svg::fitted, svg::kMargin, svg::kWidth, svg::place_of, svg::text;
using Verdict = TensorDiff::Verdict;

constexpr double kLine = 18, kTop = 70;
constexpr std::size_t kMaxKinds = 40, kMaxBars = 30, kLongestName = svg::kLongestName;
constexpr double kMinChange = 1e-6, kMaxChange = 1;  // of the relative RMS that colors tell apart

std::string_view name_of(const TensorDiff& t) { return t.verdict == Verdict::only_b ? t.name_b : t.name_a; }

// Whether its color shows the change; otherwise it is missing in one model, or has no numbers.
bool has_number(const TensorDiff& t) {
  return t.values && (t.values->changed == 0 || !std::isnan(t.values->relative_rms));
}
double change_of(const TensorDiff& t) { return t.values->changed == 0 ? 0 : t.values->relative_rms; }

// 0 to 1 on a logarithmic scale.
double strength(double change) {
  if (!(change > kMinChange)) return 0;
  return std::min(1.0, std::log10(change / kMinChange) / std::log10(kMaxChange / kMinChange));
}

std::string_view what(const TensorDiff& t) {
  switch (t.verdict) {
    case Verdict::only_a: return "only in A";
    case Verdict::only_b: return "only in B";
    case Verdict::incomparable: return "not compared";
    default: return "not the same number of elements";
  }
}

std::string tooltip(const TensorDiff& t) {
  if (!has_number(t)) return std::string(what(t));
  return t.values->changed == 0 ? "values are equal" : fmt::format("relative RMS {:.3g}", change_of(t));
}

// A rectangle that says what it is when the pointer is over it.
std::string cell(double x, double y, double width, double height, const TensorDiff& t) {
  const bool number = has_number(t);
  const double opacity = number ? 0.1 + 0.9 * strength(change_of(t)) : 1;
  return fmt::format(
      "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" class=\"{}\" "
      "fill-opacity=\"{:.2f}\"><title>{}: "
      "{}</title></rect>\n",
      x, y, width, height, number ? "much" : "gone", opacity, svg::safe(name_of(t)), tooltip(t));
}

class Picture {
 public:
  explicit Picture(const Comparison& in) : in_(in) {
    for (const std::uint32_t i : by_change(in.found)) {
      const TensorDiff& t = in.found.tensors[i];
      auto place = place_of(name_of(t));
      if (!place) {
        others_.push_back(&t);
        continue;
      }
      layers_ = std::max(layers_, place->layer + 1);
      const auto [at, is_new] = rows_.try_emplace(place->kind, kinds_.size());
      if (is_new) kinds_.push_back({place->kind, {}});
      kinds_[at->second].second.emplace_back(place->layer, &t);
    }
  }

  std::string draw() {
    legend();
    map();
    bars();
    if (kinds_.empty() && others_.empty())
      body_ += text(kMargin, y_ + 14, "quiet", "Every tensor is equal."), y_ += kLine;
    const double height = y_ + kMargin;
    const Diff& found = in_.found;
    const std::string title = "What changed from " + svg::base_name(in_.path_a) + " to " + svg::base_name(in_.path_b);
    const std::string subtitle = fmt::format("{} of {} tensors differ, {} could not be compared", found.different,
                                             found.compared + alone(), found.incomparable);
    return svg::document(title, subtitle, height, body_);
  }

 private:
  std::uint64_t alone() const {
    return static_cast<std::uint64_t>(std::ranges::count_if(in_.found.tensors, [](const TensorDiff& t) {
      return t.verdict == Verdict::only_a || t.verdict == Verdict::only_b;
    }));
  }

  void legend() {
    double x = kMargin;
    body_ += text(x, kTop + 9, "quiet small", "relative RMS of the change:");
    x += 160;
    for (const double change : {1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0}) {
      body_ += fmt::format(
          "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"14\" height=\"12\" class=\"much\" fill-opacity=\"{:.2f}\"/>\n", x,
          kTop, 0.1 + 0.9 * strength(change));
      body_ += text(x + 18, kTop + 9, "quiet small", fmt::format("{:g}", change));
      x += 62;
    }
    body_ += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"14\" height=\"12\" class=\"gone\"/>\n", x, kTop);
    body_ += text(x + 18, kTop + 9, "quiet small", "in one only, or no number");
    y_ = kTop + 28;
  }

  void map() {
    if (kinds_.empty()) return;
    const std::size_t shown = std::min(kinds_.size(), kMaxKinds);
    std::sort(kinds_.begin(), kinds_.begin() + static_cast<std::ptrdiff_t>(shown));
    std::size_t longest = 0;
    for (std::size_t k = 0; k < shown; ++k) longest = std::max(longest, std::min(kinds_[k].first.size(), kLongestName));
    const double left = kMargin + 6.6 * static_cast<double>(longest) + 12;
    const double step = std::min(24.0, (kWidth - kMargin - left) / static_cast<double>(layers_));
    for (std::size_t k = 0; k < shown; ++k, y_ += kLine) {
      body_ += text(left - 8, y_ + 12, "text small", fitted(kinds_[k].first), " text-anchor=\"end\"");
      body_ += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" class=\"none\"/>\n",
                           left, y_, step * static_cast<double>(layers_), kLine - 2);
      for (const auto& [layer, t] : kinds_[k].second)
        body_ +=
            cell(left + step * static_cast<double>(layer), y_, std::max(step - (step > 4 ? 1 : 0), 0.5), kLine - 2, *t);
    }
    const std::uint64_t every = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::ceil(26 / step)));
    for (std::uint64_t layer = 0; layer < layers_; layer += every)
      body_ += text(left + step * (static_cast<double>(layer) + 0.5), y_ + 10, "quiet small", std::to_string(layer),
                    " text-anchor=\"middle\"");
    y_ += kLine + 6;
    if (kinds_.size() > shown) more(kinds_.size() - shown, "kinds of tensors");
  }

  void bars() {
    const std::size_t shown = std::min(others_.size(), kMaxBars);
    for (std::size_t k = 0; k < shown; ++k, y_ += kLine) {
      const TensorDiff& t = *others_[k];
      constexpr double kLeft = 330, kLong = 280;
      body_ += text(kLeft - 8, y_ + 12, "text small", fitted(name_of(t)), " text-anchor=\"end\"");
      const double length = has_number(t) ? std::max(2.0, kLong * strength(change_of(t))) : 14;
      body_ += cell(kLeft, y_ + 1, length, kLine - 4, t);
      body_ += text(kLeft + length + 6, y_ + 12, "quiet small", tooltip(t));
    }
    if (others_.size() > shown) more(others_.size() - shown, "tensors");
  }

  void more(std::size_t count, std::string_view of) {
    body_ += text(kMargin, y_ + 10, "quiet small", fmt::format("... and {} more {}", count, of));
    y_ += kLine;
  }

  const Comparison& in_;
  std::map<std::string, std::size_t> rows_;
  std::vector<std::pair<std::string, std::vector<std::pair<std::uint64_t, const TensorDiff*>>>> kinds_;
  std::vector<const TensorDiff*> others_;
  std::uint64_t layers_ = 0;
  double y_ = 0;
  std::string body_;
};

}  // namespace

std::string to_svg(const Comparison& comparison) { return Picture(comparison).draw(); }

}  // namespace weighbridge
