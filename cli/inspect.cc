// SPDX-License-Identifier: Apache-2.0
// inspect: lists what is in a file. Owns the selection and order of tensors; table.cc prints the table.
#include <algorithm>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cuts.h"
#include "patch.h"
#include "session.h"
#include "table.h"
#include "weighbridge/delta.h"
#include "weighbridge/json.h"
#include "weighbridge/picture.h"
#include "weighbridge/scheme.h"
#include "weighbridge/stats.h"
#include "weighbridge/text.h"

namespace weighbridge::cli {
namespace {

using Order = std::vector<std::uint32_t>;

constexpr std::size_t kMany = 40;   // tensors; more are grouped on a terminal
constexpr std::uint32_t kBins = 8;  // of the histogram in the table
constexpr std::uint32_t kJsonBins = 32;

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

// Puts layer 10 after layer 9 in a file whose order is that of bytes, as writers of safetensors sort tensors of a
// dtype. Any other order is the author's, and stays.
void count_up(Order& order, const Model& model) {
  std::vector<std::string_view> names(model.size());  // sorting asks for each many times
  std::set<std::string_view> dtypes;
  std::string_view last_dtype;
  std::vector<std::size_t> ends;  // of runs of ascending names
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Tensor tensor = model[order[i]];
    names[order[i]] = model.name(order[i]);
    if (i == 0 || tensor.type_name() != last_dtype) dtypes.insert(last_dtype = tensor.type_name());
    if (i > 0 && names[order[i]] < names[order[i - 1]]) ends.push_back(i);
  }
  if (!order.empty()) ends.push_back(order.size());
  if (ends.size() > dtypes.size()) return;
  const auto before = [&](std::uint32_t a, std::uint32_t b) { return comes_before(names[a], names[b]); };
  for (std::size_t i = 0, begin = 0; i < ends.size(); begin = ends[i++])
    std::sort(order.begin() + static_cast<std::ptrdiff_t>(begin), order.begin() + static_cast<std::ptrdiff_t>(ends[i]),
              before);
}

void print_json(Session& session, const Inspection& inspection) {
  session.begin_object();
  to_json(inspection, [&](std::string_view piece) { session.out.text(piece); });
  session.end_object();
}

void print_text(Session& session, const Inspection& in, bool first) {
  const Arguments& args = session.args;
  Listing list{.in = in, .wide = args.has(FlagId::wide), .metadata = args.has(FlagId::metadata)};
  if (!first) session.out.text("\n");
  if (!session.quiet) print_summary(session.out, list);
  if (is_patch(in.model) && !args.has(FlagId::stored) && print_patch(session, in.model)) return;
  if (in.tensors.empty()) return;
  const bool tree = args.has(FlagId::tree);
  const bool may_group = session.out.columns() > 0 && !list.wide && in.stats.empty() && !args.has(FlagId::sort) &&
                         in.tensors.size() > kMany;
  std::vector<NameGroup> groups;
  const auto list_rows = [&](const Listing& rows) {
    const std::string omitted = print_rows(session.out, rows);
    if (!omitted.empty() && !session.quiet)
      session.out.text("\nnot shown: " + omitted + "; --wide shows every column\n");
  };
  if (tree || may_group) groups = group(in.model, in.tensors);
  if (tree) {
    print_tree(session.out, in.model, groups);
  } else if (may_group && groups.size() < in.tensors.size()) {
    Order firsts;
    for (const NameGroup& each : groups) firsts.push_back(each.tensors[0]);
    const Inspection some{in.path, in.model, firsts, {}, in.report};
    list_rows({.in = some, .groups = &groups});
    if (!session.quiet)
      session.out.text("\n" + grouped(in.tensors.size()) + " tensors in " + grouped(groups.size()) +
                       (groups.size() == 1 ? " row" : " rows") + "; --wide lists each\n");
  } else {
    list_rows(list);
  }
  if (!session.quiet && !tree) print_totals(session.out, in);
}

// In the order of names, so that a layer's tensors are together, unless another order is asked for.
void draw(Session& session, const Inspection& given) {
  Order order(given.tensors.size()), tensors;
  std::iota(order.begin(), order.end(), 0U);
  if (!session.args.has(FlagId::sort))
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return comes_before(given.model.name(given.tensors[a]), given.model.name(given.tensors[b]));
    });
  std::vector<Stats> stats;
  for (const std::uint32_t i : order) {
    tensors.push_back(given.tensors[i]);
    stats.push_back(given.stats[i]);
  }
  const Inspection inspection{given.path, given.model, tensors, stats, given.report};
  const auto all = inspection.model.sources();
  write_picture(session, to_svg(inspection), std::vector<std::shared_ptr<const Source>>(all.begin(), all.end()));
}

// Prints the attributes that --attribute asks for. Error{misuse} for a KEY that matches none.
void print_asked(Session& session, const Model& model) {
  const std::vector<std::string>& globs = session.args.values(FlagId::attribute);
  const bool alone = globs.size() == 1 && model.attribute(globs[0]) != nullptr;
  for (const std::string& glob : globs) {
    bool any = false;
    for (const auto& [key, value] : model.attributes()) {
      if (key != glob && (alone || !matches_glob(glob, key))) continue;
      any = true;
      if (!alone) session.out.text(shown(key) + " = ");
      session.out.text((session.out.columns() > 0 ? shown(value.to_text()) : value.to_text()) + "\n");
    }
    if (!any) raise(Kind::misuse, "misuse/attribute", "the metadata has no key " + quote(glob));
  }
}

Status inspect_one(Session& session, const std::string& path, bool& first) {
  OpenOptions reading = reading_options(session);
  if (session.args.has(FlagId::no_check)) reading.checks = Checks::structure;
  reading.list_incomplete = true;
  const Input input = open_input(session, path, reading);
  const Model model = session.args.has(FlagId::stored) ? input.model : logical(input.model, session.context());
  Order order;
  std::vector<Stats> stats;
  if (session.args.has(FlagId::attribute)) {
    print_asked(session, model);
    return Status::done;
  }
  order = tensors_taken(model, session.args);
  if (!session.json) count_up(order, model);
  if (session.args.has(FlagId::sort)) sort(order, model, session.args.value(FlagId::sort));
  if (session.args.has(FlagId::stats) || session.args.has(FlagId::plot)) {
    session.progress().busy("counting");  // large tensors report nothing for long
    const bool fine = session.json || session.args.has(FlagId::plot);
    stats = statistics(model, order, session.context(), fine ? kJsonBins : kBins);
  }
  if (session.args.has(FlagId::plot)) draw(session, {path, model, order, stats, &input.report});
  if (!session.args.has(FlagId::stats)) stats.clear();
  session.progress().clear();
  const Inspection inspection{path, model, order, stats, &input.report};
  if (session.json)
    print_json(session, inspection);
  else
    print_text(session, inspection, std::exchange(first, false));
  session.remarks(path, input.report);
  return input.report.valid() ? Status::done : Status::invalid;
}

}  // namespace

Status run_inspect(Session& session) {
  check_picture(session.args);
  if (session.args.has(FlagId::plot) && session.args.operands.size() > 1)
    throw Misuse("--plot takes one FILE, but several are given");
  bool first = true;  // of the files that open
  return session.for_each_file([&](const std::string& path) { return inspect_one(session, path, first); });
}

}  // namespace weighbridge::cli
