// SPDX-License-Identifier: Apache-2.0
// Reads types of NumPy, and finds the elements of joblib's arrays.
#include "core/archive/pickle_arrays.h"

#include <algorithm>

#include "base/checked.h"
#include "core/model/words.h"

namespace weighbridge::core {
namespace {

using wire::Pickle, wire::PickleKind;
using Ref = Pickle::Ref;

bool calls(const Pickle& pickle, Ref ref, std::string_view module, std::string_view name) {
  if (pickle.kind(ref) != PickleKind::object || pickle.kind(pickle.callee(ref)) != PickleKind::global) return false;
  return pickle.module(pickle.callee(ref)) == module && pickle.name(pickle.callee(ref)) == name;
}

std::span<const Ref> tuple_of(const Pickle& pickle, std::optional<Ref> ref) {
  return ref && pickle.kind(*ref) == PickleKind::tuple ? pickle.tuple(*ref) : std::span<const Ref>();
}

// A text, also one that protocols before 3 encode.
std::string_view order_of(const Pickle& pickle, Ref ref) {
  if (calls(pickle, ref, "_codecs", "encode"))
    if (const auto arguments = tuple_of(pickle, pickle.arguments(ref)); !arguments.empty()) ref = arguments[0];
  const bool is_text = pickle.kind(ref) == PickleKind::text || pickle.kind(ref) == PickleKind::bytes;
  return is_text ? pickle.text(ref).value_or("") : "";
}

}  // namespace

std::optional<std::string_view> pickled_text(const Pickle& pickle, Ref ref) {
  return pickle.kind(ref) == PickleKind::text ? pickle.text(ref) : std::nullopt;
}

std::optional<std::uint64_t> pickled_count(const Pickle& pickle, Ref ref) {
  if (pickle.kind(ref) != PickleKind::integer || pickle.integer(ref) < 0) return std::nullopt;
  return static_cast<std::uint64_t>(pickle.integer(ref));
}

std::optional<std::vector<std::uint64_t>> pickled_counts(const Pickle& pickle, Ref ref) {
  if (calls(pickle, ref, "torch", "Size"))
    if (const auto arguments = tuple_of(pickle, pickle.arguments(ref)); arguments.size() == 1) ref = arguments[0];
  if (pickle.kind(ref) != PickleKind::tuple && pickle.kind(ref) != PickleKind::list) return std::nullopt;
  std::vector<std::uint64_t> out;
  bool good = true;
  pickle.for_each(ref, [&](Ref each) {
    const auto number = pickled_count(pickle, each);
    good = number.has_value();
    if (good) out.push_back(*number);
    return good;
  });
  if (!good) return std::nullopt;
  return out;
}

std::optional<Ref> pickled_member(const Pickle& pickle, Ref dict, std::string_view key) {
  std::optional<Ref> out;
  bool value = false, wanted = false;
  pickle.for_each(dict, [&](Ref each) {
    if (!value)
      wanted = pickle.kind(each) == PickleKind::text && pickle.text(each) == key;
    else if (wanted)
      out = each;
    value = !value;
    return true;
  });
  return out;
}

// dtype("f8", False, True) with the state (3, byte order, base, names, fields, bytes, alignment, flags): the bytes are
// -1 for types that always have the same. ml_dtypes gives a class in place of the text.
std::optional<PickledType> pickled_type(const Pickle& pickle, Ref ref) {
  if (pickle.kind(ref) != PickleKind::object || pickle.kind(pickle.callee(ref)) != PickleKind::global ||
      !pickle.module(pickle.callee(ref)).starts_with("numpy") || pickle.name(pickle.callee(ref)) != "dtype")
    return std::nullopt;
  const auto arguments = tuple_of(pickle, pickle.arguments(ref));
  if (arguments.empty()) return std::nullopt;
  const bool by_class = pickle.kind(arguments[0]) == PickleKind::global;
  const std::string_view code = by_class ? pickle.name(arguments[0]) : pickled_text(pickle, arguments[0]).value_or("");
  const auto state = tuple_of(pickle, pickle.state(ref));
  const std::string_view order = state.size() > 1 ? order_of(pickle, state[1]) : std::string_view();
  PickledType out;
  out.name = std::string(order == "<" || order == ">" ? order : "") + excerpt(code);
  // The type of a structured one is "V" and its bytes, too.
  const bool fields = state.size() > 4 && pickle.kind(state[3]) != PickleKind::none;
  if (const auto word = read_numpy_word(code); word && !fields) out.word = *word;
  if (out.word.holds == NumpyWord::Holds::numbers) {
    out.bytes = info(out.word.dtype).bits / 8;
    out.word.order = order == ">" && info(out.word.dtype).swap_bytes > 1 ? Order::big : Order::little;
  } else {
    if (order == ">") out.word.order = Order::big;
    if (out.word.holds == NumpyWord::Holds::times) out.bytes = 8;
    if (out.word.holds == NumpyWord::Holds::texts || out.word.holds == NumpyWord::Holds::raw)
      out.bytes = out.word.bytes;
    if (const auto bytes = state.size() > 5 ? pickled_count(pickle, state[5]) : std::nullopt) out.bytes = bytes;
    constexpr struct {
      std::string_view code;
      std::uint64_t bytes;
    } kWide[] = {{"f12", 12}, {"f16", 16}, {"c24", 24}, {"c32", 32}};
    for (const auto& each : kWide)
      if (each.code == code) out.bytes = each.bytes;
  }
  // NPY_ITEM_HASOBJECT: of objects, or with a field of them.
  if (const auto flags = state.size() > 7 ? pickled_count(pickle, state[7]) : std::nullopt; flags && (*flags & 1) != 0)
    out.word.holds = NumpyWord::Holds::objects;
  return out;
}

std::optional<JoblibArray> joblib_array(const Pickle& pickle, Ref object) {
  if (!calls(pickle, object, "joblib.numpy_pickle", "NumpyArrayWrapper") || !pickle.state(object) ||
      pickle.kind(*pickle.state(object)) != PickleKind::dict)
    return std::nullopt;
  const Ref state = *pickle.state(object);
  const auto shape = pickled_member(pickle, state, "shape"), type = pickled_member(pickle, state, "dtype"),
             order = pickled_member(pickle, state, "order");
  auto counts = shape ? pickled_counts(pickle, *shape) : std::nullopt;
  auto read = type ? pickled_type(pickle, *type) : std::nullopt;
  if (!counts || !read) return std::nullopt;
  return JoblibArray{*std::move(read), *std::move(counts), order && pickled_text(pickle, *order) == "F"};
}

std::optional<wire::PickleData> joblib_data(const wire::PickleInput& input, const Pickle& pickle, Ref object,
                                            std::uint64_t at) {
  const auto array = joblib_array(pickle, object);
  if (!array) return std::nullopt;
  if (array->type.word.holds == NumpyWord::Holds::objects) {
    constexpr std::uint64_t kMemory = std::uint64_t{64} << 20;  // only its end is wanted
    const Pickle objects = Pickle::read({input.size, input.read}, at, kMemory);
    return wire::PickleData{object, at, objects.end() - at, true};
  }
  // Newer versions align the elements: a byte says how many more are skipped.
  if (const auto alignment = pickled_member(pickle, *pickle.state(object), "numpy_array_alignment_bytes");
      alignment && pickle.kind(*alignment) == PickleKind::integer && at < input.size) {
    std::byte padding{};
    input.read(at, {&padding, 1});
    at += 1 + std::to_integer<std::uint64_t>(padding);
  }
  const auto count = base::element_count(array->shape);
  const auto size = count && array->type.bytes ? base::checked_mul(*count, *array->type.bytes) : std::nullopt;
  return wire::PickleData{object, at, size.value_or(UINT64_MAX), false};
}

}  // namespace weighbridge::core
