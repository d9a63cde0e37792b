// SPDX-License-Identifier: Apache-2.0
// A source folder: source.manifest and tensors/*.f32. Owns what a tensor's path may be and opening it so that nothing
// outside of the folder is ever read; leaves what the bytes must be to validate_source.cc.
//
// PATHS  "tensors/" and one name of a-z, A-Z, 0-9, '.', '_', '-' that begins with none of '.', '-' and ends in ".f32".
//        That leaves no way out by absolute paths, "..", "TENSORS/" or a second '/'. Names that differ in case only are
//        refused: they are one file on some disks. The folder and the files are opened without following a symbolic
//        link, and a file with more than one hard link is refused: another name, somewhere else, could change it.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/fd.h"
#include "weighbridge/source.h"

namespace weighbridge::chain {

inline constexpr std::string_view kTensorFolder = "tensors";

// Why a path is none; empty where it is good.
std::string path_problem(std::string_view path);

// The files of a source folder, which a step that reads it may not write over: manifest, review and tensors.
std::vector<std::string> source_files(const std::string& folder);

class SourceFolder {
 public:
  // Error io/open; chain/path where source.manifest's folder "tensors" is missing or a link.
  explicit SourceFolder(const std::string& path);
  // A regular file with one link at this name in the folder itself. Error chain/path, io.
  std::shared_ptr<const Source> file(const std::string& name) const;
  // The same below tensors/; `path` has no path_problem().
  std::shared_ptr<const Source> tensor(const std::string& path) const;
  // What lies in tensors/, sorted.
  std::vector<std::string> tensor_names() const;

 private:
  std::shared_ptr<const Source> open_at(int folder, const std::string& name, const std::string& shown) const;

  std::string path_;
  io::Fd folder_, tensors_;
};

}  // namespace weighbridge::chain
