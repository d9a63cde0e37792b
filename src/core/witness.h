// SPDX-License-Identifier: Apache-2.0
// A model whose bytes stay those that were read first. For jobs that check the payload and then read it again: what
// passed the check is what they use, although the file may change meanwhile without a new size or time.
#pragma once
#include <memory>

#include "weighbridge/model.h"

namespace weighbridge::core {

// A source over `of` that remembers a hash of each block at its first read. Reading a block again whose bytes have
// changed throws Error io/changed. Does not map.
std::shared_ptr<const Source> witnessed(std::shared_ptr<const Source> of);
// The same model over such sources.
Model witnessed(const Model&);

}  // namespace weighbridge::core
