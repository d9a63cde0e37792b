// SPDX-License-Identifier: Apache-2.0
// Changes a file and then repairs the lengths, checksums and sizes that would reject it at once, so that the rules
// behind them are reached.
#pragma once
#include <string>
#include <string_view>

#include "corpus/mutate.h"

namespace weighbridge::test {

// Changes `bytes`, a file of `format` (its name in the registry). If the format stores the length of its index, changes
// either the index and its length, or the payload; otherwise changes anything and repairs the checksums.
void change_beneath_seal(std::string_view format, std::string& bytes, const std::string& donor, Mutator&);

}  // namespace weighbridge::test
