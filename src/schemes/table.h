// SPDX-License-Identifier: Apache-2.0
// Quantization schemes that store one weight as several tensors: codes, and the scales, zeros and maps that complete
// them. One table states each scheme's name, the words for it in a config, the names and dtypes of its tensors, and how
// many numbers the codes stand for. recognize.h has the code that reads the table.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weighbridge/dtype.h"

namespace weighbridge::schemes {

// A set of dtypes.
using Types = std::uint32_t;
static_assert(kDTypeCount <= 32);
constexpr Types type(DType dtype) noexcept { return Types{1} << static_cast<unsigned>(dtype); }
constexpr bool holds(Types types, DType dtype) noexcept { return (types & type(dtype)) != 0; }

inline constexpr Types kReal = type(DType::f16) | type(DType::bf16) | type(DType::f32) | type(DType::f64);
inline constexpr Types kF8 =
    type(DType::f8_e4m3) | type(DType::f8_e5m2) | type(DType::f8_e4m3fnuz) | type(DType::f8_e5m2fnuz);
inline constexpr Types kBytes = type(DType::u8) | type(DType::i8);
inline constexpr Types kWords = type(DType::i32) | type(DType::u32);
inline constexpr Types kHalfWords = type(DType::i16) | type(DType::u16);
inline constexpr Types kNarrow = type(DType::f4) | type(DType::f6_e2m3) | type(DType::f6_e3m2) | type(DType::i4) |
                                 type(DType::u4) | type(DType::i2) | type(DType::u2);
// Dtypes that codes of some scheme can have. A model without such tensors has no scheme, unless its config names one.
inline constexpr Types kCodes = kF8 | kBytes | kWords | kHalfWords | kNarrow;
inline constexpr Types kAny = ~Types{0};

// A tensor of a listing.
struct Entry {
  std::string_view name{};
  DType dtype = DType::unknown;
  std::span<const std::uint64_t> shape{};
  bool plain = false;  // dense, of a known dtype and shape: only such tensors are parts of a scheme
};

// How a form needs a companion.
enum class Need : std::uint8_t {
  all,   // required
  any,   // at least one of those marked so is required
  also,  // optional
};

struct Companion {
  std::string_view end;  // the codes' name with this in place of Form::end
  Types types = kReal;
  Need need = Need::all;
};

// How many numbers the codes stand for.
enum class Count : std::uint8_t {
  elements,       // one number for each element
  nibbles,        // 4 bits each
  sixths,         // 6 bits each
  flat_states,    // 4 bits each, or what the text with the state says
  shape,          // stated by the companion `shape`
  codebooks,      // AQLM: those of an entry of each codebook
  tiles,          // EXL3: the last dimension holds 16 x 16
  permuted,       // EXL2: a row for each element of the companion `.q_invperm`
  scale_rows,     // a row of codes for each scale
  words,          // codes of `bits` in words, `group` of them for each scale
  rows_of_words,  // GPTQ and AWQ: the packed dimension is that of the rows or of the columns
};

// One way in which a scheme is stored.
struct Form {
  std::string_view scheme;  // Scheme::id
  std::string_view end;     // of the codes' name
  Types codes;
  std::span<const Companion> with;
  Count count = Count::elements;
  std::uint8_t min_rank = 0;  // of the codes
  // Whether the shapes are those of this form, given the companions in the order of `with` (null: not there). Null:
  // any shapes are.
  bool (*fits)(const Entry& codes, std::span<const Entry* const> with) = nullptr;
};

struct Scheme {
  std::string_view id;       // stable
  std::string_view name;     // for people
  std::string_view methods;  // words for it in `quant_method`, with blanks around each
  // What a file without a config leaves open: "KEY=VALUE|VALUE", or "KEY=N" (a number) or "KEY=RxC" (two of them), with
  // a blank between keys.
  std::string_view questions{};
};

std::span<const Scheme> all_schemes() noexcept;
const Scheme& scheme(std::string_view id) noexcept;  // one of the table

// What the user says of a scheme: "gptq:zeros=v1".
struct Answer {
  std::string_view id;                                          // Scheme::id
  std::vector<std::pair<std::string, std::string>> settings{};  // each key once
};
// Throws Error{misuse} for a scheme, key or value that is not in the table.
Answer answer_of(std::string_view text);
// What was said of a key; empty: nothing.
std::string_view said(std::span<const Answer>, std::string_view id, std::string_view key) noexcept;
// In the order in which they are tried: the first that fits is the form.
std::span<const Form> all_forms() noexcept;
// Whether the forms above are all that the method writes, so that tensors without a form are not codes.
bool is_known_method(std::string_view method) noexcept;
// Whether layers of the method have the layouts that are decoded; those of others may have the same names.
bool is_decoded_method(std::string_view method) noexcept;
// Names of scales that are not those of a weight.
bool is_other_scale(std::string_view last) noexcept;

}  // namespace weighbridge::schemes
