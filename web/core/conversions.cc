// SPDX-License-Identifier: Apache-2.0
// Conversions: a plan that JavaScript shows, then its file.
#include <string>
#include <string_view>

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
  const std::string allow = text_option(given, "allow");
  for (std::size_t at = 0; at < allow.size();) {
    const std::size_t end = std::min(allow.find(',', at), allow.size());
    const auto kind = loss_kind_from_name(std::string_view(allow).substr(at, end - at));
    if (!kind) misuse("there is no kind of loss '" + allow.substr(at, end - at) + "'");
    out.allow.push_back(*kind);
    at = end + 1;
  }
  if (const std::string cast = text_option(given, "cast"); !cast.empty()) {
    const auto dtype = dtype_from_name(cast);
    if (!dtype) misuse("there is no dtype '" + cast + "'");
    out.cast = *dtype;
  }
  out.quantise = text_option(given, "quantise");
  out.encoding = text_option(given, "encoding");
  out.level = static_cast<int>(number_option(given, "level", 0));
  out.digest = text_option(given, "digest");
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
