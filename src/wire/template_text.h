// SPDX-License-Identifier: Apache-2.0
// The tokens of a Jinja template (jinja.palletsprojects.com/en/stable/templates), as chat software runs it on every
// conversation. Tokenizes it and runs nothing. Says what leads out of the sandbox in which it should run: attributes
// that begin with an underscore, the filter attr, format strings that reach into their arguments, and other templates.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace weighbridge::wire {

struct TemplateFault {
  bool escapes = false;    // it can leave the sandbox; otherwise it cannot be tokenized
  std::size_t offset = 0;  // in the template
  std::string found{};     // the name, or what is wrong with the syntax
};

// The first escape; without one, the first fault of syntax; nullopt if there is neither. Time is linear in the text.
std::optional<TemplateFault> template_fault(std::string_view text);

}  // namespace weighbridge::wire
