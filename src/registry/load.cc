// SPDX-License-Identifier: Apache-2.0
// Detection, then the format's walker.
#include "registry/load.h"

#include <algorithm>
#include <iterator>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>

#include "base/fail.h"
#include "codecs/indexed_checksum.h"
#include "core/model/view.h"
#include "core/payload/asking_source.h"
#include "core/writing/layout.h"
#include "io/caching_source.h"
#include "io/fd.h"
#include "io/journal.h"
#include "registry/detect.h"
#include "registry/registry.h"
#include "weighbridge/scheme.h"

namespace weighbridge::registry {
namespace {

void require_tokenizer_file(const Place& place, const core::Format& format) {
  if (format.info.tokenizer_file) return;
  if (place.kind() == Place::Kind::folder)
    base::misuse_of(place.name(), "tokenizer", "this is a directory, which holds its tokenizer itself");
  base::misuse("tokenizer",
               "a tokenizer file belongs to a container that has none of its own, as a llama2.c "
               "checkpoint is, and this file is of the format " +
                   std::string(format.info.name));
}

void require_sidecar(const core::Format& format) {
  if (format.info.name != "stb")
    base::misuse("sidecar",
                 "a sidecar belongs to an .stb, and this file is of the format " + std::string(format.info.name));
}

codecs::ChecksumForm checksum_form_of(std::string_view name) {
  if (name.empty()) return codecs::ChecksumForm::add;
  if (const auto form = codecs::checksum_form(name)) return *form;
  std::string known;
  for (const std::string_view form : checksum_forms()) known += (known.empty() ? "" : ", ") + std::string(form);
  base::misuse("checksum-form", "there is no checksum form '" + std::string(name) + "'; the forms are " + known);
}

// A killed change in place (edit.h) may have left old and new bytes mixed. Does not check whose journal it is: only
// recovering needs the key.
void report_unfinished_edit(const Source& file, core::Findings& findings) {
  const std::string there = io::left_edit_journal(std::string(file.path()));
  if (there.empty()) return;
  const std::string journal =
      io::join_path(io::split_path(std::string(file.name())).folder, io::split_path(there).name);
  Finding found;
  found.rule = "io/unfinished-edit";
  found.severity = Severity::warning;
  found.kind = Kind::io;
  found.message = "a journal of an edit is beside this file ('" + journal +
                  "'): if an edit of this file was killed, its header may be half new until the file is recovered";
  found.hint = base::option_hint("recover", std::string(file.name()));
  findings.report(std::move(found));
}

// While a patch changes files in place, and after such a run was killed, they have other names (edit.h). Without this,
// they would be called missing.
std::optional<Finding> unfinished_patch(const Place& place) {
  if (place.kind() != Place::Kind::folder) return std::nullopt;
  for (const std::string& name : place.list()) {
    if (!name.ends_with(io::kApplying) || place.open(name.substr(0, name.size() - io::kApplying.size()))) continue;
    Finding found;
    found.rule = "io/applying";
    found.kind = Kind::io;
    found.message = "a patch is being applied to the files of this folder, or was when a run was killed: '" + name +
                    "' may be neither the old nor the new file until they are recovered, or the patch is applied again";
    found.hint = base::option_hint("recover", std::string(place.name()));
    return found;
  }
  return std::nullopt;
}

// A folder is in between old and new while a run publishes several files, or after such a run was killed.
void report_left_journals(const Place& place, core::Findings& findings) {
  if (place.kind() != Place::Kind::folder) return;
  for (const std::string& name : place.list()) {
    if (!io::is_journal(name)) continue;
    Finding found;
    found.rule = "io/half-published";
    found.severity = Severity::warning;
    found.kind = Kind::io;
    found.message = "a run that publishes files in this folder has not ended, or was killed: its journal '" + name +
                    "' is there, and until it is undone, some files may be old and others new";
    return findings.report(std::move(found));
  }
}

// Runs the walker of one file. If the caller has a progress hook, reads call it.
void read_file(const core::Format& format, const Source& source, const Context& context, core::Findings& findings,
               core::Draft& draft) {
  report_unfinished_edit(source, findings);
  if (!context.progress) return format.read(source, context, findings, draft);
  // The walker may call the hook from other threads: allow one call at a time.
  std::mutex one_at_a_time;
  Context asked = context;
  asked.progress = [&](std::uint64_t done, std::uint64_t total) {
    const std::lock_guard lock(one_at_a_time);
    return context.progress(done, total);
  };
  format.read(core::AskingSource(source, asked), asked, findings, draft);
}

// Reads `near`, which is the source or caches what it gives.
Model load_near(const core::Format& format, const std::shared_ptr<const Source>& source, const Source& near,
                const Context& context, core::Findings& findings) {
  core::Draft draft;
  draft.add_source(source);
  read_file(format, near, context, findings, draft);
  return draft.finish();
}

// Loads one of several files as a model of its own.
core::Member load_member(const std::shared_ptr<const Source>& source, std::string_view format, const Context& context,
                         core::Findings& findings) {
  const auto near = io::cached(source);
  Detected detected = detect(*near);
  if (detected.format == nullptr) {
    findings.report(*std::move(detected.finding));
    return {};
  }
  if (detected.format->info.name != format) return {detected.format->info.name, {}};
  return {format, load_near(*detected.format, source, *near, context, findings)};
}

}  // namespace

Model load_file(const core::Format& format, const std::shared_ptr<const Source>& source, const Context& context,
                core::Findings& findings) {
  return load_near(format, source, *io::cached(source), context, findings);
}

Loaded load(const std::shared_ptr<const Place>& place, const Context& context, const OpenOptions& options,
            core::Findings& findings, Files files) {
  if (!place) base::misuse("source", "there is no place to read from");
  findings.set_list_incomplete(options.list_incomplete);
  const codecs::ChecksumForm form = checksum_form_of(options.checksum_form);
  if (!options.list_incomplete)
    if (auto unfinished = unfinished_patch(*place)) {
      findings.report(*std::move(unfinished));
      return {};
    }
  const auto file = place->file(), near = io::cached(file);
  Detected detected = detect(*place, near.get(), options.format);
  if (detected.format == nullptr) {
    findings.report(*std::move(detected.finding));
    return {};
  }
  const core::Format& format = *detected.format;
  if (options.tokenizer) require_tokenizer_file(*place, format);
  if (options.sidecar) require_sidecar(format);
  core::Draft draft;
  draft.checks = options.checks;
  draft.checksum_form = form;
  draft.sidecar = options.sidecar;
  draft.tokenizer = options.tokenizer;
  if (file) draft.set_asked(draft.add_source(file));
  if (detected.files && files == Files::all) {
    draft.set_in_several_files();
    draft.set_place(place);
    report_left_journals(*place, findings);
    format.read_files({.place = *place, .context = context, .findings = findings, .load = load_member}, draft);
  } else {
    read_file(format, *near, context, findings, draft);
    if (format.warn_alone != nullptr && files == Files::all) format.warn_alone(*place, context, findings, draft);
  }
  Loaded out{&format, draft.finish(), {}};
  out.model = with_scheme(core::read_as(out.model, options.read_as, out.read_as), options.scheme);
  return out;
}

void drop_read_as(const Loaded& loaded, Report& report) {
  const auto& all = report.findings();
  if (loaded.read_as.empty() || report.total() != all.size()) return;
  Report others;
  for (const Finding& each : all)
    if (each.severity != Severity::unsupported ||
        std::ranges::find(loaded.read_as, each.tensor) == loaded.read_as.end())
      others.add(each);
  report = std::move(others);
}

std::uint32_t check_content(const Loaded& loaded, const Share& share, const Context& context,
                            core::Findings& findings) {
  if (loaded.format == nullptr || loaded.format->check_content == nullptr) return 1;
  if (share.of > 1 && loaded.format->check_share != nullptr) {
    loaded.format->check_share(loaded.model, share, context, findings);
    return share.of;
  }
  if (share.index == 0) loaded.format->check_content(loaded.model, context, findings);
  return 1;
}

// Lays out a folder together with the files of weights in it.
namespace {

template <class T> void append(std::vector<T>& to, std::vector<T>&& from) {
  to.insert(to.end(), std::move_iterator(from.begin()), std::move_iterator(from.end()));
}

}  // namespace

core::WriteLayout lay_out(const core::Format& format, const Model& model, const Options& options,
                          const Context& context) {
  core::WriteLayout out = format.layout(model, options, context);
  if (!out.folder || !out.folder->inner) return out;
  core::OutFolder& folder = *out.folder;
  const core::Inner inner = *std::exchange(folder.inner, std::nullopt);
  const core::Format& files = *find(inner.format);
  core::WriteLayout made = files.layout_files(inner, options, context);
  append(out.blockers, std::move(made.blockers));
  append(out.losses, std::move(made.losses));
  append(out.changes, std::move(made.changes));
  append(out.uninterpreted, std::move(made.uninterpreted));  // the inner model has the same tensors in the same order
  out.owner = std::make_shared<const std::tuple<Model, std::shared_ptr<const void>, std::shared_ptr<const void>>>(
      inner.model, out.owner, made.owner);
  folder.format = made.folder->format;
  folder.payloads = std::move(made.folder->payloads);
  folder.last = std::move(made.folder->last);
  folder.stale = made.folder->stale;
  append(made.folder->small, std::move(folder.small));  // removals of the inner layout come first
  folder.small = std::move(made.folder->small);
  return out;
}

}  // namespace weighbridge::registry
