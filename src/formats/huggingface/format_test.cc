// SPDX-License-Identifier: Apache-2.0
// Detection of a folder by its files, and JSON values as texts of attributes and back.
#include <algorithm>

#include "formats/huggingface/format.h"

#include <gtest/gtest.h>

#include "formats/huggingface/json_file.h"

namespace weighbridge::huggingface {
namespace {

bool is_folder(std::vector<std::string> listing) {
  std::ranges::sort(listing);
  return matches({.listing = listing, .folder = true});
}

TEST(HuggingFaceFolder, IsKnownByWhatOnlySuchFoldersHold) {
  EXPECT_TRUE(is_folder({"config.json"}));
  EXPECT_TRUE(is_folder({"pytorch_model.bin"}));
  EXPECT_TRUE(is_folder({"pytorch_model.bin.index.json", "other"}));
  EXPECT_TRUE(is_folder({"model.safetensors", "vocab.txt"}));
  EXPECT_TRUE(is_folder({"model.safetensors.index.json", "tokenizer.json"}));
  EXPECT_FALSE(is_folder({"model.safetensors"}));
  EXPECT_FALSE(is_folder({"model.safetensors.index.json", "model-00001-of-00001.safetensors"}));
  EXPECT_FALSE(is_folder({"vocab.txt"}));
  EXPECT_FALSE(is_folder({}));
  EXPECT_FALSE(matches({}));  // a file
}

TEST(HuggingFaceJson, TextThatIsJsonItselfKeepsItsQuotes) {
  for (const char* json : {"\"bert\"", "\"0.10\"", "0.10", "{\"a\":[1,null]}", "\"\"", "true"}) {
    const Member member{.key = "k", .kind = wire::JsonReader(json, 8).peek(), .raw = json};
    EXPECT_EQ(attribute_json(attribute_text(member)), json);
  }
}

}  // namespace
}  // namespace weighbridge::huggingface
