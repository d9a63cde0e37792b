// SPDX-License-Identifier: Apache-2.0
#include "convert/adapter.h"

#include <string_view>
#include <utility>

#include "base/checked.h"
#include "base/fail.h"
#include "codecs/indexed_checksum.h"
#include "core/model/draft.h"
#include "formats/slm/directory.h"
#include "formats/slm/header.h"
#include "io/read.h"

namespace weighbridge::convert {

using slm_adapter::Identity;
using namespace slm_format;

// open() has checked the ranges.
Identity identity_of(const Model& base) {
  if (base.format() != "slm")
    base::misuse("adapter-base", "an adapter package belongs to an .slm file; the base model is of another format");
  if (core::is_view(base))
    base::misuse("adapter-base", "an adapter package belongs to an .slm file; the base model is a view of one");
  const Source& source = *base.sources()[0];
  const auto header = io::record_of<Header>(source, 0);
  const Directory directory(io::text_of(source, header.tensor_directory_offset, header.tensor_count * kEntrySize));
  Identity out;
  out.flags = header.flags;
  out.tensor_count = header.tensor_count;
  for (std::uint32_t i = 0; i < directory.size(); ++i) out.parameter_count += extents_of(directory[i])->elements;
  out.tensor_layout_checksum = layout_checksum(directory);
  const std::string section = io::text_of(source, header.tokenizer_offset, header.tokenizer_length);
  out.tokenizer_checksum = codecs::indexed_checksum(std::as_bytes(std::span(section)), codecs::kSlmTokenizerSeed);
  out.directory_identity = codecs::indexed_checksum(std::as_bytes(std::span(directory.bytes())));
  return out;
}

void require_identity(const Identity& base, const Model& package) {
  const std::pair<std::string_view, std::uint64_t> fields[] = {
      {"base_tensor_count", base.tensor_count},
      {"base_flags", base.flags},
      {"base_parameter_count", base.parameter_count},
      {"base_tensor_layout_checksum", base.tensor_layout_checksum},
      {"base_tokenizer_checksum", base.tokenizer_checksum},
      {"base_directory_identity", base.directory_identity}};
  for (const auto& [key, own] : fields) {
    const Value* const value = package.attribute(std::string(slm_adapter::kPrefix) + std::string(key));
    const std::uint64_t other = value != nullptr ? value->as_u64().value_or(0) : 0;
    if (other == own) continue;
    base::misuse("adapter-identity", "the package was made for another model: its " + std::string(key) + " is " +
                                         codecs::checksum_text(other) + ", the model's is " +
                                         codecs::checksum_text(own));
  }
}

}  // namespace weighbridge::convert
