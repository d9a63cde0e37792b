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

// Of a readable packing. Takes what it makes from `left`, also where it fails, and all of `left` if there is more.
// nullopt: the bytes only begin like it, or there is more.
std::optional<std::string> unpack(const Packing&, std::string_view bytes, std::uint64_t& left);

}  // namespace weighbridge::core
