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

Options options_of(const val& given) {
  Options out;
  set_words(out, given,
            {"allow", "cast", "quantize", "encoding", "digest", "gptq", "canonical", "naming", "keep-gqa",
             "quantize-norms", "omit-layout-field", "created-at", "model-name", "model-version"});
  out.level = static_cast<int>(count_option(given, "level", 0, Options::kHighestLevel));
  out.version = text_option(given, "version");
  out.replace = flag_option(given, "replace", true);
  return out;
}

// Reads pairs from a flat list: a name and its new name, or a key and its value.
std::vector<std::pair<std::string, std::string>> pairs_option(const val& given, const char* name) {
  std::vector<std::pair<std::string, std::string>> out;
  std::vector<std::string> texts = texts_option(given, name);
  if (texts.size() % 2 != 0) misuse(std::string(name) + " must be pairs");
  for (std::size_t i = 0; i < texts.size(); i += 2) out.emplace_back(std::move(texts[i]), std::move(texts[i + 1]));
  return out;
}

ViewOptions view_of(const val& given) {
  std::vector<Renaming> renamings;
  for (auto& [from, to] : pairs_option(given, "rename")) renamings.push_back({std::move(from), std::move(to)});
  return {.only = texts_option(given, "only"),
          .without = texts_option(given, "without"),
          .rename = std::move(renamings),
          .set = pairs_option(given, "set"),
          .unset = texts_option(given, "unset")};
}

}  // namespace

std::string make_plan(int model, const std::string& path, const std::string& format, const val& options) {
  return answer(path, [&] {
    Plan made = plan(view(models().get(model), view_of(options)), format, options_of(options));
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
