// SPDX-License-Identifier: Apache-2.0
// Checks an object of the manifest, and makes a tensor or findings of it. Has the rules of sections II.2, II.3 and III.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <string_view>

#include "base/checked.h"
#include "core/payload/probe.h"
#include "formats/ztensor/cbor_entry.h"
#include "formats/ztensor/cbor_judge.h"
#include "formats/ztensor/v1/layout.h"
#include "weighbridge/context.h"
#include "wire/cbor_reader.h"

namespace weighbridge::ztensor1 {

// One object of the manifest as it is read, before it is checked.
struct Component : ztensor::CborPart {
  Component() noexcept {}  // as the base's
  bool has_offset = false, has_length = false;
  bool undecodable = false;  // set while it is checked: zstd whose decoded size is not stated
};
using Entry = ztensor::CborObject<Component>;

// An object in the spelling that the published packages and our writer use for nearly all objects: dense, with one
// part, "data", that has dtype, offset and length, and the keys in this order and no others.
struct UsualObject {
  static constexpr std::size_t kLevels = 3;  // the object, its components, the component

  UsualObject() noexcept {}  // not defaulted, as CborEntry's
  std::string_view dtype;    // a slice of the bytes
  std::uint64_t offset = 0, length = 0;
  std::size_t rank = 0;
  std::array<std::uint64_t, 23> dims;  // the most whose number is in the first byte of an array

  Shape shape() const noexcept { return {dims.data(), rank}; }

  // Returns the object's length; 0 for anything else, valid or not.
  std::size_t read(std::string_view bytes) noexcept {
    const char *next = bytes.data(), *const end = next + bytes.size();
    const auto left = [&] { return static_cast<std::size_t>(end - next); };
    const auto passes = [&]<std::size_t N>(const char(&literal)[N]) {
      if (left() < N - 1 || std::memcmp(next, literal, N - 1) != 0) return false;
      next += N - 1;
      return true;
    };
    // The number in the first byte of an array or a text, whose other bits are `kind`.
    const auto small = [&](unsigned kind, std::size_t& out) {
      if (next == end || (out = static_cast<unsigned char>(*next) ^ kind) >= 24) return false;
      ++next;
      return true;
    };
    const auto number = [&](std::uint64_t& value) {
      const std::size_t size = wire::cbor_u64(next, end, value);
      next += size;
      return size != 0;
    };
    if (!passes("\243eshape") || !small(0x80, rank)) return 0;
    for (std::size_t i = 0; i < rank; ++i)
      if (!number(dims[i])) return 0;
    std::size_t letters = 0;
    if (!passes("fformatedensejcomponents\241ddata\243edtype") || !small(0x60, letters) || left() < letters) return 0;
    dtype = {next, letters};
    next += letters;
    if (!passes("foffset") || !number(offset) || !passes("flength") || !number(length)) return 0;
    return static_cast<std::size_t>(next - bytes.data());
  }
};

class Judge : private ztensor::CborJudge {
 public:
  Judge(const Source& source, const Context& context, core::Findings& findings, core::Draft& draft,
        std::uint64_t manifest_begin)
      : CborJudge(context, findings, draft, "component"), end_(manifest_begin), probe_(source, context) {}

  using CborJudge::check_rest;
  // Adds the object to the draft unless it is broken. Moves the values out of the entry.
  void judge(Entry&);
  // Fast path: adds an object that judge() would add without a finding. Does nothing and returns false for any other.
  bool add_usual(std::string_view name, const UsualObject&);

 private:
  void check_fields(Entry&);
  void check_dense_size(Entry&, Layout);
  void check_component(Entry&, Component&);
  void check_types(Entry&, Component&);
  DType lookup(std::string_view dtype);

  Component* need(Entry&, std::string_view role);
  bool demand(Entry&, Component&, std::optional<std::uint64_t> elements, const Rule& raw_rule);
  bool loose(Entry&, Component&);
  void loose_rest(Entry&, std::initializer_list<const Component*> known);

  void dense(Entry&);
  void csr(Entry&);
  void coo(Entry&);
  void quantized(Entry&);
  // The layout of a quantization of reading Y10. nullopt if the object does not match it, so that its format is
  // unknown.
  std::optional<Layout> scaled(Entry&);
  // Whether the component holds the object's elements as whole blocks of this type.
  bool whole_blocks(Entry&, const BlockTypeInfo&, Component& data);
  // The number of elements, from the length or uncompressed_length; nullopt if only decoding shows it, or if the object
  // is broken.
  std::optional<std::uint64_t> stated_count(Entry&, const Component&);
  std::optional<std::uint64_t> probed_count(Entry&, const Component&);

  void add(Entry&, Layout);
  void add_part(Entry&, Component&);

  const std::uint64_t end_;     // the start of the manifest, where components must end
  std::string_view last_name_;  // the cache of lookup()
  DType last_dtype_ = DType::unknown;
  core::SizeProbe probe_;
};

}  // namespace weighbridge::ztensor1
