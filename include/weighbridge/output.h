// SPDX-License-Identifier: Apache-2.0
/// \file
/// A file, or several files of one folder, that appear whole or not at all, for callers who write what is no model
/// (extracted tensors).
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
  /// @param inputs files that are being read
  OutputFile(const std::string& path, bool replace, std::span<const std::shared_ptr<const Source>> inputs = {});
  ~OutputFile();  ///< without publish() nothing is left behind
  OutputFile(OutputFile&&) noexcept;
  OutputFile& operator=(OutputFile&&) noexcept;

  void write(std::span<const std::byte> bytes);  ///< Appends. Throws Error{io}.
  /// Puts other bytes in the place of some that were written, as headers need whose counts are known at the end.
  void rewrite(std::uint64_t offset, std::span<const std::byte> bytes);
  /// Waits for the disk, compares what the file holds with what was written, and the inputs with what they were when
  /// they were opened, then gives it its name. Throws Error{io}.
  void publish();

 private:
  struct Rep;
  std::unique_ptr<Rep> rep_;
};

/// Files that go into one folder together: written in a temporary folder, and moved into their place when all of them
/// are there. Where the folder is new, it appears with all of them in one step; where it is there, one after the other,
/// and when one cannot be moved the folder is as it was (on a filesystem that cannot exchange two names, but for files
/// that were replaced already).
class OutputFiles {
 public:
  /// Makes the temporary inside of `folder` where that exists, beside it otherwise, with the folders above it. Throws
  /// Error{misuse} when something that is no folder is in the way, or nothing is where ".." begins; Error{io}.
  /// @param replace whether files of the folder may be replaced; a symbolic link never is
  /// @param inputs files that are being read: none of them is replaced, by any link
  OutputFiles(const std::string& folder, bool replace, std::span<const std::shared_ptr<const Source>> inputs = {});
  ~OutputFiles();  ///< without publish() nothing is left behind, the folders that were made neither
  OutputFiles(OutputFiles&&) noexcept;
  OutputFiles& operator=(OutputFiles&&) noexcept;

  /// One more file, by its name in the folder; all of them before the work, as this refuses what cannot be published.
  /// @returns where to write it until publish(), by an OutputFile or what uses one: that the disk has the bytes is its
  /// matter, publish() sees to the names
  /// @throws Error misuse: the name is no single component or was added before, or the folder has something of this
  /// name that may not be replaced.
  std::string add(const std::string& name);
  /// Where a file of this name will be.
  std::string path(const std::string& name) const;
  /// Moves what was written, all that was added, into its place, where the inputs are as they were when they were
  /// opened. Waits while another run publishes into the folder, a minute at most. Throws Error{misuse} where something
  /// has appeared there meanwhile that may not be replaced: then none of them is in the folder; Error{io}.
  void publish();

 private:
  struct Rep;
  std::unique_ptr<Rep> rep_;
};

}  // namespace weighbridge
