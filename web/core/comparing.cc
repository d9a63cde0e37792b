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
constexpr std::uint64_t kMaxListed = 20000;

}  // namespace

std::string diff_models(int a, const std::string& path_a, int b, const std::string& path_b, const val& options) {
  return answer({}, [&] {
    const Model &first = models().get(a), &second = models().get(b);
    const Diff found = diff(first, second, made<DiffOptions>(OptionOf::diff, options), job_context());
    return to_json(Comparison{path_a, path_b, first, second, found, kMaxListed});
  });
}

std::string difference_map_of(int a, const std::string& tensor_a, int b, const std::string& tensor_b, double grid_rows,
                              double grid_columns, const val& options) {
  return answer({}, [&] {
    const auto rows = static_cast<std::uint32_t>(count_of("high", grid_rows, UINT32_MAX));
    const auto columns = static_cast<std::uint32_t>(count_of("wide", grid_columns, UINT32_MAX));
    return to_json(difference_map(models().get(a), models().get(b), {tensor_a, tensor_b}, rows, columns,
                                  made<DiffOptions>(OptionOf::diff, options), job_context()));
  });
}

std::string explain_bytes(const std::string& path, double offset, double length, const val& options) {
  return answer(path, [&] {
    const ExplainOptions bounds{
        .format = made<OpenOptions>(OptionOf::open, options).format, .max_spans = 200, .bytes = 0};
    return to_json(path, explain(path, count_of("offset", offset), count_of("length", length), job_context(), bounds));
  });
}

}  // namespace weighbridge::web
