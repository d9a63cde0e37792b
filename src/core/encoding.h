// SPDX-License-Identifier: Apache-2.0
// Maps the model's encodings to rows of the table of codecs.
#pragma once
#include <string_view>

#include "codecs/codec.h"
#include "weighbridge/model.h"

namespace weighbridge::core {

// Null for computed and unknown.
const codecs::Codec* codec_of(Encoding) noexcept;
// Encoding::unknown if no codec has this name.
Encoding encoding_named(std::string_view) noexcept;
// Whether a codec other than raw must decode the stored bytes.
bool is_coded(Encoding) noexcept;

}  // namespace weighbridge::core
