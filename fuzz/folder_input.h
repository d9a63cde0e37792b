// SPDX-License-Identifier: Apache-2.0
// The input of a fuzz target as a Hugging Face folder: its files in the order of kFiles, separated by bytes 0xFF. An
// empty file is absent.
#pragma once
#include <algorithm>
#include <array>
#include <map>

#include "formats/huggingface/json_file.h"
#include "harness.h"
#include "weighbridge/place.h"

namespace weighbridge::fuzz {

inline constexpr std::array<std::string_view, 11> kFiles = {huggingface::kConfig,
                                                            huggingface::kVocabTxt,
                                                            huggingface::kTokenizerJson,
                                                            huggingface::kTokenizerConfig,
                                                            huggingface::kSentenceConfig,
                                                            huggingface::kModules,
                                                            huggingface::kPooling,
                                                            huggingface::kIndex,
                                                            "a.safetensors",
                                                            "b.safetensors",
                                                            huggingface::kWeights};

// The last file is the rest of the input and may contain 0xFF.
inline std::shared_ptr<const Place> place_of_input(std::string_view input) {
  std::map<std::string, std::shared_ptr<const Source>, std::less<>> files;
  for (std::size_t i = 0; i < kFiles.size(); ++i) {
    const std::size_t end = i + 1 == kFiles.size() ? input.size() : std::min(input.find('\xFF'), input.size());
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(input.data());
    if (end != 0) files.emplace(kFiles[i], source_of(bytes, end));
    input.remove_prefix(std::min(input.size(), end + 1));
  }
  return folder_of(std::move(files), "folder");
}

}  // namespace weighbridge::fuzz
