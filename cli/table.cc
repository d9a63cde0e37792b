// SPDX-License-Identifier: Apache-2.0
// inspect's table: one pass finds the column widths, a second one prints the rows.
#include "table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cuts.h"
#include "standard_input.h"
#include "weighbridge/delta.h"
#include "weighbridge/scheme.h"
#include "weighbridge/stats.h"
#include "weighbridge/text.h"

namespace weighbridge::cli {
namespace {

constexpr std::size_t kWidestName = 100;     // off a terminal, a longer name only shifts its own row
constexpr std::size_t kNarrowestName = 16;   // a terminal that is narrower still wraps lines
constexpr std::size_t kWidestType = 20;      // on a terminal
constexpr std::size_t kNarrowestShape = 14;  // likewise
constexpr std::size_t kLongestValue = 100;   // bytes of a metadata value that are shown
constexpr std::size_t kMaxAttributes = 20;
constexpr std::array<std::string_view, 8> kStatsHeads{"min", "max", "mean", "std", "nan", "inf", "zero", "values"};
using StatsCells = std::array<std::string, kStatsHeads.size()>;

// Of the columns; 0: it is not shown.
struct Widths {
  std::size_t name = 4, dtype = 5, shape = 5, size = 4;
  std::size_t layout = 6;  // a terminal omits it if every tensor is plain dense
  std::array<std::size_t, kStatsHeads.size()> stats{};
  int digits = 6;                           // of a number of the statistics that is not an integer
  std::vector<std::string_view> omitted{};  // heads of columns for which the line has no room
  // What a terminal shows of texts that are wider than their columns; not set if nothing is cut.
  std::optional<Cuts> names{}, dtypes{}, shapes{};
};

void pad(std::string& to, std::size_t width, std::size_t columns) {
  if (columns < width) to.append(width - columns, ' ');
}

// An empty name, or one that begins or ends with a blank, is unreadable without quotes.
bool needs_quotes(std::string_view name) { return name.empty() || name.front() == ' ' || name.back() == ' '; }

std::string quoted_name(std::string_view name) { return "'" + std::string(name) + "'"; }

void append_left(std::string& to, std::string_view text, std::size_t width) {
  pad(to, width, append_shown(to, text));
  to.append(kGap);
}

// The same of a text that is escaped already, cut if it must be.
void append_cell(std::string& to, const std::string& text, std::size_t width, const std::optional<Cuts>& cuts) {
  const std::string_view cut = cuts ? (*cuts)(text) : std::string_view(text);
  to.append(cut);
  pad(to, width, display_width(cut));
  to.append(kGap);
}

// A name as shown.
std::string name_cell(std::string_view name) { return needs_quotes(name) ? shown(quoted_name(name)) : shown(name); }

// The name in the row `at`, and how many tensors have it: "layer.{0..5}.bias x6".
std::string name_cell(const Listing& list, std::size_t at) {
  if (list.groups == nullptr) return name_cell(list.in.model.name(list.in.tensors[at]));
  const NameGroup& group = (*list.groups)[at];
  return name_cell(group.name()) + (group.tensors.size() > 1 ? " x" + grouped(group.tensors.size()) : "");
}

// How wide it is.
std::size_t name_width(const Listing& list, std::size_t at) {
  if (list.groups == nullptr) {
    const std::string_view name = list.in.model.name(list.in.tensors[at]);
    if (!needs_quotes(name)) return width_shown(name);
  }
  return display_width(name_cell(list, at));
}

void append_name(std::string& to, const Listing& list, std::size_t at, const Widths& w) {
  if (list.groups == nullptr && !w.names) {
    const std::string_view name = list.in.model.name(list.in.tensors[at]);
    if (!needs_quotes(name)) return append_left(to, name, w.name);
  }
  append_cell(to, name_cell(list, at), w.name, w.names);
}

// The functions below are given the tensor of the row, the first one of a group.
std::uint64_t size_of(const Listing& list, std::size_t at, const Tensor& t) {
  return list.groups ? (*list.groups)[at].size : logical_size(t);
}

void append_right(std::string& to, std::string_view text, std::size_t width) {
  pad(to, width, text.size());
  to.append(text);
  to.append(kGap);
}

void append_shape(std::string& to, const Tensor& t) {
  if (!t.has_shape()) {
    to += '?';
    return;
  }
  to += '[';
  bool first = true;
  for (const std::uint64_t dim : t.shape()) {
    if (!first) to.append(", ");
    first = false;
    append_number(to, dim);
  }
  to += ']';
}

// "dense"; "dense, zstd 1.2 MiB"; "sparse_coo, unsupported".
void append_layout(std::string& to, const Listing& list, std::size_t at, const Tensor& t) {
  if (const StoredWeight* const weight = stored_weight(t))
    to.append("of " + counted(weight->tensors.size(), "tensor", "tensors"));
  else
    to.append(t.layout_name());
  std::uint64_t stored = 0;
  std::string encoding;
  const auto add = [&](const Tensor& each) {
    for (std::uint32_t i = 0; i < each.part_count(); ++i) {
      const Part part = each.part(i);
      // Parts of a sparse tensor can be in one run of bytes.
      if (const std::optional<Extent> extent = part.extent(); extent && (i == 0 || extent != each.part(0).extent()))
        stored += extent->length;
      if (part.encoding() != Encoding::raw && part.encoding() != Encoding::computed) encoding = part.encoding_name();
    }
  };
  if (list.groups == nullptr)
    add(t);
  else
    for (const std::uint32_t i : (*list.groups)[at].tensors) add(list.in.model[i]);
  if (!encoding.empty()) {
    to.append(", ");
    to.append(encoding);
    to += ' ';
    append_size(to, stored);
  }
  if (t.unsupported()) to.append(", unsupported");
  if (const auto scheme = scheme_of(t)) to.append(scheme->codes ? ", " : ", part of ").append(scheme->name);
}

std::string number_text(const Value& number, int digits) {
  return number.kind() == Value::Kind::real ? fmt::format("{:.{}g}", number.as_f64().value_or(0), digits)
                                            : number.to_text();
}

// How the values are distributed: a bar for each interval of the histogram. Or what is wrong with them.
std::string values_cell(const Stats& s) {
  static constexpr std::array<std::string_view, 8> kBars{"\u2581", "\u2582", "\u2583", "\u2584",
                                                         "\u2585", "\u2586", "\u2587", "\u2588"};
  if (s.elements > 0 && s.zeros == s.elements) return "all zero";
  if (s.histogram.counts.empty()) return "-";
  const std::uint64_t maximum = std::ranges::max(s.histogram.counts);
  std::string out;
  for (const std::uint64_t count : s.histogram.counts) {
    const double height = std::ceil(static_cast<double>(count) / static_cast<double>(maximum) * kBars.size());
    out += count == 0 ? " " : kBars[static_cast<std::size_t>(std::clamp(height, 1.0, 8.0)) - 1];
  }
  return out + (s.nans > 0 ? " NaN" : "") + (s.infinities > 0 ? " Inf" : "");
}

StatsCells stats_cells(const Stats& s, const Tensor& t, int digits) {
  StatsCells out;
  out.fill("-");
  if (t.unsupported()) return out;
  if (!s.scheme.empty()) {
    out[7] = "codes";
    return out;
  }
  if (s.min.kind() != Value::Kind::null) {
    out[0] = number_text(s.min, digits);
    out[1] = number_text(s.max, digits);
    out[2] = fmt::format("{:.{}g}", s.mean, digits);
  }
  if (!s.histogram.counts.empty()) out[3] = fmt::format("{:.{}g}", s.std, digits);
  out[4] = std::to_string(s.nans);
  out[5] = std::to_string(s.infinities);
  out[6] = std::to_string(s.zeros);
  out[7] = values_cell(s);
  return out;
}

void measure_stats(Widths& w, const Listing& list) {
  std::ranges::transform(kStatsHeads, w.stats.begin(), &std::string_view::size);
  for (std::size_t at = 0; at < list.in.tensors.size(); ++at) {
    const StatsCells cells = stats_cells(list.in.stats[at], list.in.model[list.in.tensors[at]], w.digits);
    for (std::size_t i = 0; i < cells.size(); ++i) w.stats[i] = std::max(w.stats[i], display_width(cells[i]));
  }
}

// Makes a row fit a line of the terminal: drops the layout first, shortens dtypes, shapes and numbers, drops more
// columns, then gives names what the others leave.
void fit(Widths& w, const Listing& list, std::size_t columns) {
  const Inspection& in = list.in;
  const auto room_for_names = [&] {
    std::size_t others = 0;
    for (const std::size_t width : {w.dtype, w.shape, w.size, w.layout}) others += width > 0 ? kGap.size() + width : 0;
    for (const std::size_t width : w.stats) others += width > 0 ? kGap.size() + width : 0;
    return columns > others ? columns - others : 0;
  };
  std::vector<std::string> names, dtypes, shapes;
  for (std::size_t at = 0; at < in.tensors.size(); ++at) {
    const Tensor t = in.model[in.tensors[at]];
    names.push_back(name_cell(list, at));
    dtypes.push_back(shown(type_text(t)));
    append_shape(shapes.emplace_back(), t);
    w.name = std::max(w.name, display_width(names.back()));  // measured up to a limit before
  }
  const std::size_t widest = w.name;
  if (widest > room_for_names()) w.layout = 0;
  const auto narrow = [](std::size_t& width, std::size_t maximum, std::optional<Cuts>& cuts,
                         const std::vector<std::string>& texts) {
    if (width <= maximum) return;
    cuts.emplace(texts, width = maximum);
  };
  narrow(w.dtype, kWidestType, w.dtypes, dtypes);
  narrow(w.shape, std::max(columns / 4, kNarrowestShape), w.shapes, shapes);
  if (!in.stats.empty() && widest > room_for_names()) {
    w.digits = 3;
    measure_stats(w, list);
  }
  // Statistics are worth nothing beside names that all look alike.
  const std::size_t wanted = std::min(widest, std::max(in.stats.empty() ? 0 : columns / 3, kNarrowestName));
  const std::array<std::pair<std::string_view, std::size_t*>, 11> droppable{
      {{"inf", &w.stats[5]},  // "values" says whether there are any
       {"nan", &w.stats[4]},
       {"zero", &w.stats[6]},
       {"size", &w.size},
       {"shape", &w.shape},
       {"std", &w.stats[3]},
       {"mean", &w.stats[2]},
       {"max", &w.stats[1]},
       {"min", &w.stats[0]},
       {"values", &w.stats[7]},
       {"dtype", &w.dtype}}};
  for (const auto& [head, width] : droppable)
    if (*width > 0 && wanted > room_for_names()) *width = 0, w.omitted.push_back(head);
  narrow(w.name, std::max(room_for_names(), kNarrowestName), w.names, names);
}

Widths measure(const Listing& list, std::size_t columns) {
  const Inspection& in = list.in;
  Widths w;
  const bool terminal = columns > 0;
  bool plain = true;
  std::string cell;
  const auto widen = [&](std::size_t& width, auto&& append) {
    cell.clear();
    append(cell);
    width = std::max(width, cell.size());
  };
  for (std::size_t at = 0; at < in.tensors.size(); ++at) {
    const Tensor t = in.model[in.tensors[at]];
    w.name = std::max(w.name, std::min(name_width(list, at), kWidestName));
    w.dtype = std::max(w.dtype, width_shown(type_text(t)));
    widen(w.shape, [&](std::string& to) { append_shape(to, t); });
    widen(w.size, [&](std::string& to) { append_size(to, size_of(list, at, t)); });
    if (terminal || !in.stats.empty()) {
      widen(w.layout, [&](std::string& to) { append_layout(to, list, at, t); });
      plain = plain && cell == "dense";
    }
  }
  if (!in.stats.empty()) measure_stats(w, list);
  w.dtype = std::min(w.dtype, kWidestName);
  if (terminal && plain) w.layout = 0;
  if (terminal) fit(w, list, columns);
  return w;
}

void trim(std::string& line) {
  while (!line.empty() && line.back() == ' ') line.pop_back();
}

// Numbers are aligned on the right, the last column on the left.
void append_stats(std::string& to, const StatsCells& cells, const Widths& w) {
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (w.stats[i] == 0) continue;
    to.append(kGap);
    if (i + 1 < cells.size()) pad(to, w.stats[i], cells[i].size());
    to.append(cells[i]);
  }
}

void append_size_cell(std::string& to, std::string_view text, const Widths& w) {
  if (w.size == 0) return to.resize(to.size() - kGap.size());  // what follows begins with a gap
  pad(to, w.size, text.size());
  to.append(text);
}

void print_heading(Output& out, const Inspection& in, const Widths& w) {
  std::string line;
  append_left(line, "name", w.name);
  if (w.dtype > 0) append_left(line, "dtype", w.dtype);
  if (w.shape > 0) append_left(line, "shape", w.shape);
  append_size_cell(line, "size", w);
  if (w.layout > 0) line.append(kGap), line.append("layout");
  if (!in.stats.empty()) {
    if (w.layout > 0) pad(line, w.layout, 6);
    StatsCells heads;
    std::ranges::copy(kStatsHeads, heads.begin());
    append_stats(line, heads, w);
  }
  trim(line);
  out.toned(Tone::heading, line);
  out.text("\n");
}

void print_row(Output& out, const Listing& list, const Widths& w, std::size_t at, std::string& cell) {
  const Inspection& in = list.in;
  const Tensor t = in.model[in.tensors[at]];
  std::string& to = out.buffer();
  append_name(to, list, at, w);
  if (w.dtypes && w.dtype > 0)
    append_cell(to, shown(type_text(t)), w.dtype, w.dtypes);
  else if (w.dtype > 0)
    append_left(to, type_text(t), w.dtype);
  if (w.shape > 0) {
    cell.clear();
    append_shape(cell, t);
    append_cell(to, cell, w.shape, w.shapes);
  }
  cell.clear();
  append_size(cell, size_of(list, at, t));
  append_size_cell(to, cell, w);
  if (w.layout > 0) {
    to.append(kGap);
    cell.clear();
    append_layout(cell, list, at, t);
    append_shown(to, cell);
  }
  if (!in.stats.empty()) {
    if (w.layout > 0) pad(to, w.layout, cell.size());
    append_stats(to, stats_cells(in.stats[at], t, w.digits), w);
  }
  if (!in.stats.empty() || w.size == 0) trim(to);
  to += '\n';
  out.drain();
}

struct Total {
  std::uint64_t tensors = 0, elements = 0, bytes = 0;
};

std::uint64_t elements_of(const Tensor& t) {
  if (!t.has_shape()) return 0;
  std::uint64_t product = 1;
  bool passes = false;
  for (const std::uint64_t dim : t.shape()) {
    if (dim == 0) return 0;
    passes = passes || product > UINT64_MAX / dim;
    product *= dim;
  }
  return passes ? 0 : product;
}

// The beginning of a long text, cut between characters.
std::string_view cut(std::string_view text) {
  if (text.size() <= kLongestValue) return text;
  std::size_t end = kLongestValue;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return text.substr(0, end);
}

// "6,400 items" of a list or an array, else the size.
std::string extent_of(const Value& value, std::string_view text) {
  switch (value.kind()) {
    case Value::Kind::list: return grouped(value.list().size()) + " items";
    case Value::Kind::map: return grouped(value.map().size()) + " entries";
    case Value::Kind::texts: return grouped(value.texts()->size()) + " items";
    case Value::Kind::numbers: return grouped(value.bytes().size() * 8 / info(value.type()).bits) + " items";
    default: return size_text(text.size());
  }
}

// Whether it is an array that is only counted: a vocabulary.
bool is_long(const Value& value) {
  constexpr std::size_t kElements = 32;
  if (value.kind() == Value::Kind::texts) return value.texts()->size() > kElements;
  if (value.kind() == Value::Kind::list) return value.list().size() > kElements;
  return value.kind() == Value::Kind::numbers && value.bytes().size() * 8 / info(value.type()).bits > kElements;
}

// The group of a key that is not shown: what is before its first point.
std::string_view group_of(std::string_view key) {
  const std::size_t point = key.find('.');
  return point == key.npos ? std::string_view() : key.substr(0, point);
}

void print_attributes(Output& out, Attributes attributes, bool all) {
  std::size_t width = 0, shown_count = 0;
  const std::size_t maximum = all ? attributes.size() : kMaxAttributes;
  for (const auto& [key, value] : attributes)
    if (shown_count++ < maximum) width = std::max(width, std::min<std::size_t>(width_shown(key), 40));
  shown_count = 0;
  std::map<std::string_view, std::uint64_t> rest;
  for (const auto& [key, value] : attributes) {
    if (shown_count++ >= maximum) {
      ++rest[group_of(key)];
      continue;
    }
    std::string& to = out.buffer();
    to.append("  ");
    pad(to, width, append_shown(to, key));
    to.append(" = ");
    const std::string text = !all && is_long(value) ? std::string() : value.to_text();
    append_shown(to, all ? std::string_view(text) : cut(text));
    if (!all && is_long(value)) to.append(extent_of(value, text));
    if (!all && text.size() > kLongestValue) to.append("... (" + extent_of(value, text) + ")");
    to += '\n';
    out.drain();
  }
  if (attributes.size() > maximum) {
    constexpr std::size_t kMaxGroups = 4;
    std::vector<std::pair<std::uint64_t, std::string_view>> groups;
    for (const auto& [group, count] : rest)
      if (!group.empty()) groups.emplace_back(count, group);
    std::ranges::stable_sort(groups, std::greater{}, [](const auto& each) { return each.first; });
    std::string line = "  ... and " + grouped(attributes.size() - maximum) + " more";
    for (std::size_t i = 0; i < std::min(groups.size(), kMaxGroups); ++i)
      line += (i == 0 ? ": " : ", ") + grouped(groups[i].first) + " of " + shown(fitted(groups[i].second, 40)) + ".*";
    out.text(line + "; --metadata shows them all, --attribute KEY one\n");
  }
  if (!attributes.empty()) out.text("\n");
}

// "22.7 M".
std::string short_number(std::uint64_t n) {
  static constexpr std::array<std::string_view, 5> kUnits{"", " K", " M", " G", " T"};
  auto value = static_cast<double>(n);
  std::size_t unit = 0;
  while (value >= 999.5 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  if (unit == 0) return std::to_string(n);
  return fmt::format("{:.{}f}{}", value, value < 99.95 ? 1 : 0, kUnits[unit]);
}

// "BertModel, 22.7 M parameters; by size: f32 99%, i64 <1%".
void print_facts(Output& out, const Model& model) {
  const Summary summary = summarize(model);
  if (summary.dtypes.empty()) return;
  std::string stated;
  const auto state = [&](const std::string& fact) { stated += (stated.empty() ? "" : ", ") + fact; };
  if (summary.context_length > 0) state("context of " + counted(summary.context_length, "token", "tokens"));
  if (summary.chat_template) state("chat template");
  if (!summary.license.empty()) state("license " + shown(fitted(summary.license, 40)));
  std::uint64_t bytes = 0;
  for (const Summary::Share& share : summary.dtypes) bytes += share.bytes;
  std::string line = summary.architecture.empty() ? "" : shown(fitted(summary.architecture, 60)) + ", ";
  line += short_number(summary.parameters) + (summary.parameters == 1 ? " parameter" : " parameters");
  constexpr std::size_t kMaxShares = 6;
  for (std::size_t i = 0; i < summary.dtypes.size() && i < kMaxShares; ++i) {
    const double percent =
        bytes == 0 ? 0 : static_cast<double>(summary.dtypes[i].bytes) * 100 / static_cast<double>(bytes);
    line += (i > 0                       ? ", "
             : summary.dtypes.size() > 1 ? "; by size: "
                                         : ": ") +
            fitted(summary.dtypes[i].dtype, kWidestType);
    if (summary.dtypes.size() > 1) line += percent < 1 ? " <1%" : fmt::format(" {:.0f}%", std::floor(percent));
  }
  if (summary.dtypes.size() > kMaxShares) line += ", and " + grouped(summary.dtypes.size() - kMaxShares) + " more";
  out.text(line + "\n" + stated + (stated.empty() ? "" : "\n"));
  std::uint64_t weights = 0, tensors = 0;
  for (const Tensor& tensor : model)
    if (const StoredWeight* const weight = stored_weight(tensor)) ++weights, tensors += weight->tensors.size();
  if (weights > 0)
    out.text("quantized: " + counted(weights, "weight", "weights") + " of " + counted(tensors, "tensor", "tensors") +
             "; --stored lists them\n");
  for (const ModelScheme& scheme : schemes_of(model))
    out.text("quantized: " + shown(scheme.name) + ", " + counted(scheme.codes, "tensor", "tensors") + " of codes and " +
             grouped(scheme.companions) + " that complete them\n");
}

// Facts about the container as a whole: dtype label, tokenizer, checksums.
void print_checksums(Output& out, const Model& model) {
  const bool label = !model.dtype_label().empty();
  if (label) out.text("  dtype " + shown(model.dtype_label()) + "\n");
  if (const auto t = model.tokenizer())
    out.text(
        "  tokenizer " + std::string(name(t->kind)) + ", " +
        counted(t->tokens.size() == 0 ? t->vocab_size : t->tokens.size(), "token", "tokens") +
        (t->tokens.size() == 0 || t->tokens.size() == t->vocab_size ? "" : " of " + grouped(t->vocab_size) + " ids") +
        "\n");
  for (const auto& [name, value] : model.checksums()) out.text("  checksum " + shown(name) + " " + shown(value) + "\n");
  if (!model.checked()) out.text("  not checked: payload and checksums\n");
  if (label || model.tokenizer() || !model.checksums().empty() || !model.checked()) out.text("\n");
}

}  // namespace

void print_totals(Output& out, const Inspection& in) {
  std::map<std::string_view, Total> by_dtype;
  Total all;
  auto last = by_dtype.end();  // neighbors mostly share a dtype
  for (const std::uint32_t i : in.tensors) {
    const Tensor t = in.model[i];
    const std::uint64_t elements = elements_of(t), bytes = logical_size(t);
    if (last == by_dtype.end() || last->first != type_text(t)) last = by_dtype.try_emplace(type_text(t)).first;
    for (Total* total : {&last->second, &all}) {
      ++total->tensors;
      total->elements += elements;
      total->bytes += bytes;
    }
  }
  std::vector<std::pair<std::string_view, Total>> rows(by_dtype.begin(), by_dtype.end());
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.second.bytes > b.second.bytes; });
  if (rows.size() != 1) rows.emplace_back("total", all);
  std::size_t name = 0, tensors = 0, elements = 0, bytes = 0;
  for (const auto& [dtype, total] : rows) {
    name = std::max(name, std::min(width_shown(dtype), kWidestName));
    tensors = std::max(tensors, grouped(total.tensors).size());
    elements = std::max(elements, grouped(total.elements).size());
    bytes = std::max(bytes, grouped(total.bytes).size());
  }
  out.text("\n");
  for (const auto& [dtype, total] : rows) {
    std::string& to = out.buffer();
    append_left(to, dtype, name);
    append_right(to, grouped(total.tensors), tensors);
    to.append(total.tensors == 1 ? "tensor   " : "tensors  ");
    append_right(to, grouped(total.elements), elements);
    to.append(total.elements == 1 ? "element   " : "elements  ");
    append_right(to, grouped(total.bytes), bytes);
    to.append("bytes\n");
    out.drain();
  }
}

std::string print_rows(Output& out, const Listing& list) {
  const Widths w = measure(list, list.wide ? 0 : out.columns());
  print_heading(out, list.in, w);
  std::string cell;
  for (std::size_t at = 0; at < list.in.tensors.size() && !out.closed(); ++at) print_row(out, list, w, at, cell);
  std::string omitted;
  for (const std::string_view head : w.omitted) omitted.append(omitted.empty() ? "" : ", ").append(head);
  return omitted;
}

void print_summary(Output& out, const Listing& list) {
  const Inspection& in = list.in;
  const std::size_t chosen = in.tensors.size(), all = in.model.size();
  out.shown(input_name(in.path));
  out.text(": " + std::string(in.model.format()) + (in.model.version().empty() ? "" : " ") + shown(in.model.version()) +
           ", " + (chosen < all ? grouped(chosen) + " of " : "") + grouped(all) +
           (all == 1 ? " tensor, " : " tensors, ") + size_text(in.model.file_size()) + " (" +
           grouped(in.model.file_size()) + " bytes)\n");
  if (!is_patch(in.model)) print_facts(out, in.model);  // print_patch() says what it changes
  out.text("\n");
  print_attributes(out, in.model.attributes(), list.metadata);
  print_checksums(out, in.model);
  if (in.tensors.empty()) out.text("no tensors\n");
}

}  // namespace weighbridge::cli
