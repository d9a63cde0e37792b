// SPDX-License-Identifier: Apache-2.0
// Edits as JSON.
#include "results/json_parts.h"
#include "weighbridge/json.h"

namespace weighbridge {

void results::steps(JsonWriter& out, const std::vector<RecoveryStep>& all) {
  objects(out, "steps", all, [&](const RecoveryStep& step) {
    out.member("way", name(step.way));
    out.member("from", step.from);
    text_or_null(out, "to", step.to);
    out.member("offset", step.offset);
    out.member("length", step.length);
  });
}

std::string to_json(std::string_view path, std::string_view output, const Edited& edited, bool written) {
  return results::result(path, [&](JsonWriter& out) {
    results::text_or_null(out, "format", edited.format);
    results::text_or_null(out, "output", output);
    out.member("way", name(edited.way));
    out.flag("written", written);
    results::items(out, "changes", edited.changes);
    out.member("header", edited.header);
    out.member("needed", edited.needed);
    out.member("size", edited.size);
    out.member("size_after", edited.size_after);
    out.member("shared", edited.shared);
    out.member("names", edited.names);
    out.flag("alone", edited.alone);
    out.member("left", name(edited.left));
    results::text_or_null(out, "file", edited.file);
    results::text_or_null(out, "undo", edited.undo);
    results::steps(out, edited.steps);
  });
}

std::string to_json(std::string_view path, const Applied& applied, bool written) {
  return results::result(path, [&](JsonWriter& out) {
    out.flag("written", written);
    results::texts(out, "files", applied.files);
    out.member("tensors", applied.tensors);
    out.member("bytes", applied.bytes);
    out.member("logged", applied.logged);
    out.member("base", applied.base.text());
    out.member("result", applied.result.text());
    out.member("left", name(applied.left));
  });
}

}  // namespace weighbridge
