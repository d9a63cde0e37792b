// SPDX-License-Identifier: Apache-2.0
// Reads the head of the file, and its tail if no format has such a head, and tries each format in turn.
#include "registry/detect.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/fail.h"
#include "core/archive/zip.h"
#include "formats/huggingface/layout.h"
#include "registry/registry.h"

namespace weighbridge::registry {
namespace {

constexpr std::uint64_t kHead = 4096, kTail = 64;

const core::Format& named(std::string_view asked) {
  const core::Format* format = find(asked);
  if (format == nullptr) {
    std::string known;
    for (const core::Format* each : formats()) known += (known.empty() ? "" : ", ") + std::string(each->info.name);
    base::misuse("format", "there is no format '" + std::string(asked) + "': known are " + known);
  }
  if (!format->info.reads) base::misuse("format", std::string(asked) + " can be written, not read");
  return *format;
}

std::string_view text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The file's two ends, and views of them. For a zip archive also its directory, which shows its kind.
struct Ends {
  const Source& source;
  std::vector<std::byte> head, tail{};
  std::string extension;
  std::vector<std::string> members{};
  core::Probe probe{};

  Ends(const Source& file, std::string_view name)
      : source(file), head(static_cast<std::size_t>(std::min(file.size(), kHead))), extension(file.extension()) {
    if (!head.empty()) source.read_at(0, head);
    if (text_of(head).starts_with(core::kZipMember)) members = core::zip_names(source);
    probe.size = source.size();
    probe.members = members;
    probe.head = head;
    probe.extension = extension;
    probe.name = name;
  }

  const core::Format* match() {
    for (const bool with_tail : {false, true}) {
      if (with_tail) read_tail();
      for (const core::Format* format : formats())
        if (format->info.reads && format->matches(probe)) return format;
    }
    return nullptr;
  }

 private:
  void read_tail() {
    tail.resize(static_cast<std::size_t>(std::min(probe.size, kTail)));
    if (!tail.empty()) source.read_at(probe.size - tail.size(), tail);
    probe.tail = tail;
  }
};

Detected by_content(Ends& ends) {
  const core::Probe& probe = ends.probe;
  if (auto other = recognize_named(probe)) return {nullptr, false, std::move(other)};
  if (const core::Format* const format = ends.match())
    return {format, format->spans_files != nullptr && format->spans_files(probe), std::nullopt};
  if (auto foreign = recognize(probe)) return {nullptr, false, std::move(foreign)};
  const core::Format* suspect = find_by_extension(probe.extension);
  if (suspect != nullptr && suspect->info.reads && (suspect->plausible == nullptr || suspect->plausible(probe)))
    return {suspect, false, std::nullopt};
  return {nullptr, false, unknown(probe)};
}

std::string looked_for() {
  std::vector<std::string_view> marker_files;
  for (const bool folders : {true, false})
    for (const core::Format* format : formats())
      for (const std::string_view sign : format->marker_files)
        if (format->info.folder == folders && std::ranges::find(marker_files, sign) == marker_files.end())
          marker_files.push_back(sign);
  std::string out;
  for (std::size_t i = 0; i < marker_files.size(); ++i) {
    if (i > 0) out += i + 1 == marker_files.size() ? " and " : ", ";
    out += marker_files[i];
  }
  return out;
}

// The files of a folder that may be opened one by one, for a message: shards without their index, for example.
std::string single_files(const std::vector<std::string>& listing) {
  std::string_view first;
  std::size_t count = 0;
  for (const std::string& name : listing) {
    const std::size_t dot = name.rfind('.');
    if (dot == std::string::npos || find_by_extension(std::string_view(name).substr(dot + 1)) == nullptr) continue;
    if (count++ == 0 || name < first) first = name;
  }
  if (count == 0) return {};
  return "; '" + std::string(first) + "'" + (count == 1 ? "" : " and " + std::to_string(count - 1) + " more") +
         " can be opened one by one";
}

Detected in_folder(const Place& place, const core::Format* asked) {
  const std::string called = "this is a directory, and ";
  if (asked != nullptr && asked->marker_files.empty())
    base::misuse_of(place.name(), "not-a-file", called + std::string(asked->info.name) + " is one file");
  const std::vector<std::string> listing = place.list();
  core::Probe probe;
  probe.folder = true;
  probe.listing = listing;
  // A config.json may belong to weights of another kind.
  const bool weights = std::ranges::any_of(huggingface::kWeightKinds, [&](const huggingface::WeightFiles& kind) {
    return probe.lists(kind.whole) || probe.lists(kind.index);
  });
  if (const auto other = weights || asked != nullptr ? std::nullopt : other_folder(listing))
    base::misuse_of(place.name(), other->holds ? "not-a-file" : "other-format", "this is " + other->what);
  // Folder formats come first: files of another format may be in such a folder.
  for (const bool folders : {true, false})
    for (const core::Format* format : formats())
      if (format->info.folder == folders && !format->marker_files.empty() && (asked == nullptr || asked == format) &&
          format->matches(probe))
        return {format, true, std::nullopt};
  base::misuse_of(place.name(), "not-a-file",
                  called + "no model is in it: looked for " + looked_for() + single_files(listing));
}

}  // namespace

Detected detect(const Place& place, const Source* file, std::string_view asked) {
  const core::Format* const wanted = asked.empty() ? nullptr : &named(asked);
  if (file == nullptr) return in_folder(place, wanted);
  if (wanted != nullptr && wanted->info.folder)
    base::misuse_of(place.name(), "not-a-folder",
                    "this is a file, and " + std::string(asked) + " is a folder of files");
  if (wanted != nullptr && wanted->spans_files == nullptr) return {wanted, false, std::nullopt};
  Ends ends(*file, file->file_name());
  return wanted != nullptr ? Detected{wanted, wanted->spans_files(ends.probe), std::nullopt} : by_content(ends);
}

Detected detect(const Source& source) {
  Ends ends(source, {});
  return by_content(ends);
}

const core::Format* format_of_content(const Source& source) { return Ends(source, {}).match(); }

}  // namespace weighbridge::registry
