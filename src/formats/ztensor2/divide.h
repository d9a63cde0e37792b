// SPDX-License-Identifier: Apache-2.0
// Divides a laid-out file of zTensor 2 into shards (7.1): model-00001-of-00003.zt and so on, each a model of its own
// tensors, and model.zt, whose manifest has all tensors and the metadata of the model.
#pragma once
#include <cstdint>
#include <memory>

#include "core/format.h"
#include "formats/ztensor2/manifest.h"

namespace weighbridge::ztensor2 {

// `whole` is laid out and possible; its manifest is `manifest`. A shard has at most `most` bytes of parts, if it has
// more than one tensor; tensors that share bytes are in one shard. `digest` is that of
// the shards' files, xxh3 in place of none, because the table of shards must have one.
core::WriteLayout divide(core::WriteLayout whole, const Manifest& manifest, std::uint64_t most,
                         core::PartDigest digest);

}  // namespace weighbridge::ztensor2
