// SPDX-License-Identifier: Apache-2.0
// The real files of published zTensor packages, and their facts from MANIFEST.json: names, dtypes, shapes,
// SHA-256 of logical bytes, attributes. For the tests of both zTensor formats.
#pragma once
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "codecs/checksum.h"
#include "support/format_testing.h"

namespace weighbridge::test {

using Json = nlohmann::json;

inline void expect_value(const Value& value, const Json& expected) {
  SCOPED_TRACE(expected.dump());
  if (expected.is_array()) {
    ASSERT_EQ(value.list().size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) expect_value(value.list()[i], expected[i]);
    return;
  }
  if (expected.is_object() && expected.contains("$bytes")) {
    EXPECT_EQ(value.kind(), Value::Kind::bytes);
    EXPECT_EQ(codecs::to_hex(value.bytes()), expected["$bytes"].get<std::string>());
    return;
  }
  switch (expected.type()) {
    case Json::value_t::null: EXPECT_EQ(value.kind(), Value::Kind::null); break;
    case Json::value_t::boolean: EXPECT_EQ(value.as_bool(), expected.get<bool>()); break;
    case Json::value_t::number_unsigned: EXPECT_EQ(value.as_u64(), expected.get<std::uint64_t>()); break;
    case Json::value_t::number_integer: EXPECT_EQ(value.as_i64(), expected.get<std::int64_t>()); break;
    case Json::value_t::number_float: EXPECT_EQ(value.as_f64(), expected.get<double>()); break;
    case Json::value_t::string: EXPECT_EQ(value.as_text(), expected.get<std::string>()); break;
    default:
      ASSERT_EQ(value.map().size(), expected.size());
      for (const auto& [key, element] : value.map()) expect_value(element, expected.at(key));
  }
}

inline void expect_attributes(Attributes attributes, const Json& expected) {
  EXPECT_EQ(attributes.size(), expected.size());
  for (const auto& [key, value] : attributes) {
    ASSERT_TRUE(expected.contains(key)) << key;
    expect_value(value, expected.at(key));
  }
}

inline void expect_part(const Part& part, const Json& expected) {
  SCOPED_TRACE(part.role());
  EXPECT_EQ(part.dtype_name(), expected.at("dtype").get<std::string>());
  EXPECT_EQ(part.encoding_name(), expected.at("encoding").get<std::string>());
  EXPECT_EQ(part.digest(), expected.value("digest", ""));
  EXPECT_EQ(sha256(logical_bytes(part)), expected.at("sha256").get<std::string>());
}

inline void expect_tensor(const Tensor& tensor, const Json& expected) {
  SCOPED_TRACE(tensor.name());
  EXPECT_EQ(tensor.name(), expected.at("name").get<std::string>());
  EXPECT_EQ(std::vector(tensor.shape().begin(), tensor.shape().end()),
            expected.at("shape").get<std::vector<std::uint64_t>>());
  const std::string layout = expected.at("layout").get<std::string>();
  // The list describes the blobs of zTensor 0.1 as one part, of a time when they were not read.
  const bool blob = layout == "sparsecoo" || layout == "sparsecsr";
  EXPECT_EQ(tensor.layout_name(), layout == "sparsecoo" ? "sparse_coo" : layout == "sparsecsr" ? "sparse_csr" : layout);
  const bool supported = blob || expected.value("supported", true);
  EXPECT_EQ(tensor.unsupported() == nullptr, supported);
  const Part main = tensor.main();
  EXPECT_EQ(main.dtype_name(), expected.at("dtype").get<std::string>());
  if (expected.contains("attributes")) expect_attributes(tensor.attributes(), expected["attributes"]);
  if (supported && expected.contains("dense_sha256")) {
    EXPECT_EQ(sha256(dense_bytes(tensor)), expected["dense_sha256"].get<std::string>());
  }
  if (expected.contains("dequantized_f32_sha256")) {
    EXPECT_EQ(sha256(dense_bytes(tensor)), expected["dequantized_f32_sha256"].get<std::string>());
  }
  if (blob) {
    const Json& whole = expected.at("parts").at("data");
    EXPECT_EQ(main.digest(), whole.value("digest", ""));
    EXPECT_EQ(codecs::to_hex(codecs::sha256(main.stored().span)), whole.at("sha256").get<std::string>());
  } else if (expected.contains("parts")) {
    EXPECT_EQ(tensor.part_count(), expected["parts"].size());
    for (const auto& [role, part] : expected["parts"].items()) {
      ASSERT_TRUE(tensor.part(role).has_value()) << role;
      expect_part(*tensor.part(role), part);
    }
  } else {
    expect_part(tensor.main(), expected);
    if (tensor.layout() == Layout::dense) {
      EXPECT_EQ(sha256(dense_bytes(tensor)), expected["sha256"].get<std::string>());
    }
  }
}

inline void expect_tensors(const Model& model, const Json& tensors) {
  ASSERT_EQ(model.size(), tensors.size());
  for (std::uint32_t i = 0; i < model.size(); ++i) expect_tensor(model[i], tensors[i]);
}

}  // namespace weighbridge::test
