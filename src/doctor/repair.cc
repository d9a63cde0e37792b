// SPDX-License-Identifier: Apache-2.0
// What can be written from a damaged file: its whole tensors, or the file without what follows it.
#include <span>

#include "base/fail.h"
#include "core/model/progress.h"
#include "core/payload/asking_source.h"
#include "doctor/damage.h"
#include "io/publication.h"
#include "io/read.h"
#include "weighbridge/doctor.h"

namespace weighbridge {

Written salvage(const Diagnosis& diagnosis, const std::string& path, const Options& options, const Context& context) {
  const Model& model = diagnosis.whole_model;
  if (model.size() == 0) base::misuse("nothing-whole", "no tensor of it is whole, so there is nothing to salvage");
  Options allowed = options;
  allowed.allow.push_back(LossKind::part);  // what it lacks is what the diagnosis says
  return save(model, path, allowed, context);
}

void trim(const Diagnosis& diagnosis, const std::string& path, bool replace, const Context& context) {
  if (!diagnosis.own || !diagnosis.file)
    base::misuse("nothing-to-trim", "no bytes are around a whole model, so there is nothing to trim");
  const std::shared_ptr<const Source>& source = diagnosis.file;
  const auto [begin, size] = *diagnosis.own;
  const doctor::Continued own(source, {begin, size}, {}, size);
  io::AtomicFile out(path, {.replace = replace, .expected_size = size});
  core::Progress progress(context, 2 * size);
  io::read_pieces(own, 0, size, [&](std::uint64_t at, std::span<const std::byte> bytes) {
    out.write_at(at, bytes);
    progress.add(bytes.size());
    return true;
  });
  out.sync(size);
  const auto written = out.reopen();
  out.read_back(*written, 0, own, 0, size, [&](std::uint64_t bytes) { progress.add(bytes); });
  const Verdict verdict = verify(written, progress.inner(), {.format = std::string(diagnosis.verdict.format)});
  if (!verdict.report.valid())
    base::misuse("not-sound", "the copy would still be invalid: " + verdict.report.first_error()->message);
  io::Publication publication(out);
  source->check_unchanged();
  progress.finish_pass();
  publication.publish();
}

}  // namespace weighbridge
