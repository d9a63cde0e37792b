// SPDX-License-Identifier: Apache-2.0
// The mapping between encodings and codecs.
#include "core/payload/payload.h"

#include <utility>

namespace weighbridge {
namespace {

constexpr std::pair<Encoding, const codecs::Codec*> kCoded[] = {{Encoding::raw, &codecs::kRaw},
                                                                {Encoding::zstd, &codecs::kZstd},
                                                                {Encoding::deflate, &codecs::kDeflate},
                                                                {Encoding::zstd_seekable, &codecs::kZstdSeekable}};

}  // namespace

namespace core {

const codecs::Codec* codec_of(Encoding encoding) noexcept {
  for (const auto& [known, codec] : kCoded)
    if (known == encoding) return codec;
  return nullptr;
}

Encoding encoding_named(std::string_view name) noexcept {
  for (const auto& [known, codec] : kCoded)
    if (codec->name == name) return known;
  return Encoding::unknown;
}

bool is_coded(Encoding encoding) noexcept { return encoding != Encoding::raw && codec_of(encoding) != nullptr; }

}  // namespace core

std::string_view name(Encoding encoding) noexcept {
  if (const codecs::Codec* const codec = core::codec_of(encoding)) return codec->name;
  return encoding == Encoding::computed ? "computed" : "unknown";
}

}  // namespace weighbridge
