// SPDX-License-Identifier: Apache-2.0
// An importance matrix of llama-imatrix, in its GGUF form and its older one: for each tensor, how much its columns
// matter. Source: tools/imatrix and src/llama-quant.cpp of github.com/ggml-org/llama.cpp.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "weighbridge/context.h"
#include "weighbridge/source.h"

namespace weighbridge::gguf {

struct Importance {
  std::map<std::string, std::vector<float>, std::less<>>
      entries;  // by tensor: a weight for each column, of each expert
  std::string file, dataset;
  std::uint64_t chunks = 0;
};

// [reads] Throws Error{malformed} with a rule "imatrix/...", Error{io}, Error{limit}.
Importance read_importance(const std::shared_ptr<const Source>&, const Context&);

}  // namespace weighbridge::gguf
