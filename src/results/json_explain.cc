// SPDX-License-Identifier: Apache-2.0
// Explanations as JSON.
#include "results/json_parts.h"
#include "weighbridge/json.h"

namespace weighbridge {

std::string to_json(std::string_view path, const Explanation& found) {
  return results::result(path, [&](JsonWriter& out) {
    results::text_or_null(out, "format", found.format);
    out.member("size", found.size);
    out.member("offset", found.offset);
    out.member("length", found.length);
    results::objects(out, "spans", found.spans, [&](const Span& span) {
      out.member("kind", name(span.kind));
      out.member("offset", span.offset);
      out.member("size", span.size);
      out.member("what", span.what);
      results::text_or_null(out, "value", span.value);
    });
    out.member("left_out", found.left_out);
    out.key("bytes").begin_object();
    out.member("offset", found.bytes_at);
    out.key("data").bytes(found.bytes);
    out.end_object();
    results::list(out, "findings", found.findings, [&](const Finding& finding) { out.raw(to_json(finding)); });
  });
}

}  // namespace weighbridge
