// SPDX-License-Identifier: Apache-2.0
// Writes patches, and folders of other programs: diff --patch, patch.
#include "patch.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "table.h"
#include "weighbridge/convert.h"
#include "weighbridge/delta.h"
#include "weighbridge/json.h"
#include "weighbridge/output.h"

namespace weighbridge::cli {
namespace {

constexpr std::size_t kLongestTensor = 100;

// "3 changed, 1 added of 57 tensors".
std::string changes_text(const PatchInfo& patch) {
  std::string out;
  for (const auto& [count, what] :
       {std::pair(patch.changed, "changed"), std::pair(patch.added, "added"), std::pair(patch.removed, "removed"),
        std::pair(patch.renamed, "renamed"), std::pair(patch.replaced, "replaced")})
    if (count > 0) out += (out.empty() ? "" : ", ") + grouped(count) + " " + what;
  return (out.empty() ? "nothing changed" : out) + " of " + counted(patch.tensors, "tensor", "tensors");
}

Status write_patch(Session& session, const std::string& path, const std::string& output,
                   const std::function<Model(const PatchOptions&)>& make) {
  try {
    OutputFile::check(output, session.args.has(FlagId::overwrite));
    const Model patch = make({.scratch = output});
    Options options{.encoding = "zstd", .replace = session.args.has(FlagId::overwrite)};
    const Written written = plan(patch, "zt", options).execute(output, session.context());
    const PatchInfo info = patch_info(patch, session.context());
    session.progress().clear();
    session.print_written(
        output, [&] { return to_json(path, output, info); },
        [&] {
          session.out.text(shown(path) + " -> " + shown(output) + ": " + changes_text(info) + ", " +
                           size_text(written.size) + ", written\n");
        });
    return Status::done;
  } catch (const Error& error) {
    return session.fail(path, error);
  }
}

Model base_of(Session& session) { return open_input(session, std::string(session.args.value(FlagId::base))).model; }

Status publish(Session& session, const std::string& path) try {
  const Arguments& args = session.args;
  std::string folder(args.value(FlagId::output));
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  const Model base = base_of(session), patch = open_stored(session, {&path, 1})[0];
  OutputFiles files(folder, args.has(FlagId::overwrite), base.sources());
  PublishOptions options{.layout = std::string(args.value(FlagId::to)),
                         .step = args.number<std::uint64_t>(FlagId::step)};
  if (args.has(FlagId::checksum)) options.checksum = args.value(FlagId::checksum);
  const Published made = export_patch(base, patch, options, {.scratch = folder + ".zt"}, session.context());
  if (!made.weights_name.empty())
    plan(made.weights, "safetensors").execute(files.add(made.weights_name), session.context());
  OutputFile index(files.add(made.index_name), false);
  index.write(std::as_bytes(std::span(made.index)));
  index.publish();
  files.publish();
  session.progress().clear();
  const PatchInfo info = patch_info(patch, session.context());
  session.print_written(
      folder, [&] { return to_json(path, folder, info); },
      [&] { session.out.text(shown(path) + " -> " + shown(folder) + ": " + changes_text(info) + ", written\n"); });
  return Status::done;
} catch (const Error& error) {
  return session.fail(path, error);
}

}  // namespace

std::string patch_text(const PatchInfo& patch) {
  return changes_text(patch) + (patch.replaces_metadata ? ", metadata" : "") +
         (patch.elements > 0 ? "; " + grouped(patch.differing) + " of " + counted(patch.elements, "element", "elements")
                             : "");
}

bool print_patch(Session& session, const Model& patch) try {
  const PatchInfo info = patch_info(patch, session.context());
  Output& out = session.out;
  out.toned(Tone::heading, "patch");
  out.text(": " + patch_text(info) + "\n");
  for (const PatchInfo::Change& change : info.changes) {
    std::string row = "  " + std::string(change.what);
    row.append(10 - std::min<std::size_t>(row.size(), 10), ' ');
    const double share =
        change.elements > 0 ? 100 * static_cast<double>(change.differing) / static_cast<double>(change.elements) : 0;
    std::string cell = change.what == "sparse" ? fmt::format("{:.2f}%", share) : "-";
    row += std::string(8 - std::min<std::size_t>(cell.size(), 8), ' ') + cell;
    cell = size_text(change.bytes);
    row += std::string(11 - std::min<std::size_t>(cell.size(), 11), ' ') + cell + "  " +
           fitted(change.name, kLongestTensor);
    if (!change.type.empty()) row += ": " + shown(change.type);
    if (!change.from.empty()) row += ", " + fitted(change.from, kLongestTensor) + " in the base";
    out.text(row + "\n");
  }
  return true;
} catch (const Error&) {
  return false;
}

Status run_diff_patch(Session& session) {
  const std::vector<std::string>& paths = session.args.operands;
  return write_patch(session, paths[0], std::string(session.args.value(FlagId::patch)), [&](PatchOptions options) {
    options.metadata = !session.args.has(FlagId::no_metadata);
    const std::vector<Model> models = open_stored(session, paths);
    return make_patch(with_patches(session, models[0]), models[1], options, session.context());
  });
}

Status run_patch(Session& session) {
  const std::vector<std::string>& paths = session.args.operands;
  const std::string_view action = session.args.action->name;
  if (action == "export") return publish(session, paths[0]);
  return write_patch(session, paths[0], std::string(session.args.value(FlagId::output)),
                     [&](const PatchOptions& options) {
                       if (action == "import")
                         return import_patch(base_of(session), paths[0], options, session.context());
                       const std::vector<Model> patches = open_stored(session, paths);
                       return action == "fold" ? fold_patches(patches, options, session.context())
                                               : reverse_patch(patches[0], options, session.context());
                     });
}

}  // namespace weighbridge::cli
