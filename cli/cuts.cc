// SPDX-License-Identifier: Apache-2.0
// Cuts every text alike first. Texts that then look the same are cut again, around the part in which they differ.
#include "cuts.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <map>
#include <utility>

#include "output.h"
#include "weighbridge/text.h"

namespace weighbridge::cli {
namespace {

constexpr std::string_view kDots = "...";

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_ascii(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
}

// Where the texts begin to differ, moved back to the start of a word or number, and how long their common end is.
std::pair<std::size_t, std::size_t> common_ends(const std::vector<std::string>& texts) {
  const std::string& first = texts.front();
  std::size_t begin = first.size(), end = first.size();
  for (const std::string& text : texts) {
    const auto head = std::ranges::mismatch(first, text).in1 - first.begin();
    begin = std::min(begin, static_cast<std::size_t>(head));
    const auto tail = std::mismatch(first.rbegin(), first.rend(), text.rbegin(), text.rend()).first - first.rbegin();
    end = std::min(end, static_cast<std::size_t>(tail));
  }
  while (begin > 0 && std::string_view("._/[ ,").find(first[begin - 1]) == std::string_view::npos) --begin;
  return {begin, end};
}

// "head...what differs...tail", the head short. `begin` and `end` are those of common_ends().
std::string cut_around(const std::string& text, std::size_t begin, std::size_t end, std::size_t columns) {
  constexpr std::size_t kHead = 4;
  const std::size_t differs = text.size() - std::min(text.size(), begin + end);
  const std::size_t head = std::min(begin, kHead);
  if (columns < head + 2 * kDots.size() + differs) return text;
  const std::size_t room = columns - head - differs - kDots.size();
  if (begin <= head + kDots.size() || room >= end)  // one gap is enough
    return text.substr(0, head) + std::string(kDots) +
           text.substr(text.size() - std::min(text.size() - head, columns - head - kDots.size()));
  const std::size_t tail = room - kDots.size();
  return text.substr(0, head) + std::string(kDots) + text.substr(begin, differs) + std::string(kDots) +
         text.substr(text.size() - tail);
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> out;
  for (std::size_t begin = 0, end = 0; end != std::string_view::npos; begin = end + 1) {
    end = text.find('.', begin);
    out.push_back(text.substr(begin, end - begin));
  }
  return out;
}

// Drops words that all texts of a group share: "...0...query.weight". Texts have the same number of words.
class SharedWords {
 public:
  explicit SharedWords(const std::vector<std::string>& texts) {
    const std::vector<std::string_view> first = words_of(texts.front());
    shared_.assign(first.size(), true);
    for (const std::string& text : texts) {
      const std::vector<std::string_view> words = words_of(text);
      for (std::size_t i = 0; i < words.size(); ++i) shared_[i] = shared_[i] && words[i] == first[i];
    }
  }
  // Keeps what fits of the shared words, from the end on. Empty if not even the others fit.
  std::string cut(std::string_view text, std::size_t columns) const {
    const std::vector<std::string_view> words = words_of(text);
    std::vector<bool> kept(shared_);
    kept.flip();
    std::string out = joined(words, kept);
    if (out.size() > columns) return {};
    for (std::size_t i = words.size(); i-- > 0;) {
      if (kept[i]) continue;
      kept[i] = true;
      std::string longer = joined(words, kept);
      if (longer.size() <= columns)
        out = std::move(longer);
      else
        kept[i] = false;
    }
    return out;
  }

 private:
  static std::string joined(const std::vector<std::string_view>& words, const std::vector<bool>& kept) {
    std::string out;
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (kept[i])
        out += (i > 0 && kept[i - 1] ? "." : "") + std::string(words[i]);
      else if (i == 0 || kept[i - 1])
        out += kDots;
    }
    return out;
  }
  std::vector<bool> shared_;
};

// The beginnings of the words, as many letters of each as fit, with numbers whole: "enc.lay.0.att.sel.val.bia". Empty
// if not even one letter of each fits.
std::string abbreviated(std::string_view text, std::size_t columns) {
  const std::vector<std::string_view> words = words_of(text);
  if (2 * words.size() > columns + 1) return {};
  for (std::size_t letters = columns; letters > 0; --letters) {
    std::string out;
    for (const std::string_view word : words)
      out.append(out.empty() ? "" : ".").append(std::ranges::all_of(word, is_digit) ? word : word.substr(0, letters));
    if (out.size() <= columns) return out;
  }
  return {};
}

// How many of `maximum` bytes are equal before the first one that is not.
std::size_t common_prefix(const char* a, const char* b, std::size_t maximum) noexcept {
  std::size_t at = 0;
  if constexpr (std::endian::native == std::endian::little) {
    for (; maximum - at >= 8; at += 8) {
      std::uint64_t x = 0, y = 0;
      std::memcpy(&x, a + at, 8);
      std::memcpy(&y, b + at, 8);
      if (x != y) return at + static_cast<std::size_t>(std::countr_zero(x ^ y)) / 8;
    }
  }
  while (at < maximum && a[at] == b[at]) ++at;
  return at;
}

}  // namespace

Cuts::Cuts(const std::vector<std::string>& texts, std::size_t columns) {
  std::unordered_map<std::string, std::vector<std::string>> alike;  // by what they are cut to
  std::unordered_map<std::string, bool> taken;                      // by texts that fit, or that are settled
  for (const std::string& text : texts) {
    if (display_width(text) <= columns)
      taken[text] = true;
    else if (cut_.emplace(text, std::string()).second)
      alike[fitted_shown(text, columns)].push_back(text);
  }
  std::vector<std::vector<std::string>> again;
  for (auto& [cut, group] : alike) {
    if (group.size() == 1 && taken.emplace(cut, true).second)
      cut_[group.front()] = cut;
    else
      again.push_back(std::move(group));
  }
  for (std::vector<std::string>& group : again) {
    const auto [begin, end] = common_ends(group);
    std::map<std::size_t, std::vector<std::string>> by_words;
    for (std::string& each : group)
      by_words[static_cast<std::size_t>(std::ranges::count(each, '.'))].push_back(std::move(each));
    for (const auto& [dots, same] : by_words) {
      const SharedWords words(same);
      for (const std::string& text : same) {
        std::string& shown = cut_[text] = fitted_shown(text, columns);
        if (!is_ascii(text)) continue;
        const auto take = [&](std::string cut) {
          const bool tells = !cut.empty() && taken.emplace(cut, true).second;
          if (tells) shown = std::move(cut);
          return tells;
        };
        std::string around = cut_around(text, begin, end, columns);
        if (around == text) around = words.cut(text, columns);
        if (!take(std::move(around))) take(abbreviated(text, columns));
      }
    }
  }
}

std::string_view Cuts::operator()(const std::string& text) const {
  const auto cut = cut_.find(text);
  return cut == cut_.end() ? std::string_view(text) : std::string_view(cut->second);
}

bool comes_before(std::string_view a, std::string_view b) noexcept {
  // A listing of thousands of names is sorted by this: pointers have no checks to pay for.
  const char *const x = a.data(), *const y = b.data();
  // The common prefix decides nothing, unless the first difference is inside a number.
  const std::size_t maximum = std::min(a.size(), b.size()), differ = common_prefix(x, y, maximum);
  std::size_t same = differ;
  while (same > 0 && is_digit(x[same - 1])) --same;
  if (differ < maximum) {  // mostly these two bytes decide, or how many digits there are
    std::size_t end_x = differ, end_y = differ;
    while (end_x < a.size() && is_digit(x[end_x])) ++end_x;
    while (end_y < b.size() && is_digit(y[end_y])) ++end_y;
    const bool in_numbers = same < differ ? end_x + end_y > 2 * differ : end_x > differ && end_y > differ;
    if (!in_numbers) return static_cast<unsigned char>(x[differ]) < static_cast<unsigned char>(y[differ]);
    if (x[same] != '0' && y[same] != '0') return end_x != end_y ? end_x < end_y : x[differ] < y[differ];
  }
  std::size_t i = same, j = same;
  while (i < a.size() && j < b.size()) {
    if (!is_digit(a[i]) || !is_digit(b[j])) {
      if (a[i] != b[j]) return static_cast<unsigned char>(a[i]) < static_cast<unsigned char>(b[j]);
      ++i;
      ++j;
      continue;
    }
    const auto number = [](std::string_view text, std::size_t& at) {
      while (at + 1 < text.size() && text[at] == '0' && is_digit(text[at + 1])) ++at;
      const std::size_t begin = at;
      while (at < text.size() && is_digit(text[at])) ++at;
      return text.substr(begin, at - begin);
    };
    const std::string_view first = number(a, i), second = number(b, j);
    if (first.size() != second.size()) return first.size() < second.size();
    if (first != second) return first < second;
  }
  if (i == a.size() && j == b.size()) return a < b;  // "01" and "1"
  return i == a.size();
}

}  // namespace weighbridge::cli
