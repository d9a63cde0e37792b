// SPDX-License-Identifier: Apache-2.0
// Compares a model with the demands of a policy. Each demand is a row of demand_rows.def over what verify, doctor and
// the check of manifests find; only what they do not say is looked up in the model here.
#include <algorithm>
#include <optional>
#include <set>
#include <span>

#include "base/fail.h"
#include "core/model/progress.h"
#include "core/model/words.h"
#include "core/reading/findings.h"
#include "doctor/damage.h"
#include "schemes/table.h"
#include "weighbridge/block_type.h"
#include "weighbridge/hash.h"
#include "weighbridge/manifest.h"
#include "weighbridge/options.h"
#include "weighbridge/policy.h"
#include "weighbridge/scheme.h"
#include "weighbridge/text.h"
#include "weighbridge/verify.h"

namespace weighbridge {
namespace policy {

namespace rules {
#define WB_RULES "policy/rules.def"
#include "core/reading/rules.inc"
}  // namespace rules

namespace {

constexpr std::size_t kShownTexts = 8;

std::vector<std::string_view> rule_names() {
  std::vector<std::string_view> out;
  const auto add = [&](std::span<const Rule> rules) {
    for (const Rule& each : rules) out.push_back(each.id);
  };
  for (const FormatInfo& format : formats()) add(format.rules);
  add(common_rules());
  add(doctor_rules());
  out.push_back("unsupported/scheme");  // of codes that verify did not examine
  return out;
}
std::vector<std::string_view> format_names() {
  std::vector<std::string_view> out;
  for (const FormatInfo& format : formats()) out.push_back(format.name);
  return out;
}
// Schemes too: the dtype of their codes is that of the words that they are packed in.
std::vector<std::string_view> dtype_names() {
  std::vector<std::string_view> out;
  for (const DTypeInfo& each : all_dtypes()) out.push_back(each.name);
  for (const BlockTypeInfo& each : all_block_types()) out.push_back(each.name);
  for (const schemes::Scheme& each : schemes::all_schemes()) out.push_back(each.id);
  return out;
}

bool lists(const Demand& demand, std::string_view text) {
  return std::ranges::find(demand.texts, text) != demand.texts.end();
}
std::string one_of(const std::vector<std::string>& texts) {
  std::string out = texts.size() == 1 ? "" : "one of ";
  for (std::size_t i = 0; i < std::min(texts.size(), kShownTexts); ++i)
    out += (i > 0 ? ", " : "") + core::excerpt(texts[i], 80);
  return texts.size() > kShownTexts ? out + " and " + std::to_string(texts.size() - kShownTexts) + " more" : out;
}

// Which findings of verify a demand does not accept.

bool names_global(const Finding& finding, const Demand&) { return base::is_not_known_safe(finding.rule); }
bool runs_code(const Finding& finding, const Demand& demand) {
  return is_about_code(finding.rule) && !lists(demand, finding.rule);
}
bool misses_files(const Finding& finding, const Demand&) {
  return finding.rule.ends_with("/shard-alone") || finding.rule.ends_with("/shard-missing");
}
bool is_noted(const Finding& finding, const Demand& demand) { return !lists(demand, finding.rule); }

// A check that is under way.
class Checking {
 public:
  Checking(std::shared_ptr<const Place> at, const Policy& policy, const Context& given,
           std::shared_ptr<const Source> list)
      : place(std::move(at)), manifest(std::move(list)), context(given), policy_(policy) {
    if (const Demand* const limits = demand("limits"))
      for (const auto& [name, value] : limits->numbers) set_limit(context.limits, name, value[0]);
  }

  PolicyVerdict run(const OpenOptions&);

  void add(const Demand& demand, Finding finding, const FileRef& file = {}) {
    if (finding.file.empty()) finding.file = file;
    finding.severity = Severity::error;  // whatever it is without the policy
    ++out.breached;
    if (out.breaches.size() == Report::kMaxFindings || text_ > Report::kMaxText) return;
    text_ += finding.message.size() + finding.expected.size() + finding.found.size() + finding.tensor.size();
    out.breaches.push_back({demand.key, std::move(finding)});
  }
  // About a tensor: where its data begin.
  void add_at(const Demand& demand, const Rule& rule, const Tensor& tensor, const core::Said& expected,
              const core::Said& found) {
    core::At at{.tensor = tensor.name()};
    FileRef file;
    for (const Part& part : tensor.parts())
      if (const auto extent = part.extent(); extent && extent->source < model.sources().size()) {
        at.offset = extent->offset;
        file = ref(extent->source);
        break;
      }
    add(demand, core::Findings::make(rule, at, expected, found), file);
  }
  // Calls look(file, how findings name it) for each file of the model.
  template <class Look> void for_each_file(Look look) const {
    const auto sources = model.sources();
    for (std::uint32_t i = 0; i < sources.size(); ++i) look(sources[i], ref(i));
    if (sources.empty() && place->file()) look(place->file(), FileRef{});
  }
  void judge_numbers(const Demand& demand, std::uint64_t doctor::NotFinite::*count) {
    if (!numbers_) {
      numbers_ = doctor::find_not_finite(model, context);
      constexpr std::string_view kOnly = "structure only";
      if (out.checked.starts_with(kOnly)) out.checked.replace(0, kOnly.size(), "structure, and values for NaN");
    }
    std::uint64_t total = 0;
    for (const doctor::NotFinite& each : *numbers_) total += each.*count;
    for (const doctor::NotFinite& each : *numbers_) {
      const Tensor tensor = model[each.tensor];
      if (each.unread)
        add_at(demand, rules::kUnread, tensor, {}, "a limit forbids to read its numbers");
      else if (total > demand.number && each.*count > 0)
        add_at(demand, doctor::rules::kNotFinite, tensor, {}, {each.nans, " NaN, ", each.infinities, " infinite"});
    }
  }

  const std::shared_ptr<const Place> place;
  const std::shared_ptr<const Source> manifest;
  Context context;
  Model model{};
  PolicyVerdict out{};

 private:
  const Demand* demand(std::string_view key) const {
    const auto found = std::ranges::find(policy_.demands, key, &Demand::key);
    return found == policy_.demands.end() ? nullptr : &*found;
  }
  bool is_accepted_global(const Finding&) const;
  void sort(Finding);
  FileRef ref(std::uint32_t source) const {
    const auto& file = model.sources()[source];
    if (const auto given = place->file(); given && core::is_same(*file, *given)) return {};
    return {.name = std::string(file->name()), .source = source};
  }

  const Policy& policy_;
  std::optional<std::vector<doctor::NotFinite>> numbers_{};
  std::size_t text_ = 0;  // bytes of the texts of breaches
};

// The demands about the model itself.

void judge_complete(Checking& c, const Demand& demand) {
  if (c.place->file()) return;
  doctor::Disagreement config = doctor::compare_with_config(c.model);
  for (const std::string& name : config.missing)
    c.add(demand, core::Findings::make(rules::kIncomplete, {.tensor = name}));
  for (Finding& each : config.findings) c.add(demand, std::move(each));
}

void judge_formats(Checking& c, const Demand& demand) {
  if (!lists(demand, c.out.format))
    c.add(demand, core::Findings::make(rules::kFormat, {}, one_of(demand.texts), c.out.format));
}

void judge_dtypes(Checking& c, const Demand& demand) {
  for (const Tensor& tensor : c.model) {
    const auto scheme = scheme_of(tensor);
    const std::string type(scheme && scheme->opaque ? scheme->id : tensor.type_name());
    if (!lists(demand, type)) c.add_at(demand, rules::kDtype, tensor, one_of(demand.texts), type);
  }
}

void judge_tensors(Checking& c, const Demand& demand) {
  const std::set<std::string_view> listed(demand.texts.begin(), demand.texts.end());
  for (const Tensor& tensor : c.model)
    if (!listed.contains(tensor.name())) c.add_at(demand, rules::kTensor, tensor, {}, "a tensor that is not listed");
  for (const std::string_view name : listed)
    if (!c.model.find(name))
      c.add(demand, core::Findings::make(rules::kTensor, {.tensor = name}, "a tensor of this name", "none"));
}

void judge_shapes(Checking& c, const Demand& demand) {
  Demand names{.key = demand.key};
  for (const auto& [name, dims] : demand.numbers) {
    names.texts.push_back(name);
    const auto tensor = c.model.find(name);
    if (!tensor || (tensor->has_shape() && std::ranges::equal(tensor->shape(), dims))) continue;
    c.add_at(demand, rules::kShape, *tensor, core::shape_text(dims),
             tensor->has_shape() ? core::shape_text(tensor->shape()) : "no shape");
  }
  judge_tensors(c, names);
}

void judge_size(Checking& c, const Demand& demand) {
  const auto file = c.place->file();
  const std::uint64_t size = file ? std::max(file->size(), c.model.file_size()) : c.model.file_size();
  if (size > demand.number)
    c.add(demand,
          core::Findings::make(rules::kSize, {}, core::at_most(core::in_bytes(demand.number)), core::in_bytes(size)));
}
void judge_file_sizes(Checking& c, const Demand& demand) {
  c.for_each_file([&](const std::shared_ptr<const Source>& file, const FileRef& ref) {
    if (file->size() > demand.number)
      c.add(demand,
            core::Findings::make(rules::kSize, {}, core::at_most(core::in_bytes(demand.number)),
                                 core::in_bytes(file->size())),
            ref);
  });
}

void judge_nan(Checking& c, const Demand& demand) { c.judge_numbers(demand, &doctor::NotFinite::nans); }
void judge_infinite(Checking& c, const Demand& demand) { c.judge_numbers(demand, &doctor::NotFinite::infinities); }

void judge_content(Checking& c, const Demand& demand) {
  std::string found;
  for (std::uint32_t version = 1; version <= kDigestVersion; ++version) {
    const auto of_version = [&](const std::string& each) { return parse_digest(each)->version == version; };
    if (version < kDigestVersion && std::ranges::none_of(demand.texts, of_version)) continue;
    found = content_digest(c.model, c.context, true, version).text();
    if (lists(demand, found)) return;
  }
  c.add(demand, core::Findings::make(rules::kDigest, {}, one_of(demand.texts), found));
}
void judge_sha256(Checking& c, const Demand& demand) {
  c.for_each_file([&](const std::shared_ptr<const Source>& file, const FileRef& ref) {
    const std::string found = file_sha256(*file, c.context).hex();
    if (!lists(demand, found))
      c.add(demand, core::Findings::make(rules::kDigest, {}, one_of(demand.texts), found), ref);
  });
}

// A signature that is invalid is known before any file is read.
void judge_keys(Checking& c, const Demand& demand) {
  std::string why = c.manifest ? "the policy lists no key" : "no manifest is given";
  for (const std::string& key : c.manifest ? demand.texts : std::vector<std::string>()) {
    const ManifestVerdict found =
        verify_manifest(std::string(c.place->path()), c.manifest, {.trust = {.key = key}}, c.context);
    const Finding* const first = found.report.first_error();
    if (found.signature == SignatureState::valid) {
      for (const Finding& each : found.report.findings())
        if (each.severity == Severity::error) c.add(demand, each);
      return;
    }
    why = first ? first->message : found.unchecked;
  }
  c.add(demand, core::Findings::make(rules::kSignature, {}, {}, {}, why));
}

constexpr DemandInfo kDemands[] = {
#define WB_DEMAND(key, type, listed, breaks, judge, help) {#key, DemandType::type, help, listed},
#include "policy/demand_rows.def"
#undef WB_DEMAND
};
struct Judge {
  bool (*breaks)(const Finding&, const Demand&);
  void (*judge)(Checking&, const Demand&);
};
constexpr Judge kJudges[] = {
#define WB_DEMAND(key, type, listed, breaks, judge, help) {breaks, judge},
#include "policy/demand_rows.def"
#undef WB_DEMAND
};
const Judge& judge_of(const Demand& demand) {
  return kJudges[std::ranges::find(kDemands, demand.key, &DemandInfo::key) - std::begin(kDemands)];
}

bool Checking::is_accepted_global(const Finding& finding) const {
  const Demand* const globals = demand("globals");
  return globals != nullptr && finding.rule.ends_with("/unknown-global") &&
         std::ranges::any_of(globals->texts,
                             [&](const std::string& glob) { return matches_glob(glob, finding.found); });
}

// A finding of verify breaks the first demand that does not accept it.
void Checking::sort(Finding finding) {
  if (finding.severity == Severity::error) {
    const bool limited = finding.kind == Kind::limit && demand("limits") != nullptr;
    if (limited) finding.hint = {};
    return add(Demand{.key = limited ? "limits" : "valid"}, std::move(finding));
  }
  if (is_accepted_global(finding)) {
    std::erase(out.not_known_safe, finding.found);
  } else {
    for (const Demand& each : policy_.demands)
      if (const Judge& judge = judge_of(each); judge.breaks != nullptr && judge.breaks(finding, each))
        return add(each, std::move(finding));
  }
  out.others.add(std::move(finding));
}

PolicyVerdict Checking::run(const OpenOptions& options) {
  if (manifest && demand("keys") == nullptr)
    base::misuse("manifest", "the policy has no keys, so it compares no file with the manifest");
  Verdict found = verify(place, context, options);
  model = std::move(found.model);
  out.format = found.format;
  out.checked = std::move(found.checked);
  out.not_known_safe = std::move(found.not_known_safe);
  out.checks = std::move(found.checks);
  for (const Finding& each : found.report.findings()) sort(each);
  if (!found.report.valid()) {
    out.breached = std::max(out.breached, found.report.errors());
    return std::move(out);
  }
  core::StepTimer timer(out.checks);
  for (const Demand& each : policy_.demands) {
    const Judge& judge = judge_of(each);
    if (judge.breaks != nullptr && found.report.total() > found.report.findings().size())
      add(each, core::Findings::make(rules::kUnread, {}, {}, {"more than ", Report::kMaxFindings, " findings"}));
    try {
      if (judge.judge != nullptr) judge.judge(*this, each);
    } catch (const Error& error) {
      if (error.kind() == Kind::io || error.kind() == Kind::misuse) throw;
      add(each, error.finding());
    }
    if (judge.judge != nullptr) timer.ran(each.key);
  }
  return std::move(out);
}

}  // namespace
}  // namespace policy

std::span<const DemandInfo> demands() noexcept { return policy::kDemands; }
std::span<const Rule> policy_rules() noexcept { return policy::rules::kAll; }

PolicyVerdict check(std::shared_ptr<const Place> place, const Policy& policy, const Context& context,
                    const OpenOptions& options, std::shared_ptr<const Source> manifest) {
  return policy::Checking(std::move(place), policy, context, std::move(manifest)).run(options);
}

}  // namespace weighbridge
