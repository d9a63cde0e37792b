// SPDX-License-Identifier: Apache-2.0
// Layouts of Hugging Face folders: the content of each file, the reported losses, and that reading back gives the same
// model.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/payload/compare.h"
#include "core/writing/layout.h"
#include "registry/load.h"
#include "registry/registry.h"
#include "support/sample_models.h"
#include "support/thrown.h"
#include "support/tiny_folders.h"
#include "weighbridge/verify.h"

namespace weighbridge::huggingface {
namespace {

using testing::Files;
using testing::in_memory;
using testing::safetensors;

core::WriteLayout lay_out(const Model& model, const Options& options = {}) {
  return registry::lay_out(*registry::find("hf"), model, options, {});
}

// The file that a layout describes, for payloads that are written as stored.
std::string render(const core::WriteLayout& layout) {
  std::string out = layout.head;
  for (const core::Payload& payload : layout.payloads) {
    payload.tensor.part(payload.part).stream({}, [&](std::span<const std::byte> piece) {
      out.append(reinterpret_cast<const char*>(piece.data()), piece.size());
      return true;
    });
  }
  return out;
}

Files written_files(const core::WriteLayout& layout) {
  Files out;
  for (const core::OutFile& file : layout.folder->payloads) out[file.name] = render(file.layout);
  for (const core::OutFolder::Small& file : layout.folder->small) {
    if (file.bytes) out[file.name] = *file.bytes;
    if (!file.copy_of) continue;
    std::string& bytes = out[file.name];
    bytes.resize(file.copy_of->size());
    file.copy_of->read_at(0, std::as_writable_bytes(std::span(bytes)));
  }
  return out;
}

Model reread(const Files& files) {
  Verdict verdict = verify(in_memory(files), {}, {.format = "hf"});
  for (const Finding& finding : verdict.report.findings()) ADD_FAILURE() << finding.rule << ": " << finding.message;
  return std::move(verdict.model);
}

std::vector<std::string> subjects(const std::vector<Item>& items) {
  std::vector<std::string> out;
  for (const Item& item : items) out.push_back(item.subject);
  return out;
}

// Runs the layout's own check on files that may have been changed.
void check(const core::WriteLayout& layout, const Files& files) {
  layout.folder->check(open(in_memory(files), {}, {.format = "hf"}));
}

TEST(HuggingFaceWrite, AFolderComesBackAsItWas) {
  const Files files = testing::tiny();
  const Model model = reread(files);
  const core::WriteLayout layout = lay_out(model, {});
  EXPECT_TRUE(layout.blockers.empty());
  EXPECT_TRUE(layout.losses.empty());
  EXPECT_TRUE(layout.changes.empty()) << subjects(layout.changes).at(0);
  const Files written = written_files(layout);
  for (const auto& [name, bytes] : files) {
    if (name != "model.safetensors") {
      EXPECT_EQ(written.at(name), bytes) << name;
    }
  }
  EXPECT_EQ(written.size(), files.size());
  check(layout, written);
  EXPECT_TRUE(core::compare(model, reread(written)).empty());
  EXPECT_EQ(written_files(lay_out(model, {})), written);
}

TEST(HuggingFaceWrite, ThePrefixIsPutBack) {
  Files files = testing::tiny();
  files["model.safetensors"] = safetensors(testing::tiny_tensors("bert."), R"({"format":"pt"})");
  const Model model = reread(files);
  EXPECT_EQ(model.name(0), "embeddings.word_embeddings.weight");
  const core::WriteLayout layout = lay_out(model, {});
  EXPECT_EQ(subjects(layout.losses), std::vector<std::string>{});
  EXPECT_NE(layout.folder->payloads[0].layout.head.find("\"bert.embeddings.position_ids\""), std::string::npos);
  check(layout, written_files(layout));
  EXPECT_TRUE(core::compare(model, reread(written_files(layout))).empty());
}

TEST(HuggingFaceWrite, MetadataOfEmbdFindsItsFiles) {
  Builder builder = test::bert_model();
  builder.attribute("normalize", Value::text("false"));
  builder.attribute("max_seq_length", Value::text("12"));
  builder.attribute("pooling_mode", Value::text("cls+max"));
  builder.attribute("do_lower_case", Value::text("true"));
  const Model model = builder.build();
  const core::WriteLayout layout = lay_out(model, {});
  EXPECT_TRUE(layout.blockers.empty());
  EXPECT_EQ(subjects(layout.losses), std::vector<std::string>{});
  EXPECT_EQ(subjects(layout.changes),
            (std::vector<std::string>{"attributes[\"format\"]", "attributes[\"hf.model_type\"]",
                                      "attributes[\"hf.architectures\"]", "attributes[\"hf.type_vocab_size\"]"}));
  const Files written = written_files(layout);
  check(layout, written);
  const Model again = reread(written);
  for (const Item& difference : core::compare(model, again)) EXPECT_EQ(difference.from, "") << difference.subject;
  EXPECT_EQ(again.attribute("model_name")->as_text(), "sample");
  EXPECT_EQ(*again.tokenizer(), *model.tokenizer());
}

TEST(HuggingFaceWrite, TheCheckSeesWhatDiffers) {
  const Model model = reread(testing::with("tokenizer.json", std::nullopt));
  const core::WriteLayout layout = lay_out(model, {});
  const std::pair<const char*, const char*> spoiled[] = {
      {"config.json", "{}"}, {"vocab.txt", "[PAD]\n"}, {"tokenizer_config.json", "{}"}};
  for (const auto& [name, bytes] : spoiled) {
    Files files = written_files(layout);
    files[name] = bytes;
    EXPECT_EQ(test::thrown([&] { check(layout, files); }).rule, "io/read-back") << name;
  }
}

TEST(HuggingFaceWrite, AnyTensorsGoIntoAFolderThatSaysWhatTheyAre) {
  Builder builder = test::plain_model();
  builder.attribute("hf.model_type", Value::text("other"));
  const Model model = builder.build();
  const core::WriteLayout layout = lay_out(model, {});
  EXPECT_TRUE(layout.blockers.empty());
  EXPECT_TRUE(layout.losses.empty());
  const Files written = written_files(layout);
  EXPECT_EQ(written.at("config.json"), "{\n  \"model_type\": \"other\"\n}\n");
  const Model again = reread(written);
  EXPECT_EQ(again.attribute("license")->as_text(), "none");
  EXPECT_EQ(again.size(), model.size());
}

TEST(HuggingFaceWrite, AFolderThatWouldBeNoModelIsRefused) {
  const core::WriteLayout layout = lay_out(test::plain_model().build(), {});
  EXPECT_EQ(subjects(layout.blockers), std::vector<std::string>{"attributes[\"hf.model_type\"]"});
  EXPECT_NE(layout.blockers.at(0).to.find("config.json would be empty"), std::string::npos);
}

TEST(HuggingFaceWrite, WhatAFolderCannotHoldIsNamed) {
  {
    Builder builder = test::bert_model();
    Tokenizer odd = test::sample_wordpieces(12);
    odd.special.emplace_back("bos", 7);
    builder.tokenizer(odd);
    EXPECT_EQ(subjects(lay_out(builder.build(), {}).losses), std::vector<std::string>{"tokenizer"});
  }
  {
    Builder builder = test::plain_model();
    builder.attribute("hf.model_type", Value::text("other"));
    builder.tokenizer(test::sample_bytes());
    EXPECT_EQ(subjects(lay_out(builder.build(), {}).losses), std::vector<std::string>{"tokenizer"});
  }
  {
    Builder builder = test::plain_model();
    builder.attribute("hf.size", Value::integer(std::uint64_t{7}));
    const core::WriteLayout layout = lay_out(builder.build(), {});
    EXPECT_EQ(subjects(layout.losses), std::vector<std::string>{"attributes[\"hf.size\"]"});
    EXPECT_EQ(layout.losses.at(0).kind, LossKind::attribute_type);
    EXPECT_EQ(written_files(layout).at("config.json"), "{\n  \"size\": 7\n}\n");
  }
  {
    Builder builder = test::plain_model();
    builder.attribute("hf.model_type", Value::text("bert"));
    EXPECT_EQ(subjects(lay_out(builder.build(), {}).blockers),
              std::vector<std::string>{"attributes[\"hf.model_type\"]"});
  }
}

TEST(HuggingFaceWrite, SpecialTokensThatAreNotThereStayAway) {
  Builder builder = test::bert_model();
  Tokenizer few = test::sample_wordpieces(12);
  few.special.resize(2);
  builder.tokenizer(few);
  const Model model = builder.build();
  const core::WriteLayout layout = lay_out(model, {});
  EXPECT_TRUE(layout.losses.empty());
  EXPECT_EQ(*reread(written_files(layout)).tokenizer(), *model.tokenizer());
}

}  // namespace
}  // namespace weighbridge::huggingface
