// SPDX-License-Identifier: Apache-2.0
// An output that is a folder. Creates it where needed, writes each file beside its final name, and checks all files
// together before any of them gets its final name. write.h writes the payload files, io/publication.h renames.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/reading/format.h"
#include "core/writing/layout.h"
#include "io/atomic_file.h"
#include "io/publication.h"
#include "weighbridge/context.h"

namespace weighbridge::convert {

class OutputFolder {
 public:
  // Throws misuse/output-kind when the path is a file or a name in the folder is a symbolic link, misuse/output-exists
  // when the folder is not empty and `replace` is off, and io/create.
  OutputFolder(const core::OutFolder&, const std::string& path, bool replace);
  // Throws what the constructor would throw about the path as it is now. Changes nothing.
  static void check_path(const std::string& path, bool replace);
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

  // Every path that will be written or removed.
  std::vector<std::string> paths() const;
  // Creates the payload files, empty, beside their names, and writes the small files. Throws io/create, io/write.
  void write();
  // One payload file, in the order of OutFolder::payloads. Call write() first.
  io::AtomicFile& payload(std::size_t i) { return *payloads_[i]; }
  // Opens the folder as it will be once published, in this format, from the files written so far. Throws io/read-back.
  void check(std::string_view format, const Context&) const;
  // The file that is published last, and all the others, to be published and removed with it.
  io::AtomicFile& last() const;
  void add_others(io::Publication&) const;
  // The folders that this created, which go again unless they are kept once the last file has its final name.
  io::MadeFolders& made() noexcept { return made_; }

 private:
  std::string file(const std::string& name) const;
  void find_removed();
  void remove_left_over() const;
  void require_inside(const std::string& path) const;

  const core::OutFolder& layout_;
  std::string path_;
  bool replace_;
  io::MadeFolders made_;              // before the files in them, which are removed first
  std::vector<std::string> removed_;  // names of files to remove
  std::vector<std::unique_ptr<io::AtomicFile>> payloads_;
  std::vector<std::pair<std::string, std::unique_ptr<io::AtomicFile>>> small_;
};

}  // namespace weighbridge::convert
