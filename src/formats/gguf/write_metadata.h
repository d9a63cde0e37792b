// SPDX-License-Identifier: Apache-2.0
// Metadata values as bytes of a GGUF header.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "core/writing/plan_items.h"
#include "weighbridge/value.h"

namespace weighbridge::gguf {

// Key-value pairs, encoded one after the other.
class MetadataOut {
 public:
  // Adds the pair in the value's own type if GGUF has it, else as text. Lists changes and losses; adds nothing if the
  // value cannot be written.
  void add(std::string_view key, const Value& value, core::PlanItems& plan_items);
  // Adds a value whose type GGUF has, and lists nothing.
  void add(std::string_view key, const Value& value);

  std::uint64_t count() const noexcept { return count_; }
  const std::string& bytes() const noexcept { return bytes_; }

 private:
  std::string bytes_;
  std::uint64_t count_ = 0;
};

// Appends the length of a text, and the text.
void append_text(std::string& to, std::string_view text);

}  // namespace weighbridge::gguf
