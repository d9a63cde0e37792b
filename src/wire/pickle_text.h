// SPDX-License-Identifier: Apache-2.0
// How pickles spell texts and bytes that have no stated length: Python's escapes in protocol 0, and the bytes that
// protocol 2 has as a text of Latin-1.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace weighbridge::wire {

// The text of STRING, without its quotes. nullopt: a malformed escape.
std::optional<std::string> unescape_string(std::string_view);
// The text of UNICODE: Latin-1 with \uXXXX and \UXXXXXXXX, as UTF-8. nullopt: a malformed escape.
std::optional<std::string> unescape_unicode(std::string_view);
// The bytes whose Latin-1 is here in UTF-8. nullopt: it has other characters.
std::optional<std::string> from_latin1(std::string_view utf8);

}  // namespace weighbridge::wire
