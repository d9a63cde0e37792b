// SPDX-License-Identifier: Apache-2.0
// LZF, as LibLZF 3.6 defines it and h5py's filter stores it: bytes to copy, and references to at most 8 KiB back. Only
// for reading.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "codecs/coding.h"

namespace weighbridge::codecs {
namespace {

constexpr std::size_t kBack = std::size_t{8} << 10, kInput = std::size_t{64} << 10, kRoom = std::size_t{128} << 10;

class LzfDecoder final : public Decoder {
 public:
  DecodeResult decode(std::uint64_t demanded, std::uint64_t memory_limit, const Pull& pull, const Sink& sink) override {
    constexpr std::uint64_t kNeeded = kInput + kRoom;
    if (const std::uint64_t needed = std::min(kNeeded, demanded); needed > memory_limit)
      return fault(DecodeFault::memory, 0,
                   "decoding lzf takes " + std::to_string(needed) + " bytes of memory, the limit is " +
                       std::to_string(memory_limit),
                   memory_limit, needed);
    pull_ = &pull;
    taken_ = read_ = filled_ = 0;
    std::uint64_t made = 0;
    std::size_t end = 0, sent = 0;  // of the bytes in room_, and of those that the sink has
    for (int control = 0; (control = next()) >= 0;) {
      // The five low bits count bytes to copy, or are the high bits of a distance; the others are a length, 7 of more.
      std::size_t length = static_cast<std::size_t>(control) + 1, distance = 0;
      if (control >= 32) {
        int more = 0, low = 0;
        if ((control >> 5) == 7 && (more = next()) < 0) return truncated("stored bytes,", taken_, made, demanded);
        if ((low = next()) < 0) return truncated("stored bytes,", taken_, made, demanded);
        length = static_cast<std::size_t>((control >> 5) + more + 2);
        distance = static_cast<std::size_t>((control & 31) << 8 | low) + 1;
        if (distance > made)
          return fault(DecodeFault::corrupt, taken_, "the lzf data refers to bytes before its beginning");
      }
      if (length > demanded - made)
        return fault(DecodeFault::too_long, taken_,
                     "the lzf data holds more than the " + std::to_string(demanded) + " bytes that its chunk needs",
                     demanded, demanded + 1);
      if (end + length > room_.size()) {
        if (!sink(std::span(room_).subspan(sent, end - sent))) return stopped(taken_);
        std::memmove(room_.data(), room_.data() + (end - kBack), kBack);
        end = sent = kBack;
      }
      for (std::size_t i = 0; i < length; ++i, ++end) {
        if (distance > 0) {
          room_[end] = room_[end - distance];
          continue;
        }
        const int literal = next();
        if (literal < 0) return truncated("stored bytes,", taken_, made + i, demanded);
        room_[end] = static_cast<std::byte>(literal);
      }
      made += length;
    }
    if (end > sent && !sink(std::span(room_).subspan(sent, end - sent))) return stopped(taken_);
    if (made == demanded) return {};
    return fault(DecodeFault::too_short, taken_,
                 "the lzf data holds " + std::to_string(made) + " bytes, its chunk needs " + std::to_string(demanded),
                 demanded, made);
  }

  std::size_t kept() const noexcept override { return input_.size() + room_.size(); }

 private:
  // -1: there are no more.
  int next() {
    if (read_ == filled_) {
      read_ = 0;
      filled_ = (*pull_)(input_);
      if (filled_ == 0) return -1;
    }
    ++taken_;
    return std::to_integer<int>(input_[read_++]);
  }

  std::vector<std::byte> input_ = std::vector<std::byte>(kInput), room_ = std::vector<std::byte>(kRoom);
  const Pull* pull_ = nullptr;
  std::uint64_t taken_ = 0;
  std::size_t read_ = 0, filled_ = 0;
};

}  // namespace

std::unique_ptr<Decoder> make_lzf_decoder() { return std::make_unique<LzfDecoder>(); }

}  // namespace weighbridge::codecs
