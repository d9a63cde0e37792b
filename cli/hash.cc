// SPDX-License-Identifier: Apache-2.0
// hash: one digest a file, and nothing else on standard output.
#include "weighbridge/hash.h"

#include "session.h"
#include "weighbridge/json.h"

namespace weighbridge::cli {
namespace {

Status print(Session& session, const std::string& path, std::string_view format, DigestKind kind,
             const Digest& digest) {
  session.progress().clear();
  if (session.json) {
    session.object(to_json(path, format, kind, digest));
  } else {
    session.out.text(digest.hex() + "  " + shown(path) + "\n");
  }
  return Status::done;
}

Status hash_one(Session& session, const std::string& path) {
  try {
    if (session.args.has(FlagId::file))
      return print(session, path, {}, DigestKind::file, file_sha256(*session.source(path), session.context()));
    const Input input = open_input(session, path);
    if (!input.model) return input.status;
    const bool with_names = !session.args.has(FlagId::no_names);
    const Digest digest = content_digest(*input.model, session.context(), with_names);
    return print(session, path, input.model->format(),
                 with_names ? DigestKind::content : DigestKind::content_without_names, digest);
  } catch (const Error& error) {
    return session.fail(path, error);
  }
}

}  // namespace

Status run_hash(Session& session) {
  return session.for_each_file([&](const std::string& path) { return hash_one(session, path); });
}

}  // namespace weighbridge::cli
