// SPDX-License-Identifier: Apache-2.0
#include "corpus/subjects.h"

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <map>
#include <optional>
#include <stdexcept>

#include "corpus/all_cases.h"
#include "corpus/repair.h"
#include "formats/huggingface/format.h"
#include "formats/ztensor/v1/format.h"
#include "registry/load.h"
#include "runtime/khlnary/cases.h"
#include "runtime/khlnary/module.h"
#include "support/hostile.h"
#include "support/hostile_module.h"
#include "support/tiny_folders.h"
#include "weighbridge/open.h"
#include "weighbridge/verify.h"

namespace weighbridge::test {
namespace {

double processor_time() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

template <class Rules> std::set<std::string> ids(const Rules& rules) {
  std::set<std::string> out;
  for (const Rule& rule : rules) out.emplace(rule.id);
  return out;
}

void add_rules(Tally& tally, const Report& report) {
  for (const Finding& finding : report.findings()) tally.rules.insert(finding.rule);
}

// The sizes of the suspect's files by name. A finding without a file is about `asked`, and has no offset in a folder.
hostile::SizeOf sizes_of(const Suspect& suspect, std::uint64_t asked) {
  return [&suspect, asked](const FileRef& file) -> std::uint64_t {
    if (file.empty()) return asked;
    for (const auto& [name, bytes] : suspect)
      if (file.name == name || file.name.ends_with("/" + name)) return bytes.size();
    throw std::logic_error("a finding names a file that is none: " + file.name);
  };
}

// A source over the suspect's bytes, which must outlive it.
std::shared_ptr<const Source> source_of(const std::string& bytes, std::string name) {
  return memory_source({std::as_bytes(std::span(bytes)), nullptr}, std::move(name));
}

class FileSubject final : public Subject {
 public:
  explicit FileSubject(const FormatCorpus& corpus) : corpus_(corpus) {
    for (const core::CorpusCase& c : corpus.cases) {
      if (c.bytes.size() > kLargest) continue;
      cases_.push_back(&c);
      if (c.rule.empty() || c.rule.starts_with("limit/")) sound_.push_back(&c);  // as to limits: as they usually are
    }
  }
  std::string name() const override { return std::string(corpus_.format->info.name); }
  std::set<std::string> rules() const override {
    auto out = ids(corpus_.format->info.rules);
    for (const char* format : {"safetensors", "pytorch", "hdf5"}) {
      out.erase(std::string(format) + "/shard-link");         // no bytes make a link
      out.erase(std::string(format) + "/metadata-conflict");  // takes two shards
    }
    out.erase("hdf5/dataset-twice");
    out.erase("safetensors/two-weights");  // takes a folder
    out.erase("safetensors/shard-stray");
    out.erase("gguf/part-link");   // no bytes make a link
    out.erase("gguf/part-stray");  // takes a folder
    out.erase("onnx/external-link");
    out.erase("onnx/external-hard-link");
    out.erase("onnx/too-large");  // takes 2 GiB
    return out;
  }

  Suspect make(Mutator& mutator) const override {
    const core::CorpusCase& c = *mutator.pick(mutator.one_in(2) ? sound_ : cases_);
    const core::CorpusCase& donor = *mutator.pick(cases_);
    const std::string path = corpus_.path(c);
    Suspect out{{path.substr(path.rfind('/') + 1), c.bytes}};
    if (c.sidecar) {
      out.emplace_back(sidecar_path(out[0].first, *c.sidecar), c.sidecar->bytes);
      if (mutator.one_in(2)) {
        mutator.change(out[1].second, donor.sidecar ? donor.sidecar->bytes : donor.bytes);
        if (mutator.one_in(2)) return out;
      }
    }
    if (mutator.one_in(2))
      mutator.change(out[0].second, donor.bytes);
    else
      change_beneath_seal(
          name(), out[0].second, [&](std::string& part) { mutator.change(part, donor.bytes); }, mutator);
    return out;
  }

  Tally try_one(const Suspect& suspect) const override {
    Tally out;
    // Opens half of them as their format, because detection could reject them.
    const OpenOptions options{.format = suspect[0].second.size() % 2 == 0 ? name() : std::string()};
    const double start = processor_time();
    const Verdict verdict = verify(source(suspect), {}, options);
    Report opened;
    const auto model = open(source(suspect), opened, {}, options);
    out.seconds = processor_time() - start;
    const auto sizes = sizes_of(suspect, suspect[0].second.size());
    hostile::expect_report(verdict.report, sizes);
    hostile::expect_report(opened, sizes);
    hostile::expect_agreement(opened, model.has_value(), verdict.report);
    add_rules(out, verdict.report);
    out.opened = model.has_value();
    if (model) hostile::use(*model, hostile::small_context());
    return out;
  }

 private:
  static constexpr std::size_t kLargest = std::size_t{64} << 10;

  static std::shared_ptr<const Source> source(const Suspect& suspect) {
    auto file = source_of(suspect[0].second, suspect[0].first);
    if (suspect.size() == 1) return file;
    return with_sidecar(std::move(file), {{}, suspect[1].second, suspect[1].first});
  }

  const FormatCorpus& corpus_;
  std::vector<const core::CorpusCase*> cases_, sound_;
};

// Small folders in which one file changes, sometimes two.
class FolderSubject final : public Subject {
 public:
  std::string name() const override { return "hf"; }
  std::set<std::string> rules() const override {
    auto out = ids(huggingface::rules::kAll);
    out.erase("hf/shard-link");  // no bytes make a link
    return out;
  }

  Suspect make(Mutator& mutator) const override {
    const auto& files = mutator.pick(folders_);
    Suspect out(files.begin(), files.end());
    for (std::uint64_t left = mutator.one_in(4) ? 2 : 1; left > 0; --left) {
      auto& [name, bytes] = mutator.pick(out);
      const std::string donor = mutator.pick(out).second;
      if (mutator.one_in(20))
        out.erase(out.begin() + static_cast<std::ptrdiff_t>(mutator.below(out.size())));
      else if (name.ends_with(".safetensors"))
        change_beneath_seal(
            "safetensors", bytes, [&](std::string& part) { mutator.change(part, donor); }, mutator);
      else
        mutator.change(bytes, donor);
    }
    return out;
  }

  Tally try_one(const Suspect& suspect) const override {
    Tally out;
    const double start = processor_time();
    Report verified, opened;
    std::optional<Model> model;
    try {
      load(suspect, verified, core::Findings::Mode::all);
      model = load(suspect, opened, core::Findings::Mode::first_error);
    } catch (const Error& error) {
      if (error.finding().rule != "misuse/not-a-file") throw;
      return out;  // too little is left of the folder
    }
    out.seconds = processor_time() - start;
    const auto sizes = sizes_of(suspect, 0);
    hostile::expect_report(verified, sizes);
    hostile::expect_report(opened, sizes);
    hostile::expect_agreement(opened, model.has_value(), verified);
    add_rules(out, verified);
    out.opened = model.has_value();
    if (model) hostile::use(*model, hostile::small_context());
    return out;
  }

 private:
  // Like open() and verify() of a path, but without a disk.
  static std::optional<Model> load(const Suspect& suspect, Report& report, core::Findings::Mode mode) {
    core::Findings findings(report, mode);
    std::map<std::string, std::shared_ptr<const Source>, std::less<>> files;
    for (const auto& [name, bytes] : suspect) files.emplace(name, source_of(bytes, name));
    try {
      registry::Loaded loaded = registry::load(folder_of(std::move(files), "folder"), {}, {.format = "hf"}, findings);
      if (mode == core::Findings::Mode::all) registry::check_content(loaded, {}, {}, findings);
      return std::move(loaded.model);
    } catch (const core::Stop&) {
      return std::nullopt;
    }
  }

  // Adds files: weights both as shards and as one file, or weights in another format.
  static huggingface::testing::Files joined(huggingface::testing::Files files,
                                            const huggingface::testing::Files& more) {
    files.insert(more.begin(), more.end());
    return files;
  }

  static std::vector<huggingface::testing::Files> small_folders() {
    using namespace huggingface::testing;
    TinyLlama metaspace;
    metaspace.normalizer = "null";
    metaspace.pre_tokenizer = R"({"type":"Metaspace","replacement":"\u2581","prepend_scheme":"first","split":false})";
    Files foreign = tiny();
    foreign["model.safetensors"] = ztensor1::cases().front().bytes;
    const Files trusting = with("tokenizer_config.json", R"({"chat_template":"{{ x }}","auto_map":{"a":"b.c"}})",
                                joined(tiny(), {{"modeling.py", "x"}, {"chat_template.jinja", "x"}, {"a.pt", "x"}}));
    return {trusting,
            tiny(),
            tiny_shards(),
            tiny_llama(),
            tiny_llama(metaspace),
            joined(tiny(), tiny_shards()),
            foreign,
            {{"pytorch_model.bin", "PK"}, {"config.json", kTinyConfig}}};
  }

  std::vector<huggingface::testing::Files> folders_ = small_folders();
};

class ModuleSubject final : public Subject {
 public:
  std::string name() const override { return "khlnary"; }
  std::set<std::string> rules() const override {
    auto out = ids(khlnary::internal::rules::kAll);
    std::erase_if(out,
                  [](const std::string& rule) { return rule.starts_with("khlnary/pack-"); });  // for what is written
    return out;
  }

  Suspect make(Mutator& mutator) const override {
    const khlnary::internal::Case& c = mutator.pick(cases_);
    const khlnary::internal::Case& donor = mutator.pick(cases_);
    if (mutator.one_in(8)) return text_of(hostile::mended_module(c.module), mutator);
    Suspect out{{"m.knu", c.module}, {"m.khm.json", c.sidecar.value_or("")}};
    const bool sidecar = c.sidecar && mutator.one_in(2);
    if (sidecar) mutator.change(out[1].second, donor.sidecar.value_or(""));
    if (!sidecar || mutator.one_in(2)) mutator.change(out[0].second, donor.module);
    if (!mutator.one_in(4)) out[0].second = hostile::mended_module(out[0].second);
    return out;
  }

  Tally try_one(const Suspect& suspect) const override {
    const double start = processor_time();
    if (suspect.size() == 1) return try_text(suspect[0].second);
    const hostile::Tried tried = hostile::try_module(suspect[0].second, suspect[1].second);
    Tally out{.opened = tried.stopped.empty(), .seconds = processor_time() - start};
    add_rules(out, tried.report);
    if (!tried.stopped.empty()) out.rules.insert(tried.stopped);
    return out;
  }

 private:
  static Suspect text_of(const std::string& module, Mutator& mutator) {
    const auto source = source_of(module, "m.knu");
    Suspect out{{"m.txt", khlnary::disassemble(khlnary::words_of(*source))}};
    mutator.change(out[0].second, "CALL 1\nLOAD_BIN_TENSOR file=0 tensor=3 shape_desc ; why\n.word 0x01234567\n");
    return out;
  }
  static Tally try_text(const std::string& text) {
    Tally out;
    try {
      const auto words = khlnary::assemble(text);
      hostile::expect(khlnary::assemble(khlnary::disassemble(words)) == words, "the text form gives other words");
      out.opened = true;
    } catch (const Error& error) {
      hostile::expect_modules_fault(error.finding(), text.size());
      out.rules.insert(error.finding().rule);
    }
    return out;
  }

  std::vector<khlnary::internal::Case> cases_ = khlnary::internal::cases();
};

// Planted faults that the bounds must catch: a file that takes too long, or too much memory.
class PlantedSubject final : public Subject {
 public:
  explicit PlantedSubject(bool slow) : slow_(slow) {}
  std::string name() const override { return slow_ ? "planted-time" : "planted-memory"; }
  std::set<std::string> rules() const override { return {}; }
  Suspect make(Mutator&) const override { return {{"case.planted", "planted"}}; }
  Tally try_one(const Suspect&) const override {
    if (slow_) return {.seconds = 1e6};
    std::string large(std::size_t{100} << 20, 'x');
    return {.opened = large[1] == large[large.size() / 2]};
  }

 private:
  bool slow_;
};

}  // namespace

std::vector<std::unique_ptr<Subject>> planted() {
  std::vector<std::unique_ptr<Subject>> out;
  for (const bool slow : {true, false}) out.push_back(std::make_unique<PlantedSubject>(slow));
  return out;
}

std::vector<std::unique_ptr<Subject>> subjects() {
  std::vector<std::unique_ptr<Subject>> out;
  for (const FormatCorpus& corpus : all_cases()) out.push_back(std::make_unique<FileSubject>(corpus));
  out.push_back(std::make_unique<FolderSubject>());
  out.push_back(std::make_unique<ModuleSubject>());
  return out;
}

}  // namespace weighbridge::test
