// SPDX-License-Identifier: Apache-2.0
// Texts of options, for tests that set each option of a kind by its name.
#pragma once
#include <gtest/gtest.h>

#include <string>

#include "weighbridge/options.h"

namespace weighbridge::test {

// A text that the option takes, and that is not its default.
inline std::string sample_of(const OptionInfo& option) {
  if (const auto known = words(option); !known.empty()) {
    const bool toggle = option.type == OptionType::toggle;
    return std::string(toggle                        ? known[option.standard == "true" ? 1 : 0]
                       : option.standard == known[0] ? known[1]
                                                     : known[0]);
  }
  if (option.type == OptionType::file) return "/proc/self/exe";
  if (option.value.find('=') != std::string::npos) return "a=b";
  return option.type == OptionType::fraction ? "0.25" : "7";
}

// Sets each option of a kind in a struct of its own, by name.
template <class Struct> void set_each(OptionOf kind) {
  EXPECT_FALSE(options_of(kind).empty());
  for (const OptionInfo& option : options_of(kind)) {
    Struct options;
    EXPECT_NO_THROW(set_option(options, option.name, sample_of(option))) << option.name;
  }
  Struct options;
  EXPECT_ANY_THROW(set_option(options, "patience", "1"));
}

}  // namespace weighbridge::test
