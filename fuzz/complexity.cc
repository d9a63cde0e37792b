// SPDX-License-Identifier: Apache-2.0
// Fuzz target: what a file costs to look at, for each of its bytes. Each job of kRows reports its steps, memory and
// text (meter.h) to libFuzzer as features on a scale of fourth roots of two, so that inputs which cost more for each
// byte are kept and changed further. A cost beyond those of kRows fails. The environment variable
// WEIGHBRIDGE_FUZZ_FORMAT names the format to open inputs as: as of formats(), "manifest" for the lists of files of
// weighbridge/manifest.h, or nothing, for the format that the content is of.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>

#include "corpus/repair.h"
#include "folder_input.h"
#include "formats/huggingface/format.h"
#include "harness.h"
#include "manifest/bundle.h"
#include "meter.h"
#include "registry/detect.h"
#include "weighbridge/convert.h"
#include "weighbridge/doctor.h"
#include "weighbridge/explain.h"
#include "weighbridge/open.h"
#include "weighbridge/verify.h"

namespace weighbridge::fuzz {
namespace {

enum Job : std::size_t { verifying, opening, explaining, diagnosing, planning, kJobs };
enum Measure : std::size_t { steps, memory, text, kMeasures };
struct Unit {
  const char* name;
  std::uint64_t base;  // added to the size, for what every file costs
};
constexpr std::array<Unit, kMeasures> kUnits = {
    {{"steps", 4 << 10}, {"bytes of memory", 256 << 10}, {"bytes of text", 4 << 10}}};
// What a job may take for each byte. The files of the corpus take less than a sixth; a plan is made for each format.
struct JobRow {
  const char* name;
  std::array<double, kMeasures> maximum;
};
constexpr std::array<JobRow, kJobs> kRows = {{{"verify", {128, 16, 16}},
                                              {"open", {128, 16, 16}},
                                              {"explain", {128, 16, 16}},
                                              {"doctor", {256, 16, 16}},
                                              {"plan", {1024, 16, 16}}}};

const char* const kPlanted = is_planted() ? "planted bug: " : "";

constexpr std::size_t kRanks = 128;
// libFuzzer takes each that is not 0 as a feature, and sets them to 0 before each input.
__attribute__((section("__libfuzzer_extra_counters"))) std::uint8_t features[kJobs][kMeasures][kRanks];

// Data that decodes to more than it takes is bounded by these instead.
Context context() {
  Context out = small_context();
  out.limits.memory = std::uint64_t{16} << 20;
  out.limits.header = std::uint64_t{1} << 20;
  out.limits.decoded = out.limits.work = std::uint64_t{64} << 10;
  return out;
}

std::string_view format_asked_for() {
  static const char* const name = std::getenv("WEIGHBRIDGE_FUZZ_FORMAT");
  return name == nullptr ? "" : name;
}

// What a job told its caller. A report keeps at most a thousand findings, which two bytes each can cause; ONNX has a
// tensor, with a long name, in 24 bytes.
struct Reported {
  std::uint64_t text = 0, entries = 0;
};
constexpr std::uint64_t kEntryCounts = 64;  // bytes of input that each is worth

Reported reported(const Report& report, std::size_t tensors) {
  Reported out{.entries = report.findings().size() + tensors};
  for (const Finding& finding : report.findings())
    out.text += finding.message.size() + finding.expected.size() + finding.found.size() + finding.tensor.size() +
                finding.file.name.size();
  return out;
}

Reported reported(const Verdict& verdict) { return reported(verdict.report, verdict.model.size()); }

Reported reported(const Explanation& explanation) {
  Reported out{.entries = explanation.spans.size()};
  for (const Span& span : explanation.spans) out.text += span.what.size() + span.value.size();
  return out;
}

// What has cost most so far, printed when the program ends.
class Maxima {
 public:
  void note(Job which, Measure measure, double each, std::uint64_t amount, std::size_t size) {
    Entry& entry = entries_[which][measure];
    if (each > entry.each) entry = {each, amount, size};
  }
  ~Maxima() {
    for (std::size_t i = 0; i < kJobs; ++i)
      for (std::size_t k = 0; k < kMeasures; ++k)
        if (const Entry& entry = entries_[i][k]; entry.each > 0)
          std::fprintf(stderr, "most: %-7s %10.2f %s for each byte: %llu for %zu bytes\n", kRows[i].name, entry.each,
                       kUnits[k].name, static_cast<unsigned long long>(entry.amount), entry.size);
  }

 private:
  struct Entry {
    double each = 0;
    std::uint64_t amount = 0;
    std::size_t size = 0;
  };
  Entry entries_[kJobs][kMeasures];
};
Maxima maxima;

class Account {
 public:
  explicit Account(std::size_t size) : size_(size) {}

  template <class Call> void job(Job which, Call call) {
    Reported reported;
    const Cost cost = cost_of([&] { reading([&] { reported = call(); }); });
    note(which, steps, cost.steps, reported);
    note(which, memory, cost.memory, reported);
    note(which, text, reported.text, reported);
  }

 private:
  void note(Job which, Measure measure, std::uint64_t amount, const Reported& reported) {
    const double each = static_cast<double>(amount) /
                        static_cast<double>(size_ + kUnits[measure].base + kEntryCounts * reported.entries);
    // From 2^-8 on.
    const auto rank = static_cast<std::size_t>(std::clamp(4 * (std::log2(each + 1e-9) + 8), 0.0, double{kRanks - 1}));
    features[which][measure][rank] = 1;
    maxima.note(which, measure, each, amount, size_);
    if (each > kRows[which].maximum[measure])
      fail(kPlanted + std::string(kRows[which].name) + " takes " + std::to_string(amount) + " " + kUnits[measure].name +
           " for " + std::to_string(size_) + " bytes");
  }

  std::size_t size_;
};

void plan_all(const std::optional<Model>& model, Account& account) {
  if (!model) return;
  account.job(planning, [&] {
    Reported out;
    for (const FormatInfo& format : formats())
      if (format.writes)
        reading([&] {
          const Plan planned = plan(*model, format.name);
          for (const auto* items : {&planned.blockers(), &planned.losses(), &planned.changes()})
            for (const auto& item : *items) out.text += item.subject.size() + item.from.size() + item.to.size();
        });
    return out;
  });
}

// Work that grows with the cube of a name's length. No seed has a name that is long enough.
void planted_bug(const Model& model) {
  for (std::uint32_t i = 0; i < model.size(); ++i) {
    const std::string_view name = model.name(i);
    for (std::size_t begin = 0; begin < name.size(); ++begin)
      for (std::size_t end = begin; end < name.size(); ++end)
        for (const char each : name.substr(begin, end - begin)) expect(each != '\xFF', "a name that is not UTF-8");
  }
}

void look_at_file(const std::shared_ptr<const Source>& file, const std::string& format, Account& account) {
  const Context limited = context();
  account.job(verifying, [&] { return reported(verify(file, limited, {.format = format})); });
  std::optional<Model> model;
  account.job(opening, [&] {
    Report report;
    model = open(file, report, limited, {.format = format});
    if (model && is_planted()) planted_bug(*model);
    return reported(report, model ? model->size() : 0);
  });
  if (file->size() != 0)
    account.job(explaining, [&] { return reported(explain(file, 0, file->size(), limited, {.format = format})); });
  account.job(diagnosing, [&] { return reported(diagnose(place_of(file), limited).verdict); });
  plan_all(model, account);
}

void look_at_folder(const std::shared_ptr<const Place>& folder, Account& account) {
  const Context limited = context();
  const std::vector<std::string> listing = folder->list();
  if (!huggingface::matches({.listing = listing, .folder = true})) return;
  account.job(verifying, [&] { return reported(verify(folder, limited, {.format = "hf"})); });
  std::optional<Model> model;
  account.job(opening, [&] {
    Report report;
    model = open(folder, report, limited, {.format = "hf"});
    return reported(report, model ? model->size() : 0);
  });
  account.job(diagnosing, [&] { return reported(diagnose(folder, limited).verdict); });
  plan_all(model, account);
}

void look_at_manifest(std::string_view bytes, Account& account) {
  const Limits limits = context().limits;
  account.job(opening, [&] {
    Report report;
    reading([&] { signing::parse_bundle(bytes, limits, report); });
    reading([&] { signing::parse_statement(bytes, limits, report); });
    return reported(report, 0);
  });
}

}  // namespace
}  // namespace weighbridge::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weighbridge::fuzz;
  const std::string_view format = format_asked_for();
  Account account(size);
  if (format == "manifest") {
    const std::string bytes(data, data + size);
    look_at_manifest(bytes, account);
  } else if (format == "hf") {
    look_at_folder(place_of_input({reinterpret_cast<const char*>(data), size}), account);
  } else {
    look_at_file(metered(source_of(data, size)), std::string(format), account);
  }
  return 0;
}

// What the structure of an input is taken for.
static std::string_view format_of(const std::string& bytes) {
  using namespace weighbridge;
  if (const std::string_view asked = fuzz::format_asked_for(); !asked.empty()) return asked;
  const auto file = memory_source({std::as_bytes(std::span(bytes)), nullptr});
  const core::Format* const found = registry::detect(*file).format;
  return found == nullptr ? "" : found->info.name;
}

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t maximum);

// Every other change is one that keeps the structure of the format, or repeats a part of it.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t maximum,
                                               unsigned int seed) {
  using namespace weighbridge;
  static std::string donor;
  test::Mutator mutator(seed);
  std::string bytes(data, data + size);
  const std::string before = bytes;
  if (bytes.empty() || mutator.one_in(2)) return LLVMFuzzerMutate(data, size, maximum);
  const bool repeat = mutator.one_in(2);
  test::change_beneath_seal(
      format_of(bytes), bytes, [&](std::string& part) { repeat ? mutator.repeat(part) : mutator.change(part, donor); },
      mutator);
  donor = before;
  if (bytes.size() > maximum) return LLVMFuzzerMutate(data, size, maximum);
  std::copy(bytes.begin(), bytes.end(), data);
  return bytes.size();
}
