// SPDX-License-Identifier: Apache-2.0
/// \file
/// Where a model lies: one file with the files beside it, or a folder of files. Readers open every further file by its
/// name in the Place, never by a path.
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
  virtual std::string_view name() const noexcept = 0;  ///< for people, as Source::name()
  /// As Source::path(), of the file or folder. Empty, which is the default, if it is in no file system.
  virtual std::string_view path() const noexcept;
  /// The file itself; null for a folder.
  virtual std::shared_ptr<const Source> file() const { return nullptr; }
  /// For a folder, the sorted names of the files and folders in it, each folder with "/" at its end, without what is
  /// in those. For a file, its own name. Throws Error{io}.
  virtual std::vector<std::string> list() const = 0;
  /// The file with this name; null if there is none. The folder may come from a stranger, so a symbolic link is
  /// followed only if it stays inside the folder or, in a snapshot of a Hugging Face cache, leads to that model's
  /// blobs. Throws Error{io} ("io/outside" for a link that leads out), and Error{misuse} if it is not a regular file or
  /// the name is absolute or has "..". Sources of one file are one object, or have one Source::path(). Safe to call
  /// from several threads.
  virtual std::shared_ptr<const Source> open(std::string_view name) const = 0;
};

/// [reads] The place at a path. Throws the same errors as open_file(), but also takes a folder.
std::shared_ptr<const Place> place_at(const std::string& path, Access = Access::positional);
/// This file, with the files beside it that Source::place() finds. Error{misuse} if null.
std::shared_ptr<const Place> place_of(std::shared_ptr<const Source>);
/// A folder that holds these files, keyed by name.
std::shared_ptr<const Place> folder_of(std::map<std::string, std::shared_ptr<const Source>, std::less<>> files,
                                       std::string name = "<memory>");

}  // namespace weighbridge
