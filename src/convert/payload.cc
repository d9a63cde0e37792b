// SPDX-License-Identifier: Apache-2.0
// Reads a payload by its form.
#include "convert/write.h"

#include <algorithm>
#include <vector>

#include "base/fail.h"
#include "core/model/draft.h"
#include "core/payload/dense.h"
#include "core/payload/elements.h"
#include "core/payload/payload.h"
#include "core/writing/layout.h"

namespace weighbridge::convert {

using Form = core::Payload::Form;

bool needs_encoding(const core::Payload& p) noexcept { return p.encoding != Encoding::raw && p.form != Form::stored; }

bool has_ranges(const core::Payload& p) noexcept {
  if (p.form == Form::stored) return true;
  if (p.encoding != Encoding::raw) return false;
  switch (p.form) {
    case Form::stored: break;
    case Form::logical: {
      const Part part = p.tensor.part(p.part);
      return core::is_direct(part) || core::divides(*core::elements_of(part), kSegment);
    }
    case Form::dense: return core::divides(p.tensor, p.dtype, kSegment);
    case Form::generated: return p.make_range != nullptr;
  }
  return false;
}

void read_range(const core::Payload& p, const Context& context, std::uint64_t offset, std::span<std::byte> out,
                codecs::CastTally* tally) {
  if (out.empty()) return;
  if (p.form == Form::generated) return p.make_range(context, offset, out);
  if (p.form == Form::logical && core::is_direct(p.tensor.part(p.part)))
    return core::read_direct(p.tensor.part(p.part), offset, out);
  if (p.form != Form::stored) {
    const auto elements =
        p.form == Form::dense ? core::elements_of(p.tensor, p.dtype) : core::elements_of(p.tensor.part(p.part));
    const std::uint64_t bits = info(elements->dtype()).bits, first = offset * 8 / bits;
    return elements->read(first, std::min(out.size() * 8 / bits, elements->count() - first), out, context, tally);
  }
  const Part part = p.tensor.part(p.part);
  const Extent extent = *part.extent();
  core::source_of(part).read_at(extent.offset + offset, out);
}

void stream(const core::Payload& p, const Context& context, const Sink& sink, codecs::CastTally* tally) {
  std::uint64_t left = hashed_bytes(p);
  const auto checked = [&](std::span<const std::byte> piece) {
    if (piece.size() > left)
      base::misuse("payload-size",
                   "tensor \"" + std::string(p.tensor.name()) + "\" gives more bytes than its shape says");
    left -= piece.size();
    sink(piece);
    return true;
  };
  if (has_ranges(p) || p.make_range) {
    std::vector<std::byte> buffer(static_cast<std::size_t>(std::min(kSegment, left)));
    for (std::uint64_t offset = 0; left > 0;) {
      const auto piece = std::span(buffer).first(static_cast<std::size_t>(std::min(kSegment, left)));
      read_range(p, context, offset, piece, tally);
      offset += piece.size();
      checked(piece);
    }
  } else if (p.form == Form::generated) {
    p.make(context, checked);
  } else if (p.form == Form::dense) {
    core::stream_dense(p.tensor, p.dtype, context, checked, tally);
  } else {
    p.tensor.part(p.part).stream(context, checked);
  }
  if (left > 0)
    base::misuse("payload-size", "tensor \"" + std::string(p.tensor.name()) + "\" gives " + std::to_string(left) +
                                     " bytes too few for its shape");
}

}  // namespace weighbridge::convert
