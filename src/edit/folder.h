// SPDX-License-Identifier: Apache-2.0
// Edits of a folder of Hugging Face: the keys of its config.json, and its chat template.
#pragma once
#include <string>

#include "weighbridge/edit.h"

namespace weighbridge::edit_files {

// What the edit would do, and the text that the file Edited::file gets. Error{misuse} for anything else than such keys.
struct FolderEdit {
  Edited edited;
  std::string text;
};
FolderEdit plan_folder(const std::string& path, const EditOptions&, const Context&);
// Publishes the text.
void write_folder(const std::string& path, const FolderEdit&);

}  // namespace weighbridge::edit_files
