// SPDX-License-Identifier: Apache-2.0
/// \file
/// Changes the metadata of a file and renames its tensors, in place if the new header fits. Owns EditOptions, edit(),
/// its plan, and recovery after a kill.
///
/// An edit in place writes a journal beside the file first (".NAME.weighbridge-edit.journal"): if the process is killed
/// at any moment, the next edit of the file first finishes or undoes the change. Once the change is on the disk, the
/// journal is kept as ".NAME.weighbridge-edit.undo", from which undo_edit() takes the old header. Either is used only
/// if it is marked with this user's key (weighbridge/recover.h), or if the caller trusts it.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weighbridge/context.h"
#include "weighbridge/convert.h"
#include "weighbridge/hash.h"
#include "weighbridge/model.h"
#include "weighbridge/recover.h"
#include "weighbridge/source.h"
#include "weighbridge/value.h"
#include "weighbridge/view.h"

namespace weighbridge {

/// What to change, and where to write it. All names and keys are those of the file before any change.
struct EditOptions {
  /// A value as text, whose type may depend on the file.
  struct Setting {
    std::string key{};   ///< of the metadata
    std::string type{};  ///< one of types(); empty: the type of the key's present value, or text if there is none
    std::string text{};  ///< the value, as Value::to_text() spells it
    bool operator==(const Setting&) const = default;
  };
  std::vector<Setting> set{};           ///< each replaces the value of its key, or is added at the end
  std::vector<Value::Entry> values{};   ///< likewise, with types of their own; text where the container has only text
  std::vector<std::string> unset{};     ///< keys to leave out
  std::vector<Renaming> rename{};       ///< tensors; applied at once, so two can swap names
  std::vector<std::string> patterns{};  ///< names by pattern, as ViewOptions::patterns
  /// Globs of tensors to leave out. In place, their bytes stay in the file: GGUF allows that for the last tensors,
  /// zTensor 1.x for all, other formats not.
  std::vector<std::string> without{};
  std::string format{};  ///< of the file, as OpenOptions::format
  /// "GLOB=DTYPE", as OpenOptions::read_as. The new file states these dtypes.
  std::vector<std::string> read_as{};
  std::string output{};       ///< the new file; empty: the file itself changes
  std::uint64_t reserve = 0;  ///< bytes to leave free in the header of a new file, for later edits
  bool replace = false;       ///< replace an `output` that exists

  bool empty() const noexcept;            ///< whether nothing is to change
  bool changes_tensors() const noexcept;  ///< whether tensors are to be renamed, left out or read otherwise
  /// Sets an option of OptionOf::edit (options.h), or adds to it, as ViewOptions::add(). A key that ends in ":" and one
  /// of types() needs the other add().
  /// @throws Error misuse: an unknown option, or a text that does not have its form.
  void add(std::string_view option, std::string_view text);
  /// Adds FROM and TO, or KEY and VALUE, of the type of the key's present value.
  void add(std::string_view option, std::string_view key, std::string_view value);
  /// [reads] Adds the members of a JSON object: a text, a boolean, a list, an object {"type": ..., "value": ...}, or a
  /// number, which gets the type of the key's present value; null unsets the key. Throws Error{misuse} if it is not
  /// such an object, Error{limit} for more bytes than limits.header.
  void add_json(const Source&, const Limits& = {});
  /// "text", "bool", "u8" ... "i64", "f32", "f64", "json".
  static std::vector<std::string_view> types();
};

/// What an edit does, or did.
struct Edited {
  /// How the bytes get onto the disk.
  enum class Way : std::uint8_t {
    nothing,    ///< the file is already as it should be
    in_place,   ///< the header is written over the old one
    copied,     ///< a new file with a new header; the kernel copies the payload, or shares it if the filesystem can
    converted,  ///< a new file from the format's writer, which reads and writes every tensor
    settings    ///< of a folder: a new config.json or chat template replaces the old one
  };
  /// How an earlier edit that was killed was resolved, before this one.
  enum class Left : std::uint8_t { nothing, finished, undone };

  std::string format{};          ///< of the file
  Way way = Way::nothing;        ///< how
  std::vector<Item> changes{};   ///< what changes: attributes["k"], tensors["w"]
  std::uint64_t header = 0;      ///< bytes that the file's header has, free space included
  std::uint64_t needed = 0;      ///< bytes that the new one needs; 0: the format has no header of its own
  std::uint64_t size = 0;        ///< bytes of the file before
  std::uint64_t size_after = 0;  ///< bytes after; of the new file, if there is one
  std::uint64_t shared = 0;      ///< once written: bytes of a new file that share the old file's blocks on the disk
  std::uint64_t names = 1;       ///< hard links of the file: in place, all change; otherwise the others keep the old
  bool alone = false;            ///< in place: the OS confirmed that no other process had the file open
  Left left = Left::nothing;     ///< how an interrupted earlier edit was resolved
  std::string file{};            ///< of a folder: the file in it that changes
  std::string undo{};            ///< in place, once written: the file from which undo_edit() restores
  std::vector<RecoveryStep> steps{};  ///< of settle_edit(): what it does, or did, in the folder of the file
};
std::string_view name(Edited::Way) noexcept;   ///< "nothing", "in-place", "copied", "converted", "settings"
std::string_view name(Edited::Left) noexcept;  ///< "nothing", "finished", "undone"

/// [reads] What edit() would do, from the header alone. Changes nothing.
/// @throws Error what open() throws; misuse: what view() refuses, a value that does not fit its type, a key that
///   describes the structure of the file, a folder except for keys of its config.json ("hf.KEY" or "KEY") and
///   "tokenizer.chat_template", a model in several files, or what the format cannot write; io
///   "io/journal": an earlier edit was killed and must be recovered first.
Edited plan_edit(const std::string& path, const EditOptions&, const Context& = {});
/// [reads] Makes the change. In place, takes a lease on the file, writes only the header, and reads it back. If the
/// header does not fit, a new file replaces this one. Calls `before`, if given, with the plan before it writes.
/// @throws Error what plan_edit() throws; io "io/in-use": another process has the file open. Nothing has changed then.
Edited edit(const std::string& path, const EditOptions&, const Context& = {},
            const std::function<void(const Edited&)>& before = {});
/// [reads] Undoes the last edit in place, and keeps what it undid, so that a second undo_edit() redoes it.
/// @param trust_journal uses the kept old header even if it is not marked with this user's key
/// @throws Error misuse "misuse/no-undo": there is none, or the file has changed since; io "io/journal": it is not this
///   user's own
Edited undo_edit(const std::string& path, const Context& = {}, bool trust_journal = false);
/// [reads] Finishes or undoes an edit of a file that was killed, or patches that were applied in place to a file or a
/// folder; does nothing if there is none.
/// @param trust_journal uses its journal even if it is not marked with this user's key
/// @param before is called with `steps` before anything is changed
/// @throws Error io "io/journal": the journal is not this user's own, or does not fit the file
Edited settle_edit(const std::string& path, const Context& = {}, bool trust_journal = false,
                   const std::function<void(const Edited&)>& before = {});

/// What apply_in_place() does, or did.
struct Applied {
  std::vector<std::string> files{};           ///< that change
  std::uint64_t tensors = 0;                  ///< that change
  std::uint64_t bytes = 0;                    ///< that they have
  std::uint64_t logged = 0;                   ///< once written: bytes that the journal had meanwhile
  Digest base{};                              ///< content digest of the model before
  Digest result{};                            ///< content digest of the model after
  Edited::Left left = Edited::Left::nothing;  ///< how an interrupted earlier change was resolved
};
/// [reads] Makes the model at the path, a file or a folder, what the patches make of it, in the files themselves. While
/// a file is a mix, its name ends with ".weighbridge-applying"; a killed run is undone or finished by the next one, or
/// by settle_edit(). Checks the base and the result by their digests, before the first byte is written and again before
/// the files get their names back. Close the model first.
/// @param dry_run checks everything and writes nothing
/// @throws Error what open() and patched() throw; misuse "misuse/in-place": patches that do more than change elements,
///   or elements that are not stored as they are; what edit() refuses in place, and files with several names; io
///   "io/applying": a killed run whose journal is gone. Nothing has changed then.
Applied apply_in_place(const std::string& path, std::span<const Model> patches, const Context& = {},
                       bool dry_run = false);

}  // namespace weighbridge
