// SPDX-License-Identifier: Apache-2.0
// A model's tokenizer as the metadata of llama.cpp (tokenizer.ggml.*), and in what its own program would differ.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "weighbridge/model.h"

namespace weighbridge::convert {

struct Vocabulary {
  std::vector<Value::Entry> attributes;
  std::vector<std::string> differences;  // sentences
};
// `rows` of the word embeddings, at least as many as tokens: llama.cpp needs a token for each.
Vocabulary vocabulary_for_llama_cpp(const Model&, const Tokenizer&, std::uint64_t rows);

}  // namespace weighbridge::convert
