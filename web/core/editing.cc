// SPDX-License-Identifier: Apache-2.0
// Edits the metadata of a file: says what would change, and writes the edited file.
#include <string>
#include <utility>

#include "answers.h"
#include "functions.h"
#include "weighbridge/edit.h"
#include "weighbridge/json.h"

namespace weighbridge::web {
namespace {

EditOptions edit_options(const val& given, const std::string& output) {
  auto out = made<EditOptions>(OptionOf::edit, given);
  out.output = output;
  return out;
}

}  // namespace

std::string plan_edit_of(const std::string& path, const std::string& output, const val& options) {
  return answer(path, [&] {
    const EditOptions wanted = edit_options(options, output);
    return to_json(path, output, plan_edit(path, wanted, job_context()), false);
  });
}

std::string edit_to(const std::string& path, const std::string& output, const val& options) {
  return answer(path, [&] {
    const EditOptions wanted = edit_options(options, output);
    return to_json(path, output, edit(path, wanted, job_context()), true);
  });
}

}  // namespace weighbridge::web
