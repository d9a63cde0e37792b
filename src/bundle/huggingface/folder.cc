// SPDX-License-Identifier: Apache-2.0
// Folders on disk.
#include "bundle/huggingface/folder.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace weighbridge::huggingface {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSigns[] = {kConfig, kWeights, kIndex, kPickle, kPickleIndex};

std::string last_component(const std::string& path) {
  std::error_code error;
  fs::path whole = fs::absolute(path, error);
  if (error) whole = path;
  whole = whole.lexically_normal();
  return (whole.has_filename() ? whole : whole.parent_path()).filename().string();
}

bool is_below(const fs::path& path, const fs::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first == folder.end();
}

bool leads_out(const fs::path& folder, std::string_view relative) {
  std::error_code error;
  const fs::path home = fs::canonical(folder, error);
  if (error) return false;  // whoever opens the file will say so
  const fs::path there = fs::canonical(folder / relative, error);
  if (error || is_below(there, home)) return false;
  // models--x--y/snapshots/<revision>/model.safetensors -> ../../blobs/<digest>
  const bool cached = home.parent_path().filename() == "snapshots";
  return !cached || !is_below(there, home.parent_path().parent_path() / "blobs");
}

}  // namespace

Folder open_folder(const std::string& path, Access access) {
  Folder out;
  out.name = last_component(path);
  const fs::path folder = path;
  out.file = [folder, access](std::string_view relative) -> std::shared_ptr<const Source> {
    const std::string file = (folder / relative).string();
    std::error_code error;
    // A file that is there and cannot be looked at is open_file's to complain of.
    if (fs::status(file, error).type() == fs::file_type::not_found) return nullptr;
    return open_file(file, access);
  };
  out.leads_out = [folder](std::string_view relative) { return leads_out(folder, relative); };
  return out;
}

bool recognize(const Folder& folder) {
  return std::ranges::any_of(kSigns, [&](std::string_view sign) { return folder.file(sign) != nullptr; });
}

std::string looked_for() {
  std::string out;
  for (std::size_t i = 0; i < std::size(kSigns); ++i) {
    if (i > 0) out += i + 1 == std::size(kSigns) ? " and " : ", ";
    out += kSigns[i];
  }
  return out;
}

}  // namespace weighbridge::huggingface
