// SPDX-License-Identifier: Apache-2.0
// Options::gguf.naming: a Llama or a BERT as llama.cpp expects it, with its names, its metadata and its form of the
// tokenizer. A view: tensors stay where they are, and rows that change places are moved while they are read.
#pragma once
#include <string_view>
#include <vector>

#include "weighbridge/convert.h"

namespace weighbridge::convert {

struct Named {
  Model model;
  std::vector<Item> losses{}, changes{}, blockers{};
  bool unseen = false;  // the model is the one given, because of the blockers
};
// Takes the names of Hugging Face, of EMBD and of SLM. Throws Error{misuse} if the model is neither a Llama nor a BERT,
// or if it computes what llama.cpp does not compute under this name.
Named named_for_llama_cpp(const Model&);

}  // namespace weighbridge::convert
