// SPDX-License-Identifier: Apache-2.0
// Which findings say that a file is not known to be safe. They are warnings, so the file is valid, but it is not "ok".
#pragma once
#include <string_view>

namespace weighbridge::base {

// A pickle names what is on neither list (".../unknown-global"), or was not looked into (".../unread-pickle").
constexpr bool is_doubt(std::string_view rule) noexcept {
  return rule.ends_with("/unknown-global") || rule.ends_with("/unread-pickle");
}

}  // namespace weighbridge::base
