// SPDX-License-Identifier: Apache-2.0
// Metadata values from text: the types that can be asked for, and the type that a value gets from the one it replaces.
#pragma once
#include <string_view>

#include "weighbridge/edit.h"

namespace weighbridge::edit_files {

// The value of a setting. `present` is that of its key in the file, or null. Error{misuse}.
Value typed(const EditOptions::Setting&, const Value* present);
// A number without a type, as JSON has it, in the type of the present value if it fits; else i64, u64 or f64.
Value like(const Value& number, const Value* present);
// "u32"; "text"
std::string_view type_of(const Value&);

}  // namespace weighbridge::edit_files
