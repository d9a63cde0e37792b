// SPDX-License-Identifier: Apache-2.0
#include "formats/ztensor/planning.h"

#include <string>

#include "core/payload/payload.h"
#include "tokenizers/tokenizer_rules.h"

namespace weighbridge::ztensor {

using core::indexed, core::subject;

void Planning::check_part(const Tensor& tensor, const Part& part, bool holds, bool verbatim,
                          std::string_view no_dtype) {
  if (!holds && !(part.dtype() == DType::unknown && verbatim))
    plan_items_.block(LossKind::dtype, subject(tensor, part), std::string(part.dtype_name()), std::string(no_dtype));
  else if (part.encoding() == Encoding::unknown && !verbatim)
    plan_items_.block_uninterpreted(tensor, subject(tensor, part), std::string(part.encoding_name()),
                                    "an encoding that this build cannot undo");
}

void Planning::name_changes(const core::Payload& p, bool keeps_digest, std::string_view own) {
  const Tensor& tensor = p.tensor;
  const Part part = tensor.part(p.part);
  if (!part.digest().empty() && !keeps_digest)
    plan_items_.change(LossKind::extra, subject(tensor, part), std::string(part.digest()),
                       p.digest == core::PartDigest::none ? "no digest" : "a digest of the new bytes");
  if (p.form == core::Payload::Form::stored) return;
  for (const auto& [key, value] : part.extra())
    plan_items_.lose(LossKind::extra, subject(tensor, part) + "." + indexed("extra", key), value.to_text(),
                     "dropped: the bytes are stored anew");
  core::check_encoding(plan_items_, tensor, part, p.encoding);
  if (core::cut_of(part))
    plan_items_.change(LossKind::layout, subject(tensor, part), "in one run of bytes with the others",
                       std::string(own));
}

void Planning::add_tokenizer(std::vector<Value::Entry>& entries, const std::shared_ptr<const Tokenizer>& tokenizer) {
  if (!tokenizer) return;
  std::erase_if(entries, [&](const Value::Entry& e) {
    if (e.first != tokenizers::kTokenizerKey) return false;
    plan_items_.lose(LossKind::attribute, indexed("attributes", e.first), e.second.to_text(),
                     "dropped: the key is weighbridge's own");
    return true;
  });
  entries.emplace_back(std::string(tokenizers::kTokenizerKey), Value::text(tokenizers::tokenizer_to_json(*tokenizer)));
}

}  // namespace weighbridge::ztensor
