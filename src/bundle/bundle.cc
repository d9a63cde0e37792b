// SPDX-License-Identifier: Apache-2.0
// The list of formats, and telling folders from files.
#include "bundle/bundle.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "base/fail.h"
#include "bundle/huggingface/format.h"
#include "registry/registry.h"

namespace weighbridge::bundle {

std::span<const core::Format* const> formats() noexcept {
  static const std::vector<const core::Format*> all = [] {
    const auto files = registry::formats();
    std::vector<const core::Format*> out(files.begin(), files.end());
    out.push_back(&huggingface::format());
    return out;
  }();
  return all;
}

const core::Format* find(std::string_view name) noexcept {
  const auto all = formats();
  const auto found = std::ranges::find(all, name, [](const core::Format* format) { return format->info.name; });
  return found == all.end() ? nullptr : *found;
}

std::optional<huggingface::Folder> folder_at(const std::string& path, const OpenOptions& options) {
  std::error_code ignored;
  const bool wanted = options.format == huggingface::format().info.name;
  if (!std::filesystem::is_directory(path, ignored)) {
    if (wanted && std::filesystem::exists(path, ignored))
      base::misuse_of(path, "not-a-folder", "this is a file, and " + options.format + " is a folder of files");
    return std::nullopt;
  }
  if (options.tokenizer) base::misuse_of(path, "tokenizer", "this is a directory, which holds its tokenizer itself");
  if (!wanted && !options.format.empty())
    base::misuse_of(path, "not-a-file", "this is a directory, and " + options.format + " is one file");
  huggingface::Folder folder = huggingface::open_folder(path, options.access);
  if (!huggingface::recognize(folder))
    base::misuse_of(path, "not-a-file",
                    "this is a directory, and no model is in it: looked for " + huggingface::looked_for());
  return folder;
}

}  // namespace weighbridge::bundle
