// SPDX-License-Identifier: Apache-2.0
// Changes beneath the seals of a format: lengths, checksums and sizes that would stop everything at the door are made
// anew after a change, so that the rules behind them are reached.
#pragma once
#include <string>
#include <string_view>

#include "corpus/mutate.h"

namespace weighbridge::test {

// Changes `bytes`, a file of `format` (as the registry names it). Of a format whose index has its length beside it,
// either the index changes, and the length with it, or the payload; of the others all, and then the checksums.
void change_beneath_seal(std::string_view format, std::string& bytes, const std::string& donor, Mutator&);

}  // namespace weighbridge::test
