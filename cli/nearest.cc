// SPDX-License-Identifier: Apache-2.0
// Edit distance over short words.
#include "nearest.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <numeric>
#include <system_error>
#include <vector>

namespace weighbridge::cli {
namespace {

constexpr std::size_t kMaxFiles = 10'000;  // entries of a folder that are compared
constexpr std::size_t kLongestWord = 64;   // longer words are not compared

char small(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
bool alike(char a, char b) { return small(a) == small(b); }

std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before, above(b.size() + 1), row(b.size() + 1);  // for a's first i - 2, i - 1 and i letters
  std::iota(above.begin(), above.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j - 1] + (alike(a[i - 1], b[j - 1]) ? 0 : 1), above[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && alike(a[i - 1], b[j - 2]) && alike(a[i - 2], b[j - 1]))
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before = above;
    above = row;
  }
  return above.back();
}

// The only word that begins with `typed`.
std::string_view continued(std::string_view typed, std::span<const std::string_view> words) {
  std::string_view found;
  for (const std::string_view word : words) {
    if (!word.starts_with(typed)) continue;
    if (!found.empty()) return {};
    found = word;
  }
  return found;
}

}  // namespace

std::string_view nearest_word(std::string_view typed, std::span<const std::string_view> words) {
  if (typed.empty() || typed.size() > kLongestWord) return {};
  if (const std::string_view found = continued(typed, words); typed.size() > 1 && !found.empty()) return found;
  std::string_view best;
  std::size_t minimum = std::max<std::size_t>(1, typed.size() / 3) + 1;
  for (const std::string_view word : words) {
    const std::size_t d = distance(typed, word);
    if (d < minimum && d < word.size()) {
      minimum = d;
      best = word;
    }
  }
  return best;
}

std::string nearest_file(std::string_view path) {
  std::error_code error;
  const std::filesystem::path typed(path);
  if (!typed.has_filename() || std::filesystem::exists(std::filesystem::symlink_status(typed, error))) return {};
  const std::filesystem::path folder = typed.parent_path();
  std::vector<std::string> names;
  for (std::filesystem::directory_iterator at(folder.empty() ? "." : folder, error), end; !error && at != end;
       at.increment(error)) {
    std::error_code unknown;
    if (!at->is_regular_file(unknown) && !at->is_directory(unknown)) continue;  // a pipe is nothing to open by guess
    names.push_back(at->path().filename().string());
    if (names.size() > kMaxFiles) return {};
  }
  std::ranges::sort(names);  // a folder lists its files in no fixed order
  const std::vector<std::string_view> known(names.begin(), names.end());
  std::string near(nearest_word(typed.filename().string(), known));
  // The same extension does not make two short names alike.
  const std::string stem = typed.stem().string(), found = std::filesystem::path(near).stem().string();
  if (!near.starts_with(typed.filename().string()) && distance(stem, found) > std::max<std::size_t>(1, stem.size() / 3))
    near.clear();
  return near.empty() ? near : (folder / near).string();
}

}  // namespace weighbridge::cli
