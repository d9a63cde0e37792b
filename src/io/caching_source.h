// SPDX-License-Identifier: Apache-2.0
// A source that makes few requests, for opening files whose ranges cost a round trip each.
#pragma once
#include <memory>

#include "weighbridge/source.h"

namespace weighbridge::io {

// The source itself, unless its ranges cost a round trip each (ReadCost). Then one over it that makes few requests.
// Only reading a header tells where it ends, so readers make many small reads, one after the other. This source joins
// ranges that are less than the source's gap apart, reads ahead, and keeps up to 32 MiB of what it has read.
//
// Reading ahead begins with 1/128 of the file, at least 1/16 of the gap and at most the gap. A read that goes on less
// than the gap after the last request doubles what was read so far, by at least the gap and at most four gaps. A read
// at the end of the file reads backward. A read of at least the gap is passed on, and several threads may wait for
// theirs.
std::shared_ptr<const Source> cached(std::shared_ptr<const Source> source);

}  // namespace weighbridge::io
