// SPDX-License-Identifier: Apache-2.0
// Which row of the table of codecs an encoding of the model is: the one place that knows both.
#pragma once
#include <string_view>

#include "codecs/codec.h"
#include "weighbridge/model.h"

namespace weighbridge::core {

// Null for bytes that no codec makes: computed, unknown.
const codecs::Codec* codec_of(Encoding) noexcept;
// Encoding::unknown: there is no codec of this name.
Encoding encoding_named(std::string_view) noexcept;
// Stored bytes that a codec other than raw must decode.
bool is_coded(Encoding) noexcept;

}  // namespace weighbridge::core
