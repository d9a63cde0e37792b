// SPDX-License-Identifier: Apache-2.0
// Admission: which adapters may be offered with a model.
#include <string>
#include <vector>

#include "answers.h"
#include "functions.h"
#include "weighbridge/chain.h"

namespace weighbridge::web {

std::string admission(const std::string& artifact, const val& evidence, const val& adapters) {
  return answer(artifact, [&] {
    const auto path = [&](const char* name) { return evidence[name].as<std::string>(); };
    const chain::OfferEvidence given{path("manifest"), path("receipt"), path("registry"), path("ledger")};
    return chain::offers(artifact, given, emscripten::vecFromJSArray<std::string>(adapters), job_context()).json;
  });
}

}  // namespace weighbridge::web
