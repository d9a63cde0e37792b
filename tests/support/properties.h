// SPDX-License-Identifier: Apache-2.0
// Random models for property tests, and the promise of a plan: the reopened output equals the input in everything that
// no loss or change names.
#pragma once
#include <rapidcheck.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/payload/compare.h"
#include "support/convert_testing.h"
#include "support/items.h"
#include "support/sanitized.h"
#include "support/temporary_folder.h"
#include "weighbridge/convert.h"
#include "weighbridge/formats.h"
#include "weighbridge/hash.h"
#include "weighbridge/open.h"

namespace weighbridge::test {

using convert::testing::pattern;

// Whether a property holds for this many random cases, a quarter of them under the sanitizers: the same ones in every
// run, so that only a change can break a test, not chance. RC_PARAMS ("max_success=500") asks for others
// (`make stage NAME=properties`).
template <class Property> bool holds(Property property, int cases = 100) {
  rc::detail::TestParams params = rc::detail::configuration().testParams;
  if (std::getenv("RC_PARAMS") == nullptr) {
    params.seed = 1;
    params.maxSuccess = kSanitized ? cases / 4 : cases;
  }
  const auto result = rc::detail::checkTestable(std::move(property), rc::detail::TestMetadata{}, params);
  if (result.template is<rc::detail::SuccessResult>()) return true;
  rc::detail::printResultMessage(result, std::cerr);
  std::cerr << "\nseed " << params.seed << "\n";
  return false;
}

// Names and keys that writers may get wrong: empty, quoted, escaped, multibyte, similar.
inline std::string a_text() {
  static const std::vector<std::string> kPieces = {
      "", "a", "w", ".", "/", "\"", "\\", "\n", "\x7f", "\xc3\xa9", "\xe9\x87\x8d", "\xf0\x9f\x90\xab", "0", " "};
  std::string out;
  const int pieces = *rc::gen::inRange(0, 6);
  for (int i = 0; i < pieces; ++i) out += *rc::gen::elementOf(kPieces);
  return out;
}

inline Value a_value(int depth = 0) {
  switch (*rc::gen::inRange(0, depth < 2 ? 8 : 6)) {
    case 0: return Value::text(a_text());
    case 1: return Value::boolean(*rc::gen::arbitrary<bool>());
    case 2: return Value::integer(*rc::gen::arbitrary<std::int64_t>());
    case 3: return Value::integer(*rc::gen::arbitrary<std::uint64_t>());
    case 4: return Value::real(*rc::gen::arbitrary<double>());
    case 5:
      return Value::bytes(std::vector<std::byte>(static_cast<std::size_t>(*rc::gen::inRange(0, 5)), std::byte{0xf1}));
    case 6: {
      std::vector<Value> items;
      const int n = *rc::gen::inRange(0, 4);
      for (int i = 0; i < n; ++i) items.push_back(a_value(depth + 1));
      return Value::list(std::move(items));
    }
    default: {
      std::vector<Value::Entry> entries;
      const int n = *rc::gen::inRange(0, 4);
      for (int i = 0; i < n; ++i) entries.emplace_back(std::to_string(i) + a_text(), a_value(depth + 1));
      return Value::map(std::move(entries));
    }
  }
}

inline std::vector<Value::Entry> some_attributes(const std::string& prefix) {
  std::vector<Value::Entry> out;
  const int n = *rc::gen::inRange(0, 3);
  for (int i = 0; i < n; ++i) out.emplace_back(prefix + std::to_string(i) + a_text(), a_value());
  return out;
}

inline std::vector<std::uint64_t> a_shape() {
  std::vector<std::uint64_t> out(static_cast<std::size_t>(*rc::gen::inRange(0, 4)));
  for (std::uint64_t& d : out) d = static_cast<std::uint64_t>(*rc::gen::inRange(0, 9));
  return out;
}

inline Bytes u64s(const std::vector<std::uint64_t>& values) {
  std::vector<std::byte> bytes(values.size() * 8);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(values[i / 8] >> (8 * (i % 8)));
  return convert::testing::keep(std::move(bytes));
}

// Sometimes a dtype that the format cannot hold: the plan must report it.
inline DTypeInfo a_dtype(std::string_view format) {
  std::vector<DTypeInfo> types;
  if (*rc::gen::inRange(0, 40) == 0) {
    types.assign(all_dtypes().begin(), all_dtypes().end());
  } else {
    for (const DType type : find_format(format)->holds.dtypes) types.push_back(info(type));
  }
  return *rc::gen::elementOf(types);
}

inline void add_dense(Builder& builder, std::string_view format, const std::string& name, std::uint64_t seed,
                      std::vector<Value::Entry> attributes) {
  const DTypeInfo type = a_dtype(format);
  std::vector<std::uint64_t> shape = a_shape();
  if (*rc::gen::inRange(0, 8) == 0) shape = {static_cast<std::uint64_t>(*rc::gen::inRange(100'000, 400'000)) * 8};
  std::uint64_t count = 1;
  for (const std::uint64_t d : shape) count *= d;
  Bytes bytes = pattern(*packed_size(type.dtype, count), seed, type.dtype == DType::boolean);
  // The bits after the last element are not data, and zTensor 2 requires them to be zero.
  if (const std::uint64_t used = count * type.bits % 8; used != 0) {
    std::vector<std::byte> held(bytes.span.begin(), bytes.span.end());
    held.back() &= static_cast<std::byte>((1U << used) - 1);
    bytes = convert::testing::keep(std::move(held));
  }
  builder.object(name, Layout::dense, shape, std::move(attributes), {{"data", type.dtype, shape, bytes}});
}

inline void add_sparse(Builder& builder, const std::string& name, std::uint64_t seed,
                       std::vector<Value::Entry> attributes) {
  const auto count = static_cast<std::uint64_t>(*rc::gen::inRange(0, 4));
  std::vector<std::uint64_t> coords;
  for (std::uint64_t i = 0; i < count; ++i) coords.push_back(0);
  for (std::uint64_t i = 0; i < count; ++i) coords.push_back(i);
  builder.object(
      name, Layout::sparse_coo, {2, 5}, std::move(attributes),
      {{"values", DType::f32, {count}, pattern(count * 4, seed)}, {"coords", DType::u64, {2 * count}, u64s(coords)}});
}

inline Model a_model(std::string_view format) {
  Builder builder;
  for (auto& [key, value] : some_attributes("k")) builder.attribute(key, value);
  std::set<std::string> names;
  const int tensors = *rc::gen::inRange(0, 7);
  for (int i = 0; i < tensors; ++i) {
    const std::string name = a_text();
    if (!names.insert(name).second) continue;
    auto attributes = *rc::gen::inRange(0, 3) == 0 ? some_attributes("t") : std::vector<Value::Entry>{};
    const auto seed = *rc::gen::arbitrary<std::uint64_t>();
    if (*rc::gen::inRange(0, 5) == 0) {
      add_sparse(builder, name, seed, std::move(attributes));
    } else {
      add_dense(builder, format, name, seed, std::move(attributes));
    }
  }
  return builder.build();
}

// Whether a loss or change covers a difference: of the same kind, in its subject or inside it. Losing a layout covers
// the parts; losing a dtype covers the elements, which the output may then not be able to interpret.
inline bool covers(const Item& named, const Item& difference) {
  if (difference.subject.compare(0, named.subject.size(), named.subject) != 0) return false;
  if (named.kind == difference.kind || named.kind == LossKind::layout) return true;
  if (named.kind == LossKind::unsupported) return true;  // the tensor is left out
  const auto numeric = [](LossKind k) { return k == LossKind::dtype || k == LossKind::precision; };
  if (named.kind == LossKind::dtype && difference.kind == LossKind::unsupported) return true;
  return (numeric(named.kind) && numeric(difference.kind)) ||
         (named.kind == LossKind::attribute && difference.kind == LossKind::attribute_type);
}

// Attributes that a container adds to the model with its own header fields.
inline bool is_header_field(const Item& difference, std::string_view format) {
  const std::string own = "attributes[\"" + std::string(format) + ".";
  return difference.from.empty() && difference.subject.compare(0, own.size(), own) == 0;
}

// The name that an npy gives to its tensor, whose own name is a loss.
inline bool is_given_name(const Item& difference, std::string_view format) {
  return format == "npy" && difference.from.empty() && difference.subject == "tensors[\"array\"]";
}

inline void check_trip(const Model& model, std::string_view format, Options options, const Context& context) {
  const TemporaryFolder folder;
  options.allow = every_loss();
  const Plan p = plan(model, format, options);
  if (!p.blockers().empty()) {
    RC_ASSERT_THROWS_AS(p.execute(folder / "out", context), Error);
    RC_ASSERT(folder.entries().empty());
    return;
  }
  p.execute(folder / "out", context);
  p.execute(folder / "again", context);
  RC_ASSERT(read_file(folder / "out") == read_file(folder / "again"));
  OpenOptions as;
  as.format = std::string(format);
  const Model out = open(folder / "out", context, as);
  const std::uint64_t size = std::filesystem::file_size(folder / "out");
  RC_ASSERT(size <= p.output_size());
  if (p.output_size_exact()) RC_ASSERT(size == p.output_size());
  for (const Item& difference : core::compare(model, out)) {
    const auto covered = [&](const Item& named) { return covers(named, difference); };
    if (std::ranges::any_of(p.losses(), covered) || std::ranges::any_of(p.changes(), covered) ||
        is_header_field(difference, format) || is_given_name(difference, format))
      continue;
    RC_FAIL(std::string(format) + ": nobody named " + difference.subject + " (" + std::string(name(difference.kind)) +
            "): " + difference.from + " -> " + difference.to);
  }
  if (p.losses().empty()) RC_ASSERT(content_digest(model) == content_digest(out, context));
}

}  // namespace weighbridge::test
