// SPDX-License-Identifier: Apache-2.0
// Canonical conversions (Options::canonical): a view of a model that depends on its content alone. The writers do the
// rest: they do not copy stored bytes verbatim and do not share them.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "weighbridge/context.h"
#include "weighbridge/convert.h"

namespace weighbridge::core {

struct Canonical {
  Model model;
  std::vector<Item> losses, changes;
};
// Tensors, parts, attributes and maps in them are in the order of the bytes of their names. Leaves out what is not
// content: unknown keys, which are losses, and the attributes that say when or by what the input was made, which are
// changes.
Canonical canonical(const Model&);
// The same vocabulary with its tokens by id, its merges by rank and its special tokens by name.
Tokenizer canonical(Tokenizer);

// [reads] Passes the elements of an index part to the sink as u64.
void stream_widened(const Part&, const Context&, const std::function<void(std::span<const std::byte>)>& sink);

}  // namespace weighbridge::core
