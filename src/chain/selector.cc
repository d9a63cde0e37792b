// SPDX-License-Identifier: Apache-2.0
// selector.registry: the promoted models and adapters that a user interface may offer, made only from the ledger and
// the files that it names.
#include <filesystem>
#include <map>
#include <vector>

#include "base/fail.h"
#include "chain/outcome.h"
#include "chain/promotion.h"
#include "core/model/words.h"

namespace weighbridge::chain {
using namespace internal;
namespace {

namespace fs = std::filesystem;

constexpr Key kSelectorKeys[] = {
    choice_key("registry_version", "1", "of this grammar"),
    {.name = "selector_model_byte_budget", .type = Type::number, .about = "no file listed is larger"},
    {.name = "ledger_sha256", .type = Type::digest, .about = "of the promotion ledger"},
    {.name = "ledger_head", .type = Type::digest, .about = "digest of its last entry"},
    {.name = "models", .type = Type::number, .about = "how many"},
    {.name = "adapters", .type = Type::number, .about = "how many"},
    {.name = "model.N.path", .about = "relative to the registry's folder; models by path"},
    {.name = "model.N.bytes", .type = Type::number, .about = "size of the file"},
    {.name = "model.N.sha256", .type = Type::digest, .about = "of the file"},
    {.name = "model.N.checksum", .type = Type::checksum, .about = "the container's own"},
    {.name = "model.N.tokenizer_checksum", .type = Type::checksum, .about = "the container's own"},
    {.name = "model.N.tensor_layout_checksum", .type = Type::checksum, .about = "the container's own"},
    choice_key("model.N.quantization", "f32|q8_0|q4_0|mixed", "dtype label"),
    {.name = "model.N.parameter_count", .type = Type::number, .about = "elements of all tensors"},
    {.name = "model.N.max_context", .type = Type::number, .about = "tokens"},
    {.name = "model.N.admission_sha256", .type = Type::digest, .about = "of its admission record"},
    {.name = "model.N.entry", .type = Type::number, .about = "in the ledger, from 0"},
    {.name = "adapter.N.path", .about = "relative to the registry's folder; adapters by path"},
    {.name = "adapter.N.bytes", .type = Type::number, .about = "size of the file"},
    {.name = "adapter.N.sha256", .type = Type::digest, .about = "of the file"},
    choice_key("adapter.N.kind", "adp1|asp1|alr1", "of the package"),
    {.name = "adapter.N.base_sha256", .type = Type::digest, .about = "of the listed model that it is for"},
    {.name = "adapter.N.entry", .type = Type::number, .about = "in the ledger, from 0"},
    kSealKey,
};
constexpr Schema kSelectorSchema{.name = "selector.registry", .keys = kSelectorKeys};

class Selection {
 public:
  Selection(const std::string& ledger, std::uint64_t budget, const Context& context)
      : ledger_(read_ledger(ledger)), folder_(folder_of_record(ledger)), budget_(budget), context_(context) {}

  Record make() {
    out_.set("registry_version", "1").set("selector_model_byte_budget", budget_);
    out_.set("ledger_sha256", ledger_.sha256).set("ledger_head", ledger_.record.get("head"));
    std::map<std::string, std::uint64_t> latest;  // path -> entry
    for (std::uint64_t i = 0; i < ledger_.record.rows("entry"); ++i) latest[std::string(get(i, "path"))] = i;
    for (const auto& [path, entry] : latest)
      if (get(entry, "kind") == "model") add_model(path, entry);
    for (const auto& [path, entry] : latest)
      if (get(entry, "kind") == "adapter") add_adapter(path, entry);
    out_.set("models", std::uint64_t{bases_.size()}).set("adapters", adapters_);
    seal(out_);
    return std::move(out_);
  }

  // The ledger and every file that it names.
  std::vector<std::string> inputs(const std::string& ledger) const {
    std::vector<std::string> out{ledger};
    for (std::uint64_t i = 0; i < ledger_.record.rows("entry"); ++i) out.push_back((folder_ / get(i, "path")).string());
    return out;
  }

 private:
  std::string_view get(std::uint64_t entry, const char* key) const {
    return ledger_.record.get(entry_row(entry) + key);
  }

  void check_promoted(const std::string& path, std::uint64_t entry, const Stamp& file) const {
    if (file.bytes > budget_)
      refuse("byte-budget", {},
             "'" + path + "' has " + core::bytes_text(file.bytes) + ", more than selector_model_byte_budget allows, " +
                 std::to_string(budget_),
             {}, "at most " + std::to_string(budget_), std::to_string(file.bytes));
    if (file.sha256 != get(entry, "sha256"))
      refuse("changed-artifact", {}, "'" + path + "' is not the file that was promoted", {},
             std::string(get(entry, "sha256")), file.sha256);
  }

  void add_model(const std::string& path, std::uint64_t entry) {
    const std::string at = (folder_ / path).string();
    Artifact artifact = read_artifact(at, context_, [&](const Stamp& file) { check_promoted(path, entry, file); });
    const std::string row = "model." + std::to_string(bases_.size()) + ".";
    out_.set(row + "path", path).set(row + "bytes", artifact.bytes).set(row + "sha256", artifact.sha256);
    set_checksums(out_, row, artifact);
    out_.set(row + "quantization", artifact.model.dtype_label()).set(row + "parameter_count", artifact.parameters);
    out_.set(row + "max_context", artifact.header("max_context"));
    out_.set(row + "admission_sha256", get(entry, "admission_sha256")).set(row + "entry", entry);
    bases_.emplace(artifact.sha256, std::move(artifact));
  }

  // Skips an adapter whose base is no longer offered.
  void add_adapter(const std::string& path, std::uint64_t entry) {
    const auto base = bases_.find(std::string(get(entry, "base_sha256")));
    if (base == bases_.end()) return;
    const auto source = open_file((folder_ / path).string());
    const Stamp file = stamp(*source, context_);
    check_promoted(path, entry, file);
    const std::string row = "adapter." + std::to_string(adapters_++) + ".";
    out_.set(row + "path", path).set(row + "bytes", file.bytes).set(row + "sha256", file.sha256);
    out_.set(row + "kind", check_adapter(base->second, source, context_));
    out_.set(row + "base_sha256", base->first).set(row + "entry", entry);
  }

  ReadRecord ledger_;
  fs::path folder_;
  std::uint64_t budget_, adapters_ = 0;
  const Context& context_;
  std::map<std::string, Artifact> bases_{};  // by digest
  Record out_{kSelectorSchema};
};

// The registry uses the ledger's paths, so both must be in one folder.
void check_folder(const std::string& ledger, const std::string& registry) {
  if (folder_of_record(ledger) != folder_of_record(registry))
    base::misuse("registry-folder", "the registry lies in the folder of its ledger, as its paths are relative to that");
}

}  // namespace

const Schema& internal::selector_schema() { return kSelectorSchema; }

Outcome write_selector_registry(const std::string& ledger, const std::string& registry, const RegistryOptions& options,
                                const Context& context) {
  check_folder(ledger, registry);
  Selection selection(ledger, options.byte_budget, context);
  const Record record = selection.make();
  return conclude("selector-registry", record, {}, {registry, options.replace, selection.inputs(ledger)});
}

Outcome check_selector_registry(const std::string& ledger, const std::string& registry, const Context& context) {
  check_folder(ledger, registry);
  const ReadRecord given = read_evidence(kSelectorSchema, registry, "slm selector-registry");
  compare(given, Selection(ledger, given.record.number("selector_model_byte_budget"), context).make());
  return report_on("selector-registry", given.record, given.sha256, {}, {});
}

}  // namespace weighbridge::chain
