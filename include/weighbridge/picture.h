// SPDX-License-Identifier: Apache-2.0
/// \file
/// Results as pictures.
#pragma once
#include <string>

#include "weighbridge/json.h"

namespace weighbridge {

/// An SVG of how much each tensor changed: a map of layers for names with a number in them ("layers.3.wq"), a row for
/// each kind of tensor, and bars for the others. Colors follow the reader's system, light or dark. Layers that did not
/// change are blank. Only the 40 kinds that changed most are drawn.
std::string to_svg(const Comparison&);

/// An SVG of the values of each tensor, in the order of Inspection::tensors: a histogram with logarithmic counts, the
/// range, and what is odd (NaN, infinities, outliers, rows that are all zero). Needs Inspection::stats with histograms.
/// If there are more than 300 tensors, it draws the odd ones first, and then a regular sample of the others; it says
/// how many it leaves out.
std::string to_svg(const Inspection&);

}  // namespace weighbridge
