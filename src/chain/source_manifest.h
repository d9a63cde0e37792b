// SPDX-License-Identifier: Apache-2.0
// source.manifest, and converting shape and tokenizer between a model and the keys of this and other records. Leaves
// the tensors' files to source_folder.h.
#pragma once
#include <string>
#include <vector>

#include "chain/record.h"
#include "formats/slm/layout.h"
#include "weighbridge/model.h"

namespace weighbridge::chain::internal {

// Sets the key for each header field except model_type and flags.
void set_shape(Record&, const slm_format::Header&);
// The shape as attributes "slm.<field>" in the header's types. Throws chain/value for a number that its field cannot
// hold.
std::vector<Value::Entry> shape_attributes(const Record&);

// Sets tokenizer_route, and the rows of a BPE tokenizer.
void set_tokenizer(Record&, const Tokenizer&);
// Throws chain/value naming the row.
Tokenizer tokenizer_of(const Record&);

// The shape of a model that can be an .slm, with the heads as in the source. Throws chain/shape for what is not known.
slm_format::Header shape_of(const Model&);
// "f32", "f16", "bf16", "mixed" of them, or "other".
std::string source_dtype(const Model&);

// The text of a manifest to fill in: the keys of `known`, and a placeholder that describes the value for each other
// required key.
std::string fill_in(const Record& known);

}  // namespace weighbridge::chain::internal
