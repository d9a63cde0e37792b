// SPDX-License-Identifier: Apache-2.0
// Conversions: makes plans and carries them out.
#include <string>
#include <utility>
#include <vector>

#include "functions.h"
#include "models.h"
#include "weighbridge/convert.h"
#include "weighbridge/json.h"
#include "weighbridge/view.h"

namespace weighbridge::web {
namespace {

Table<Plan>& plans() {
  static Table<Plan> table;
  return table;
}

Options convert_options(const val& given) {
  Options out;
  set_options(out, OptionOf::convert, given);
  return out;
}

ViewOptions view_of(const val& given) {
  return {.only = texts_option(given, "only"),
          .without = texts_option(given, "without"),
          .rename = renamings_option(given, "rename"),
          .set = pairs_option(given, "set"),
          .unset = texts_option(given, "unset")};
}

}  // namespace

std::string make_plan(int model, const std::string& path, const std::string& format, const val& options) {
  return answer(path, [&] {
    Plan made = plan(view(models().get(model), view_of(options)), format, convert_options(options));
    return object([&](JsonWriter& out) {
      const std::uint64_t number = plans().add(std::move(made));
      out.member("plan", number);
      add_members(out, path, {}, plans().get(static_cast<int>(number)), false);
    });
  });
}

std::string execute(int plan, const std::string& path, const std::string& output) {
  return answer(path, [&] {
    const Plan& made = plans().get(plan);
    const Written written = made.execute(output, job_context());
    return to_json(path, output, made, true, {}, written.casts);
  });
}

void close_plan(int plan) { plans().remove(plan); }

}  // namespace weighbridge::web
