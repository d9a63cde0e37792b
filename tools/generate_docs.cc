// SPDX-License-Identifier: Apache-2.0
// Writes the pages of docs/ that come from the program itself: rules.md (every reason to reject) and formats.md (what
// each container holds). CI runs it and refuses a diff.
//
// usage: generate_docs FOLDER
#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>

#include "weighbridge/formats.h"

namespace wb = weighbridge;

namespace {

std::string_view word(wb::Rule::Reach reach) {
  switch (reach) {
    case wb::Rule::Reach::file: return "the file";
    case wb::Rule::Reach::tensor: return "one tensor";
    case wb::Rule::Reach::note: return "a note";
  }
  return "";
}

void append_rules(std::string& page, std::string_view title, std::span<const wb::Rule> rules) {
  page.append("\n## ").append(title).append(
      "\n\n| rule | severity | reach | from | says |\n| --- | --- | --- | --- | --- |\n");
  for (const wb::Rule& rule : rules) {
    page.append("| `")
        .append(rule.id)
        .append("` | ")
        .append(wb::name(rule.severity))
        .append(" | ")
        .append(word(rule.reach));
    page.append(" | ").append(rule.section).append(" | ").append(rule.sentence).append(" |\n");
  }
}

std::string rules_page() {
  std::string page =
      "# Rules\n\nEvery reason for which weighbridge rejects or remarks upon a file. Made from each format's "
      "`rules.def` by "
      "`make docs`; the ids are stable.\n\n"
      "An *error* makes a file invalid (`verify` exits with 1). *unsupported* means that the elements of one tensor "
      "cannot be had "
      "by this build (3). A *warning* leaves the file valid (0).\n";
  for (const wb::FormatInfo& format : wb::formats())
    append_rules(page, std::string(format.title) + " (`" + std::string(format.name) + "`)", format.rules);
  append_rules(page, "All formats", wb::common_rules());
  return page;
}

template <class Range, class Name> std::string join(const Range& range, Name&& name) {
  std::string out;
  for (const auto& item : range) {
    if (!out.empty()) out.append(", ");
    out.append(name(item));
  }
  return out.empty() ? "none" : out;
}

std::string formats_page() {
  std::string page = "# Formats\n\nWhat each container holds. Made from the formats' descriptors by `make docs`.\n";
  const auto text = [](std::string_view s) { return s; };
  for (const wb::FormatInfo& f : wb::formats()) {
    page.append("\n## ").append(f.title).append("\n\n| | |\n| --- | --- |\n");
    const auto row = [&](std::string_view key, std::string_view value) {
      page.append("| ").append(key).append(" | ").append(value).append(" |\n");
    };
    row("name", "`" + std::string(f.name) + "`");
    row("extensions", join(f.extensions, [](std::string_view e) { return "`." + std::string(e) + "`"; }));
    row("versions", f.versions);
    row("reads, writes", std::string(f.reads ? "yes" : "no") + ", " + (f.writes ? "yes" : "no"));
    row("dtypes", join(f.holds.dtypes, [](wb::DType d) { return wb::name(d); }));
    row("layouts", join(f.holds.layouts, [](wb::Layout l) { return wb::name(l); }));
    row("encodings", join(f.holds.encodings, [](wb::Encoding e) { return wb::name(e); }));
    row("digests", join(f.holds.digests, text));
    row("attributes", f.holds.attributes);
    row("tokenizer", f.holds.tokenizer ? "yes" : "no");
  }
  return page;
}

bool write(const std::string& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
  return static_cast<bool>(out.flush());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: generate_docs FOLDER\n", stderr);
    return 2;
  }
  const std::string folder = argv[1];
  if (write(folder + "/rules.md", rules_page()) && write(folder + "/formats.md", formats_page())) return 0;
  std::fprintf(stderr, "generate_docs: cannot write below %s\n", folder.c_str());
  return 4;
}
