// SPDX-License-Identifier: Apache-2.0
// Changes a file and then repairs the lengths, checksums and sizes that would reject it at once, so that the rules
// behind them are reached.
#pragma once
#include <functional>
#include <string>
#include <string_view>

#include "corpus/mutate.h"

namespace weighbridge::test {

using Change = std::function<void(std::string&)>;

// Changes `bytes`, a file of `format` (its name in the registry), by `change`, which takes a part of it or all. If the
// format stores the length of its index, changes either the index and its length, or the payload; otherwise changes
// anything and repairs the checksums.
void change_beneath_seal(std::string_view format, std::string& bytes, const Change& change, Mutator&);

}  // namespace weighbridge::test
