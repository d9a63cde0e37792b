// SPDX-License-Identifier: Apache-2.0
// The files of a folder other than config.json and the weights: which exist, and which are copied unchanged into a new
// folder.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/draft.h"
#include "core/reading/format.h"
#include "core/writing/layout.h"
#include "formats/huggingface/json_file.h"
#include "formats/huggingface/settings.h"
#include "formats/huggingface/vocabulary.h"
#include "weighbridge/convert.h"

namespace weighbridge::huggingface {

// All but config.json, the index and `weights`. Of subfolders, only the files of the modules that modules.json lists.
// `held`: files fully represented in the model.
std::vector<core::FolderFile> list_folder_files(const Place&, const Limits&, const std::vector<std::string>& weights,
                                                const std::vector<std::string_view>& held);

// What the files beside config.json in the model's folder say.
struct Beside {
  TokenizerFiles tokenizer;
  SettingsFiles files;
};
// Fills in the settings that sentence-transformers takes from the tokenizer: the maximum length of a text, and whether
// case is kept.
void complete(SettingsFiles&, const TokenizerFiles&, const Config&);
// nullopt if one of them is invalid.
std::optional<Beside> read_beside(const Model&, std::string config_json);

// Files to copy, and those that are left out.
struct TakenOver {
  std::vector<core::OutFolder::Small> copies;
  std::vector<Item> losses;
};
// Copies the tokenizer's files only if `tokenizer`, those of sentence-transformers only if `settings`: otherwise the
// caller writes new ones. Leaves out hidden files, programs, other weights, links out of the folder, and what exceeds
// the limits below.
TakenOver take_over(const Model&, bool tokenizer, bool settings);
// Bytes of all copies together: more than tokenizers take, and less than most weights.
inline constexpr std::uint64_t kMaxCopied = std::uint64_t{256} << 20;
inline constexpr std::size_t kMaxCopies = 200;  // a folder of a model has a few dozen files

// By the ends of their names.
bool is_program(std::string_view name);
bool ends_like_a_pickle(std::string_view name);
bool is_tokenizer_file(std::string_view name) noexcept;
bool is_settings_file(std::string_view name) noexcept;

// Warns of what other programs would run, or trust, when they load the folder. weighbridge runs none of it. Only verify
// asks for it: whoever opens the folder every day knows it.

// `files`: those of the folder besides config.json and the weights. `pickled`: the weights are pickles.
void report_trust(Reading&, std::span<const core::FolderFile> files, bool pickled);

}  // namespace weighbridge::huggingface
