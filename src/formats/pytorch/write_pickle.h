// SPDX-License-Identifier: Apache-2.0
// The pickle of a checkpoint: a state dict, that is an OrderedDict of names and tensors. The attributes are in its
// __dict__, where PyTorch keeps `_metadata`, so load_state_dict() finds only tensors.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/writing/plan_items.h"
#include "formats/pytorch/layout.h"
#include "weighbridge/model.h"
#include "weighbridge/value.h"
#include "wire/pickle_writer.h"

namespace weighbridge::pytorch {

// Elements of a storage, as a call of torch._utils rebuilds them.
struct OutStrided {
  const ElementType* type = nullptr;
  std::uint64_t key = 0;                 // of the storage
  std::uint64_t storage_bytes = 0;       // of all of it
  std::uint64_t first = 0;               // element
  std::vector<std::uint64_t> shape{};    // as PyTorch counts
  std::vector<std::uint64_t> strides{};  // in elements, as many as dimensions
};

// One tensor. A sparse one has its indices before its values.
struct OutPickled {
  std::string_view name{};
  Layout layout = Layout::dense;
  std::vector<OutStrided> parts{};
  std::vector<std::uint64_t> shape{};  // of a sparse one
};

// Row-major strides as PyTorch states them, also where dimensions are 0.
std::vector<std::uint64_t> row_major_strides(std::span<const std::uint64_t> shape);

// Lists losses and changes of the attributes, and returns those that are written.
std::vector<Value::Entry> check_attributes(const Attributes&, core::PlanItems);

std::string write_pickle(std::span<const OutPickled>, std::span<const Value::Entry> attributes);

}  // namespace weighbridge::pytorch
