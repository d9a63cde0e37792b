// SPDX-License-Identifier: Apache-2.0
// A window of the file in memory that moves with a walk over its fields, so that skipped fields are not read.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/checked.h"
#include "weighbridge/source.h"
#include "wire/protobuf_reader.h"

namespace weighbridge::onnx {

class Window final : public wire::ProtobufBytes {
 public:
  explicit Window(const Source& source) : source_(source) {}

  std::uint64_t size() const noexcept override { return source_.size(); }

  std::span<const std::byte> from(std::uint64_t offset, std::size_t minimum) override {
    if (offset < begin_ || !base::fits(offset - begin_, minimum, bytes_.size())) {
      // Grow the window while reading sequentially; shrink it after a seek.
      const bool onward = offset >= begin_ && offset - begin_ <= bytes_.size();
      piece_ = onward ? std::min(2 * piece_, kMaxPiece) : kMinPiece;
      const std::uint64_t length = std::min<std::uint64_t>(std::max(piece_, minimum), source_.size() - offset);
      bytes_.resize(base::to_size(length));
      begin_ = offset;
      source_.read_at(offset, bytes_);
    }
    return std::span<const std::byte>(bytes_).subspan(base::to_size(offset - begin_));
  }

 private:
  static constexpr std::size_t kMinPiece = 4096, kMaxPiece = std::size_t{1} << 16;
  const Source& source_;
  std::vector<std::byte> bytes_;
  std::uint64_t begin_ = 0;
  std::size_t piece_ = kMinPiece / 2;
};

}  // namespace weighbridge::onnx
