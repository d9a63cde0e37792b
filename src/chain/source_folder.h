// SPDX-License-Identifier: Apache-2.0
// A source folder: source.manifest and tensors/*.f32. Owns the rules for paths of tensors, and opening files so that
// nothing outside the folder is ever read; leaves judging the bytes to validate_source.cc.
//
// PATHS  "tensors/" and one name of a-z, A-Z, 0-9, '.', '_', '-' that does not begin with '.' or '-' and ends in
// ".f32".
//        That excludes absolute paths, "..", "TENSORS/" and a second '/'. Names that differ only in case are refused:
//        they are one file on some disks. The folder and the files are opened without following symbolic links, and a
//        file with more than one hard link is refused: it could be changed under its other name, anywhere.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/fd.h"
#include "weighbridge/source.h"

namespace weighbridge::chain {

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
  // The names in tensors/, sorted.
  std::vector<std::string> tensor_names() const;

 private:
  std::shared_ptr<const Source> open_at(int folder, const std::string& name, const std::string& shown) const;

  std::string path_;
  io::Fd folder_, tensors_;
};

}  // namespace weighbridge::chain
