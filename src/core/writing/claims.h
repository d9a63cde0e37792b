// SPDX-License-Identifier: Apache-2.0
// Metadata that state something about the model itself, and so can become untrue: one table of such claims, by key.
// verify checks the claims that can be checked. Conversions, edits and merges update a claim, or drop it and say so.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/reading/findings.h"
#include "core/reading/format.h"
#include "core/writing/layout.h"
#include "weighbridge/context.h"
#include "weighbridge/convert.h"
#include "weighbridge/model.h"

namespace weighbridge::core {

// What a claim is about, and what happens to it.
enum class About : std::uint8_t {
  // The SHA-256 of everything after the header of a .safetensors. verify computes it. A conversion that may write other
  // bytes, or the same in another order, drops it.
  data_hash,
  // The first 8 digits of the SHA-256 of 64 KiB at 1 MiB, in a file with only the metadata `ss_...` (kohya's scripts).
  // Handled like the one above; an edit of names or of that metadata drops it too.
  legacy_hash,
  // GGUF's number for the type of most elements. A conversion after which most have another type sets it, or drops it
  // if that type has no number of its own.
  file_type,
  // The version of GGML's quantization. Dropped if no tensor is quantized any more.
  quantization_version,
  // Whether input and output embeddings are the same matrix. verify compares them; a merge that changes only one of
  // them sets it to false.
  tied,
  // The dtype of most floating-point elements, as PyTorch names it. A conversion that changes it sets it.
  dtype,
  // The configuration of a part of the model, which may state its dtype too: text_config.
  config,
  // How tensors are quantized. Dropped once they are plain numbers.
  quantization,
  // The id of a special token. verify compares it with the number of tokens; an edit that sets another one is refused.
  token_id,
  // The number of a part of a split model. A conversion drops it.
  part,
};
struct Claim {
  std::string_view key;  // of an attribute; "*_token_id": all that end so
  About about;
};
// Null: no change of the model can make the attribute untrue.
const Claim* find_claim(std::string_view key) noexcept;

// A claim that would be untrue: its new value, or nullopt to drop it.
struct Restated {
  std::string key;
  std::optional<Value> value;
  std::string why;  // it is dropped
};
// The untrue claims of the model as it is laid out for the format; `before` is the conversion's input.
std::vector<Restated> restated(const Model& before, const Model& laid_out, const WriteLayout&, const FormatInfo& to,
                               const Options&);
// The model with these values, which are added to the changes.
Model restate(const Model&, std::span<const Restated>, std::vector<Item>& changes);

// The claims that an edit of names and metadata makes untrue: `edited` is a view of `original`.
std::vector<std::string> unsaid_by_edit(const Model& original, const Model& edited);
// Throws Error{misuse} if the attribute is the id of a token that the model does not have.
void require_token_id(const Model&, std::string_view key);

// The matrices that tied models share, as far as the model has them.
struct Embeddings {
  std::optional<Tensor> input, output;
  std::string output_name;  // that a model with this input embedding would have
};
Embeddings embeddings_of(const Model&);
// The key of the claim that they are tied, if it says so.
std::optional<std::string> claims_tied(const Model&);

// [reads] Whether they have the same shape and the same values.
bool have_same_values(const Tensor&, const Tensor&, const Context&);

// A file of a tokenizer: the highest of its ids plus one, or the number of its tokens; a lower bound.
struct TokenFile {
  std::shared_ptr<const Source> source;
  std::uint64_t tokens = 0;
};
// [reads] Of those that exist, and are not larger than Limits::header. Skips what is malformed.
std::vector<TokenFile> token_files(const Place&, const Limits&);

// Reports what is wrong with a chat template; `name`: of the attribute or key. Offsets are those of the finding, not of
// the template, because metadata may be escaped.
void check_chat_template(std::string_view text, std::string_view name, const At&, Findings&);

// [reads] Reports the claims that are untrue, as warnings.
void check_claims(const Model&, const Context&, Findings&);

}  // namespace weighbridge::core
