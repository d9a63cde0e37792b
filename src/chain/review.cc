// SPDX-License-Identifier: Apache-2.0
// review-safetensors-candidate: plans a conversion to find what an .slm cannot hold, and reads all values once for the
// rest.
#include "chain/candidate.h"

#include "base/fail.h"
#include "chain/evidence.h"
#include "chain/outcome.h"
#include "chain/source_folder.h"
#include "chain/source_schemas.h"
#include "core/model/plan_text.h"
#include "core/model/words.h"
#include "formats/slm/names.h"
#include "weighbridge/chain.h"

namespace weighbridge::chain {
using namespace internal;
namespace {

class Reviewer {
 public:
  Reviewer(const Candidate& candidate, double bound, const Context& context)
      : candidate_(candidate), bound_(bound), context_(context), record_(kReviewSchema) {}

  Review run() {
    report_ = candidate_.contradictions;
    record_.set("record", "slm-review").set("schema_version", "1").set("candidate_sha256", candidate_.sha256);
    if (candidate_.manifest) record_.set("template_sha256", candidate_.manifest->sha256);
    take_shape();
    const auto tokenizer = candidate_.model.tokenizer();
    const bool bpe = tokenizer != nullptr && tokenizer->kind == Tokenizer::Kind::bpe;
    record_.set("tokenizer_route", tokenizer == nullptr ? "none" : bpe ? "bpe" : "byte");
    check_dtype();
    check_plan();
    for (std::uint32_t i = 0; i < candidate_.model.size(); ++i) count(candidate_.model[i]);
    set_found();
    set_verdict(record_, totals_, bound_, report_);
    seal(record_);
    return {std::move(record_), std::move(report_)};
  }

 private:
  // If the shape is not known, the plan tells why.
  void take_shape() {
    try {
      set_shape(record_, shape_of(candidate_.model));
    } catch (const Error& error) {
      if (!base::refuses_input(error.kind())) throw;
    }
  }

  void check_dtype() {
    const std::string dtype = source_dtype(candidate_.model);
    record_.set("source_dtype", dtype);
    if (dtype == "other")
      object_to(report_, "dtype", "the weights of a candidate are dense f32, f16 or bf16; some are not", {},
                "f32, f16 or bf16", dtype);
    if (!candidate_.manifest) return;
    const std::string_view stated = candidate_.manifest->record.get("source_dtype");
    if (stated != dtype)
      object_to(report_, "contradiction",
                "source_dtype: source.manifest says " + std::string(stated) + ", the candidate's is " + dtype, {},
                std::string(stated), dtype);
  }

  void check_plan() {
    const Plan judged = plan(candidate_.model, "slm", chain_options("f32", false));
    std::uint64_t missing = 0, extra = 0;
    for (const Item& item : judged.blockers()) {
      const bool absent = item.kind == LossKind::name && item.from == core::kAbsent;
      missing += absent;
      extra += item.kind == LossKind::name && !absent;
      object_to(report_, absent ? RuleName("missing-tensor") : RuleName("structure"),
                item.subject + ": " + item.from + ": " + item.to, {}, item.to, item.from);
    }
    for (const Item& item : judged.refused()) {
      const bool stray = item.kind == LossKind::name;
      extra += stray;
      object_to(report_, stray ? RuleName("extra-tensor") : RuleName("structure"),
                stray ? item.subject + " is not a tensor of an .slm" : item.subject + ": " + item.from + ": " + item.to,
                {}, item.to, item.from);
    }
    record_.set("missing_tensors", missing).set("extra_tensors", extra);
  }

  void count(const Tensor& tensor) {
    if (slm_format::is_rotary_table(tensor.name()) || tensor.unsupported() != nullptr || !tensor.has_shape()) return;
    if (info(tensor.dtype()).kind != DTypeKind::real) return;  // the plan has reported it
    ValueCounter counter(bound_);
    tensor.stream_dense(DType::f32, context_, [&](std::span<const std::byte> piece) {
      counter.update(piece);
      return true;
    });
    const Values& values = counter.values();
    object_to_values(report_, tensor.name(), values, bound_);
    const std::string row = "tensor." + std::to_string(totals_.tensors);
    record_.set(row + ".name", tensor.name()).set(row + ".dtype", tensor.type_name());
    record_.set(row + ".dims", core::shape_text(tensor.shape()));
    record_.set_real(row + ".largest_magnitude", values.largest);
    record_.set(row + ".zeros", values.zeros).set(row + ".nonfinite_values", values.nonfinite);
    totals_.add(values);
  }

  void set_found() {
    for (std::size_t i = 0; i < candidate_.files.size(); ++i) {
      const std::string row = "file." + std::to_string(i);
      const CandidateFile& file = candidate_.files[i];
      record_.set(row + ".name", file.name).set(row + ".bytes", file.bytes).set(row + ".sha256", file.sha256);
    }
    for (std::size_t i = 0; i < candidate_.licenses.size(); ++i) {
      const std::string row = "license." + std::to_string(i);
      const License& license = candidate_.licenses[i];
      record_.set(row + ".source", license.source).set(row + ".key", license.key).set(row + ".value", license.value);
    }
  }

  const Candidate& candidate_;
  const double bound_;
  const Context& context_;
  Record record_;
  Report report_;
  Totals totals_;
};

}  // namespace

Review internal::review(const Candidate& candidate, double bound, const Context& context) {
  return Reviewer(candidate, bound, context).run();
}

ReadRecord internal::read_review(const std::string& path, const Candidate& candidate, const Context& context) {
  ReadRecord given = read_evidence(kReviewSchema, path, "review-safetensors-candidate");
  compare(given, review(candidate, given.record.real("safety_bound"), context).record);
  if (given.record.get("verdict") != "accepted")
    refuse("refused", "verdict",
           "the review refuses this candidate: " + std::string(given.record.get("objection.0.text")), {}, "accepted",
           "refused");
  return given;
}

Outcome review_candidate(const std::string& candidate, const ReviewOptions& options, const Context& context) {
  require_bound(options.safety_bound);
  const Candidate read = read_candidate(candidate, options.manifest, context);
  Review result = review(read, options.safety_bound, context);
  return conclude("review-safetensors-candidate", result.record, std::move(result.report),
                  {options.output, options.replace, read.paths});
}

}  // namespace weighbridge::chain
