// SPDX-License-Identifier: Apache-2.0
// An output that is a folder: made where there is none, its small files written beside their names, checked with the
// main file before anything has its name. Leaves the main file to those who write any file, and giving names to
// publish.h.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "convert/publish.h"
#include "core/format.h"
#include "io/atomic_file.h"
#include "weighbridge/context.h"

namespace weighbridge::convert {

class OutputFolder {
 public:
  // Error misuse/output-kind when a file is there or a name in the folder is a symbolic link, misuse/output-exists when
  // the folder holds something and `replace` is off, io/create.
  OutputFolder(const core::OutFolder&, const std::string& path, bool replace);
  ~OutputFolder();  // folders that were made and not kept go again
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

  std::string main() const;
  // Every path that will be written or removed, the main file's too.
  std::vector<std::string> paths() const;
  // Writes the small files beside their names. Error io/write.
  void write();
  // Opens the folder as it will be, with the main file as it is so far.
  void check(const io::AtomicFile& main, const Context&) const;
  // All but the main file, for publish_together().
  std::vector<Beside> beside() const;
  // Waits until the disk has the folders that were made. Error io/publish.
  void sync() const;
  // The main file has its name.
  void keep() noexcept { kept_ = true; }

 private:
  std::string file(const std::string& name) const;
  void make_folder(const std::string& path);
  void require_inside(const std::string& path) const;

  const core::OutFolder& layout_;
  std::string path_;
  bool replace_;
  std::vector<std::string> made_;  // folders, outermost first
  std::vector<std::pair<std::string, std::unique_ptr<io::AtomicFile>>> files_;
  bool kept_ = false;
};

}  // namespace weighbridge::convert
