// SPDX-License-Identifier: Apache-2.0
// Reads the type strings of NumPy.
#include "core/model/numpy_types.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/endian.h"
#include "base/utf8.h"
#include "core/model/words.h"

namespace weighbridge::core {
namespace {

using Holds = NumpyWord::Holds;

// Types without a dtype of ours: a letter and the sizes that may follow it ("*": any, or none), and names.
struct OtherType {
  Holds holds;
  std::string_view letter, sizes, names;
};
constexpr OtherType kOthers[] = {
    {Holds::texts, "S", "*", "bytes bytes_"},
    {Holds::texts, "a", "*", ""},
    {Holds::texts, "U", "*", "str str_ unicode"},
    {Holds::objects, "O", " 4 8", "object object_"},
    {Holds::raw, "V", "*", "void"},
    {Holds::times, "M", " 8", "datetime64"},
    {Holds::times, "m", " 8", "timedelta64"},
    {Holds::others, "f", "12 16", "longdouble float96 float128"},
    {Holds::others, "c", "24 32", "clongdouble complex192 complex256"},
    {Holds::others, "g", " ", ""},
    {Holds::others, "G", " ", ""},
    {Holds::others, "W", "4", "complex32 bcomplex32"},  // as ml_dtypes saves both
    {Holds::others, "", "",
     "float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float6_e2m3fn float6_e3m2fn float4_e2m1fn int1 int2 int4 uint1 uint2 "
     "uint4"},
};

bool is_size(std::string_view text) noexcept {
  return text.size() < 10 && text.find_first_not_of("0123456789") == text.npos;
}

}  // namespace

const NumpyType* numpy_type(DType dtype) noexcept {
  const auto* const row = std::ranges::find(kNumpyTypes, dtype, &NumpyType::dtype);
  return row == std::end(kNumpyTypes) ? nullptr : row;
}

std::optional<NumpyWord> read_numpy_word(std::string_view text) noexcept {
  NumpyWord out;
  const bool ordered = !text.empty() && std::string_view("<>|=").find(text[0]) != text.npos;
  if (ordered && text[0] == '>') out.order = Order::big;
  const std::string_view code = text.substr(ordered ? 1 : 0);
  if (code.empty()) return std::nullopt;
  const bool may_be_word = !ordered || code.size() == 1;
  for (const NumpyType& type : kNumpyTypes)
    if ((type.ml_dtype.empty() && type.code() == code) || (may_be_word && has_word(type.words, code)) ||
        (type.dtype == DType::f8_e5m2 && code == "f1")) {
      out.dtype = type.dtype;
      if (info(type.dtype).swap_bytes == 1) out.order = Order::little;
      return out;
    }
  // The unit of a time stands in brackets.
  const std::size_t unit = code.ends_with(']') ? code.find('[') : code.npos;
  const std::string_view plain = code.substr(0, unit);
  for (const OtherType& type : kOthers) {
    if (unit != code.npos && type.holds != Holds::times) continue;
    const std::string_view size = plain.substr(std::min(type.letter.size(), plain.size()));
    const bool by_letter = !type.letter.empty() && plain.starts_with(type.letter) &&
                           (type.sizes == "*" ? is_size(size) && !(size.empty() && type.letter == "a" && ordered)
                            : size.empty()    ? type.sizes.starts_with(' ')
                                              : has_word(type.sizes, size));
    if (!by_letter && !(has_word(type.names, plain) && (!ordered || type.holds == Holds::times))) continue;
    out.holds = type.holds;
    out.wide = by_letter && type.letter == "U";
    if (by_letter && type.sizes == "*")
      for (const char digit : size) out.bytes = 10 * out.bytes + static_cast<std::uint64_t>(digit - '0');
    if (out.wide) out.bytes *= 4;
    return out;
  }
  return std::nullopt;
}

std::optional<std::string> numpy_text(std::string_view bytes, const NumpyWord& word) {
  std::string out(word.wide ? std::string_view() : bytes);
  if (word.wide && bytes.size() % 4 != 0) return std::nullopt;
  for (std::size_t i = 0; word.wide && i < bytes.size(); i += 4) {
    const auto code = word.order == Order::big ? base::load_be<std::uint32_t>(bytes.data() + i)
                                               : base::load_le<std::uint32_t>(bytes.data() + i);
    if (code > 0x10FFFF) return std::nullopt;
    base::append_utf8(out, code);
  }
  out.resize(out.find_last_not_of('\0') + 1);
  return base::is_utf8(out) ? std::optional(std::move(out)) : std::nullopt;
}

}  // namespace weighbridge::core
