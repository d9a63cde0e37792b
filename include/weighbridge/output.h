// SPDX-License-Identifier: Apache-2.0
/// \file
/// A file that appears whole or not at all, for callers who write what is no model (an extracted tensor).
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "weighbridge/source.h"

namespace weighbridge {

/// A file in the making, under a temporary name.
class OutputFile {
 public:
  /// Begins a temporary beside `path`. Throws Error{misuse} when a file is there and `replace` is off, when `path` is
  /// no regular file, or when it is one of `inputs` by any link; Error{io} when it cannot be made.
  OutputFile(const std::string& path, bool replace, std::span<const std::shared_ptr<const Source>> inputs = {});
  ~OutputFile();  ///< without publish() nothing is left behind
  OutputFile(OutputFile&&) noexcept;
  OutputFile& operator=(OutputFile&&) noexcept;

  void write(std::span<const std::byte> bytes);  ///< Appends. Throws Error{io}.
  /// Puts other bytes in the place of some that were written, as headers need whose counts are known at the end.
  void rewrite(std::uint64_t offset, std::span<const std::byte> bytes);
  /// Waits for the disk, then gives the file its name. Throws Error{io}.
  void publish();

 private:
  struct Rep;
  std::unique_ptr<Rep> rep_;
};

}  // namespace weighbridge
