// SPDX-License-Identifier: Apache-2.0
// completion: prints the completion script of a shell.
#include "help.h"
#include "session.h"
#include "weighbridge/json.h"

namespace weighbridge::cli {

Status run_completion(Session& session) {
  const std::string& shell = session.args.operands.front();
  const std::string script = completion_script(shell);
  session.json ? session.object(completion_to_json(shell, script)) : session.out.text(script);
  return Status::done;
}

}  // namespace weighbridge::cli
