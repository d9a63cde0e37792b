// SPDX-License-Identifier: Apache-2.0
// inspect: lists what is in a file. Owns the selection and order of tensors; table.cc prints the table.
#include <algorithm>
#include <mutex>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "cuts.h"
#include "session.h"
#include "table.h"
#include "weighbridge/json.h"
#include "weighbridge/stats.h"
#include "weighbridge/text.h"

namespace weighbridge::cli {
namespace {

using Order = std::vector<std::uint32_t>;

Order choose(const Model& model, const Arguments& args) {
  Order order(model.size());
  std::iota(order.begin(), order.end(), 0U);
  if (!args.has(FlagId::filter)) return order;
  const std::string_view pattern = args.value(FlagId::filter);
  std::erase_if(order, [&](std::uint32_t i) { return !matches_glob(pattern, model.name(i)); });
  return order;
}

std::vector<std::uint64_t> shape_of(const Tensor& t) {
  if (!t.has_shape()) return {};
  const Shape shape = t.shape();
  return {shape.begin(), shape.end()};
}

std::uint64_t offset_of(const Tensor& t) {
  if (t.part_count() == 0) return UINT64_MAX;
  const std::optional<Extent> extent = t.part(0).extent();
  return extent ? extent->offset : UINT64_MAX;
}

template <class Key> void sort_by(Order& order, const Model& model, Key key) {
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return key(model[a]) < key(model[b]); });
}

void sort(Order& order, const Model& model, std::string_view key) {
  if (key == "name")
    std::stable_sort(order.begin(), order.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return comes_before(model.name(a), model.name(b)); });
  if (key == "size") sort_by(order, model, [](const Tensor& t) { return UINT64_MAX - logical_size(t); });
  if (key == "dtype") sort_by(order, model, [](const Tensor& t) { return t.type_name(); });
  if (key == "shape") sort_by(order, model, shape_of);
  if (key == "layout") sort_by(order, model, [](const Tensor& t) { return t.layout_name(); });
  if (key == "offset") sort_by(order, model, offset_of);
}

// Puts layer 10 behind layer 9 in a file whose order is that of bytes, as writers of safetensors sort tensors of a
// dtype. Any other order is the author's, and stays.
void count_up(Order& order, const Model& model) {
  std::set<std::string_view> dtypes;
  std::vector<std::size_t> ends;  // of runs of ascending names
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Tensor tensor = model[order[i]];
    dtypes.insert(tensor.type_name());
    if (i + 1 == order.size() || model.name(order[i + 1]) < model.name(order[i])) ends.push_back(i + 1);
  }
  if (ends.size() > dtypes.size()) return;
  const auto before = [&](std::uint32_t a, std::uint32_t b) { return comes_before(model.name(a), model.name(b)); };
  for (std::size_t i = 0, begin = 0; i < ends.size(); begin = ends[i++])
    std::sort(order.begin() + static_cast<std::ptrdiff_t>(begin), order.begin() + static_cast<std::ptrdiff_t>(ends[i]),
              before);
}

// One tensor per worker; the pass over a tensor is serial. Unsupported tensors keep empty counts.
std::vector<Stats> measure(const Model& model, const Order& order, const Context& context) {
  std::vector<Stats> stats(order.size());
  std::uint64_t total = 0;
  for (const std::uint32_t i : order) total += logical_size(model[i]);
  std::mutex mutex;
  std::uint64_t done = 0;
  const std::shared_ptr<Executor> executor = context.executor ? context.executor : inline_executor();
  executor->for_each(order.size(), [&](std::uint64_t at) {
    const Tensor t = model[order[at]];
    Context inner;
    inner.limits = context.limits;
    std::uint64_t counted = 0;  // bytes of this tensor
    const auto count_to = [&](std::uint64_t now) {
      const std::lock_guard lock(mutex);
      done += now - std::exchange(counted, now);
      return !context.progress || context.progress(done, total);
    };
    inner.progress = [&](std::uint64_t now, std::uint64_t) { return count_to(std::min(now, logical_size(t))); };
    if (!t.unsupported()) stats[at] = statistics(t, inner);
    if (!count_to(logical_size(t))) throw Cancelled{};
  });
  return stats;
}

}  // namespace

Status run_inspect(Session& session) {
  const std::string& path = session.args.operands.front();
  const Input input = open_input(session, path, session.args.has(FlagId::no_check) ? Checks::structure : Checks::all);
  if (!input.model) return input.status;
  const Model& model = *input.model;
  Order order = choose(model, session.args);
  if (order.empty() && model.size() > 0) {  // as extract and convert do
    Finding finding;
    finding.rule = "misuse/unknown-tensor";
    finding.kind = Kind::misuse;
    finding.message = nothing_matches(model, session.args.value(FlagId::filter));
    return session.fail(path, Error(std::move(finding)));
  }
  if (!session.json) count_up(order, model);
  if (session.args.has(FlagId::sort)) sort(order, model, session.args.value(FlagId::sort));
  std::vector<Stats> stats;
  try {
    if (session.args.has(FlagId::stats)) session.progress().busy("counting");  // large tensors report nothing for long
    if (session.args.has(FlagId::stats)) stats = measure(model, order, session.context());
  } catch (const Error& error) {
    return session.fail(path, error);
  }
  session.progress().clear();
  const Inspection inspection{path, model, order, stats, &input.report};
  if (session.json) {
    to_json(inspection, [&](std::string_view piece) { session.out.text(piece); });
    session.out.text("\n");
  } else if (session.quiet) {
    if (!order.empty()) print_rows(session.out, inspection, session.args.has(FlagId::wide));
  } else {
    print_table(session.out, inspection, session.args.has(FlagId::wide));
  }
  session.remarks(path, input.report);
  return Status::done;
}

}  // namespace weighbridge::cli
