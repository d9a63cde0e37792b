// SPDX-License-Identifier: Apache-2.0
// One pickle, from the first byte of the file on.
#include "registry/load.h"

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

#include "base/checked.h"
#include "core/pickle_globals.h"
#include "core/pickle_scan.h"
#include "core/rules.h"
#include "core/words.h"
#include "core/zip.h"
#include "wire/pickle.h"

namespace weighbridge::registry {

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
  std::string head(base::to_size(std::min<std::uint64_t>(source.size(), core::kZipMember.size())), '\0');
  if (!head.empty()) source.read_at(0, std::as_writable_bytes(std::span(head)));
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

}  // namespace weighbridge::registry
