// SPDX-License-Identifier: Apache-2.0
// Several files that go into one folder together: made in a temporary folder, and moved into their place when all of
// them are there. Leaves writing each one to its verb.
#pragma once
#include <sys/stat.h>

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "weighbridge/source.h"

namespace weighbridge::cli {

class Staging {
 public:
  // The temporary is made inside of `folder` where that exists, beside it otherwise, with the folders above it. Error
  // misuse/output-kind where something that is no folder is in the way, or nothing is where ".." begins; Error{io}.
  Staging(std::string folder, bool replace);
  // Without publish() nothing is left behind.
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  // Error misuse/output-exists, output-kind or output-is-input where the folder has something of this name that may not
  // be replaced, and a symbolic link is never followed: before the work.
  void require_free(const std::string& name, std::span<const std::shared_ptr<const Source>> inputs) const;
  // Where to write the file of this name, and where it will be.
  std::string temporary(const std::string& name) const { return (temporary_ / name).string(); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  // Moves what was written, all of `names`, into its place. Error misuse/output-exists where something has appeared
  // there meanwhile that may not be replaced: then nothing is left in the folder; Error{io}.
  void publish(const std::vector<std::string>& names);

 private:
  std::string cannot_make() const;
  void find_missing();
  void make_temporary(const std::filesystem::path& where, const std::string& of);
  void remove_made() noexcept;
  void publish_folder();
  void publish_files(const std::vector<std::string>& names);
  void take_back(const std::vector<std::string>& names, const std::vector<struct stat>& moved) const;

  std::filesystem::path folder_, temporary_;
  int lock_ = -1;  // of the temporary, for as long as this run lives
  bool replace_, exists_ = false;
  std::vector<std::filesystem::path> made_;  // folders above it, the outermost first
};

}  // namespace weighbridge::cli
