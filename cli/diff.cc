// SPDX-License-Identifier: Apache-2.0
// diff: prints what changed between two models. Owns the table, the summary line, and the exit statuses of diff(1).
#include "weighbridge/diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "patch.h"
#include "session.h"
#include "table.h"
#include "weighbridge/json.h"
#include "weighbridge/picture.h"

namespace weighbridge::cli {
namespace {

using TensorVerdict = TensorDiff::Verdict;

constexpr std::size_t kLongestName = 100, kLongestMetadata = 60;

// Anything that prevents the comparison is status 4, because diff(1) has one status for trouble; usage errors stay 2.
Status trouble(Status status) { return status == Status::misuse ? Status::misuse : Status::io; }

DiffOptions diff_options(Session& session) {
  DiffOptions out;
  session.args.apply(out, OptionOf::diff);
  add_rename_file(session, out.rename);
  return out;
}

std::string shape_text(const std::vector<std::uint64_t>& shape) {
  std::string out = "[";
  for (const std::uint64_t dim : shape) out += (out.size() > 1 ? ", " : "") + std::to_string(dim);
  return out + "]";
}

// The index of an element in each dimension.
std::string place_text(std::uint64_t element, const std::vector<std::uint64_t>& shape) {
  std::vector<std::uint64_t> place(shape.size());
  for (std::size_t i = shape.size(); i-- > 0; element /= shape[i]) place[i] = element % shape[i];
  return shape_text(place);
}

std::string number_text(double value, std::string_view format) {
  if (std::isnan(value)) return "-";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return fmt::format(fmt::runtime(format), value);
}

// The share of elements that changed. Never 100 % while some did not, and never 0 % once one has.
std::string share_text(const ValueDiff& v) {
  if (v.changed == 0) return "0%";
  if (v.changed == v.elements) return "100%";
  const double share = 100 * static_cast<double>(v.changed) / static_cast<double>(v.elements);
  return share < 0.01 ? "<0.01%" : fmt::format("{:.2f}%", std::min(share, 99.99));
}

// Six digits; where they would show 1, how far it is from 1: "1-3e-16".
std::string cosine_text(const ValueDiff& v) {
  if (std::isnan(v.cosine)) return "-";
  const double distance = 1 - v.cosine;
  if (v.changed > 0 && distance <= 0) return "1";
  return v.changed > 0 && distance < 5e-7 ? fmt::format("1-{:.0e}", distance) : fmt::format("{:.6f}", v.cosine);
}

struct Column {
  std::string_view head;
  std::size_t width;
};
constexpr Column kColumns[] = {{"max abs", 9}, {"rms", 9}, {"cosine", 9}, {"changed", 8}};
constexpr Column kMore[] = {{"max rel", 9}, {"rms/A", 9}, {"snr dB", 7}};

std::vector<std::string> cells_of(const TensorDiff& t, bool stats) {
  const std::size_t count = std::size(kColumns) + (stats ? std::size(kMore) : 0);
  if (!t.values) return std::vector<std::string>(count, "-");
  const ValueDiff& v = *t.values;
  std::vector<std::string> out{number_text(v.max_abs, "{:.3g}"), number_text(v.rms, "{:.3g}"), cosine_text(v),
                               share_text(v)};
  if (stats) {
    out.push_back(number_text(v.max_relative, "{:.3g}"));
    out.push_back(number_text(v.changed == 0 ? 0 : v.relative_rms, "{:.3g}"));
    out.push_back(number_text(v.snr, "{:.1f}"));
  }
  return out;
}

// How a tensor's shape differs: only "reshaped" keeps the number of elements.
std::string_view shape_change(const TensorDiff& t) {
  const auto count = [](const std::vector<std::uint64_t>& shape) {
    return std::accumulate(shape.begin(), shape.end(), std::uint64_t{1}, std::multiplies<>());
  };
  return t.transposed ? "transposed" : count(t.shape_a) == count(t.shape_b) ? "reshaped" : "resized";
}

// What happened to a tensor: "recast bf16 to f32, values are equal".
std::string notes_of(const TensorDiff& t, const DiffOptions& options, bool stats) {
  std::string out;
  const auto add = [&](const std::string& note) { out += (out.empty() ? "" : ", ") + note; };
  if (t.verdict == TensorVerdict::only_a || t.verdict == TensorVerdict::only_b) {
    const bool a = t.verdict == TensorVerdict::only_a;
    add(std::string(a ? "only in A: " : "only in B: ") + shown(a ? t.type_a : t.type_b) + " " +
        shape_text(a ? t.shape_a : t.shape_b));
    if (!t.tied_to.empty()) add("its content is in " + quote(t.tied_to) + " of " + (a ? "B" : "A"));
    return out;
  }
  if (t.renamed)
    add("renamed " + fitted(t.name_b, kLongestName) +
        (t.by == TensorDiff::By::content ? " (by content)"
         : t.by == TensorDiff::By::guess ? " (guessed)"
                                         : ""));
  if (t.verdict == TensorVerdict::incomparable) add("cannot be compared: " + shown(t.why));
  if (t.reshaped)
    add(std::string(shape_change(t)) + " " + shape_text(t.shape_a) + " to " + shape_text(t.shape_b));
  else if (t.transposed)
    add("transposed");
  if (t.permuted) add("rows permuted" + (t.order.empty() ? "" : " (" + t.order + ")"));
  if (t.recast)
    add("recast " + shown(t.type_a) + " to " + shown(t.type_b) + (t.type_a == t.type_b ? " (other layout)" : ""));
  if (t.verdict != TensorVerdict::incomparable && !t.why.empty() && t.reshaped == t.values.has_value())
    add(shown(t.why));
  if (t.bits_only) add("values are equal, the bits of zeros or NaNs are not");
  if (!t.values) return out;
  const ValueDiff& v = *t.values;
  if (v.changed == 0 && !t.bits_only) add("values are equal");
  if (v.changed > 0 && (options.atol || options.rtol))
    add(v.beyond == 0 ? "within the tolerance" : grouped(v.beyond) + " beyond the tolerance");
  if (v.nans > 0) add(grouped(v.nans) + " NaN in one only");
  if (v.infinite > 0) add(grouped(v.infinite) + " infinite in one only");
  if (stats && v.first) add("first at " + place_text(*v.first, t.shape_a));
  if (stats && v.largest && v.largest != v.first) add("most at " + place_text(*v.largest, t.shape_a));
  return out;
}

void print_row(Output& out, const std::vector<std::string>& cells) {
  std::string row;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::size_t width = i < std::size(kColumns) ? kColumns[i].width : kMore[i - std::size(kColumns)].width;
    row.append(width - std::min(width, cells[i].size()), ' ').append(cells[i]).append(kGap);
  }
  out.text(row);
}

void print_tensors(Session& session, const Diff& found, const DiffOptions& options) {
  Output& out = session.out;
  const bool stats = session.args.has(FlagId::stats);
  std::vector<std::uint32_t> order = by_change(found);
  // What is equal by value, or within the tolerance, is counted in the summary.
  if (!stats) std::erase_if(order, [&](std::uint32_t i) { return found.tensors[i].verdict == TensorVerdict::equal; });
  if (order.empty()) return;
  std::string heads;
  const auto head = [&](const Column& column) {
    heads.append(column.width - std::min(column.width, column.head.size()), ' ').append(column.head).append(kGap);
  };
  for (const Column& column : kColumns) head(column);
  if (stats)
    for (const Column& column : kMore) head(column);
  out.text("\n");
  out.toned(Tone::heading, heads + "tensor");
  out.text("\n");
  const auto maximum = session.args.number<std::size_t>(FlagId::top);
  for (const std::uint32_t i : std::span(order).first(std::min(maximum, order.size()))) {
    const TensorDiff& t = found.tensors[i];
    print_row(out, cells_of(t, stats));
    const std::string_view named = t.verdict == TensorVerdict::only_b ? t.name_b : t.name_a;
    const bool odd = named.empty() || named.front() == ' ' || named.back() == ' ';
    out.text(odd ? quote(named) : fitted(named, kLongestName));
    if (const std::string notes = notes_of(t, options, stats); !notes.empty()) {
      out.text(": ");
      const Tone tone = t.verdict == TensorVerdict::incomparable                                     ? Tone::warning
                        : t.verdict == TensorVerdict::different || t.verdict == TensorVerdict::equal ? Tone::plain
                                                                                                     : Tone::bad;
      out.toned(tone, notes);
    }
    out.text("\n");
  }
  if (order.size() > maximum)
    out.text("... and " + grouped(order.size() - maximum) + " more; --top N lists N of them\n");
}

void print_metadata(Session& session, std::string_view heading, const std::vector<MetadataDiff>& list) {
  if (list.empty()) return;
  Output& out = session.out;
  out.text("\n");
  out.toned(Tone::heading, heading);
  out.text("\n");
  const auto maximum = session.args.number<std::size_t>(FlagId::top);
  for (std::size_t i = 0; i < std::min(list.size(), maximum); ++i) {
    const MetadataDiff& each = list[i];
    out.text(kGap);
    if (!each.tensor.empty()) out.text(fitted(each.tensor, kLongestName) + ": ");
    out.text(fitted(each.key, kLongestName) + ": ");
    if (each.only_a)
      out.text("only in A: " + fitted(each.a, kLongestMetadata));
    else if (each.only_b)
      out.text("only in B: " + fitted(each.b, kLongestMetadata));
    else
      out.text(fitted(each.a, kLongestMetadata) + " -> " + fitted(each.b, kLongestMetadata));
    if (each.first) out.text("; the first that differs is item " + std::to_string(*each.first));
    out.text("\n");
  }
  if (list.size() > maximum) out.text("... and " + grouped(list.size() - maximum) + " more; --top N lists N of them\n");
}

// One word for each tensor: its most important change.
std::string_view kind_of(const TensorDiff& t) {
  switch (t.verdict) {
    case TensorVerdict::only_a: return "only in A";
    case TensorVerdict::only_b: return "only in B";
    case TensorVerdict::incomparable: return "not comparable";
    case TensorVerdict::equal: return t.changed ? "within the tolerance" : "equal by value";
    case TensorVerdict::different: break;
  }
  return t.changed      ? "changed"
         : t.permuted   ? "permuted"
         : t.transposed ? "transposed"
         : t.reshaped   ? "reshaped"
         : t.recast     ? "recast"
         : t.renamed    ? "renamed"
                        : "with other bits";
}

// "14 tensors of codes of FP8 with scales compared by stored bytes".
std::string codes_text(const Diff& found) {
  std::string schemes;
  for (const std::string& scheme : found.schemes) schemes += (schemes.empty() ? "" : " and ") + shown(scheme);
  if (found.codes == 0) return "codes of " + schemes + " not compared with values";
  return counted(found.codes, "tensor", "tensors") + " of codes of " + schemes + " compared by stored bytes";
}

// "different: 3 changed, 1 only in A, 286 equal; 2 entries of metadata".
void print_summary(Session& session, const Diff& found) {
  Output& out = session.out;
  constexpr std::array<std::string_view, 12> kKinds{
      "changed",   "permuted",       "transposed",           "reshaped",
      "recast",    "renamed",        "with other bits",      "only in A",
      "only in B", "not comparable", "within the tolerance", "equal by value"};
  std::array<std::uint64_t, kKinds.size()> counts{};
  for (const TensorDiff& t : found.tensors)
    for (std::size_t k = 0; k < kKinds.size(); ++k) counts[k] += kind_of(t) == kKinds[k] ? 1U : 0U;
  if (found.equal()) {
    out.toned(Tone::good, "equal");
    std::string more = " (" + counted(found.compared, "tensor", "tensors") + ", " + size_text(found.bytes);
    for (std::size_t k = kKinds.size() - 2; k < kKinds.size(); ++k)
      if (counts[k] > 0) more += ", " + grouped(counts[k]) + " " + std::string(kKinds[k]);
    if (found.moved > 0) more += ", in another order";
    if (!found.schemes.empty()) more += ", " + codes_text(found);
    out.text(more + ")\n");
    return;
  }
  out.toned(found.differs() ? Tone::bad : Tone::warning, found.differs() ? "different" : "not compared in full");
  std::string list;
  const auto add = [&](const std::string& text) { list += (list.empty() ? ": " : ", ") + text; };
  for (std::size_t k = 0; k < kKinds.size(); ++k)
    if (counts[k] > 0) add(grouped(counts[k]) + " " + std::string(kKinds[k]));
  if (found.same > 0) add(grouped(found.same) + " equal");
  if (!found.schemes.empty()) add(codes_text(found));
  if (!found.metadata.empty()) add(counted(found.metadata.size(), "entry of metadata", "entries of metadata"));
  if (!found.tokenizer.empty()) add("the tokenizer");
  out.text(list + "\n");
}

// Writes the picture, if one is asked for.
void draw(Session& session, const Comparison& comparison) {
  if (!session.args.has(FlagId::plot)) return;
  std::vector<std::shared_ptr<const Source>> inputs;
  for (const Model* model : {&comparison.a, &comparison.b})
    for (const auto& source : model->sources()) inputs.push_back(source);
  write_picture(session, to_svg(comparison), inputs);
}

Status show_difference(Session& session) try {
  const std::string &path_a = session.args.operands[0], &path_b = session.args.operands[1];
  const DiffOptions options = diff_options(session);
  check_picture(session.args);
  const Input a = open_input(session, path_a), b = open_stored(session, path_b, reading_options(session));
  const Diff found = diff(a.model, b.model, options, session.context());
  session.progress().clear();
  Comparison comparison{path_a, path_b, a.model, b.model, found};
  draw(session, comparison);
  session.remarks(path_a, a.report);
  session.remarks(path_b, b.report);
  comparison.max_tensors = session.args.number(FlagId::top, comparison.max_tensors);
  session.print_result([&] { return to_json(comparison); },
                       [&] {
                         print_summary(session, found);
                         print_tensors(session, found, options);
                         print_metadata(session, "metadata", found.metadata);
                         print_metadata(session, "tokenizer", found.tokenizer);
                       });
  return found.differs() ? Status::invalid : found.incomparable > 0 ? Status::unsupported : Status::done;
} catch (const Failed& failed) {
  return trouble(failed.status);
} catch (const Error& error) {
  return trouble(session.fail(session.args.operands[0] + " and " + session.args.operands[1], error));
}

}  // namespace

Status run_diff(Session& session) {
  return session.args.has(FlagId::patch) ? run_diff_patch(session) : show_difference(session);
}

}  // namespace weighbridge::cli
