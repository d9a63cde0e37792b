// SPDX-License-Identifier: Apache-2.0
// The descriptor of llama2.c checkpoints, and detection without a magic.
#include "formats/llama2c/format.h"

#include <cstdlib>
#include <iterator>

#include "base/endian.h"

namespace weighbridge::llama2c {
namespace {

constexpr std::string_view kExtensions[] = {"bin"};
constexpr DType kDTypes[] = {DType::f32};
constexpr Layout kLayouts[] = {Layout::dense};
constexpr Encoding kEncodings[] = {Encoding::raw};

}  // namespace

bool plausible(const core::Probe& probe) {
  std::size_t fields = 0, odd = 0;
  for (; fields < std::size(kMaxFields) && probe.head.size() >= 4 * (fields + 1); ++fields) {
    const std::int64_t value = static_cast<std::int32_t>(base::load_le<std::uint32_t>(probe.head.data() + 4 * fields));
    odd += value == 0 || std::abs(value) > kMaxFields[fields] ? 1U : 0U;
  }
  return fields > 0 && odd <= 1;
}

bool matches(const core::Probe& probe) {
  if (probe.head.size() < kHeaderSize) return false;
  if (base::load_le<std::uint32_t>(probe.head.data()) == kLaterMagic) return true;
  const Header header = base::load_record<Header>(probe.head.data());
  Report report;
  core::Findings findings(report, core::Findings::Mode::all);
  return check_fields(header, findings) && file_size(header) == probe.size;
}

constexpr core::Format kFormat = {
    .info = {.name = "llama2c",
             .title = "llama2.c checkpoint",
             .extensions = kExtensions,
             .versions = "0, the legacy layout; its tokenizer file",
             .writes = false,
             .tokenizer_file = true,
             .holds = {.dtypes = kDTypes,
                       .layouts = kLayouts,
                       .encodings = kEncodings,
                       .attributes = "the header's fields",
                       .names = false,
                       .tokenizer = true},
             .rules = rules::kAll},
    .matches = matches,
    .plausible = plausible,
    .read = read,
    .check_content = check_content,
    .content_can_fail = true,
};

}  // namespace weighbridge::llama2c
