// SPDX-License-Identifier: Apache-2.0
// Makes a manifest of the files at a path, and the file that holds it.
#include <algorithm>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include "base/checked.h"
#include "base/fail.h"
#include "base/utf8.h"
#include "core/payload/leaves.h"
#include "core/writing/options.h"
#include "io/atomic_file.h"
#include "io/temporary.h"
#include "manifest/bundle.h"
#include "manifest/files.h"
#include "weighbridge/open.h"
#include "weighbridge/source.h"
#include "weighbridge/text.h"

namespace weighbridge {
namespace {

using signing::Listing, signing::Root;

constexpr std::uint64_t kMaxRanges = 1'000'000;  // of one file

bool is_glob(std::string_view text) { return text.find_first_of("*?[") != text.npos; }

// A path as a manifest has it: without "./" and a slash at the end.
std::string plain(std::string text) {
  while (text.starts_with("./")) text.erase(0, 2);
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  return text;
}

// Takes what the globs match out of the listing, by name: files, or a folder with all that is in it.
void leave_out(Listing& listing, const std::vector<std::string>& globs, std::set<std::string, std::less<>>& ignored) {
  for (const std::string& glob : globs)
    for (const Listing::Entry& entry : listing.entries)
      signing::is_or_is_in(entry.name, [&](std::string_view path) {
        const bool matches = matches_glob(glob, path);
        if (matches) ignored.emplace(path);
        return matches;
      });
  std::erase_if(listing.entries, [&](const Listing::Entry& entry) {
    return signing::is_or_is_in(entry.name, [&](std::string_view path) { return ignored.contains(path); });
  });
}

void require_listed(const Root& root, const Listing& listing, bool allow_symlinks) {
  for (const Listing::Entry& entry : listing.entries) {
    if (entry.kind == Listing::Kind::other || (entry.kind == Listing::Kind::link && !allow_symlinks))
      base::misuse_of(root.path(entry.name), "link", "this is " + entry.what + ": only regular files can be listed",
                      base::option_hint(entry.kind == Listing::Kind::link ? "allow-symlinks" : "ignore"));
    if (const std::string_view fault = signing::fault_of_name(entry.name); !fault.empty())
      base::misuse_of(root.path(entry.name), "file-name", "the file " + std::string(fault));
    if (!base::is_utf8(entry.name))
      base::misuse_of(root.path(entry.name), "file-name",
                      "the file's name is not UTF-8, and a manifest cannot hold it");
  }
}

// nullopt: no model.
template <class From> std::optional<Model> opened(const From& from, const Context& context) {
  Report report;
  try {
    return open(from, report, context, {.checks = Checks::structure});
  } catch (const Error& error) {
    if (error.kind() == Kind::io) throw;
    return std::nullopt;
  }
}

bool is_model_of_its_own(const std::optional<Model>& model) {
  return model && model->size() > 0 && model->sources().size() <= 1;
}

// Models as they are before the files are hashed. Only the places of their leaves are kept: a folder may have many.
signing::Leaves find_leaves(const Root& root, const Manifest& manifest, const Context& context) {
  signing::Leaves out;
  for (const ManifestNote& note : manifest.notes) {
    if (note.size == 0) continue;
    const std::optional<Model> model = opened(root.open(note.file), context);
    if (!is_model_of_its_own(model)) continue;
    if (core::FileLeaves leaves(*model, note.size); !leaves.empty()) out.emplace(note.file, std::move(leaves));
  }
  return out;
}

// nullopt: there are tensors that this build cannot read; the file's SHA-256 covers them. Reads only what `leaves`
// lacks.
std::optional<ContentDigests> digests_of(const Root& root, const Model& model, const signing::Leaves& leaves,
                                         const Context& context) {
  std::vector<const core::FileLeaves*> of_source;
  for (const std::shared_ptr<const Source>& source : model.sources()) {
    const std::string path(source ? source->path() : std::string_view());
    const auto found = leaves.find(root.is_folder() ? root.below(path) : root.name());
    const bool is_the_file = found != leaves.end() && source && source->size() == found->second.file_size();
    of_source.push_back(is_the_file ? &found->second : nullptr);
  }
  try {
    return core::content_digests(model, context, [&](const Part& part) {
      const auto extent = part.extent();
      const core::FileLeaves* const known = extent ? of_source[extent->source] : nullptr;
      return known != nullptr ? known->find(part) : std::span<const codecs::Digest256>();
    });
  } catch (const Error& error) {
    if (error.kind() == Kind::io) throw;
    return std::nullopt;
  }
}

// The digests of the tensors, of each file that is a tensor file of its own and of the model that the folder is.
void describe(const Root& root, const std::string& path, Manifest& out, const signing::Leaves& leaves,
              const Context& context) {
  for (ManifestNote& note : out.notes) {
    if (note.size == 0) continue;
    const std::optional<Model> model = opened(root.open(note.file), context);
    if (!is_model_of_its_own(model)) continue;
    const auto found = digests_of(root, *model, leaves, context);
    if (!found) continue;
    note.format = model->format();
    note.content_digest = found->model;
    for (std::uint32_t i = 0; i < model->size(); ++i) note.tensors.emplace_back(model->name(i), found->tensors[i]);
  }
  if (!root.is_folder()) {
    if (out.notes.size() == 1 && !out.notes.front().format.empty()) {
      out.format = out.notes.front().format;
      out.content_digest = out.notes.front().content_digest;
    }
    return;
  }
  const std::optional<Model> model = opened(path, context);
  const auto found = model ? digests_of(root, *model, leaves, context) : std::nullopt;
  if (!found) return;
  out.format = model->format();
  out.content_digest = found->model;
}

// The digests of a file and of its tensors must be those of the same bytes.
using Stamps = std::vector<std::optional<signing::Stamp>>;
Stamps stamps_of(const Root& root, const Manifest& manifest) {
  Stamps out;
  for (const ManifestNote& note : manifest.notes) out.push_back(signing::stamp_of(root.path(note.file)));
  return out;
}
void require_unchanged(const Root& root, const Manifest& manifest, const Stamps& before) {
  const Stamps now = stamps_of(root, manifest);
  for (std::size_t i = 0; i < now.size(); ++i)
    if (now[i] != before[i])
      base::io_error_of(root.path(manifest.notes[i].file), "changed", "the file changed while the folder was read");
}

// A wrong output would replace a file of the model, or the key.
void require_manifest(const std::string& path) {
  std::error_code unknown;  // AtomicFile says what is wrong with it
  if (!std::filesystem::is_regular_file(path, unknown)) return;
  const auto source = open_file(path);
  std::string head(base::to_size(std::min<std::uint64_t>(source->size(), 4096)), '\0');
  source->read_at(0, std::as_writable_bytes(std::span(head)));
  if (head.find(signing::kMediaTypeOfAny) == head.npos)
    base::misuse_of(path, "output-exists", "the file exists and is not a manifest, so it is not replaced");
}

constexpr core::Bound<ManifestOptions> kManifestBound[] = {
#define WB_MANIFEST_OPTION(MEMBER, ...) WB_BOUND(ManifestOptions, MEMBER)
#include "core/writing/option_rows.def"
};

}  // namespace

void ManifestOptions::set(std::string_view option, std::string_view text) {
  core::set<ManifestOptions>(*this, OptionOf::manifest, kManifestBound, option, text);
}

Manifest list_files(const std::string& path, const ManifestOptions& options, const Context& context) {
  const Root root(path);
  Manifest out;
  out.name = root.name();
  out.shard_size = options.range_size;
  out.allow_symlinks = options.allow_symlinks;
  std::set<std::string, std::less<>> ignored = signing::always_ignored();
  std::vector<std::string> globs;
  for (const std::string& each : options.ignore) {
    std::string name = plain(each);
    if (const std::string_view fault = signing::fault_of_name(name); !fault.empty())
      base::misuse("ignore", "the path to leave out " + std::string(fault) + ": " + signing::quote(each),
                   base::option_hint("ignore"));
    is_glob(name) ? globs.push_back(std::move(name)) : void(ignored.insert(std::move(name)));
  }
  const std::string own = root.below(options.output);
  if (!own.empty()) ignored.insert(own);
  Listing listing = signing::list(root, ignored, context);
  // What a killed run has left beside the manifest; the next one removes it.
  if (!own.empty())
    std::erase_if(listing.entries, [&](const Listing::Entry& entry) {
      const std::size_t slash = own.rfind('/') + 1;
      const std::string_view name = entry.name;
      return name.starts_with(own.substr(0, slash) + "." + own.substr(slash) + ".") &&
             io::is_temporary(name.substr(slash));
    });
  if (listing.downloader) ignored.emplace(signing::kDownloader);
  leave_out(listing, globs, ignored);
  require_listed(root, listing, options.allow_symlinks);
  if (listing.entries.empty()) base::misuse("no-files", "there is no file to list in the folder");
  std::vector<signing::Piece> pieces;
  for (const Listing::Entry& entry : listing.entries) {
    const std::uint64_t size = root.open(entry.name)->size();
    out.notes.push_back({.file = entry.name, .size = size});
    if (options.range_size == 0)
      pieces.push_back({.file = entry.name, .begin = 0, .end = size});
    else if (size / options.range_size > kMaxRanges)
      base::misuse(
          "shard-size",
          "ranges of " + std::to_string(options.range_size) + " bytes would be more than " + std::to_string(kMaxRanges),
          base::option_hint("shard-size"));
    else
      for (std::uint64_t at = 0; at < size; at += std::min(options.range_size, size - at))
        pieces.push_back({.file = entry.name, .begin = at, .end = at + std::min(options.range_size, size - at)});
  }
  if (pieces.empty()) base::misuse("no-files", "every file is empty, and ranges of bytes cannot list empty files");
  Stamps before;
  signing::Leaves leaves;
  if (options.per_tensor) {
    before = stamps_of(root, out);
    leaves = find_leaves(root, out, context);
  }
  signing::hash(root, pieces, context, &leaves);
  for (const signing::Piece& piece : pieces)
    out.entries.push_back({.file = piece.file,
                           .begin = options.range_size == 0 ? 0 : piece.begin,
                           .end = options.range_size == 0 ? 0 : piece.end,
                           .sha256 = piece.sha256});
  out.ignored.assign(ignored.begin(), ignored.end());
  if (options.per_tensor) {
    describe(root, path, out, leaves, context);
    require_unchanged(root, out, before);
  }
  return out;
}

Manifest save_manifest(const std::string& path, const ManifestOptions& options, const SigningKey& key,
                       const Context& context) {
  const auto text_of = [&](const Manifest& manifest) {
    return key.key.empty() ? write_manifest(manifest) : write_manifest(manifest, key);
  };
  text_of({.name = "key"});  // a wrong key is known before everything is hashed
  if (options.replace) require_manifest(options.output);
  io::AtomicFile file(options.output, {.replace = options.replace});
  Manifest out = list_files(path, options, context);
  const std::string text = text_of(out);
  file.write_whole(std::as_bytes(std::span(text)));
  file.publish();
  return out;
}

}  // namespace weighbridge
