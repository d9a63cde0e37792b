// SPDX-License-Identifier: Apache-2.0
// The options of a conversion by name and text. plan.cc decides which targets support which options.
#include "core/writing/options.h"

namespace weighbridge {
namespace {

constexpr core::Bound<Options> kBound[] = {
#define WB_CONVERT_OPTION(MEMBER, ...) WB_BOUND(Options, MEMBER)
#include "core/writing/option_rows.def"
};

}  // namespace

void Options::set(std::string_view option, std::string_view text) {
  core::set<Options>(*this, OptionOf::convert, kBound, option, text);
}

std::vector<std::string_view> Options::words(std::string_view option) {
  const OptionInfo* const found = find_option(OptionOf::convert, option);
  return found == nullptr ? std::vector<std::string_view>() : weighbridge::words(*found);
}

std::vector<const OptionInfo*> core::given_options(const Options& options) {
  std::vector<const OptionInfo*> out;
  for (std::size_t i = 0; i < std::size(kBound); ++i)
    if (kBound[i].given(options)) out.push_back(&options_of(OptionOf::convert)[i]);
  return out;
}

}  // namespace weighbridge
