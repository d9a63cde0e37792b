// SPDX-License-Identifier: Apache-2.0
/// \file
/// A view of a model: some of its tensors, other names, other metadata. Owns ViewOptions and view(). A view is a Model,
/// so it can be converted, appended or hashed like one.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weighbridge/context.h"
#include "weighbridge/model.h"
#include "weighbridge/source.h"
#include "weighbridge/value.h"

namespace weighbridge {

/// One tensor to rename, by whole names. `file` and `line` say where a file of names has it; messages name them.
struct Renaming {
  std::string from{};      ///< the name in the model
  std::string to{};        ///< the new one
  std::string file{};      ///< empty: not from a file
  std::uint64_t line = 0;  ///< 0: not from a file
  bool operator==(const Renaming&) const = default;
};

/// What a view selects and changes. All names and keys are those of the model before any change.
struct ViewOptions {
  /// Globs (matches_glob, text.h) of the tensors to keep; empty: all.
  std::vector<std::string> only{};
  /// Globs of the tensors to leave out.
  std::vector<std::string> without{};
  /// Applied at once, so two tensors can swap names.
  std::vector<Renaming> rename{};
  /// "s/PATTERN/REPLACEMENT/", with "g" at its end for every match in a name. They rename the kept tensors that
  /// `rename` does not name, one pattern after the other. Patterns are regular expressions in JavaScript's syntax,
  /// without back-references, lookahead and lookbehind, and match in linear time. $1 to $9 are the groups, $& is the
  /// match.
  std::vector<std::string> patterns{};
  /// Attributes by key, as text. Each replaces the value of its key, or is added at the end.
  std::vector<std::pair<std::string, std::string>> set{};
  std::vector<Value::Entry> values{};    ///< likewise, with types of their own
  std::vector<std::string> unset{};      ///< keys of attributes to leave out, and globs of such keys
  std::optional<Tokenizer> tokenizer{};  ///< in place of the model's

  bool empty() const noexcept;  ///< whether the view is the model itself
  /// Adds to a member from its text form: an option of OptionOf::view (options.h). The first "=" of FROM=TO and
  /// KEY=VALUE separates the two.
  /// @throws Error misuse: an unknown option, no "=", nothing before it, or for "rename" nothing after it or an invalid
  ///   pattern.
  void add(std::string_view option, std::string_view text);
  /// Adds FROM and TO, or KEY and VALUE, which may contain "=".
  void add(std::string_view option, std::string_view key, std::string_view value);
  /// [reads] Adds to `rename`, one pair per line: FROM=TO, or FROM and TO separated by a tab. Blanks around the names
  /// do not count. Skips blank lines, and lines that are "#" alone or begin with "#" and a blank: a name may begin with
  /// "#". Throws Error{misuse} for any other line, which the message names, and Error{limit} for more bytes than
  /// limits.header.
  void rename_from(const Source&, const Limits& = {});
};

/// The model with these changes. Tensors keep their order, ids and payload, which is not read. The view keeps the
/// model's format, version and sources, but has no checksums(), which cover the file. Error{misuse}: a glob or a
/// pattern that no tensor of the model matches, or globs that leave no tensor, unless the model has none; a tensor to
/// rename or a key to unset that the model lacks (the message suggests similar ones), two tensors of one name, the same
/// name or key twice, a new name that is empty, a name or a key that is not UTF-8.
Model view(const Model&, const ViewOptions&);

}  // namespace weighbridge
