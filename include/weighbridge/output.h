// SPDX-License-Identifier: Apache-2.0
/// \file
/// Writes a file, or several files of one folder, that appear complete or not at all. For output that is not a model
/// (extracted tensors).
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "weighbridge/source.h"

namespace weighbridge {

/// A file being written under a temporary name.
class OutputFile {
 public:
  /// Creates a temporary beside `path`. Throws Error{misuse} if a file exists and `replace` is off, if `path` is not a
  /// regular file, or if it is one of `inputs` through any link; Error{io} if the temporary cannot be created.
  /// @param inputs files that are being read
  OutputFile(const std::string& path, bool replace, std::span<const std::shared_ptr<const Source>> inputs = {});
  /// Throws what the constructor would throw about the path as it is now. Changes nothing.
  static void check(const std::string& path, bool replace);
  ~OutputFile();  ///< without publish() nothing is left behind
  OutputFile(OutputFile&&) noexcept;
  OutputFile& operator=(OutputFile&&) noexcept;

  void write(std::span<const std::byte> bytes);  ///< Appends. Throws Error{io}.
  /// Overwrites bytes that were written, for headers whose counts are known only at the end.
  void rewrite(std::uint64_t offset, std::span<const std::byte> bytes);
  /// Syncs the file, checks that it holds what was written and that the inputs have not changed, then renames it to its
  /// path. Throws Error{io}.
  void publish();

 private:
  struct Rep;
  std::unique_ptr<Rep> rep_;
};

/// Files that go into one folder together. They are written in a temporary folder and moved into place when all are
/// complete. A new folder appears with all of them in one step. In an existing folder they are moved one by one; if a
/// move fails, the folder is restored (on a filesystem that cannot exchange two names, files that were already replaced
/// stay replaced).
class OutputFiles {
 public:
  /// Creates the temporary folder inside `folder` if that exists, else beside it, with missing parent folders. Throws
  /// Error{misuse} if something other than a folder is in the way, or if a component before ".." does not exist;
  /// Error{io}.
  /// @param replace whether existing files may be replaced; symbolic links never are
  /// @param inputs files that are being read; none of them is replaced, through any link
  OutputFiles(const std::string& folder, bool replace, std::span<const std::shared_ptr<const Source>> inputs = {});
  ~OutputFiles();  ///< without publish(), removes everything, also the folders that it created
  OutputFiles(OutputFiles&&) noexcept;
  OutputFiles& operator=(OutputFiles&&) noexcept;

  /// Adds a file by its name in the folder. Add all files before writing, because this refuses those that cannot be
  /// published.
  /// @returns the path to write it to before publish(). Use an OutputFile or a function that uses one, which syncs the
  ///   bytes; publish() only moves files
  /// @throws Error misuse: the name is not a single component or was added before, or the folder has something of this
  ///   name that may not be replaced.
  std::string add(const std::string& name);
  /// The final path of a file with this name.
  std::string path(const std::string& name) const;
  /// Checks that the inputs have not changed, and moves all added files into place; all must be written. If another
  /// process publishes to the folder, waits up to ten seconds, then throws Error{io}. Throws Error{misuse} if something
  /// that may not be replaced has appeared in the folder; none of the files is then in it. Throws Error{io}.
  void publish();

 private:
  struct Rep;
  std::unique_ptr<Rep> rep_;
};

/// For a program that must end at once, after Ctrl-C say: removes the temporaries of every output that this process has
/// not published, also those of Plan::execute(), after waiting for one that is being published. Creating and publishing
/// outputs then blocks in every thread, so end the process.
void abandon_outputs() noexcept;

}  // namespace weighbridge
