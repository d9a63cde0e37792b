// SPDX-License-Identifier: Apache-2.0
/// \file
/// Where a model lies: one file with what stands beside it, or a folder of files. Readers find every further file by
/// its name through the Place, never by a path.
///
/// A caller may derive from Place (files in memory, a prefix on a network). An archive is a folder whose list() is its
/// directory and whose open() gives a Source over one member's range.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weighbridge/source.h"

namespace weighbridge {

/// A model's files by name. Names are relative, with / between folders and without "..".
class Place {
 public:
  /// What was opened.
  enum class Kind : std::uint8_t {
    file,   ///< one file; open() also finds the files beside it
    folder  ///< a folder of files, none of which comes first
  };
  virtual ~Place() = default;
  virtual Kind kind() const noexcept = 0;              ///< what was opened
  virtual std::string_view name() const noexcept = 0;  ///< for messages: a path, or a word in angle brackets
  /// The file itself; null for a folder.
  virtual std::shared_ptr<const Source> file() const { return nullptr; }
  /// The names of a folder's own files, sorted, without those in folders below it; of a file its own name. Throws
  /// Error{io}.
  virtual std::vector<std::string> list() const = 0;
  /// The file of this name; null where there is none. A symbolic link is followed only where it stays inside the folder
  /// or, in a snapshot of a Hugging Face cache, leads to that model's blobs: names may come out of a file. Throws Error
  /// of kind io ("io/outside" for a link that leads out), and misuse for what is no regular file or for a name that is
  /// absolute or has "..". Safe from several threads at once.
  virtual std::shared_ptr<const Source> open(std::string_view name) const = 0;
  /// As open(), but links are followed wherever they lead: for names that a format fixes ("config.json") and no file
  /// can choose.
  virtual std::shared_ptr<const Source> open_following_links(std::string_view name) const { return open(name); }
};

/// [reads] The place at a path. Throws as open_file() does, but takes a folder too.
std::shared_ptr<const Place> place_at(const std::string& path, Access = Access::positional);
/// This file, with what Source::place() finds beside it. Misuse: null.
std::shared_ptr<const Place> place_of(std::shared_ptr<const Source>);
/// A folder that holds these files, by their names in it.
std::shared_ptr<const Place> folder_of(std::map<std::string, std::shared_ptr<const Source>, std::less<>> files,
                                       std::string name = "<memory>");

}  // namespace weighbridge
