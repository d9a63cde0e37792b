// SPDX-License-Identifier: Apache-2.0
// The classes and functions that are harmless in a checkpoint, and where their objects have their content. Only
// compares names; nothing is imported. core/archive/pickle_globals.h has the harmful ones.
#pragma once
#include <cstdint>
#include <string_view>

namespace weighbridge::pytorch {

// Whether it is harmless and common in checkpoints.
bool is_known(std::string_view module, std::string_view name) noexcept;

// Where an object made by a known class or function has its content.
enum class Holds : std::uint8_t {
  nothing,
  items,         // keys and values that were set in it: OrderedDict
  state,         // its attributes: Namespace
  list,          // the list that is its argument: set
  content,       // _content of its state: a container of omegaconf
  node,          // _val of its state: a value of omegaconf
  script,        // attributes of an object of TorchScript
  encoded,       // bytes
  device,        // a device of torch
  path,          // the parts of a path
  one,           // its only argument: a number as text, a list of TorchScript
  first,         // its first argument, whatever it holds
  numpy_scalar,  // a type of NumPy, and the bytes
  type,          // a type of NumPy
  date,          // bytes of a date
  numbers,       // its arguments: torch.Size, complex
};
Holds holds_of(std::string_view module, std::string_view name) noexcept;

}  // namespace weighbridge::pytorch
