// SPDX-License-Identifier: Apache-2.0
// Writes the pages of docs/ that come from the program itself: rules.md (every reason to reject), formats.md (what each
// container holds) and conversions.md (what the plans say of every pair). CI runs it and refuses a diff.
//
// usage: generate_docs FOLDER
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "support/sample_models.h"
#include "weighbridge/convert.h"
#include "weighbridge/formats.h"
#include "weighbridge/khlnary.h"
#include "weighbridge/open.h"

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
  append_rules(page, "KHLNARY modules", wb::khlnary::module_rules());
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

// The kinds of some items, each once.
std::string kinds(const std::vector<wb::Item>& items) {
  std::set<std::string_view> names;
  for (const wb::Item& item : items) names.insert(wb::name(item.kind));
  return join(names, [](std::string_view name) { return name; });
}

std::string cell(const wb::Plan& plan) {
  if (!plan.blockers.empty()) return "refused: " + kinds(plan.blockers);
  if (!plan.losses.empty()) return "loses " + kinds(plan.losses);
  return plan.changes.empty() ? "as it is" : "keeps all; respelt: " + kinds(plan.changes);
}

// The six containers that are one file, and can be read and written.
std::vector<const wb::FormatInfo*> containers() {
  std::vector<const wb::FormatInfo*> out;
  for (const wb::FormatInfo& format : wb::formats())
    if (format.reads && format.writes && !format.folder) out.push_back(&format);
  return out;
}

// A row for each container that can hold the sample, a column for each target.
void append_matrix(std::string& page, std::string_view title, const wb::Model& sample) {
  const auto all = containers();
  page.append("\n## ").append(title).append("\n\n| from \\ to |");
  for (const wb::FormatInfo* to : all) page.append(" `").append(to->name).append("` |");
  page.append("\n| --- |");
  for (std::size_t i = 0; i < all.size(); ++i) page.append(" --- |");
  page.append("\n");
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / ("weighbridge-docs-" + std::to_string(::getpid()));
  for (const wb::FormatInfo* from : all) {
    wb::Plan into = wb::plan(sample, from->name);
    if (!into.blockers.empty()) continue;
    for (const wb::Item& loss : into.losses) into.options.allow.push_back(loss.kind);
    into.options.replace = true;
    into.execute(file.string());
    wb::OpenOptions as;
    as.format = std::string(from->name);
    const wb::Model model = wb::open(file.string(), {}, as);
    page.append("| `").append(from->name).append("` |");
    for (const wb::FormatInfo* to : all) page.append(" ").append(cell(wb::plan(model, to->name))).append(" |");
    page.append("\n");
  }
  for (const char* extension : {"", ".khm.json"}) std::filesystem::remove(file.string() + extension);
}

std::string conversions_page() {
  std::string page =
      "# Conversions\n\nWhat the plan of each conversion says, for three small models; made by `make docs` from the "
      "plans themselves. `weighbridge convert IN OUT --dry-run` prints the plan of any file, with --json all of it."
      " The samples carry the metadata that EMBD and SLM ask for; a bare safetensors of an encoder lacks them, and its "
      "Hugging Face folder has them.\n\n"
      "A row is the sample as that container holds it; a container without a row cannot hold it. *refused*: no option "
      "can write it. *loses*: a reader of the output cannot get it back, and `--allow KIND` is needed. *respelt*: "
      "recomputed or written another way, nothing is lost.\n";
  append_matrix(page, "Any tensors", wb::test::plain_model().build());
  append_matrix(page, "A BERT encoder with its vocabulary", wb::test::bert_model().build());
  append_matrix(page, "A Llama decoder with its tokenizer", wb::test::llama_model().build());
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
  if (write(folder + "/rules.md", rules_page()) && write(folder + "/formats.md", formats_page()) &&
      write(folder + "/conversions.md", conversions_page()))
    return 0;
  std::fprintf(stderr, "generate_docs: cannot write below %s\n", folder.c_str());
  return 4;
}
