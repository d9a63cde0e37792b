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

}  // namespace

std::string make_plan(int model, const std::string& path, const std::string& format, const val& options) {
  return answer(path, [&] {
    const Model taken = view(models().get(model), made<ViewOptions>(OptionOf::view, options));
    Plan planned = plan(taken, format, made<Options>(OptionOf::convert, options));
    return object([&](JsonWriter& out) {
      const std::uint64_t number = plans().add(std::move(planned));
      out.member("plan", number);
      add_members(out, path, {}, plans().get(static_cast<int>(number)));
    });
  });
}

std::string execute(int plan, const std::string& path, const std::string& output) {
  return answer(path, [&] {
    const Plan& made = plans().get(plan);
    const Written written = made.execute(output, job_context());
    return to_json(path, output, made, &written);
  });
}

void close_plan(int plan) { plans().remove(plan); }

}  // namespace weighbridge::web
