// SPDX-License-Identifier: Apache-2.0
/// \file
/// A model seen otherwise: some of its tensors, under other names, with other metadata. Owns ViewOptions and view().
/// What is converted, appended or hashed in place of the model is the view: each of them takes a Model.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weighbridge/context.h"
#include "weighbridge/model.h"
#include "weighbridge/source.h"

namespace weighbridge {

/// What a view takes of a model, and what it says otherwise. All names and keys are those of the model, before any
/// change.
struct ViewOptions {
  /// Globs (matches_glob, text.h). Only tensors that match one of these; empty: all.
  std::vector<std::string> only{};
  /// Globs. None of the tensors that match one of these, which may be no tensor at all.
  std::vector<std::string> without{};
  /// Whole names of tensors, old and new. All at once: two tensors can change places.
  std::vector<std::pair<std::string, std::string>> rename{};
  /// Attributes by key, as text: in place of the value that is there, or behind all others.
  std::vector<std::pair<std::string, std::string>> set{};
  std::vector<std::string> unset{};      ///< keys of attributes to leave out
  std::optional<Tokenizer> tokenizer{};  ///< in place of the model's

  bool empty() const noexcept;  ///< the view is the model itself
  /// Adds to a member as people write it.
  /// @param option "only", "without" (a glob), "rename" (FROM=TO), "set" (KEY=VALUE) or "unset" (a key). The first "="
  ///   divides: names that have one of their own need rename_from().
  /// @throws Error misuse: another option, no "=", or nothing before it.
  void add(std::string_view option, std::string_view text);
  /// [reads] Adds pairs to `rename`, one on each line: FROM=TO, or FROM and TO with one tab between them. Blank lines
  /// are skipped, and lines that are "#" alone or begin with "# ". Misuse: another line, which the sentence names;
  /// malformed: more bytes than limits.header.
  void rename_from(const Source&, const Limits& = {});
};

/// The model with these changes. Tensors keep their order, ids and payload, which is not read; the view is of the
/// model's format and version, and has its sources. checksums() are those of the file and not the view's, which has
/// none. Misuse: a glob of `only` that no tensor matches, a tensor to rename or a key to unset that the model lacks
/// (with the nearest), two tensors of one name, the same name or key twice, a name or a key that is not UTF-8.
Model view(const Model&, const ViewOptions&);

}  // namespace weighbridge
