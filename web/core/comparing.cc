// SPDX-License-Identifier: Apache-2.0
// Compares models, and explains the bytes of a file.
#include <cstdint>
#include <string>

#include "functions.h"
#include "models.h"
#include "weighbridge/diff.h"
#include "weighbridge/explain.h"
#include "weighbridge/json.h"

namespace weighbridge::web {
namespace {

// The most tensors whose differences are listed; the counts cover all.
constexpr std::uint64_t kMostListed = 20000;

DiffOptions diff_options(const val& given) {
  DiffOptions out;
  if (const double atol = number_option(given, "atol", -1); atol != -1) out.atol = atol;
  if (const double rtol = number_option(given, "rtol", -1); rtol != -1) out.rtol = rtol;
  out.exact = flag_option(given, "exact", false);
  out.permuted = flag_option(given, "permuted", false);
  out.metadata = flag_option(given, "metadata", true);
  out.naming = text_option(given, "naming");
  out.only = texts_option(given, "only");
  out.without = texts_option(given, "without");
  out.rename = renamings_option(given, "rename");
  const std::string wanted = text_option(given, "match");
  if (wanted.empty()) return out;
  for (const Match match : {Match::names, Match::content, Match::guess})
    if (wanted == name(match)) {
      out.match = match;
      return out;
    }
  misuse("match is names, content or guess, not '" + wanted + "'");
}

}  // namespace

std::string diff_models(int a, const std::string& path_a, int b, const std::string& path_b, const val& options) {
  return answer({}, [&] {
    const Model &first = models().get(a), &second = models().get(b);
    const Diff found = diff(first, second, diff_options(options), job_context());
    return to_json(Comparison{path_a, path_b, first, second, found, kMostListed});
  });
}

std::string difference_map_of(int a, int b, const val& options) {
  return answer({}, [&] {
    const std::string name_a = text_option(options, "a"), name_b = text_option(options, "b");
    const auto high = static_cast<std::uint32_t>(count_option(options, "high", 0, UINT32_MAX));
    const auto wide = static_cast<std::uint32_t>(count_option(options, "wide", 0, UINT32_MAX));
    return to_json(difference_map(models().get(a), models().get(b), {name_a, name_b}, high, wide, diff_options(options),
                                  job_context()));
  });
}

std::string explain_bytes(const std::string& path, double offset, double length, const val& options) {
  return answer(path, [&] {
    const ExplainOptions bounds{.format = text_option(options, "format"), .most = 200, .bytes = 0};
    return to_json(path, explain(path, count_of("offset", offset), count_of("length", length), job_context(), bounds));
  });
}

}  // namespace weighbridge::web
