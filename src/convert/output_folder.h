// SPDX-License-Identifier: Apache-2.0
// An output that is a folder: made where there is none, its files written beside their names, all checked together
// before any has its name. Leaves what the files of payload hold to those who write any file, and giving names to
// publish.h.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
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

  // Every path that will be written or removed.
  std::vector<std::string> paths() const;
  // Makes the files of payload, empty, beside their names, and writes the small ones. Error io/create, io/write.
  void write();
  // In the order of OutFolder::payloads; once write() has made them.
  io::AtomicFile& payload(std::size_t i) { return *payloads_[i]; }
  // Opens the folder as it will be, as this format, with the files of payload as they are so far. Error io/read-back.
  void check(std::string_view format, const Context&) const;
  // The file that is published last, and all others, for publish_together().
  io::AtomicFile& last() const;
  std::vector<Beside> beside() const;
  // Waits until the disk has the folders that were made. Error io/publish.
  void sync() const;
  // The last file has its name.
  void keep() noexcept { kept_ = true; }

 private:
  std::string file(const std::string& name) const;
  void find_removed();
  void make_folder(const std::string& path);
  void require_inside(const std::string& path) const;

  const core::OutFolder& layout_;
  std::string path_;
  bool replace_;
  std::vector<std::string> made_;     // folders, outermost first
  std::vector<std::string> removed_;  // names of files that must go
  std::vector<std::unique_ptr<io::AtomicFile>> payloads_;
  std::vector<std::pair<std::string, std::unique_ptr<io::AtomicFile>>> small_;
  bool kept_ = false;
};

}  // namespace weighbridge::convert
