// SPDX-License-Identifier: Apache-2.0
// What the codec files share, and the functions through which the table creates their coders. For src/codecs/ only.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "codecs/codec.h"

namespace weighbridge::codecs {

std::unique_ptr<Decoder> make_zstd_decoder();
std::unique_ptr<Encoder> make_zstd_encoder();
std::uint64_t zstd_bound(std::uint64_t size) noexcept;
std::unique_ptr<Decoder> make_zstd_seekable_decoder();
std::unique_ptr<Encoder> make_zstd_seekable_encoder();
std::uint64_t zstd_seekable_bound(std::uint64_t size) noexcept;
std::unique_ptr<Decoder> make_deflate_decoder();
std::unique_ptr<Encoder> make_deflate_encoder();
std::unique_ptr<Decoder> make_lzf_decoder();
std::uint64_t deflate_bound(std::uint64_t size) noexcept;

// Checks the number of pushed bytes against the size given to begin().
class SizeGuard {
 public:
  void begin(std::uint64_t size) noexcept { left_ = size; }
  void take(std::size_t size);  // Error{misuse}: too many
  void finish() const;          // Error{misuse}: too few

 private:
  std::uint64_t left_ = 0;
};

DecodeResult fault(DecodeFault, std::uint64_t offset, std::string sentence, std::uint64_t expected = 0,
                   std::uint64_t found = 0);
DecodeResult truncated(std::string_view what, std::uint64_t offset, std::uint64_t made, std::uint64_t demanded);
DecodeResult stopped(std::uint64_t offset);

}  // namespace weighbridge::codecs
