// SPDX-License-Identifier: Apache-2.0
#include "runtime/llama/adapter_identity.h"

#include <string>

#include "base/checked.h"
#include "base/fail.h"
#include "codecs/indexed_checksum.h"
#include "core/draft.h"
#include "formats/slm/directory.h"
#include "formats/slm/header.h"

namespace weighbridge::llama {
namespace {

using slm_adapter::Identity;
using namespace slm_format;

std::string read_text(const Source& source, std::uint64_t offset, std::uint64_t length) {
  std::string out(base::to_size(length), '\0');
  source.read_at(offset, std::as_writable_bytes(std::span(out)));
  return out;
}

}  // namespace

// open() has checked the ranges.
Identity identity_of(const Model& base) {
  if (base.format() != "slm")
    base::misuse("adapter-base", "an adapter package belongs to an .slm file; the base model is of another format");
  if (core::is_view(base))
    base::misuse("adapter-base", "an adapter package belongs to an .slm file; the base model is a view of one");
  const Source& source = *base.sources()[0];
  const std::string head = read_text(source, 0, kHeaderSize);
  const Header header = decode_header(std::as_bytes(std::span(head)));
  const Directory directory(read_text(source, header.tensor_directory_offset, header.tensor_count * kEntrySize));
  Identity out;
  out.flags = header.flags;
  out.tensor_count = header.tensor_count;
  for (std::uint32_t i = 0; i < directory.size(); ++i) out.parameter_count += extents_of(directory[i])->elements;
  out.tensor_layout_checksum = layout_checksum(directory);
  const std::string section = read_text(source, header.tokenizer_offset, header.tokenizer_length);
  out.tokenizer_checksum = codecs::indexed_checksum(std::as_bytes(std::span(section)), codecs::kSlmTokenizerSeed);
  out.directory_identity = codecs::indexed_checksum(std::as_bytes(std::span(directory.bytes())));
  return out;
}

}  // namespace weighbridge::llama
