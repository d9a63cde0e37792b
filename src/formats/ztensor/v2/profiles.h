// SPDX-License-Identifier: Apache-2.0
// Maps quantized profiles to block types of the model, with the attributes that other containers use for them, and
// back. A tensor from zTensor 1.x, SLM or GGUF is the same tensor after a trip through zTensor 2.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "weighbridge/model.h"

namespace weighbridge::ztensor2 {

// A quantized object's attributes in the manifest, once they are valid.
struct QuantGroup {
  std::uint64_t bits = 0, group = 0, axis = 0, per_word = 0;
  DType word = DType::unknown;
  bool msb_first = false;
  std::string_view scale_form, zero_form, zero_packing;
};

// Facts that the parts show.
struct QuantParts {
  DType data = DType::unknown, scales = DType::unknown, zeros = DType::unknown;
};

// A quantized object as a tensor of the model.
struct AsBlocks {
  const BlockTypeInfo* type = nullptr;  // null: no block type for these elements
  std::vector<Value::Entry> attributes;
};

// zt.quant_group/1 as zTensor 1.x's quantized_group or SLM's q8_0 if it is one of them, else as the profile's own block
// type if its groups run along the fastest dimension. `attributes` are those of the object.
AsBlocks from_quant_group(const QuantGroup&, const QuantParts&, Shape, std::vector<Value::Entry> attributes);
// zt.mx/1 with its blocks along the fastest dimension, gguf.<type>/1, and the project's own profile.
AsBlocks from_mx(std::vector<Value::Entry> attributes);
AsBlocks from_gguf(std::string_view type, std::vector<Value::Entry> attributes);
AsBlocks from_own(std::vector<Value::Entry> attributes);

// A tensor of the model as an object of the manifest.
struct AsObject {
  std::string layout;
  std::vector<Value::Entry> attributes;
};
AsObject to_object(const Tensor&);
// The name of the part with this role in an object of that layout, and the role that the model has for it.
std::string_view part_name(const Tensor&, const AsObject&, std::string_view role);

}  // namespace weighbridge::ztensor2
