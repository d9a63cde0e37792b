// SPDX-License-Identifier: Apache-2.0
// A source folder: source.manifest and the files below tensors/. Owns the rules for paths of tensors, and opening files
// so that nothing outside the folder is ever read; leaves judging the bytes to validate_source.cc.
//
// PATHS  any below "tensors/" that stays there: names of folders and of a file, with any ending. Excluded are absolute
//        paths, "TENSORS/", empty names, ".", "..", control characters, and the backslash, which separates folders on
//        some systems. Paths that differ only in case are refused: they are one file on some disks. The folders and the
//        files are opened without following symbolic links, and a file with more than one hard link is refused: it
//        could be changed under its other name, anywhere.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/fd.h"
#include "weighbridge/source.h"

namespace weighbridge::chain::internal {

inline constexpr std::string_view kTensorFolder = "tensors";

// Why the path is not allowed; empty if it is.
std::string path_problem(std::string_view path);

// The files of a source folder that a step reading it must not overwrite: manifest, review and tensors.
std::vector<std::string> source_files(const std::string& folder);

class SourceFolder {
 public:
  // Throws io/open, and chain/path if the folder "tensors" is missing or a link.
  explicit SourceFolder(const std::string& path);
  // Opens a regular file with one hard link, directly in the folder. Throws chain/path, io.
  std::shared_ptr<const Source> file(const std::string& name) const;
  // The same below tensors/; `path` must be one without a path_problem().
  std::shared_ptr<const Source> tensor(const std::string& path) const;
  // The paths of all that is below tensors/ and is no folder, sorted. Throws chain/path for folders too deep.
  std::vector<std::string> tensor_paths() const;

 private:
  void list(int folder, const std::string& path, unsigned depth, std::vector<std::string>& out) const;
  std::shared_ptr<const Source> open_at(int folder, const std::string& name, const std::string& shown) const;

  std::string path_;
  io::Fd folder_, tensors_;
};

}  // namespace weighbridge::chain::internal
