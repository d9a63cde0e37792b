// SPDX-License-Identifier: Apache-2.0
// What all pictures share: the document with its two themes, texts of files in XML, and the layer in a tensor's name.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weighbridge::svg {

inline constexpr double kWidth = 800, kMargin = 16;
inline constexpr std::size_t kLongestName = 44;  // bytes of a name that fitted() keeps

// A text of a file for XML. What XML cannot hold becomes U+FFFD: controls, invalid UTF-8, U+FFFE and U+FFFF.
std::string safe(std::string_view text);
// The end of a long name, escaped, cut between characters of UTF-8.
std::string fitted(std::string_view name, std::size_t maximum = kLongestName);
// The last component of a path, fitted.
std::string base_name(std::string_view path);
// An element of text. Classes: "text" or "quiet" for the color, "title" or "small" for the size.
std::string text(double x, double y, std::string_view classes, std::string_view escaped, std::string_view more = {});

// The first component of a name that is a number, and the name with "*" in its place.
struct Place {
  std::string kind;
  std::uint64_t layer = 0;  // below 1000: more columns would be thinner than a pixel
};
std::optional<Place> place_of(std::string_view name);

// The whole picture, kWidth wide. Classes of shapes: "much", "gone" (what is odd or missing), "none". Colors follow the
// reader's system, light or dark. Title, subtitle and body are escaped.
std::string document(std::string_view title, std::string_view subtitle, double height, std::string_view body);

}  // namespace weighbridge::svg
