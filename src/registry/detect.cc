// SPDX-License-Identifier: Apache-2.0
// One glance at both ends of the file, then the formats in turn.
#include "registry/detect.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/fail.h"
#include "registry/foreign.h"
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

}  // namespace

Detected detect(const Source& source, std::string_view asked) {
  if (!asked.empty()) return {&named(asked), std::nullopt};
  core::Glance glance;
  glance.size = source.size();
  std::vector<std::byte> head(static_cast<std::size_t>(std::min(glance.size, kHead)));
  std::vector<std::byte> tail(static_cast<std::size_t>(std::min(glance.size, kTail)));
  const ReadRange both[] = {{0, head}, {glance.size - tail.size(), tail}};
  if (tail.size() < head.size()) {
    source.read(both);
  } else if (!head.empty()) {
    source.read_at(0, head);
    tail = head;
  }
  const std::string extension = source.extension();
  glance.head = head;
  glance.tail = tail;
  glance.extension = extension;

  for (const core::Format* format : formats())
    if (format->info.reads && format->matches(glance)) return {format, std::nullopt};
  if (auto foreign = recognize(glance)) return {nullptr, std::move(foreign)};
  const core::Format* suspect = find_by_extension(extension);
  if (suspect != nullptr && suspect->info.reads) return {suspect, std::nullopt};
  return {nullptr, unknown(glance)};
}

}  // namespace weighbridge::registry
