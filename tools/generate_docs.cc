// SPDX-License-Identifier: Apache-2.0
// Generates pages of docs/ from the program's own tables: command.md (verbs, flags, exit statuses), options.md,
// rules.md (errors and warnings), schemas/policy.json (from the table of demands), formats.md (what each format is and
// holds, and the plan for every pair) and architectures.md. A test fails on any difference.
//
// usage: generate_docs FOLDER
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/help.h"
#include "cli/rules.h"
#include "convert/architectures.h"
#include "support/sample_models.h"
#include "weighbridge/convert.h"
#include "weighbridge/formats.h"
#include "weighbridge/json_writer.h"
#include "weighbridge/open.h"
#include "weighbridge/options.h"
#include "weighbridge/policy.h"

namespace wb = weighbridge;
namespace cli = weighbridge::cli;

namespace {

void append_rules(std::string& page, std::string_view title, std::span<const wb::Rule> rules) {
  page.append("\n## ").append(title).append(
      "\n\n| rule | severity | reach | from | says |\n| --- | --- | --- | --- | --- |\n");
  for (const wb::Rule& rule : rules) {
    page.append("| `")
        .append(rule.id)
        .append("` | ")
        .append(wb::name(rule.severity))
        .append(" | ")
        .append(rule.reach == wb::Rule::Reach::file     ? "the file"
                : rule.reach == wb::Rule::Reach::tensor ? "one tensor"
                                                        : "a note");
    page.append(" | ").append(rule.section).append(" | ").append(rule.sentence).append(" |\n");
  }
}

// A row of the two tables that precede those of the rules.
using Row = std::array<std::string_view, 3>;

void append_row(std::string& page, const Row& row) {
  for (const std::string_view cell : row) page.append(cell.empty() ? "|" : "| ").append(cell).append(" ");
  page.append("|\n");
}

constexpr Row kReadings[] = {
    {"G", "every format", "[every format](../src/formats/README.md)"},
    {"T", "safetensors", "[safetensors](../src/formats/safetensors/README.md#readings)"},
    {"U", "GGUF", "[gguf](../src/formats/gguf/README.md#readings)"},
    {"S", "STB, its sidecar, and KHLNARY modules", "[stb](../src/formats/stb/README.md#readings)"},
    {"Z", "zTensor 0.1, and the CBOR of both zTensors", "[ztensor/v0](../src/formats/ztensor/v0/README.md#readings)"},
    {"Y", "zTensor 1.x", "[ztensor/v1](../src/formats/ztensor/v1/README.md#readings)"},
    {"X, zt.*, Appendix A", "zTensor 2, its profiles and its appendix",
     "[ztensor/v2](../src/formats/ztensor/v2/README.md#readings)"},
    {"E", "EMBD, and the Hugging Face folder of a BERT", "[embd](../src/formats/embd/README.md#readings)"},
    {"M", "SLM, its tokenizers and its adapters", "[slm](../src/formats/slm/README.md#readings)"},
    {"N", "NumPy's npy and npz", "[numpy](../src/formats/numpy/README.md#readings)"},
    {"O", "ONNX", "[onnx](../src/formats/onnx/README.md#readings)"},
    {"ModelProto, GraphProto, TensorProto, SparseTensorProto", "", "messages of onnx.proto"},
    {"H", "HDF5 and Keras archives", "[hdf5](../src/formats/hdf5/README.md#readings)"},
    {"II, III, IV", "", "chapters of the HDF5 File Format Specification 3.0"},
    {"P", "PyTorch's checkpoints", "[pytorch](../src/formats/pytorch/README.md#readings)"},
    {"APPNOTE", "", "PKWARE's description of zip archives, 6.3"},
    {"format, transformers, RFC 8259", "",
     "the published format; the behavior of that package; the JSON specification"},
    {"layout, README", "",
     "a layout that this project defines: [adapter packages](../src/formats/slm_adapter/README.md), "
     "[khlnary](../src/runtime/khlnary/README.md)"},
    {"quantized", "", "layouts of quantized layers: [checking.md](checking.md#read-a-rejection)"},
    {"design, model", "", "rules of this project for every format; limits of its object model"},
};

void append_head(std::string& page) {
  page.append(
      "# Rules\n\nEvery reason for `open` and `verify` to reject a file, a folder or a module, or to warn about it. "
      "Generated from each format's `rules.def` by `make docs`. The ids are stable.\n\nAn *error* makes a file invalid "
      "(`verify` exits with 1). *unsupported* means that this build cannot read the elements of one tensor (3). A "
      "*warning* leaves the file valid (0).\n\nOther rules:\n\n| rules | about | described in |\n| --- | --- | --- "
      "|\n");
  for (const cli::RuleFamily& row : cli::rule_families()) {
    std::string ids = "`" + std::string(row.ids);
    for (std::size_t at = 0; (at = ids.find(' ', at)) != ids.npos; at += 4) ids.replace(at, 1, "`, `");
    for (std::size_t at = 0; (at = ids.find("/`", at)) != ids.npos; at += 4) ids.replace(at, 1, "/...");
    ids += ids.ends_with('/') ? "...`" : "`";
    const std::string page_of(row.page.starts_with("docs/") ? std::string(row.page.substr(5))
                                                            : "../" + std::string(row.page));
    const std::string link = "[" + page_of.substr(0, page_of.find('#')) + "](" + page_of + ")";
    append_row(page, Row{ids, row.about, link});
  }
  page.append(
      "\n## What to do\n\n`weighbridge explain RULE` says it for one rule, with an example.\n\n| finding | what to do "
      "|\n| --- | --- |\n");
  for (const cli::RuleAdvice& each : cli::rule_advice())
    page.append("| ").append(each.about).append(" | ").append(each.advice).append(" |\n");
  page.append(
      "\n## Where a rule comes from\n\nA number or a name in the column *from* is a section of the format's "
      "specification, or a function of the program that defines the format. A letter with a number is one of this "
      "project's readings of a specification where it is silent.\n\n| from | reading of | described in "
      "|\n| --- | --- | --- |\n");
  for (const Row& row : kReadings) append_row(page, row);
}

std::string rules_page() {
  std::string page;
  append_head(page);
  for (const cli::RuleGroup& group : cli::rule_groups())
    append_rules(page,
                 std::string(group.title) + (group.format.empty() ? "" : " (`" + std::string(group.format) + "`)"),
                 group.rules);
  page.append(
      "\n## Other errors\n\nThey are in no `rules.def`: what is wrong is the command, the system, or "
      "found when tensors are used.\n\n| rule | says | what to do |\n| --- | --- | --- |\n");
  for (const cli::OtherRule& rule : cli::other_rules())
    append_row(page, Row{"`" + std::string(rule.id) + "`", rule.sentence, cli::advice(rule)});
  return page;
}

// The introduction of a format: what it is, who defines it, and where its bytes are described.
struct Introduction {
  std::string_view format, words, page;
};
constexpr Introduction kIntroductions[] = {
    {"safetensors", "The format of Hugging Face: a JSON header, then raw tensors. Most published models use it.",
     "src/formats/safetensors"},
    {"gguf",
     "The format of llama.cpp and the programs around it: typed metadata with the tokenizer, then tensors, most of "
     "them "
     "in GGML's block types.",
     "src/formats/gguf"},
    {"zt",
     "The format of the `ztensor` packages 1.x: raw or compressed tensors, dense, sparse or quantized, then a CBOR "
     "manifest.",
     "src/formats/ztensor/v1"},
    {"zt2",
     "The format of the `ztensor` packages 2.x (Draft 4): blobs at multiples of 4096 bytes, layouts by profile, then a "
     "CBOR manifest with digests. Its files are named `.zt` too.",
     "src/formats/ztensor/v2"},
    {"zt0", "The first generation of zTensor, of the `ztensor` packages 0.1.x. It has the same extension, `.zt`.",
     "src/formats/ztensor/v0"},
    {"stb",
     "\"SVG-Tensor Binary Format\", the raw tensor file of the KHLNARY runtime. It stores no names: a JSON file beside "
     "it "
     "has them.",
     "src/formats/stb"},
    {"embd",
     "The `.weights` file of the C++ library `cpp_embedder`: a BERT encoder with its vocabulary and metadata. EMBD is "
     "its magic number.",
     "src/formats/embd"},
    {"slm",
     "The model file of TinyRustLM, a runtime in Rust for small language models in browsers: a Llama decoder with its "
     "tokenizer and a checksum over all of it. The tokenizer is one of two sections, named after their magic numbers: "
     "BTOK, a token for each byte, or BPE1, byte pairs.",
     "src/formats/slm"},
    {"slm-adapter",
     "A change to the weights of one `.slm`, which it identifies by checksums. TinyRustLM names the three kinds; this "
     "project defines the layout: [adapter packages](../src/formats/slm_adapter/README.md).",
     "src/formats/slm_adapter"},
    {"llama2c",
     "The checkpoint of [llama2.c](https://github.com/karpathy/llama2.c), which runs Llama models in one file of C: "
     "seven integers, then f32 tensors. Its tokenizer is a second file.",
     "src/formats/llama2c"},
    {"npy",
     "One array as `numpy.save` writes it: a header, then the elements. It has no name, so the tensor is `array`.",
     "src/formats/numpy"},
    {"npz", "Arrays by name, as `numpy.savez` and `numpy.savez_compressed` write them: a zip archive of `.npy` files.",
     "src/formats/numpy"},
    {"onnx",
     "A model of [ONNX](https://onnx.ai): a graph of operators with its weights, in one message of protocol buffers, "
     "and files of external data beside it. The weights are read, the graph is not.",
     "src/formats/onnx"},
    {"hdf5",
     "The Hierarchical Data Format of The HDF Group, which h5py and Keras write (`.h5`, `.weights.h5`): groups, "
     "datasets and attributes in one file.",
     "src/formats/hdf5"},
    {"keras", "A model as Keras 3 saves it: a zip archive with the configuration and `model.weights.h5`, an HDF5 file.",
     "src/formats/hdf5"},
    {"pytorch",
     "What `torch.save` writes: a zip archive with storages and a pickle that says which tensors they hold, or in "
     "versions before 1.6 a sequence of pickles. No pickle is run. Pickles of other programs are read too, so that "
     "`verify` can say what loading them would do.",
     "src/formats/pytorch"},
    {"hf", "A folder as the packages `transformers` and `sentence-transformers` write it.", "src/formats/huggingface"},
};

// Empty if there is none, which main() refuses.
std::string introduction(std::string_view format) {
  for (const Introduction& each : kIntroductions)
    if (each.format == format)
      return std::string(each.words) + " Its byte layout, and how we read it: [" + std::string(each.page) + "](../" +
             std::string(each.page) + "/README.md).";
  return {};
}

bool every_format_is_introduced() {
  for (const wb::FormatInfo& format : wb::formats()) {
    if (!introduction(format.name).empty()) continue;
    std::fprintf(stderr, "generate_docs: kIntroductions has no words for %s\n", std::string(format.name).c_str());
    return false;
  }
  return true;
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
  std::string page =
      "# Formats\n\nEvery format and what it holds. Generated from the descriptors of the formats by `make docs`.\n\n"
      "Each format has its own order of tensors. A conversion may change it, and the content digest does not depend on "
      "it.\n";
  const auto text = [](std::string_view s) { return s; };
  for (const wb::FormatInfo& f : wb::formats()) {
    page.append("\n## ")
        .append(f.title)
        .append("\n\n")
        .append(introduction(f.name))
        .append("\n\n| | |\n| --- | --- |\n");
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
  page.append(
      "\n## KHLNARY modules\n\nNot a tensor format: a *glyph module* (`.knu`) is a small program of 32-bit words, the "
      "glyphs, for the KHLNARY runtime. It loads tensors from STB files. `weighbridge khlnary` runs, verifies, "
      "assembles, disassembles and packs modules: [src/runtime/khlnary](../src/runtime/khlnary/README.md).\n");
  return page;
}

// The kinds of some items, each once.
std::string kinds(const std::vector<wb::Item>& items) {
  std::set<std::string_view> names;
  for (const wb::Item& item : items) names.insert(wb::name(item.kind));
  return join(names, [](std::string_view name) { return name; });
}

std::string cell(const wb::Plan& plan) {
  if (!plan.blockers().empty()) return "refused: " + kinds(plan.blockers());
  if (!plan.losses().empty()) return "loses " + kinds(plan.losses());
  return plan.changes().empty() ? "unchanged" : "keeps all; re-encoded: " + kinds(plan.changes());
}

// The single-file containers that can be read and written.
std::vector<const wb::FormatInfo*> containers() {
  std::vector<const wb::FormatInfo*> out;
  for (const wb::FormatInfo& format : wb::formats())
    if (format.reads && format.writes && !format.folder) out.push_back(&format);
  return out;
}

// One row for each container that can hold the sample, one column for each target.
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
    wb::Options anything{.replace = true};
    for (const std::string_view kind : wb::Options::words("allow")) anything.set("allow", kind);
    const wb::Plan into = wb::plan(sample, from->name, anything);
    if (!into.blockers().empty()) continue;
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
      "\n## What conversions keep\n\nThe plan of each conversion, for three small models. `weighbridge convert IN OUT "
      "--dry-run` prints the plan for any file, and with --json in full. The tables contain the single-file formats "
      "that "
      "can be written. A Hugging Face folder can be read and written too, a llama2.c checkpoint can only be read, and "
      "only `slm adapter` makes an SLM adapter package. "
      "The "
      "samples have the metadata that EMBD and SLM need; a bare safetensors file of an encoder lacks them, and its "
      "Hugging Face folder has them.\n\n"
      "Each row begins with the sample in that format; a format that cannot hold the sample has no row. *refused*: no "
      "option makes "
      "the conversion possible. *loses*: a reader of the output cannot get it back, and `--allow KIND` is needed. "
      "*re-encoded*: recomputed or written in another way, without loss. The order of tensors may change, and so may "
      "the "
      "bytes of a file that is converted there and back, but `weighbridge hash` stays the same.\n";
  append_matrix(page, "Any tensors", wb::test::plain_model().build());
  append_matrix(page, "A BERT encoder with its vocabulary", wb::test::bert_model().build());
  append_matrix(page, "A Llama decoder with its tokenizer", wb::test::llama_model().build());
  return page;
}

// Escapes bars, which would end a table cell.
std::string in_cell(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '|' ? std::string("\\|") : std::string(1, c);
  return out;
}

// The verbs and actions that take a flag; single actions if not all actions of the verb take it.
std::string takers(const cli::Where& where) {
  std::string out;
  const auto add = [&](const std::string& name) { out += (out.empty() ? "`" : ", `") + name + "`"; };
  std::size_t verbs = 0;
  for (const cli::Verb& verb : cli::verbs()) verbs += where.has(verb.id) ? 1U : 0U;
  if (verbs == cli::kVerbCount) return "every verb";
  if (verbs + 2 == cli::kVerbCount) return "every verb that reads files";
  for (const cli::Verb& verb : cli::verbs()) {
    if (where.has(verb.id)) {
      add(std::string(verb.name));
      continue;
    }
    for (const cli::Action& action : cli::actions_of(verb.id))
      if (where.has(action.id)) add(std::string(verb.name) + " " + words_of(action));
  }
  return out;
}

std::string standard(std::string_view value) { return value.empty() ? "" : " (default: " + std::string(value) + ")"; }

std::string command_page() {
  std::string page =
      "# Command\n\nThe verbs, flags and exit statuses of `weighbridge`. Made from the command's own tables by `make "
      "docs`; `weighbridge VERB --help` explains one verb, with examples.\n\n## Verbs\n\n| group | verb | "
      "what it does |\n| --- | --- | --- |\n";
  for (std::size_t g = 0; g < cli::kGroupCount; ++g)
    for (const cli::Verb& verb : cli::verbs())
      if (static_cast<std::size_t>(verb.group) == g)
        page += "| " + std::string(cli::title_of(verb.group)) + " | `" + std::string(verb.name) +
                (verb.operands.empty() ? "" : " " + std::string(verb.operands)) + "` | " + std::string(verb.summary) +
                " |\n";
  page +=
      "\n## Exit statuses\n\nWith several files, the exit status is the first of 4, 1, 2, 3 that occurred. A verb that "
      "has no row for 1 or 3 does not exit with it. `diff` has the statuses of diff(1): 1 means a difference, and 4 "
      "that the files could not be compared.\n\n| verb | status | meaning |\n| --- | --- | --- |\n";
  for (const cli::Verb& verb : cli::verbs())
    for (const cli::ExitStatus& status : verb.exits)
      if (!status.says.empty())
        page += "| `" + std::string(verb.name) + "` | " + std::to_string(status.status) + " | " +
                std::string(status.says) + " |\n";
  for (const cli::ExitStatus& status : cli::common_statuses())
    page += "| every verb | " + std::to_string(status.status) + " | " + std::string(status.says) + " |\n";
  page +=
      "\n## Flags\n\nThe British spelling of a flag is accepted too (`--colour`, `--quantise`, `--normalise`), and so "
      "are the former "
      "names `--force` (`--overwrite`), `--filter` and `--glob` (`--only`). `--` "
      "ends "
      "the flags.\n\n| flag | of | what it does |\n| --- | --- | --- |\n";
  for (const cli::Flag& flag : cli::flags()) {
    page += "| " + (flag.letter ? std::string("`-") + flag.letter + "`, " : "") + "`--" + std::string(flag.name) +
            (flag.value.empty() ? "" : " " + std::string(flag.value)) + "` | " + takers(flag.where) + " | " +
            in_cell(flag.help) + standard(flag.standard);
    for (const cli::Own& own : flag.own)
      if (!own.help.empty() && (own.help != flag.help || own.standard != flag.standard))
        page += "; " + takers(own.where) + ": " + in_cell(own.help) + standard(own.standard);
    page += " |\n";
  }
  return page;
}

// The flags that set an option.
std::string flags_of(const wb::OptionInfo& option) {
  std::string out;
  for (const cli::Flag& flag : cli::flags()) {
    bool sets = flag.info == &option;
    for (const cli::Own& own : flag.own) sets = sets || own.info == &option;
    if (sets) out += (out.empty() ? "`--" : ", `--") + std::string(flag.name) + "`";
  }
  return out.empty() ? "-" : out;
}

std::string values_of(const wb::OptionInfo& option) {
  const std::vector<std::string_view> known = wb::words(option);
  if (!known.empty()) return join(known, [](std::string_view word) { return "`" + std::string(word) + "`"; });
  return std::string(wb::name(option.type));
}

std::string power_text(double number) {
  return number < 0x1p53 ? std::to_string(static_cast<std::uint64_t>(number))
                         : "2^" + std::to_string(std::ilogb(number));
}

std::string options_page() {
  constexpr std::pair<wb::OptionOf, std::string_view> kSections[] = {
      {wb::OptionOf::open, "Opening"},
      {wb::OptionOf::convert, "Conversions"},
      {wb::OptionOf::view, "Views: what is converted"},
      {wb::OptionOf::inputs, "Inputs of a conversion"},
      {wb::OptionOf::embed, "Vectors of texts"},
      {wb::OptionOf::generator, "Language models"},
      {wb::OptionOf::generate, "Generated text"},
      {wb::OptionOf::diff, "Comparing"},
      {wb::OptionOf::edit, "Edits"},
      {wb::OptionOf::recover, "Undoing an edit or what a killed run left"},
      {wb::OptionOf::hash, "Content digests"},
      {wb::OptionOf::manifest, "Manifests"},
      {wb::OptionOf::sign, "Signing a manifest"},
      {wb::OptionOf::check, "Checking files against a manifest"},
      {wb::OptionOf::trust, "Checking the signature of a manifest"}};
  std::string page =
      "# Options\n\nEvery option that has a name: a flag of the command, an argument in Python, or a text for "
      "`wb_options_set()` in C. Made from the library's table of options by `make docs`.\n\nA name is the same "
      "everywhere, with `_` in place of `-` in Python: `max-shard-size`, `--max-shard-size`, `max_shard_size`. The "
      "column "
      "*flag* says where the command has another name, or none (-). An option that may be repeated is a list in "
      "Python.\n";
  for (const auto& [kind, title] : kSections) {
    page.append("\n## ").append(title).append(
        "\n\n| option | flag | Python | C | values | what it does |\n| --- | --- | --- | --- | --- | --- |\n");
    for (const wb::OptionInfo& option : wb::options_of(kind))
      page += "| `" + std::string(option.name) + "` | " + flags_of(option) + " | " + (option.python ? "yes" : "-") +
              " | " + (option.c ? "yes" : "-") + " | " + values_of(option) + " | " + in_cell(option.help) +
              standard(option.standard) + (option.formats.empty() ? "" : "; only for " + std::string(option.formats)) +
              " |\n";
  }
  page +=
      "\n## Limits\n\n`--limit NAME=N`, `limits={\"NAME\": N}` in Python, `wb_job_set_limit()` in C. Of the command, "
      "`input` bounds what it keeps of standard input.\n\n| limit | from | to | what it bounds |\n| --- | --- | --- | "
      "--- |\n";
  for (const wb::OptionInfo& limit : wb::options_of(wb::OptionOf::limit))
    page += "| `" + std::string(limit.name) + "` | " + power_text(limit.range.minimum) + " | " +
            power_text(limit.range.maximum) + " | " + in_cell(limit.help) + standard(limit.standard) + " |\n";
  return page;
}

bool write(const std::string& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
  return static_cast<bool>(out.flush());
}

// The table of architectures that folders become GGUF by.
std::string architectures_page() {
  std::string page =
      "# Architectures that become GGUF\n\n"
      "A folder of one of these classes of transformers becomes a GGUF with the names and metadata of llama.cpp: "
      "[gguf.md](gguf.md). Other values of the settings are refused by name, because llama.cpp does not compute "
      "them.\n\n"
      "| class | in llama.cpp | settings that must be so |\n| --- | --- | --- |\n";
  for (const wb::convert::Architecture& row : wb::convert::architectures()) {
    std::string classes, settings;
    for (const char c : row.classes) classes += c == ' ' ? std::string("`, `") : std::string(1, c);
    for (const char c : row.accepts) {
      if (c == ' ')
        settings += "; `";
      else if (c == '=')
        settings += "` ";
      else
        settings += c == '|' ? std::string(" or ") : std::string(1, c);
    }
    page +=
        "| `" + classes + "` | " + std::string(row.name) + " | " + (settings.empty() ? "" : "`" + settings) + " |\n";
  }
  return page +
         "\n`BertModel` becomes `bert` with `--naming llama` only: those names leave out its pooler, and rules of its "
         "tokenizer may be lost.\n\n"
         "Checked: 33 small folders of these classes give every key, every shape and every byte of every tensor that "
         "the "
         "converter of llama.cpp 0c1e57098 gives (tests/interop/test_gguf_folders.py says what differs, and why). In "
         "llama.cpp itself, the logits of the decoders are those of transformers 5.24 to 3e-7 of their range, and to "
         "4e-4 where the activation is a GELU, which llama.cpp takes from a table (tests/interop/test_gguf_logits.py, "
         "with the vectors of the encoders). NomicBERT was not compared.\n";
}

// What the value of a demand must be, as a JSON schema.
void append_value(wb::JsonWriter& out, const wb::DemandInfo& demand) {
  const auto amount = [&] {
    out.key("anyOf").begin_array();
    out.begin_object();
    out.member("type", "integer");
    out.member("minimum", std::uint64_t{0});
    out.end_object();
    out.begin_object();
    out.member("type", "string");
    out.member("pattern", "^[0-9]+(\\.[0-9]+)?([KMGTkmgt][Ii]?)?[Bb]?$");
    out.end_object();
    out.end_array();
  };
  const auto type = [&](std::string_view of) {
    out.member("type", of);
    out.member("description", demand.help);
  };
  out.key(demand.key).begin_object();
  switch (demand.type) {
    case wb::DemandType::words:
    case wb::DemandType::texts:
      type("array");
      out.key("items").begin_object();
      out.member("type", "string");
      if (demand.key == "formats" || demand.key == "dtypes") {
        out.key("enum").begin_array();
        std::set<std::string_view> words;
        for (const std::string_view word : demand.listed())
          if (words.insert(word).second) out.string(word);
        out.end_array();
      }
      out.end_object();
      break;
    case wb::DemandType::shapes:
      type("object");
      out.key("additionalProperties").begin_object();
      out.member("type", "array");
      out.key("items").begin_object();
      out.member("type", "integer");
      out.member("minimum", std::uint64_t{0});
      out.end_object();
      out.end_object();
      break;
    case wb::DemandType::limits:
      type("object");
      out.key("properties").begin_object();
      for (const wb::OptionInfo& limit : wb::options_of(wb::OptionOf::limit)) {
        out.key(limit.name).begin_object();
        amount();
        out.end_object();
      }
      out.end_object();
      out.flag("additionalProperties", false);
      break;
    case wb::DemandType::size:
      out.member("description", demand.help);
      amount();
      break;
    case wb::DemandType::toggle: type("boolean"); break;
  }
  out.end_object();
}

std::string policy_schema() {
  wb::JsonWriter out(wb::JsonWriter::Style::indented);
  out.begin_object();
  out.member("$schema", "https://json-schema.org/draft/2020-12/schema");
  out.member("$id", "policy.json");
  out.member("title", "A policy of weighbridge check");
  out.member("description",
             "What a model must be: docs/policies.md. Written from the table of demands by `make docs`.");
  out.member("type", "object");
  out.key("properties").begin_object();
  for (const std::string_view text : {"$schema", "description"}) {
    out.key(text).begin_object();
    out.member("type", "string");
    out.end_object();
  }
  for (const wb::DemandInfo& demand : wb::demands()) append_value(out, demand);
  out.end_object();
  out.flag("additionalProperties", false);
  out.end_object();
  return out.take() + "\n";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: generate_docs FOLDER\n", stderr);
    return 2;
  }
  if (!every_format_is_introduced()) return 1;
  const std::string folder = argv[1];
  std::filesystem::create_directories(folder + "/schemas");
  if (write(folder + "/rules.md", rules_page()) && write(folder + "/schemas/policy.json", policy_schema()) &&
      write(folder + "/formats.md", formats_page() + conversions_page()) &&
      write(folder + "/command.md", command_page()) && write(folder + "/options.md", options_page()) &&
      write(folder + "/architectures.md", architectures_page()))
    return 0;
  std::fprintf(stderr, "generate_docs: cannot write below %s\n", folder.c_str());
  return 4;
}
