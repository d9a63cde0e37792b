// SPDX-License-Identifier: Apache-2.0
// Warns of what other programs would run, or trust, when they load the folder. weighbridge runs none of it. Only verify
// asks for it: whoever opens the folder every day knows it.
#pragma once
#include <span>

#include "core/draft.h"
#include "formats/huggingface/json_file.h"

namespace weighbridge::huggingface {

// `files`: those of the folder besides config.json and the weights. `pickled`: the weights are pickles.
void report_trust(Reading&, std::span<const core::FolderFile> files, bool pickled);

}  // namespace weighbridge::huggingface
