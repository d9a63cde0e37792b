// SPDX-License-Identifier: Apache-2.0
// Conversions: a plan that JavaScript shows, then its file.
#include <string>

#include "functions.h"
#include "models.h"
#include "weighbridge/convert.h"
#include "weighbridge/json.h"

namespace weighbridge::web {
namespace {

Table<Plan>& plans() {
  static Table<Plan> table;
  return table;
}

Options options_of(const val& given) {
  Options out;
  set_words(out, given, {"allow", "cast", "quantize", "encoding", "digest"});
  out.level = static_cast<int>(count_option(given, "level", 0, Options::kHighestLevel));
  out.version = text_option(given, "version");
  out.replace = flag_option(given, "replace", true);
  return out;
}

}  // namespace

std::string make_plan(int model, const std::string& path, const std::string& format, const val& options) {
  return answer(path, [&] {
    Plan made = plan(models().get(model), format, options_of(options));
    const std::string said = to_json(path, {}, made, false);
    return numbered("plan", plans().add(std::move(made))) + "," + said.substr(1);
  });
}

std::string execute(int plan, const std::string& path, const std::string& output) {
  return answer(path, [&] {
    const Plan& made = plans().get(plan);
    made.execute(output, job_context());
    return to_json(path, output, made, true);
  });
}

void close_plan(int plan) { plans().remove(plan); }

}  // namespace weighbridge::web
