// SPDX-License-Identifier: Apache-2.0
// What a file was derived from, as JSON.
#include "results/json_parts.h"
#include "weighbridge/json.h"

namespace weighbridge {

std::string to_json(std::string_view path, std::string_view source, const Derivation& found) {
  return results::object_of_file(path, [&](JsonWriter& out) {
    out.member("source", source);
    out.member("verdict", !found.unclaimed.empty() ? "not claimed"
                          : !found.derived()       ? "not from this source"
                          : found.contracted > 0   ? "rebuilt with contraction"
                                                   : "equal");
    results::text_or_null(out, "unclaimed", found.unclaimed);
    results::text_or_null(out, "quantize", found.quantize);
    out.flag("pure", found.pure);
    out.flag("imatrix", found.imatrix);
    out.member("chosen", found.chosen);
    out.member(results::kTensors, found.tensors);
    out.member("bytes", found.bytes);
    out.member("as_ggml", found.as_ggml);
    out.member("contracted", found.contracted);
    out.flag("header", found.header);
    out.member("unlike", found.unlike);
    results::objects(out, "differences", found.differences, [&](const UnlikeTensor& each) {
      out.member("what", name(each.what));
      out.member("name", each.name);
      results::text_or_null(out, "found", each.found);
      results::text_or_null(out, "made", each.made);
      const bool bytes = each.what == UnlikeTensor::What::bytes;
      results::number_or_null(out, "blocks", bytes ? std::optional(each.blocks) : std::nullopt);
      results::number_or_null(out, "unlike", bytes ? std::optional(each.unlike) : std::nullopt);
      results::number_or_null(out, "first", bytes ? std::optional(each.first) : std::nullopt);
      out.key("values");
      if (!each.values) return out.null();
      out.begin_object();
      results::number(out, "max_abs", each.values->max_abs);
      results::number(out, "rms", each.values->rms);
      results::number(out, "relative_rms", each.values->relative_rms);
      out.end_object();
    });
  });
}

}  // namespace weighbridge
