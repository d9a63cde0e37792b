// SPDX-License-Identifier: Apache-2.0
// The name of a kind of vectors: a digest of everything besides the text that decides their bits.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/embed/family.h"
#include "weighbridge/context.h"

namespace weighbridge::embed {

// "mean", "cls+max"
std::string text_of(const std::vector<Pooling>&);

// What a family adds to the facts that all have.
using KindLines = std::vector<std::pair<std::string_view, std::string>>;
// The name under which a tensor counts; none for one that takes no part.
using KindName = std::function<std::optional<std::string_view>(std::string_view tensor)>;

// The modules and the number of kept numbers, if the model states them.
void add_module_lines(const Model&, KindLines&);
// Whether the tensor belongs to a module that the model states.
bool is_of_module(const Model&, std::string_view tensor);

// Reads the model once for both. `words` is null without a vocabulary.
EmbedDigests digests_of(const Model&, const Family::Facts&, const KindLines&, const KindName&, const WordPiece* words,
                        const Context&);

}  // namespace weighbridge::embed
