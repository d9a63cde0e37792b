// SPDX-License-Identifier: Apache-2.0
// The small Hugging Face folders of the tests, on a disk.
#pragma once
#include <filesystem>
#include <string>

#include "support/huggingface_testing.h"
#include "support/temporary_folder.h"

namespace weighbridge::huggingface::testing {

inline void write_files(const std::string& folder, const Files& files) {
  for (const auto& [name, bytes] : files) {
    const std::filesystem::path path = std::filesystem::path(folder) / name;
    std::filesystem::create_directories(path.parent_path());
    test::write_file(path.string(), bytes);
  }
}

}  // namespace weighbridge::huggingface::testing
