// SPDX-License-Identifier: Apache-2.0
// Detection, then the format's walker.
#include "registry/load.h"

#include <mutex>
#include <string>
#include <utility>

#include "base/fail.h"
#include "core/asking_source.h"
#include "registry/detect.h"

namespace weighbridge::registry {

Loaded load(const std::shared_ptr<const Source>& source, const Context& context, const OpenOptions& options,
            core::Findings& findings) {
  if (!source) base::misuse("source", "there is no source to read");
  Detected detected = detect(*source, options.format);
  if (detected.format == nullptr) {
    findings.report(*std::move(detected.finding));
    return {};
  }
  if (options.tokenizer && !detected.format->info.tokenizer_file)
    base::misuse("tokenizer",
                 "a tokenizer file belongs to a container that has none of its own, as a llama2.c "
                 "checkpoint is, and this file is of the format " +
                     std::string(detected.format->info.name));
  core::Draft draft;
  draft.checks = options.checks;
  draft.sidecar = options.sidecar;
  draft.tokenizer = options.tokenizer;
  draft.set_asked(draft.add_source(source));
  if (context.progress) {
    // The walker may ask too, from other threads: one call at a time.
    std::mutex one_at_a_time;
    Context asked = context;
    asked.progress = [&](std::uint64_t done, std::uint64_t total) {
      const std::lock_guard lock(one_at_a_time);
      return context.progress(done, total);
    };
    detected.format->read(core::AskingSource(*source, asked), asked, findings, draft);
  } else {
    detected.format->read(*source, context, findings, draft);
  }
  return {detected.format, draft.finish()};
}

}  // namespace weighbridge::registry
