// SPDX-License-Identifier: Apache-2.0
// Walks a folder for pickles. Reads both ends of each file, all of the pickles, and of other files nothing.
#include "registry/load.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/checked.h"
#include "base/fail.h"
#include "core/archive/pickle_globals.h"
#include "core/archive/pickle_scan.h"
#include "core/archive/zip.h"
#include "core/model/words.h"
#include "core/reading/rules.h"
#include "formats/huggingface/format.h"
#include "formats/numpy/format.h"
#include "formats/pytorch/format.h"
#include "io/caching_source.h"
#include "io/place.h"
#include "io/read.h"
#include "registry/detect.h"
#include "registry/registry.h"
#include "weighbridge/error.h"
#include "wire/pickle.h"

namespace weighbridge::registry {
namespace {

// A folder with more files, or deeper ones, is reported: every file in it is opened.
constexpr std::size_t kMaxFiles = 100'000, kDeepest = 64;

// Excludes errors of its tensors, which are not tensors of the folder's model.
bool is_about_pickles(const Finding& finding) {
  return base::is_not_known_safe(finding.rule) || finding.rule.ends_with("/dangerous-global") ||
         finding.rule.ends_with("/pickle") || (finding.severity == Severity::error && !finding.has_tensor);
}

// Whether it is packed and can be unpacked here, or has the name of a pickle that is packed in another way.
bool may_be_packed_pickle(const Source& source) {
  const core::Packing packing = core::packing_of(io::head_of(source, core::kPackingHead));
  if (packing.name.empty() || packing.name == core::kBase64) return false;
  std::string_view name = source.file_name();
  for (const std::string_view end : {".gz", ".z", ".bz2", ".xz", ".lzma", ".zst", ".lz4"})
    if (core::ends_with_ignoring_case(name, end)) name.remove_suffix(end.size());
  return packing.readable || core::may_be_pickle(name, {});
}

// Reports the findings about pickles. A full report may have dropped one, so then reports its first error, whatever it
// is.
void report_pickle_findings(const Report& report, core::Findings& findings) {
  for (const Finding& each : report.findings())
    if (is_about_pickles(each)) findings.report(each);
  if (report.full() && !report.valid()) findings.report(*report.first_error());
}

// For a file of no known format: whether it acts as a pickle of the protocols that state no number.
bool acts_as_pickle(const Source& source, const Context& context) {
  const auto pickle = wire::Pickle::read(core::input_of(source, 0, source.size()), 0, context.limits.memory);
  const bool named = core::may_be_pickle(source.file_name(), {}) &&
                     std::ranges::any_of(pickle.globals(), [&](const wire::Pickle::Global& each) {
                       return core::could_be_global(pickle, each.ref);
                     });
  return named || core::does_something(pickle) || pickle.error().fault == wire::PickleFault::memory;
}

void judge(const std::shared_ptr<const Source>& source, const Context& context, core::Findings& findings) {
  const std::string head = io::head_of(*source, core::kZipMember.size());
  if (head.empty()) return;
  // numpy.load also takes a file that begins like an empty archive for an archive.
  const core::Format* const format = head == core::kZipEmpty ? &numpy::kNpz : format_of_content(*source);
  const bool torch = format == &pytorch::kFormat, numpy = format == &numpy::kNpy || format == &numpy::kNpz;
  Report structure, content;
  core::Findings of_structure(structure, core::Findings::Mode::all), of_content(content, core::Findings::Mode::all);
  if (torch || numpy) {
    const Model model = load_file(*format, source, context, of_structure);
    // Arrays of objects are unsupported.
    if (numpy && structure.unsupported() > 0) format->check_content(model, context, of_content);
  }
  // PyTorch reads an archive whatever else is in it, and joblib unpacks what it loads.
  if (torch || head == core::kZipMember || head == core::kZipEmpty ||
      (format == nullptr && (may_be_packed_pickle(*source) || acts_as_pickle(*source, context))))
    pytorch::check_pickles(*source, context, of_content);
  else if (!numpy && format != nullptr)
    report_also_pickle(*source, context, of_content);
  report_pickle_findings(structure, findings);
  report_pickle_findings(content, findings);
}

}  // namespace

void check_pickles_of_folder(const Place& place, const Model& model, const Context& context, core::Findings& findings) {
  std::optional<core::SourceIndex> judged;
  if (huggingface::has_pickled_weights(model)) judged.emplace(model.sources());
  const io::FilesBelow files = io::files_below(place, kMaxFiles, kDeepest);
  for (const std::string& name : files.names) {
    std::shared_ptr<const Source> source;
    try {
      source = place.open(name);
    } catch (const Error&) {
      continue;  // not a regular file, or not readable by this user
    }
    if (!source || (judged && judged->find(*source))) continue;
    core::Findings to = findings.in(source);
    judge(io::cached(source), context, to);
  }
  for (const std::string& link : files.links)
    if (link.ends_with('/') || core::may_be_pickle(link, {}))
      findings.report(core::rules::kFileUnsearched, {}, {}, core::in_quotes(link, 200), "the link is not followed");
  if (!files.left_out.empty())
    findings.report(core::rules::kFileUnsearched, {}, {}, core::in_quotes(files.left_out, 200));
}

// One pickle, from the first byte of the file on.

namespace {

// Whether a module may have this name. Importing it runs its code, whether or not it has what is asked of it.
bool could_be_module(std::string_view name) noexcept {
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x80 || c == '_' || c == '.' || (byte >= '0' && byte <= '9') ||
           ((byte | 0x20) >= 'a' && (byte | 0x20) <= 'z');
  });
}

}  // namespace

void report_also_pickle(const Source& source, const Context& context, core::Findings& findings) {
  // Loaders of pickles see a zip archive by its first bytes; for others, `P` asks for an object that they do not have.
  const std::string head = io::head_of(source, core::kZipMember.size());
  if (head.empty() || head[0] == core::kZipMember[0]) return;
  const auto pickle = wire::Pickle::read(core::input_of(source, 0, source.size()), 0, context.limits.memory);
  // Where this reading goes on after a malformed number and the like, one of Python's two readers may do so too.
  for (const auto& each : pickle.globals()) {
    const wire::Pickle::Ref ref = each.ref;
    if (pickle.kind(ref) != wire::PickleKind::global) continue;
    if (!pickle.computed(ref) && !could_be_module(pickle.module(ref))) continue;
    const std::string name =
        pickle.computed(ref)
            ? "a name that it computes"
            : core::excerpt(std::string(pickle.module(ref)) + "." + std::string(pickle.name(ref)), 200);
    return findings.report(core::rules::kFileAlsoPickle, {.offset = pickle.at(ref)}, {}, name);
  }
  if (pickle.error().fault == wire::PickleFault::memory)
    findings.report(core::rules::kLimitMemory, {.offset = 0}, {}, {},
                    "whether the file is also a pickle was not checked");
}

void report_also_another(const Source& source, const core::Format& is, core::Findings& findings) {
  const std::string head = io::head_of(source, core::kZipMember.size());
  if (head == core::kZipMember || head == core::kZipEmpty || &is == &numpy::kNpz) return;  // judged as an archive
  const std::uint64_t size = source.size(), length = std::min(size, core::zip::kEndSize + core::zip::kLongestComment);
  const std::string tail = io::text_of(source, size - length, length);
  const std::size_t end = tail.rfind(core::kZipEmpty);
  std::string_view other;
  if (end != tail.npos && core::zip_begin(source, size - length + end)) other = "a zip archive";
  const core::Probe by_end{.tail = std::as_bytes(std::span(tail)), .size = size};
  for (const core::Format* each : formats())
    if (other.empty() && each != &is && each->info.reads && !each->info.folder && each->matches(by_end))
      other = each->info.title;
  if (!other.empty()) findings.report(core::rules::kFileAlsoAnother, {.offset = size}, {}, other);
}

}  // namespace weighbridge::registry
