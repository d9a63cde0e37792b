// SPDX-License-Identifier: Apache-2.0
// The tables of the source chain's records: source.manifest, review, validation and conversion. Each is a list of keys
// that drives parsing, writing and the tables of docs/slm/records.md.
#pragma once
#include <array>
#include <cstddef>
#include <string_view>

#include "chain/evidence.h"
#include "chain/record.h"
#include "formats/slm/layout.h"

namespace weighbridge::chain::internal {

inline constexpr std::string_view kSourceManifest = "source.manifest", kReviewCopy = "review.record",
                                  kConversionEnding = ".conversion";

template <class... Lists> consteval auto join(const Lists&... lists) {
  std::array<Key, (std::tuple_size_v<Lists> + ...)> out{};
  std::size_t at = 0;
  const auto add = [&](const auto& list) {
    for (const Key& key : list) out[at++] = key;
  };
  (add(lists), ...);
  return out;
}

template <class List> consteval List optional_ones(List list) {
  for (Key& key : list) key.required = false;
  return list;
}

// The header's shape, under its own field names.
inline constexpr std::array kShapeKeys = {
    Key{"family", Type::choice, true, "llama", "the architecture that an .slm has"},
    Key{"vocab_size", Type::number, true, "", "rows of tok_embeddings.weight"},
    Key{"special_token_count", Type::number, true, "", "at least 4 for byte tokenizers"},
    Key{"hidden_size", Type::number, true, "", "columns of tok_embeddings.weight"},
    Key{"layer_count", Type::number, true, "", ""},
    Key{"head_count", Type::number, true, "", "query heads"},
    Key{"kv_head_count", Type::number, true, "", "key and value heads; fewer than head_count are repeated"},
    Key{"head_dim", Type::number, true, "", "hidden_size / head_count"},
    Key{"ffn_size", Type::number, true, "", "rows of w1 and w3"},
    Key{"max_context", Type::number, true, "", ""},
    Key{"rope_theta", Type::real, true, "", ""},
    Key{"rms_norm_epsilon", Type::real, true, "", ""},
    Key{"tied_output", Type::boolean, true, "", "tok_embeddings.weight is the output projection too"},
};

inline constexpr auto kSourceKeys = join(
    std::array{Key{"schema_version", Type::choice, true, "1", ""},
               Key{"identity", Type::text, true, "", "the model's name, as its makers call it"},
               Key{"source_kind", Type::choice, true, "trained|deterministic-smoke",
                   "deterministic-smoke: made by a rule, for tests of the machinery"},
               Key{"source_dtype", Type::choice, true, "f32|f16|bf16|mixed", "of the weights before they became f32"},
               Key{"license", Type::text, true, "", "as its makers state it"},
               Key{"dataset", Type::text, true, "", "what it was trained on"},
               Key{"training_summary", Type::text, true, "", "how, in a sentence"}},
    kShapeKeys,
    std::array{Key{"tokenizer_route", Type::choice, true, "byte|bpe", "byte: BTOK, bpe: BPE1"},
               Key{"review_sha256", Type::digest, false, "", "of the review.record beside it; from extraction"},
               Key{"candidate_sha256", Type::digest, false, "", "of the reviewed candidate's list of files"},
               Key{"tensor_count", Type::number, true, "", "rows of tensor; 0 in a template"},
               Key{"special.N", Type::text, false, "", "route bpe: bos, eos, pad or unk, a space, its id"},
               Key{"token.N", Type::text, false, "", "route bpe: id, a space, its bytes"},
               Key{"merge.N", Type::text, false, "", "route bpe: left, right, output and rank, with spaces between"},
               Key{"tensor.N.name", Type::word, true, "", "as the specification lists them"},
               Key{"tensor.N.dims", Type::dims, true, "", "slowest first"},
               Key{"tensor.N.path", Type::text, true, "", "below tensors/"},
               Key{"tensor.N.bytes", Type::number, true, "", "4 for each element"},
               Key{"tensor.N.checksum", Type::checksum, true, "", "SLM checksum of the file's bytes"},
               Key{"tensor.N.sha256", Type::digest, true, "", "of the file's bytes"}});
inline constexpr Schema kSourceSchema{"source.manifest", kSourceKeys, true};

inline constexpr std::array kVerdictKeys = {
    Key{"tensor_count", Type::number, true, "", "tensors looked at"},
    Key{"parameter_count", Type::number, true, "", "their elements"},
    Key{"safety_bound", Type::real, true, "", "no magnitude may be above it"},
    Key{"largest_magnitude", Type::real, true, "", "the largest finite |value|"},
    Key{"nonfinite_values", Type::number, true, "", ""},
    Key{"values_above_bound", Type::number, true, "", ""},
    Key{"all_zero_tensors", Type::number, true, "", ""},
    Key{"verdict", Type::choice, true, "accepted|refused", "accepted: no objection"},
    Key{"objection.N.rule", Type::word, true, "", "chain/..."},
    Key{"objection.N.text", Type::text, true, "", "what is wrong"},
};

inline constexpr auto kReviewKeys = join(
    std::array{Key{"record", Type::choice, true, "slm-review", ""}, Key{"schema_version", Type::choice, true, "1", ""},
               Key{"candidate_sha256", Type::digest, true, "", "of the lines `SHA256  NAME` of its files, by name"},
               Key{"template_sha256", Type::digest, false, "", "of the source.manifest that was given"},
               Key{"source_dtype", Type::choice, true, "f32|f16|bf16|mixed|other", ""}},
    optional_ones(kShapeKeys),
    std::array{Key{"tokenizer_route", Type::choice, true, "byte|bpe|none", ""},
               Key{"missing_tensors", Type::number, true, "", "that an .slm needs"},
               Key{"extra_tensors", Type::number, true, "", "that an .slm has no name for"}},
    kVerdictKeys,
    std::array{Key{"file.N.name", Type::text, true, "", "of the candidate"}, Key{"file.N.bytes", Type::number},
               Key{"file.N.sha256", Type::digest},
               Key{"license.N.source", Type::text, true, "", "config.json, README.md, metadata, or a LICENSE file"},
               Key{"license.N.key", Type::text, true, "", ""}, Key{"license.N.value", Type::text, true, "", "as found"},
               Key{"tensor.N.name", Type::text}, Key{"tensor.N.dtype", Type::word},
               Key{"tensor.N.dims", Type::text, true, "", "as stored"}, Key{"tensor.N.largest_magnitude", Type::real},
               Key{"tensor.N.zeros", Type::number}, Key{"tensor.N.nonfinite_values", Type::number}, kSealKey});
inline constexpr Schema kReviewSchema{"review record", kReviewKeys};

inline constexpr auto kValidationKeys = join(
    std::array{Key{"record", Type::choice, true, "slm-source-validation", ""},
               Key{"schema_version", Type::choice, true, "1", ""},
               Key{"manifest_sha256", Type::digest, true, "", "of source.manifest"},
               Key{"review_sha256", Type::digest, false, "", "of the review.record beside it, where it names one"}},
    kVerdictKeys, std::array{kSealKey});
inline constexpr Schema kValidationSchema{"validation record", kValidationKeys};

inline constexpr auto kConversionKeys = join(
    std::array{Key{"record", Type::choice, true, "slm-conversion", ""},
               Key{"schema_version", Type::choice, true, "1", ""},
               Key{"source_kind", Type::choice, true, "converted-trained", ""},
               Key{"route", Type::choice, true, "source|safetensors", "convert-trained, convert-safetensors-trained"},
               Key{"identity", Type::text, true, "", "from source.manifest, as the next four"},
               Key{"license", Type::text}, Key{"dataset", Type::text}, Key{"training_summary", Type::text},
               Key{"source_dtype", Type::choice, true, "f32|f16|bf16|mixed", ""},
               Key{"manifest_sha256", Type::digest, true, "", "of source.manifest, or of the template"},
               Key{"validation_sha256", Type::digest, false, "", "route source: of the validation record"},
               Key{"review_sha256", Type::digest, false, "", "of the review record"},
               Key{"candidate_sha256", Type::digest, false, "", "as the review has it"}},
    kShapeKeys,
    std::array{Key{"artifact.name", Type::text, true, "", "the file's name, without its folder"},
               Key{"artifact.bytes", Type::number}, Key{"artifact.sha256", Type::digest},
               Key{"artifact.checksum", Type::checksum}, Key{"artifact.tokenizer_checksum", Type::checksum},
               Key{"artifact.tensor_layout_checksum", Type::checksum},
               Key{"artifact.quantization", Type::choice, true, "f32|q8_0|q4_0|mixed", ""},
               Key{"tensor_count", Type::number}, Key{"parameter_count", Type::number},
               Key{"structure", Type::choice, true, "accepted", "the full validator passed"},
               Key{"quality", Type::choice, true, "pending", "until evidence passes"}, kSealKey});
inline constexpr Schema kConversionSchema{"conversion record", kConversionKeys};

}  // namespace weighbridge::chain::internal
