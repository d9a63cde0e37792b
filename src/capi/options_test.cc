// SPDX-License-Identifier: Apache-2.0
// The options of weighbridge/c.h: wb_options_set() takes each that the table says, and no other.
#include <gtest/gtest.h>

#include <string>

#include "weighbridge/c.h"
#include "weighbridge/options.h"

namespace weighbridge {
namespace {

TEST(COptions, AreThoseThatTheTableSays) {
  for (const OptionInfo& option : all_options()) {
    SCOPED_TRACE(option.name);
    const auto known = words(option);
    const std::string text = option.name == "format"                       ? "safetensors"
                             : !known.empty()                              ? std::string(known[0])
                             : option.type == OptionType::file             ? "/proc/self/exe"
                             : option.type == OptionType::fraction         ? "0.5"
                             : option.value.find('=') != std::string::npos ? "a=b"
                                                                           : "7";
    wb_options* options = nullptr;
    ASSERT_EQ(wb_options_new(&options), nullptr);
    wb_error* const error = wb_options_set(options, std::string(option.name).c_str(), text.c_str());
    if (option.c) {
      EXPECT_EQ(error, nullptr) << wb_error_message(error);
    } else if (error != nullptr) {  // else it is the name of an option of another kind too
      EXPECT_EQ(wb_error_kind(error), WB_MISUSE);
    }
    wb_error_free(error);
    wb_options_free(options);
  }
}

}  // namespace
}  // namespace weighbridge
