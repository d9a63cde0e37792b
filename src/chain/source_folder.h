// SPDX-License-Identifier: Apache-2.0
// A source folder: source.manifest, the files below tensors/, and validating both. Owns the rules for paths of tensors,
// and opening files so that nothing outside the folder is ever read.
//
// PATHS  any below "tensors/" that stays there: names of folders and of a file, with any ending. Excluded are absolute
//        paths, "TENSORS/", empty names, ".", "..", control characters, and the backslash, which separates folders on
//        some systems. Paths that differ only in case are refused: they are one file on some disks. The folders and the
//        files are opened without following symbolic links, and a file with more than one hard link is refused: it
//        could be changed under its other name, anywhere.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "chain/record.h"
#include "formats/slm/layout.h"
#include "io/fd.h"
#include "weighbridge/context.h"
#include "weighbridge/model.h"
#include "weighbridge/source.h"

namespace weighbridge::chain::internal {

// source.manifest, and converting shape and tokenizer between a model and the keys of this and other records.

// Sets the key for each header field except model_type and flags.
void set_shape(Record&, const slm_format::Header&);
// The shape as attributes "slm.<field>" in the header's types. Throws chain/value for a number that its field cannot
// hold.
std::vector<Value::Entry> shape_attributes(const Record&);

// Sets tokenizer_route, and the rows of a BPE tokenizer.
void set_tokenizer(Record&, const Tokenizer&);
// Throws chain/value naming the row.
Tokenizer tokenizer_of(const Record&);

// The shape of a model that can be an .slm, with the heads as in the source. Throws chain/shape for what is not known.
slm_format::Header shape_of(const Model&);
// "f32", "f16", "bf16", "mixed" of them, or "other".
std::string source_dtype(const Model&);

// The text of a manifest to fill in: the keys of `known`, and a placeholder that describes the value for each other
// required key.
std::string fill_in(const Record& known);

inline constexpr std::string_view kTensorFolder = "tensors";

// Why the path is not allowed; empty if it is.
std::string path_problem(std::string_view path);

// The files of a source folder that a step reading it must not overwrite: manifest, review and tensors.
std::vector<std::string> source_files(const std::string& folder);

class SourceFolder {
 public:
  // Throws io/open, and chain/path if the folder "tensors" is missing or a link.
  explicit SourceFolder(const std::string& path);
  // Opens a regular file with one hard link, directly in the folder. Throws chain/path, io.
  std::shared_ptr<const Source> file(const std::string& name) const;
  // The same below tensors/; `path` must be one without a path_problem().
  std::shared_ptr<const Source> tensor(const std::string& path) const;
  // The paths of all that is below tensors/ and is no folder, sorted. Throws chain/path for folders too deep.
  std::vector<std::string> tensor_paths() const;

 private:
  void list(int folder, const std::string& path, unsigned depth, std::vector<std::string>& out) const;
  std::shared_ptr<const Source> open_at(int folder, const std::string& name, const std::string& shown) const;

  std::string path_;
  io::Fd folder_, tensors_;
};

// Validates a source folder and reads it as a Model.

struct Validation {
  Record record;
  Report report;
  ReadRecord manifest;
  Model model;  // what was read, if the report is valid; reading it again fails if a file has changed
};
// [reads] Reads every byte once. Throws if the folder is missing or its manifest is no valid record.
Validation validate(const std::string& folder, double bound, const Context&);

// A validation record that equals a new validation of the folder and accepts it.
struct Validated {
  ReadRecord record;
  Validation now;
};
Validated read_validation(const std::string& path, const std::string& folder, const Context&);

}  // namespace weighbridge::chain::internal
