// SPDX-License-Identifier: Apache-2.0
#include "core/reading/format.h"

#include <algorithm>

#include "base/fail.h"
#include "weighbridge/block_type.h"

namespace weighbridge::core {
namespace {

bool contains(auto range, const auto& value) { return std::ranges::find(range, value) != range.end(); }
std::string quote(std::string_view text) { return "'" + std::string(text) + "'"; }
std::string about(std::string_view value, std::string_view sentence) {
  std::string out(sentence);
  if (const std::size_t at = out.find("{}"); at != std::string::npos) out.replace(at, 2, value);
  return out;
}

}  // namespace

void check_written(const Format& to, const Options& options) {
  const Holds& holds = to.info.holds;
  const std::string format = "the format " + std::string(to.info.name);
  // "zstd" means whichever form of it the container has.
  const auto has_encoding = [&](Encoding e) {
    return name(e) == options.encoding || (e == Encoding::zstd_seekable && options.encoding == name(Encoding::zstd));
  };
  if (!options.encoding.empty() && std::ranges::none_of(holds.encodings, has_encoding))
    base::misuse("encoding", format + " has no encoding " + quote(options.encoding));
  if (!options.digest.empty() && options.digest != "none" && !contains(holds.digests, options.digest))
    base::misuse("digest", format + " has no digest " + quote(options.digest));
  if (options.cast != DType::unknown) {
    if (info(options.cast).kind != DTypeKind::real)
      base::misuse("cast", "tensors can be cast to a floating-point dtype, not to " + std::string(name(options.cast)));
    if (!contains(holds.dtypes, options.cast))
      base::misuse("cast", format + " has no dtype " + std::string(name(options.cast)));
  }
  if (options.cast_int != DType::unknown && !contains(holds.dtypes, options.cast_int))
    base::misuse("cast-int", format + " has no dtype " + std::string(name(options.cast_int)));
  if (!options.quantize.empty()) {
    if (std::ranges::none_of(holds.layouts, is_quantized))
      base::misuse("quantize", format + " has no quantized layouts");
    if (!to.written.quantizes || !to.written.quantizes(options.quantize))
      base::misuse("quantize", about(options.quantize, to.written.other_quantization));
  }
  if (!options.version.empty() && !contains(to.written.versions, options.version))
    base::misuse("version", about(options.version, to.written.other_version.empty()
                                                       ? format + " has no versions, so {} cannot be asked for"
                                                       : to.written.other_version));
}

bool Probe::lists(std::string_view file) const { return std::ranges::binary_search(listing, file); }

}  // namespace weighbridge::core
