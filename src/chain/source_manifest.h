// SPDX-License-Identifier: Apache-2.0
// source.manifest and the models that it and other records speak of: shape and tokenizer as keys of a record and back.
// Leaves the tensors' files to source_folder.h.
#pragma once
#include <string>
#include <vector>

#include "chain/record.h"
#include "formats/slm/layout.h"
#include "weighbridge/model.h"

namespace weighbridge::chain {

// A key of the table for each field of the header but model_type and flags.
void set_shape(Record&, const slm::Header&);
// As attributes "slm.<field>", in the header's types. Error chain/value: a number that its field cannot hold.
std::vector<Value::Entry> shape_attributes(const Record&);

// tokenizer_route, and the rows of a BPE tokenizer.
void set_tokenizer(Record&, const Tokenizer&);
// Error chain/value names the row.
Tokenizer tokenizer_of(const Record&);

// The shape of a model that can be an .slm, heads as they are in the source. Error chain/shape: what is not known.
slm::Header shape_of(const Model&);
// "f32", "f16", "bf16", "mixed" of them, or "other".
std::string source_dtype(const Model&);

// The text of a manifest to fill in: keys of `known` that are there, for each other required one what its value is.
std::string fill_in(const Record& known);

}  // namespace weighbridge::chain
