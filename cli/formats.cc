// SPDX-License-Identifier: Apache-2.0
// formats: lists the containers that this build supports.
#include "weighbridge/formats.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include "session.h"
#include "weighbridge/json.h"
#include "wrap.h"

namespace weighbridge::cli {
namespace {

using Row = std::array<std::string, 5>;

template <class List, class Spell> std::string joined_as(const List& list, Spell spell) {
  std::string out;
  for (const auto& item : list) out += (out.empty() ? "" : " ") + std::string(spell(item));
  return out;
}

Row row_of(const FormatInfo& f) {
  const auto dotted = [](std::string_view e) { return "." + std::string(e); };
  return {std::string(f.name), f.folder ? "(a folder)" : joined_as(f.extensions, dotted),
          std::string(f.reads ? "read" : "") + (f.reads && f.writes ? ", " : "") + (f.writes ? "write" : ""),
          std::string(f.versions), std::string(f.title)};
}

void print_fact(Output& out, std::string_view what, std::string_view text) {
  constexpr std::size_t kIndent = 14;
  std::string line = "  " + std::string(what);
  line.resize(kIndent, ' ');
  out.text(line + (out.columns() > 0 ? wrapped(text, out.columns(), kIndent, kIndent) : std::string(text)) + "\n");
}

// `all`: also prints what the table above had no room for.
void print_holds(Output& out, const FormatInfo& f, bool all) {
  const auto spelled = [](auto value) { return name(value); };
  out.text("\n");
  out.toned(Tone::heading, f.name);
  out.text("\n");
  if (all) print_fact(out, "title", f.title);
  if (all) print_fact(out, "versions", f.versions);
  print_fact(out, "dtypes", joined_as(f.holds.dtypes, spelled));
  print_fact(out, "layouts", joined_as(f.holds.layouts, spelled));
  print_fact(out, "encodings", joined_as(f.holds.encodings, spelled));
  print_fact(out, "digests",
             f.holds.digests.empty() ? "none" : joined_as(f.holds.digests, [](std::string_view d) { return d; }));
  print_fact(out, "attributes", f.holds.attributes);
}

}  // namespace

Status run_formats(Session& session) {
  if (session.json) {
    session.object(formats_to_json());
    return Status::done;
  }
  std::vector<Row> rows{{"name", "extensions", "can", "versions", "title"}};
  for (const FormatInfo& f : formats()) rows.push_back(row_of(f));
  std::array<std::size_t, 5> width{};
  for (const Row& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], row[i].size());
  const std::size_t all = std::accumulate(width.begin(), width.end(), 2 * (width.size() - 1));
  const bool narrow = session.out.columns() > 0 && all > session.out.columns();
  const std::size_t columns = narrow ? 3 : width.size();  // versions and titles are long and go below
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < columns; ++i)
      line += row[i] + (i + 1 < columns ? std::string(width[i] - row[i].size() + 2, ' ') : "");
    session.out.toned(&row == rows.data() ? Tone::heading : Tone::plain, line);
    session.out.text("\n");
  }
  for (const FormatInfo& f : formats()) print_holds(session.out, f, narrow);
  return Status::done;
}

}  // namespace weighbridge::cli
