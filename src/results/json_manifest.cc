// SPDX-License-Identifier: Apache-2.0
// Manifests, and what differs from them, as JSON.
#include "results/json_parts.h"
#include "weighbridge/json.h"

namespace weighbridge {
namespace {

using results::text_or_null, results::texts;

void members_of(JsonWriter& out, const Manifest& manifest) {
  out.member("name", manifest.name);
  out.member("files", manifest.files());
  out.member("entries", std::uint64_t{manifest.entries.size()});
  out.key("shard_size");
  manifest.shard_size > 0 ? out.u64(manifest.shard_size) : out.null();
  text_or_null(out, "format", manifest.format);
  text_or_null(out, "content_digest", manifest.format.empty() ? "" : manifest.content_digest.text());
  texts(out, "ignored", manifest.ignored);
}

}  // namespace

std::string to_json(std::string_view path, std::string_view output, const Manifest& manifest, SigningMethod method) {
  return results::result(path, [&](JsonWriter& out) {
    out.member("output", output);
    out.member("method", name(method));
    members_of(out, manifest);
    std::uint64_t tensors = 0, bytes = 0;
    for (const ManifestNote& note : manifest.notes) {
      tensors += note.tensors.size();
      bytes += note.size;
    }
    out.member("bytes", bytes);
    const bool lists_tensors = !manifest.format.empty();
    results::number_or_null(out, results::kTensors, lists_tensors ? std::optional(tensors) : std::nullopt);
  });
}

std::string to_json(std::string_view path, std::string_view manifest, const ManifestVerdict& verdict) {
  return results::object_of_file(path, [&](JsonWriter& out) {
    out.member("manifest", manifest);
    out.flag("valid", verdict.valid());
    out.member("method", name(verdict.method));
    out.member("signature", name(verdict.signature));
    text_or_null(out, "signer", verdict.signer);
    text_or_null(out, "unchecked", verdict.unchecked);
    members_of(out, verdict.manifest);
    out.member("compared", verdict.files);
    out.member("remembered", verdict.remembered);
    out.member("bytes", verdict.bytes);
    results::objects(out, "differences", verdict.differences, [&](const FileDifference& each) {
      out.member("what", name(each.what));
      out.member("file", each.file);
      text_or_null(out, "expected", each.expected);
      text_or_null(out, "found", each.found);
      texts(out, "ranges", each.ranges);
      if (each.compared) {
        texts(out, results::kTensors, each.tensors);
      } else {
        out.key(results::kTensors).null();
      }
    });
    results::findings(out, verdict.report);
  });
}

}  // namespace weighbridge
