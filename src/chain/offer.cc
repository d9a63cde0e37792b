// SPDX-License-Identifier: Apache-2.0
// What a user interface may offer with a model: reads the chain's records for those who did not write them.
#include <functional>
#include <optional>

#include "chain/promotion.h"
#include "weighbridge/json.h"
#include "wire/json_writer.h"

namespace weighbridge::chain {
using namespace internal;
namespace {

std::optional<Finding> why_not(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.finding();
  }
  return std::nullopt;
}

// The key prefix of a row of the registry, for example "model.2."
std::optional<std::string> row_of(const Record& registry, const std::string& group, std::string_view sha256) {
  for (std::uint64_t i = 0; i < registry.rows(group); ++i)
    if (std::string row = group + "." + std::to_string(i) + "."; registry.get(row + "sha256") == sha256) return row;
  return std::nullopt;
}

// The registry must agree with the artifact, and its seal with its lines.
ReadRecord read_registry(const std::string& path, const Artifact& artifact) {
  ReadRecord out = read_evidence(selector_schema(), path, "slm selector-registry");
  Record again = without_seal(out.record);
  seal(again);
  compare(out, again);
  if (!row_of(out.record, "model", artifact.sha256))
    refuse("not-listed", {}, "the selector.registry does not list '" + artifact.name + "'", {}, artifact.sha256);
  return out;
}

void write_answer(wire::JsonWriter& out, std::string_view key, const std::string& name, std::string_view said,
                  const std::optional<Finding>& why_not) {
  out.begin_object();
  out.member(key, name);
  out.key(said).boolean(!why_not);
  out.key("finding");
  why_not ? out.raw(weighbridge::to_json(*why_not)) : out.null();
  out.end_object();
}

std::string to_json(const Offers& offers) {
  wire::JsonWriter out(wire::JsonWriter::Style::shown);
  out.begin_object();
  out.member("schema", std::uint64_t{kJsonSchema});
  out.key("checks").begin_array();
  for (const Offers::Check& check : offers.checks) write_answer(out, "step", check.step, "passed", check.why_not);
  out.end_array();
  out.key("adapters").begin_array();
  for (const Offers::Adapter& one : offers.adapters) write_answer(out, "path", one.path, "offered", one.why_not);
  out.end_array();
  out.end_object();
  return out.take();
}

class Offering {
 public:
  Offering(const std::string& artifact, const OfferEvidence& evidence, const Context& context)
      : path_(artifact), evidence_(evidence), context_(context) {}

  Offers make(std::span<const std::string> adapters) {
    check("artifact", [&] { artifact_ = read_artifact(path_, context_); });
    check_given("minimodel-manifest", evidence_.manifest,
                [&] { check_artifact(*artifact_, read_minimodel(evidence_.manifest)); });
    check_given("import-receipt", evidence_.receipt,
                [&] { check_receipt(*artifact_, read_minimodel(evidence_.manifest), evidence_.receipt); });
    check_given("selector-registry", evidence_.registry, [&] { check_registry(); });
    for (const std::string& adapter : adapters) out_.adapters.push_back({adapter, judge(adapter)});
    out_.json = to_json(out_);
    return std::move(out_);
  }

 private:
  void check(std::string step, const std::function<void()>& work) {
    out_.checks.push_back({std::move(step), why_not(work)});
  }
  void check_given(const std::string& step, const std::string& path, const std::function<void()>& work) {
    check(step, [&] {
      if (path.empty()) throw Error(finding_of("missing-evidence", "there is no " + step));
      if (!artifact_) throw Error(finding_of("artifact", "it speaks of a model that is not sound"));
      work();
    });
  }
  void check_registry() {
    registry_ = read_registry(evidence_.registry, *artifact_);
    if (!evidence_.ledger.empty()) check_selector_registry(evidence_.ledger, evidence_.registry, context_);
  }

  // The reason why the package may not be offered.
  std::optional<Finding> judge(const std::string& adapter) const {
    for (const Offers::Check& check : out_.checks)
      if (check.why_not)
        return finding_of("not-offered", "the " + check.step + " does not hold: " + check.why_not->message);
    return why_not([&] {
      const auto source = open_file(adapter);
      const Stamp file = stamp(*source, context_);
      const auto row = row_of(registry_->record, "adapter", file.sha256);
      if (!row) refuse("not-listed", {}, "the selector.registry does not list this adapter", {}, {}, file.sha256);
      if (registry_->record.get(*row + "base_sha256") != artifact_->sha256)
        refuse("not-listed", {}, "the selector.registry lists this adapter for another model", {}, artifact_->sha256,
               std::string(registry_->record.get(*row + "base_sha256")));
      check_adapter(*artifact_, source, context_);
    });
  }

  const std::string& path_;
  const OfferEvidence& evidence_;
  const Context& context_;
  std::optional<Artifact> artifact_{};
  std::optional<ReadRecord> registry_{};
  Offers out_{};
};

}  // namespace

Offers offers(const std::string& artifact, const OfferEvidence& evidence, std::span<const std::string> adapters,
              const Context& context) {
  return Offering(artifact, evidence, context).make(adapters);
}

}  // namespace weighbridge::chain
