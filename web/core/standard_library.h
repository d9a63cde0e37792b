// SPDX-License-Identifier: Apache-2.0
// The parts of C++20's library that Debian's Emscripten (libc++ 14) lacks. The WebAssembly build, and no other,
// includes it before every source.
//
// The standard does not allow adding to namespace std; the alternative was to write some two hundred calls in an older
// style for one compiler. Remove it when Debian's Emscripten is newer.
#pragma once
#include <version>
#if defined(_LIBCPP_VERSION) && _LIBCPP_VERSION < 15000

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

#include <fast_float/fast_float.h>
#include <fmt/format.h>

_LIBCPP_BEGIN_NAMESPACE_STD

// Deduces a span from a string_view, which this library does not.
template <class C, class T> span(basic_string_view<C, T>) -> span<const C>;

_LIBCPP_END_NAMESPACE_STD

namespace std {

template <class To, class From> constexpr To bit_cast(const From& from) noexcept {
  static_assert(sizeof(To) == sizeof(From));
  return __builtin_bit_cast(To, from);
}

template <class T> unique_ptr<T> make_unique_for_overwrite(size_t n) {
  return unique_ptr<T>(new remove_extent_t<T>[n]);
}

// The shortest digits that read back as the same number, with an exponent only if that is shorter, as in libstdc++.
// fmt gives the same digits but chooses the exponent differently, and output must not depend on the build.
template <class Float>
  requires is_floating_point_v<Float>
to_chars_result to_chars(char* first, char* last, Float value) {
  string text = fmt::format("{}", value);
  if (value - value == 0 && value != 0) {
    const size_t e = min(text.find('e'), text.size());
    int exponent = e == text.size() ? 0 : atoi(text.c_str() + e + 1);
    string digits = text.substr(0, e);
    if (value < 0) digits.erase(0, 1);
    if (const size_t point = digits.find('.'); point != string::npos) {
      exponent -= static_cast<int>(digits.size() - point - 1);
      digits.erase(point, 1);
    }
    digits.erase(0, digits.find_first_not_of('0'));
    for (; digits.back() == '0'; digits.pop_back()) ++exponent;
    const int count = static_cast<int>(digits.size()), one = count == 1, power = exponent + count - 1;
    if (count > 1) digits.insert(1, ".");
    if (exponent >= -(count + 3) + one && exponent <= 5 - one)
      text = fmt::format("{:.{}f}", value, max(-exponent, 0));
    else
      text = fmt::format("{}{}e{}{:02}", value < 0 ? "-" : "", digits, power < 0 ? '-' : '+', abs(power));
  }
  if (static_cast<size_t>(last - first) < text.size()) return {last, errc::value_too_large};
  memcpy(first, text.data(), text.size());
  return {first + text.size(), errc{}};
}
// This version of fast_float returns infinity or 0 for numbers outside the type's range, where the standard requires an
// error.
template <class Float>
  requires is_floating_point_v<Float>
from_chars_result from_chars(const char* first, const char* last, Float& value) {
  Float read{};
  const auto [end, error] = fast_float::from_chars(first, last, read);
  if (error != errc{}) return {end, error};
  const string_view text(first, static_cast<size_t>(end - first));
  const string_view mantissa = text.substr(0, text.find_first_of("eE"));
  const bool is_infinite = read == read && read - read != 0;
  if (is_infinite ? text.find_first_of("iI") == string_view::npos
                  : read == 0 && mantissa.find_first_of("123456789") != string_view::npos)
    return {end, errc::result_out_of_range};
  value = read;
  return {end, errc{}};
}

namespace ranges {

#define WB_ITERATED(name)                                                                  \
  template <class Range, class... More> constexpr auto name(Range&& range, More... more) { \
    return std::name(std::begin(range), std::end(range), std::move(more)...);              \
  }
WB_ITERATED(copy_if)
WB_ITERATED(count)
WB_ITERATED(fill)
WB_ITERATED(max_element)
WB_ITERATED(replace)
WB_ITERATED(reverse)
#undef WB_ITERATED

template <class Range, class Out> constexpr auto copy(Range&& range, Out out) {
  struct Result {
    decltype(std::copy(std::begin(range), std::end(range), out)) out;
  };
  return Result{std::copy(std::begin(range), std::end(range), out)};
}
template <class Range, class Out, class F> constexpr auto transform(Range&& range, Out out, F f) {
  return std::transform(std::begin(range), std::end(range), out,
                        [&](auto&& item) -> decltype(auto) { return std::invoke(f, item); });
}

template <class Range, class T, class Proj = identity>
constexpr auto find(Range&& range, const T& value, Proj proj = {}) {
  return std::find_if(std::begin(range), std::end(range),
                      [&](auto&& item) { return std::invoke(proj, item) == value; });
}

#define WB_PREDICATE(name)                                                                             \
  template <class Range, class Pred, class Proj = identity>                                            \
  constexpr auto name(Range&& range, Pred pred, Proj proj = {}) {                                      \
    return std::name(std::begin(range), std::end(range),                                               \
                     [&](auto&& item) -> bool { return std::invoke(pred, std::invoke(proj, item)); }); \
  }
WB_PREDICATE(find_if)
WB_PREDICATE(count_if)
#undef WB_PREDICATE

// Loops, because a model's tensors end with a sentinel.
template <class Range, class Pred, class Proj = identity>
constexpr bool any_of(Range&& range, Pred pred, Proj proj = {}) {
  for (auto&& item : range)
    if (std::invoke(pred, std::invoke(proj, item))) return true;
  return false;
}
template <class Range, class Pred, class Proj = identity>
constexpr bool none_of(Range&& range, Pred pred, Proj proj = {}) {
  return !ranges::any_of(range, pred, proj);
}
template <class Range, class Pred, class Proj = identity>
constexpr bool all_of(Range&& range, Pred pred, Proj proj = {}) {
  return ranges::none_of(range, [&](auto&& item) -> bool { return !std::invoke(pred, std::invoke(proj, item)); });
}

#define WB_ORDERED(name)                                                                             \
  template <class Range, class Less = std::less<>, class Proj = identity>                            \
  constexpr auto name(Range&& range, Less before = {}, Proj proj = {}) {                             \
    return std::name(std::begin(range), std::end(range), [&](const auto& a, const auto& b) -> bool { \
      return std::invoke(before, std::invoke(proj, a), std::invoke(proj, b));                        \
    });                                                                                              \
  }
WB_ORDERED(sort)
WB_ORDERED(stable_sort)
#undef WB_ORDERED

// A loop, because std::is_sorted is not constexpr there.
template <class Range, class Less = std::less<>, class Proj = identity>
constexpr bool is_sorted(Range&& range, Less before = {}, Proj proj = {}) {
  auto a = std::begin(range);
  if (a == std::end(range)) return true;
  for (auto b = a; ++b != std::end(range); a = b)
    if (std::invoke(before, std::invoke(proj, *b), std::invoke(proj, *a))) return false;
  return true;
}

template <class Range, class Same = std::equal_to<>, class Proj = identity>
constexpr auto adjacent_find(Range&& range, Same same = {}, Proj proj = {}) {
  return std::adjacent_find(std::begin(range), std::end(range), [&](const auto& a, const auto& b) -> bool {
    return std::invoke(same, std::invoke(proj, a), std::invoke(proj, b));
  });
}
template <class A, class B, class Same = std::equal_to<>, class ProjA = identity, class ProjB = identity>
constexpr bool equal(A&& a, B&& b, Same same = {}, ProjA of_a = {}, ProjB of_b = {}) {
  return std::equal(std::begin(a), std::end(a), std::begin(b), std::end(b), [&](const auto& x, const auto& y) -> bool {
    return std::invoke(same, std::invoke(of_a, x), std::invoke(of_b, y));
  });
}
template <class Range, class T, class Less = std::less<>, class Proj = identity>
constexpr auto lower_bound(Range&& range, const T& value, Less before = {}, Proj proj = {}) {
  return std::lower_bound(std::begin(range), std::end(range), value, [&](const auto& item, const T& sought) -> bool {
    return std::invoke(before, std::invoke(proj, item), sought);
  });
}
template <class Range, class T, class Less = std::less<>, class Proj = identity>
constexpr auto upper_bound(Range&& range, const T& value, Less before = {}, Proj proj = {}) {
  return std::upper_bound(std::begin(range), std::end(range), value, [&](const T& sought, const auto& item) -> bool {
    return std::invoke(before, sought, std::invoke(proj, item));
  });
}
template <class Range, class T, class Less = std::less<>, class Proj = identity>
constexpr bool binary_search(Range&& range, const T& value, Less before = {}, Proj proj = {}) {
  const auto at = ranges::lower_bound(range, value, before, proj);
  return at != std::end(range) && !std::invoke(before, value, std::invoke(proj, *at));
}
template <class Range> constexpr auto max(Range&& range) {
  return *std::max_element(std::begin(range), std::end(range));
}

// Returns the rest of the range, as in the standard, so that callers can pass its ends to erase().
template <class Range> constexpr auto unique(Range&& range) {
  struct Rest {
    decltype(std::begin(range)) first, last;
    auto begin() const { return first; }
    auto end() const { return last; }
  };
  return Rest{std::unique(std::begin(range), std::end(range)), std::end(range)};
}

}  // namespace ranges
}  // namespace std

#endif
