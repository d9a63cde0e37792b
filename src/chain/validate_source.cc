// SPDX-License-Identifier: Apache-2.0
// validate-source: checks every rule of a source folder.
#include "chain/source_folder.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "base/checked.h"
#include "base/fail.h"
#include "chain/candidate.h"
#include "chain/evidence.h"
#include "chain/outcome.h"
#include "chain/source_schemas.h"
#include "codecs/checksum.h"
#include "codecs/indexed_checksum.h"
#include "core/model/progress.h"
#include "core/model/words.h"
#include "io/read.h"
#include "weighbridge/chain.h"
#include "weighbridge/convert.h"

namespace weighbridge::chain {
using namespace internal;
namespace {

class Validator {
 public:
  Validator(const std::string& folder, double bound, const Context& context)
      : path_(folder),
        folder_(folder),
        bound_(bound),
        context_(context),
        record_(kValidationSchema),
        manifest_(read_manifest()) {}

  Validation run() {
    record_.set("record", "slm-source-validation").set("schema_version", "1").set("manifest_sha256", manifest_.sha256);
    check_filled_in();
    check_review();
    for (std::uint64_t i = 0; i < manifest().rows("tensor"); ++i) take_row(i);
    check_count();
    check_strays();
    Model model;
    if (report_.valid()) model = check_plan();
    set_verdict(record_, totals_, bound_, report_);
    seal(record_);
    return {std::move(record_), std::move(report_), std::move(manifest_), std::move(model)};
  }

 private:
  const Record& manifest() const { return manifest_.record; }

  std::string read_small(const std::string& name) const {
    const auto source = folder_.file(name);
    if (source->size() > kMaxRecord)
      refuse("size", name, "has " + core::bytes_text(source->size()) + ", more than a record can", kMaxRecord);
    return io::text_of(*source);
  }

  ReadRecord read_manifest() const {
    const std::string name(kSourceManifest);
    return record_of(kSourceSchema, path_ + "/" + name, read_small(name));
  }

  void object(RuleName rule, const std::string& key, const std::string& message, std::string expected = {},
              std::string found = {}) {
    object_to(report_, rule, key + ": " + message, {}, std::move(expected), std::move(found));
  }

  void check_filled_in() {
    for (const char* const key : {"identity", "license", "dataset", "training_summary"})
      if (is_placeholder(manifest().get(key)))
        object("placeholder", key, "is still to be filled in", "a text", std::string(manifest().get(key)));
  }

  // The review's shape must be the manifest's, except for repeated heads.
  void check_review() {
    if (!manifest().has("review_sha256")) {
      if (manifest().has("candidate_sha256"))
        object("stale", "candidate_sha256", "stands without review_sha256, which would vouch for it");
      return;
    }
    const std::string bytes = read_small(std::string(kReviewCopy));
    const std::string digest = sha256_hex(bytes);
    record_.set("review_sha256", digest);
    if (digest != manifest().get("review_sha256"))
      return object("stale", "review_sha256", "is the digest of another review than the review.record beside it",
                    digest, std::string(manifest().get("review_sha256")));
    const Record review = parse_record(kReviewSchema, bytes);
    if (review.get("verdict") != "accepted") object("refused", "review_sha256", "the review refuses the candidate");
    for (const std::string_view key : {"candidate_sha256", "source_dtype", "tokenizer_route"}) agree(review, key);
    for (const Key& key : kShapeKeys)
      if (key.name != "kv_head_count") agree(review, key.name);
  }
  void agree(const Record& review, std::string_view key) {
    if (review.get(key) != manifest().get(key))
      object("contradiction", std::string(key),
             "is " + std::string(manifest().get(key)) + ", where the review found " + std::string(review.get(key)),
             std::string(review.get(key)), std::string(manifest().get(key)));
  }

  // Refuses two rows with the same path, ignoring case.
  bool claim(const std::string& key, const std::string& path) {
    std::string lower = path;
    std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    const auto [at, is_new] = paths_.emplace(lower, path);
    if (!is_new)
      object("path", key, core::quoted(path) + " is the file of another row too: " + core::quoted(at->second));
    return is_new;
  }

  void take_row(std::uint64_t i) {
    const std::string row = "tensor." + std::to_string(i);
    const std::string path(manifest().get(row + ".path"));
    if (const std::string problem = path_problem(path); !problem.empty())
      return object("path", row + ".path", core::quoted(path) + " " + problem, "a path below tensors/", path);
    if (!claim(row + ".path", path)) return;
    std::uint64_t bytes = sizeof(float);
    const auto dims = manifest().dims(row + ".dims");
    for (const std::uint64_t dim : dims) {
      const auto product = base::checked_mul(bytes, dim);
      if (!product) return object("shape", row + ".dims", "are more than a file can hold");
      bytes = *product;
    }
    if (bytes != manifest().number(row + ".bytes"))
      return object("shape", row + ".bytes",
                    "is " + std::to_string(manifest().number(row + ".bytes")) + ", where " +
                        std::string(manifest().get(row + ".dims")) + " values of f32 have " + std::to_string(bytes),
                    std::to_string(bytes), std::to_string(manifest().number(row + ".bytes")));
    std::shared_ptr<const Source> source;
    try {
      source = folder_.tensor(path);
    } catch (const Error& error) {
      if (!base::refuses_input(error.kind())) throw;
      return report_.add(error.finding());
    }
    if (source->size() != bytes)
      return object("shape", row + ".bytes",
                    path + " has " + core::bytes_text(source->size()) + ", not " + std::to_string(bytes),
                    std::to_string(bytes), std::to_string(source->size()));
    read_values(row, *source);
    add_tensor(std::string(manifest().get(row + ".name")), dims, std::move(source));
  }

  void read_values(const std::string& row, const Source& source) {
    codecs::Sha256 sha;
    codecs::IndexedChecksum checksum;
    ValueCounter counter(bound_);
    io::read_pieces(source, 0, source.size(), [&](std::uint64_t, std::span<const std::byte> part) {
      sha.update(part);
      checksum.update(part);
      counter.update(part);
      done_ += part.size();
      if (!core::goes_on(context_, done_, 0)) throw Cancelled();
      return true;
    });
    expect(row + ".checksum", codecs::checksum_text(checksum.value()));
    expect(row + ".sha256", codecs::to_hex(sha.finish()));
    object_to_values(report_, manifest().get(row + ".name"), counter.values(), bound_);
    totals_.add(counter.values());
  }
  void expect(const std::string& key, const std::string& computed) {
    if (manifest().get(key) != computed)
      object("digest", key, "is not that of the file's bytes", std::string(manifest().get(key)), computed);
  }

  // Adds a tensor that is read again in the conversion and must still be what was validated.
  void add_tensor(const std::string& name, const std::vector<std::uint64_t>& dims,
                  std::shared_ptr<const Source> source) {
    if (!names_.emplace(name, 0).second) return object("duplicate", name, "is the name of two rows");
    builder_.tensor(name, DType::f32, dims, [source](std::uint64_t offset, std::span<std::byte> out) {
      const std::size_t count = base::to_size(std::min<std::uint64_t>(out.size(), source->size() - offset));
      source->read_at(offset, out.first(count));
      if (offset + count == source->size()) source->check_unchanged();
      return count;
    });
  }

  void check_count() {
    const std::uint64_t rows = manifest().rows("tensor");
    if (manifest().number("tensor_count") != rows)
      object(
          "count", "tensor_count",
          "is " + std::string(manifest().get("tensor_count")) + ", where there are " + std::to_string(rows) + " rows",
          std::to_string(rows), std::string(manifest().get("tensor_count")));
  }

  // Compares exact names: some disks find "a.f32" when asked for "A.f32".
  void check_strays() {
    std::map<std::string, bool> wanted;
    for (const auto& [lower, path] : paths_) wanted[path] = false;
    for (const std::string& path : folder_.tensor_paths()) {
      const auto at = wanted.find(path);
      if (at == wanted.end())
        object("stray", path, "is a file that no row of source.manifest names");
      else
        at->second = true;
    }
    for (const auto& [path, found] : wanted)
      if (!found && report_.valid()) object("path", path, "does not lie in tensors/ in this spelling");
  }

  Model check_plan() {
    for (auto& [key, value] : shape_attributes(manifest())) builder_.attribute(std::move(key), std::move(value));
    builder_.tokenizer(tokenizer_of(manifest()));
    Model model = builder_.build();
    const Plan judged = plan(model, "slm", chain_options("f32", false));
    const auto say = [&](const Item& item) {
      object_to(report_, "structure", item.subject + ": " + item.from + ": " + item.to, {}, item.to, item.from);
    };
    for (const Item& item : judged.blockers()) say(item);
    for (const Item& item : judged.refused()) say(item);
    return model;
  }

  const std::string path_;
  SourceFolder folder_;
  const double bound_;
  const Context& context_;
  Record record_;
  ReadRecord manifest_;
  Report report_;
  Totals totals_;
  std::uint64_t done_ = 0;  // bytes read
  Builder builder_;
  std::map<std::string, std::string> paths_;  // key: in lower case; value: as written
  std::map<std::string, int> names_;
};

}  // namespace

Validation internal::validate(const std::string& folder, double bound, const Context& context) {
  return Validator(folder, bound, context).run();
}

Validated internal::read_validation(const std::string& path, const std::string& folder, const Context& context) {
  ReadRecord given = read_evidence(kValidationSchema, path, "validate-source");
  Validation now = validate(folder, given.record.real("safety_bound"), context);
  if (const Finding* const error = now.report.first_error()) throw Error(*error);
  compare(given, now.record);
  return {std::move(given), std::move(now)};
}

Outcome validate_source(const std::string& folder, const ValidateOptions& options, const Context& context) {
  require_bound(options.safety_bound);
  Validation result = validate(folder, options.safety_bound, context);
  return conclude("validate-source", result.record, std::move(result.report),
                  {options.output, options.replace, source_files(folder)});
}

}  // namespace weighbridge::chain
