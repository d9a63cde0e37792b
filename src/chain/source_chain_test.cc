// SPDX-License-Identifier: Apache-2.0
// Paths in a source, conversion between manifests and models, and candidates that are folders.
#include <gtest/gtest.h>

#include <cmath>

#include "chain/admission.h"
#include "chain/candidate.h"
#include "chain/promotion.h"
#include "chain/source_folder.h"
#include "chain/source_schemas.h"
#include "weighbridge/slm.h"

namespace weighbridge::chain {
using namespace internal;
namespace {

// The specification allows any path that stays below tensors/: folders in it and other endings were refused.
TEST(SourcePaths, LieInTensorsAndNowhereElse) {
  const std::string longest(255, 'a');
  for (const std::string& good :
       {std::string("tensors/a.f32"), std::string("tensors/layers.0.wq.weight.f32"), std::string("tensors/A-b_c.f32"),
        std::string("tensors/b/a.f32"), std::string("tensors/layers/0/wq.bin"), std::string("tensors/w"),
        std::string("tensors/.f32"), std::string("tensors/-a.f32"), std::string("tensors/a b.f32"),
        std::string("tensors/a..b"), std::string("tensors/.../a"), "tensors/" + longest + "/" + longest})
    EXPECT_EQ(path_problem(good), "") << good;
  for (const std::string& bad :
       {std::string("/tensors/a.f32"), std::string("tensors/../a.f32"), std::string("Tensors/a.f32"),
        std::string("TENSORS/../a.f32"), std::string("tensors/b/../../a"), std::string("tensors/b/.."),
        std::string("tensors/./a"), std::string("tensors//a"), std::string("tensors/a/"), std::string("tensors/"),
        std::string("tensors/a\\b.f32"), std::string("tensors/a\0.f32", 14), std::string("tensors/a\n"),
        std::string("tensors"), std::string(""), "tensors/" + longest + "a", "tensors/" + std::string(4096, '/')})
    EXPECT_NE(path_problem(bad), "") << bad;
}

TEST(SourceManifests, GiveBackShapeAndTokenizer) {
  const Model model = slm::fixture(slm::Fixture::tiny_bpe);
  Record record(kSourceSchema);
  set_shape(record, shape_of(model));
  set_tokenizer(record, *model.tokenizer());
  EXPECT_EQ(tokenizer_of(record), *model.tokenizer());
  for (const auto& [key, value] : shape_attributes(record)) {
    const Value* const stated = model.attribute(key);
    ASSERT_NE(stated, nullptr) << key;
    EXPECT_EQ(*stated, value) << key;
  }
}

TEST(SourceManifests, RefuseNumbersThatTheHeaderCannotHold) {
  for (const auto& [key, value] : {std::pair{"vocab_size", "4294967296"},
                                   {"hidden_size", "0"},
                                   {"rope_theta", "-1"},
                                   {"rms_norm_epsilon", "1e-60"}}) {
    Record record(kSourceSchema);
    set_shape(record, shape_of(slm::fixture(slm::Fixture::tiny)));
    record.set(key, value);
    try {
      shape_attributes(record);
      ADD_FAILURE() << key;
    } catch (const Error& error) {
      EXPECT_EQ(error.finding().rule, "chain/value");
      EXPECT_TRUE(std::string_view(error.finding().message).starts_with(key)) << error.what();
    }
  }
}

TEST(SourceManifests, RefuseRowsOfATokenizerThatAreNone) {
  for (const auto& [key, value] : {std::pair{"token.0", "12"},
                                   {"token.0", "x a"},
                                   {"merge.0", "1 2 3"},
                                   {"merge.0", "1 2 3 4294967296"},
                                   {"special.0", "bos"}}) {
    Record record(kSourceSchema);
    record.set("tokenizer_route", "bpe").set(key, value);
    EXPECT_THROW(tokenizer_of(record), Error) << key << value;
    record.set("tokenizer_route", "byte");
    EXPECT_THROW(tokenizer_of(record), Error) << "rows without their route";
  }
}

TEST(Values, AreCountedAsTheyAre) {
  const float values[] = {0, -0.0F, 3, -5, INFINITY, NAN, 1e-45F};
  ValueCounter counter(4);
  counter.update(std::as_bytes(std::span(values)));
  EXPECT_EQ(counter.values().elements, 7U);
  EXPECT_EQ(counter.values().zeros, 2U);
  EXPECT_EQ(counter.values().nonfinite, 2U);
  EXPECT_EQ(counter.values().above, 1U);
  EXPECT_EQ(counter.values().largest, 5);
  EXPECT_FALSE(counter.values().all_zero());
}

// The row as in docs/slm/records.md.
std::string row_of(const Key& key) {
  std::string value(name(key.type));
  if (key.type == Type::choice) {
    value = "`" + std::string(key.choices) + "`";
    for (std::size_t at = 0; (at = value.find('|', at)) != std::string::npos;) value.replace(at, 1, "`, `");
  }
  const std::string about = key.about.empty() ? " |" : " " + std::string(key.about) + " |";
  return "| `" + std::string(key.name) + "` | " + value + " | " + (key.required ? "yes" : "no") + " |" + about + "\n";
}

TEST(Documentation, HasTheTableOfEachRecord) {
  const std::string text = read_bytes("docs/slm/records.md");
  for (const Schema* const schema :
       {&kSourceSchema, &kReviewSchema, &kValidationSchema, &kConversionSchema, &slm_manifest_schema(), &smoke_schema(),
        &cases_schema(), &evaluation_schema(), &smoke_gate_schema(), &quality_gate_schema(), &admission_schema(),
        &ledger_schema(), &selector_schema(), &minimodel_schema(), &receipt_schema()}) {
    std::string table = "| key | value | needed | meaning |\n| --- | --- | --- | --- |\n";
    for (const Key& key : schema->keys) table += row_of(key);
    EXPECT_NE(text.find(table), std::string::npos) << schema->name << "\n" << table;
  }
}

}  // namespace
}  // namespace weighbridge::chain
