// SPDX-License-Identifier: Apache-2.0
// find_models(): the models beneath a folder, each once. Reads the head of each file, and the headers of those models
// that consist of several files.
#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/model/progress.h"
#include "core/reading/rules.h"
#include "registry/detect.h"
#include "registry/registry.h"
#include "weighbridge/open.h"

namespace weighbridge {
namespace {

namespace fs = std::filesystem;

// The path without links, by which a file is known again.
std::string whole(const fs::path& path) {
  std::error_code error;
  const fs::path found = fs::canonical(path, error);
  return error ? path.native() : found.native();
}

class Finder {
 public:
  Finder(const Context& context, std::vector<Skipped>* skipped) : context_(context), skipped_(skipped) {}

  void look(const fs::path& folder) {
    core::check_cancelled(context_);
    std::vector<std::string> listing;
    std::shared_ptr<const Place> place;
    try {
      place = place_at(folder.native());
      listing = place->list();
    } catch (const Error&) {
      return out_.push_back(folder.native());  // opening it says why
    }
    const std::size_t before = out_.size();
    if (is_model(*place) && take_files(folder.native())) out_.push_back(folder.native());
    std::map<std::string, bool> files;  // names, and whether one is a model of several files
    for (const std::string& name : listing)
      if (const auto found = name.ends_with('/') ? std::nullopt : file(folder / name)) files.emplace(name, *found);
    std::set<std::string, std::less<>> heads;  // of models of several files
    for (const auto& [name, several] : files)
      if (several && !taken_.contains(whole(folder / name)) && take_files((folder / name).native())) heads.insert(name);
    const bool cache = std::ranges::find(listing, "snapshots/") != listing.end();  // whose links lead to blobs/
    for (const std::string& name : listing) {
      const fs::path path = folder / (name.ends_with('/') ? name.substr(0, name.size() - 1) : name);
      std::error_code error;
      if (!name.ends_with('/')) {
        const auto is = files.find(name);
        if (is != files.end() && (is->second ? heads.contains(name) : taken_.insert(whole(path)).second))
          out_.push_back(path.native());
      } else if (name != ".git/" && !(cache && name == "blobs/") && !fs::is_symlink(path, error)) {
        look(path);
      }
    }
    if (const auto other = out_.size() == before ? registry::other_folder(listing) : std::nullopt)
      skip(folder, other->what);
  }

  std::vector<std::string> take() { return std::move(out_); }

 private:
  std::nullopt_t skip(const fs::path& path, std::string_view why) {
    if (skipped_ != nullptr) skipped_->push_back({path.native(), std::string(why)});
    return std::nullopt;
  }

  // What it is, if it is neither a file nor a folder.
  static std::string_view other_kind(const fs::path& path) {
    std::error_code error;
    switch (fs::status(path, error).type()) {
      case fs::file_type::regular:
      case fs::file_type::directory: return {};
      case fs::file_type::fifo: return "a FIFO";
      case fs::file_type::socket: return "a socket";
      case fs::file_type::block:
      case fs::file_type::character: return "a device";
      case fs::file_type::not_found: return "a link to nothing";
      default: return "neither a file nor a folder";
    }
  }

  static bool is_model(const Place& folder) {
    try {
      return registry::detect(folder, nullptr, {}).format != nullptr;
    } catch (const Error&) {
      return false;
    }
  }

  // Whether it is a file of a model, as its content or its extension says, and one of a model of several files.
  std::optional<bool> file(const fs::path& path) {
    std::error_code error;
    if (const std::string_view kind = other_kind(path); !kind.empty()) return skip(path, kind);
    if (fs::is_directory(path, error)) return std::nullopt;
    std::string extension = path.extension().native();
    if (!extension.empty()) extension.erase(0, 1);
    const core::Format* const named = registry::find_by_extension(extension);
    // Anything is called .bin.
    const bool meant = named != nullptr && named->info.reads && extension != "bin";
    try {
      const auto place = place_at(path.native());
      const registry::Detected found = registry::detect(*place, place->file().get(), {});
      if (found.format != nullptr) return found.files;
      if (found.finding && found.finding->rule == core::rules::kFilePythonPath.id)
        return skip(path, "a path file of Python");
    } catch (const Error&) {}
    return meant ? std::optional(false) : std::nullopt;
  }

  // Notes the files of the model at `path`; those of one that is invalid are listed one by one. Whether it is a model
  // of its own: a folder that says to open its parts is not, and neither is the index of a folder that was taken.
  bool take_files(const std::string& path) {
    Report ignored;
    bool own = false;
    try {
      const auto model = open(path, ignored, context_, {.checks = Checks::structure, .list_incomplete = true});
      if (!model || model->sources().empty()) return true;
      for (const auto& source : model->sources()) own = taken_.insert(whole(source->path())).second || own;
    } catch (const Error& error) {
      return error.kind() != Kind::misuse;
    }
    return own;
  }

  const Context& context_;
  std::vector<Skipped>* const skipped_;
  std::set<std::string> taken_;
  std::vector<std::string> out_;
};

}  // namespace

std::vector<std::string> find_models(const std::string& folder, const Context& context, std::vector<Skipped>* skipped) {
  Finder finder(context, skipped);
  finder.look(folder);
  return finder.take();
}

}  // namespace weighbridge
