// SPDX-License-Identifier: Apache-2.0
// Bytes that stand for other bytes: what a program packs before it puts them into a pickle.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weighbridge::core {

inline constexpr std::string_view kBase64 = "base64";

struct Packing {
  std::string_view name{};  // empty: the bytes are not packed in a way that is known here
  bool readable = false;    // unpack() can read it
};
// By the first kPackingHead bytes, or all of them.
inline constexpr std::size_t kPackingHead = 18;
Packing packing_of(std::string_view first) noexcept;

struct Unpacked {
  std::string bytes{};
  bool too_large = false;  // more than `most`, and `bytes` are none
};
// Of a readable packing. nullopt: the bytes only begin like it.
std::optional<Unpacked> unpack(const Packing&, std::string_view bytes, std::uint64_t most);

}  // namespace weighbridge::core
