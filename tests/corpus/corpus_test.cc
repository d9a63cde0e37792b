// SPDX-License-Identifier: Apache-2.0
// Tests every case of every format: the committed file equals the generated one, the findings are those that the case
// names, every rule has a case, and the result does not depend on the kind of source.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "core/payload/content.h"
#include "core/reading/rules.h"
#include "corpus/all_cases.h"
#include "support/agreement.h"
#include "support/failing_source.h"
#include "support/rounds.h"
#include "support/temporary_folder.h"
#include "support/thrown.h"
#include "weighbridge/open.h"
#include "weighbridge/verify.h"

namespace weighbridge::test {
namespace {

namespace fs = std::filesystem;

Context context_of(const core::CorpusCase& c) {
  Context context;
  context.limits = c.limits;
  return context;
}

// Calls f(corpus, case) for each, naming it in failures.
template <class F> void for_each_case(F f) {
  for (const FormatCorpus& corpus : all_cases()) {
    for (const core::CorpusCase& c : corpus.cases) {
      SCOPED_TRACE(corpus.path(c));
      f(corpus, c);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

// The error that open() throws; nullopt if it returns a model.
std::optional<Finding> open_error(const std::shared_ptr<const Source>& source, const Context& context) {
  try {
    open(source, context);
    return std::nullopt;
  } catch (const Error& error) {
    return error.finding();
  }
}

TEST(Corpus, CommittedFilesAreWhatTheCodeMakes) {
  std::set<std::string> expected;
  const auto check = [&](const std::string& path, const std::string& bytes) {
    EXPECT_TRUE(expected.insert(path).second) << "two cases have the name " << path;
    std::ifstream in("corpus/" + path, std::ios::binary);
    ASSERT_TRUE(in.is_open()) << path << " is not committed: run corpus_generate corpus";
    const std::string committed{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    EXPECT_TRUE(committed == bytes) << path << " differs: run corpus_generate corpus, and look at what changed";
  };
  for_each_case([&](const FormatCorpus& corpus, const core::CorpusCase& c) {
    if (c.generated_only) return;
    check(corpus.path(c), c.bytes);
    if (c.sidecar) check(sidecar_path(corpus.path(c), *c.sidecar), c.sidecar->bytes);
  });
  check("index.tsv", index_of_cases());
  for (const auto& entry : fs::recursive_directory_iterator("corpus")) {
    if (entry.is_directory()) continue;
    const std::string path = fs::relative(entry.path(), "corpus").generic_string();
    if (path != "README.md" && path != "conform.py") {
      EXPECT_TRUE(expected.contains(path)) << "a stray file: corpus/" << path;
    }
  }
}

TEST(Corpus, CommittedExamplesAreTheMessagesOfToday) {
  std::ifstream in("cli/rule_examples_generated.h", std::ios::binary);
  EXPECT_TRUE((std::string{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()}) ==
              examples_of_cases())
      << "run corpus_generate corpus cli/rule_examples_generated.h, and look at what changed";
}

TEST(Corpus, EveryFormatHasCases) {
  std::set<std::string_view> with_cases;
  for (const FormatCorpus& corpus : all_cases()) {
    EXPECT_FALSE(corpus.cases.empty());
    with_cases.insert(corpus.format->info.name);
  }
  for (const FormatInfo& format : formats()) {
    if (format.folder) continue;  // no single file
    EXPECT_TRUE(with_cases.contains(format.name)) << format.name;
  }
}

TEST(Corpus, EveryRuleHasACaseThatBreaksItFirst) {
  for (const FormatCorpus& corpus : all_cases()) {
    std::set<std::string_view> first;
    for (const core::CorpusCase& c : corpus.cases) {
      first.insert(c.rule);
      // An array of objects is unsupported before its pickle is looked into.
      if (c.rule == "npy/object" || c.rule == "npz/object") first.insert(c.others.begin(), c.others.end());
    }
    for (const Rule& rule : corpus.format->info.rules) {
      // A case of a file can have neither a link nor two shards nor a folder; registry/sharded_safetensors_test.cc,
      // registry/sharded_index_test.cc and convert/split_gguf_test.cc test these.
      if (rule.id.ends_with("/metadata-conflict") || rule.id == "hdf5/dataset-twice" ||
          rule.id == "safetensors/two-weights" || rule.id.ends_with("-stray"))
        continue;
      // Nor can it have 2 GiB; formats/onnx/onnx_test.cc tests these.
      if (rule.id.ends_with("-link") || rule.id == "onnx/too-large") continue;
      EXPECT_TRUE(first.contains(rule.id)) << "no case for " << rule.id;
    }
  }
}

// Each rule about quantized layers is broken by a file of safetensors, and each about patches by a .zt.
TEST(Corpus, EveryRuleOfQuantizedLayersAndPatchesHasACase) {
  std::set<std::string_view> broken;
  for_each_case([&](const FormatCorpus&, const core::CorpusCase& c) { broken.insert(c.rule); });
  for (const Rule& rule : common_rules()) {
    if (rule.id.starts_with("quantized/") || rule.id.starts_with("gptq/") || rule.id.starts_with("delta/")) {
      EXPECT_TRUE(broken.contains(rule.id)) << "no case for " << rule.id;
    }
  }
}

TEST(Corpus, EveryCaseNamesRulesThatExist) {
  for_each_case([](const FormatCorpus& corpus, const core::CorpusCase& c) {
    std::set<std::string_view> known;
    for (const Rule& rule : corpus.format->info.rules) known.insert(rule.id);
    for (const Rule& rule : common_rules()) known.insert(rule.id);
    if (!c.rule.empty()) {
      EXPECT_TRUE(known.contains(c.rule)) << c.rule;
    }
    for (const std::string& other : c.others) EXPECT_TRUE(known.contains(other)) << other;
  });
}

TEST(Corpus, RulesAreWellFormed) {
  std::set<std::string_view> seen;
  const auto check = [&](const Rule& rule, std::string_view prefix) {
    SCOPED_TRACE(rule.id);
    EXPECT_TRUE(seen.insert(rule.id).second);
    EXPECT_TRUE(rule.id.starts_with(prefix));
    EXPECT_FALSE(rule.section.empty());
    ASSERT_FALSE(rule.sentence.empty());
    EXPECT_FALSE(rule.sentence.ends_with('.'));
    EXPECT_FALSE(rule.sentence.front() >= 'A' && rule.sentence.front() <= 'Z');
    EXPECT_EQ(rule.severity == Severity::warning, rule.reach == Rule::Reach::note);
  };
  for (const FormatInfo& format : formats())
    for (const Rule& rule : format.rules) check(rule, std::string(format.name) + "/");
  for (const Rule& rule : common_rules())
    check(rule, rule.id.starts_with("limit/")       ? "limit/"
                : rule.id.starts_with("claim/")     ? "claim/"
                : rule.id.starts_with("template/")  ? "template/"
                : rule.id.starts_with("quantized/") ? "quantized/"
                : rule.id.starts_with("gptq/")      ? "gptq/"
                : rule.id.starts_with("delta/")     ? "delta/"
                : rule.id.starts_with("published/") ? "published/"
                                                    : "file/");
}

TEST(Corpus, VerifyFindsExactlyWhatTheCaseNames) {
  for_each_case([](const FormatCorpus& corpus, const core::CorpusCase& c) {
    const Verdict verdict = verify(corpus.source(c), context_of(c));
    std::vector<std::string> expected = c.others;
    if (!c.rule.empty()) expected.insert(expected.begin(), c.rule);
    EXPECT_EQ(rules_of(verdict.report), expected);
    EXPECT_EQ(verdict.format, corpus.format->info.name);
    for (const Finding& finding : verdict.report.findings()) {
      if (!finding.file.empty()) {
        ASSERT_TRUE(finding.file.source.has_value()) << finding.file.name;
        const Source& file = *verdict.model.sources()[*finding.file.source];
        EXPECT_EQ(file.name(), finding.file.name);
        EXPECT_LE(finding.offset.value_or(0), file.size()) << finding.message;
      } else if (finding.offset) {
        EXPECT_LE(*finding.offset, c.bytes.size()) << finding.message;
      }
      EXPECT_FALSE(finding.message.empty());
    }
  });
}

TEST(Corpus, OpenThrowsTheFirstErrorOfVerify) {
  for_each_case([](const FormatCorpus& corpus, const core::CorpusCase& c) {
    const Verdict verdict = verify(corpus.source(c), context_of(c));
    const auto thrown = open_error(corpus.source(c), context_of(c));
    EXPECT_EQ(disagreement(thrown ? &*thrown : nullptr, verdict.report), "");
    if (thrown) {
      EXPECT_EQ(thrown->kind, thrown->rule.starts_with("limit/") ? Kind::limit : Kind::malformed);
    }
    // The overload that does not throw reports the same.
    Report report;
    const auto model = open(corpus.source(c), report, context_of(c));
    EXPECT_EQ(model.has_value(), !thrown.has_value());
    if (thrown && report.first_error()) {
      EXPECT_EQ(*report.first_error(), *thrown);
    }
  });
}

// Checks the test above: it must notice an open that misses a rule, or checks one that only verify should.
TEST(Corpus, AnOpenThatLooksAwayOrTooFarIsFoundOut) {
  std::set<std::string_view> missed, strict;
  for_each_case([&](const FormatCorpus& corpus, const core::CorpusCase& c) {
    const Verdict verdict = verify(corpus.source(c), context_of(c));
    const Finding* first = verdict.report.first_error();
    if (first == nullptr) {
      Finding invented;
      invented.rule = "planted";
      EXPECT_NE(disagreement(&invented, verdict.report), "") << "refuses what is valid";
      return;
    }
    const Rule* rule = find_rule(first->rule);
    ASSERT_NE(rule, nullptr) << first->rule;
    if (rule->phase == Rule::Phase::either || rule->phase == Rule::Phase::whole) return;
    if (rule->phase == Rule::Phase::payload) {
      EXPECT_NE(disagreement(first, verdict.report), "") << "refuses what is left to verify";
      strict.insert(rule->id);
    } else {
      EXPECT_NE(disagreement(nullptr, verdict.report), "") << "accepts what open has to refuse";
      missed.insert(rule->id);
    }
  });
  EXPECT_GT(missed.size(), 200U);
  EXPECT_GT(strict.size(), 10U);
}

TEST(Corpus, ValidFilesListAndReadEveryTensor) {
  for_each_case([](const FormatCorpus& corpus, const core::CorpusCase& c) {
    if (!c.rule.empty()) return;
    const Model model = open(corpus.source(c), context_of(c));
    EXPECT_EQ(model.format(), corpus.format->info.name);
    for (std::uint32_t i = 0; i < model.size(); ++i) {
      const Tensor tensor = model[i];
      EXPECT_EQ(tensor.unsupported(), nullptr);
      ASSERT_TRUE(model.find(tensor.name()).has_value());
      EXPECT_EQ(model.find(tensor.name()).value().index(), i);
      for (std::uint32_t k = 0; k < tensor.part_count(); ++k) {
        std::uint64_t bytes = 0;
        tensor.part(k).stream({}, [&](std::span<const std::byte> piece) {
          bytes += piece.size();
          return true;
        });
        EXPECT_EQ(bytes, tensor.part(k).size());
      }
    }
  });
}

// The findings with only the last component of each file's name, because the folder depends on the caller.
std::vector<Finding> without_folders(std::vector<Finding> findings) {
  for (Finding& finding : findings) finding.file.name.erase(0, finding.file.name.rfind('/') + 1);
  return findings;
}

TEST(Corpus, FindingsDoNotDependOnWhereTheBytesComeFrom) {
  const TemporaryFolder folder;
  for_each_case([&](const FormatCorpus& corpus, const core::CorpusCase& c) {
    const std::string path = folder / fs::path(corpus.path(c)).filename();
    write_file(path, c.bytes);
    if (c.sidecar) write_file(sidecar_path(path, *c.sidecar), c.sidecar->bytes);
    const Context context = context_of(c);
    const auto found = [&](const OpenOptions& options) {
      return without_folders(verify(path, context, options).report.findings());
    };
    const auto expected = without_folders(verify(corpus.source(c), context).report.findings());
    EXPECT_EQ(found({.format = {}, .access = Access::positional}), expected);
    EXPECT_EQ(found({.format = {}, .access = Access::mapped}), expected);
    EXPECT_EQ(found({.format = std::string(corpus.format->info.name), .access = Access::positional}), expected);
    fs::remove(path);
    if (c.sidecar) fs::remove(sidecar_path(path, *c.sidecar));
  });
}

// The findings of processes that verify one file together: those of the others go among the first one's of payload.
std::vector<Finding> found_together(const FormatCorpus& corpus, const core::CorpusCase& c, std::uint32_t of) {
  const Context context = context_of(c);
  const Verdict first = verify(corpus.source(c), context, {}, {0, of});
  const auto& all = first.report.findings();
  const auto at = [&](std::size_t index) { return all.begin() + static_cast<std::ptrdiff_t>(index); };
  std::vector<Finding> payload(at(first.payload_begin), at(first.payload_end));
  for (std::uint32_t index = 1; index < of; ++index) {
    const Verdict other = verify(corpus.source(c), context, {}, {index, of});
    const auto& more = other.report.findings();
    payload.insert(payload.end(), more.begin(), more.end());
  }
  core::sort_findings(payload);
  std::vector<Finding> out(all.begin(), at(first.payload_begin));
  out.insert(out.end(), payload.begin(), payload.end());
  out.insert(out.end(), at(first.payload_end), all.end());
  return out;
}

TEST(Corpus, ProcessesThatShareAFileFindWhatOneFinds) {
  for_each_case([](const FormatCorpus& corpus, const core::CorpusCase& c) {
    const auto alone = verify(corpus.source(c), context_of(c)).report.findings();
    EXPECT_EQ(found_together(corpus, c, 2), alone);
    EXPECT_EQ(found_together(corpus, c, 5), alone);
  });
}

// A source that breaks after byte k gives an io error, or the usual result if nothing reads that far.
TEST(Corpus, ASourceThatFailsIsAnIoErrorAndNothingElse) {
  for_each_case([](const FormatCorpus& corpus, const core::CorpusCase& c) {
    const Context context = context_of(c);
    const auto whole = corpus.source(c);
    const auto expected = verify(whole, context).report.findings();
    const OpenOptions as{.format = std::string(corpus.format->info.name)};  // detection would read the end of the file
    const std::uint64_t size = c.bytes.size();
    const std::uint64_t step = std::max<std::uint64_t>(1, size / rounds(32U));
    std::uint64_t io_errors = 0;
    for (std::uint64_t k = 0; k <= size; k += step) {
      const auto failing = std::make_shared<FailingSource>(whole, k);
      try {
        EXPECT_EQ(verify(failing, context, as).report.findings(), expected) << k;
      } catch (const Error& error) {
        ++io_errors;
        ASSERT_EQ(error.kind(), Kind::io) << k << ": " << error.what();
        EXPECT_EQ(error.finding().rule, "io/injected");
      }
      try {
        open(failing, context, as);
      } catch (const Error& error) {
        ASSERT_TRUE(error.kind() != Kind::misuse && error.kind() != Kind::unsupported) << k << ": " << error.what();
        if (error.kind() == Kind::malformed) {
          const auto usual = open_error(whole, context);
          ASSERT_TRUE(usual.has_value()) << k;
          EXPECT_EQ(error.finding(), *usual) << k;
        }
      }
    }
    if (size >= 8) {
      EXPECT_GT(io_errors, 0U);
    }
  });
}

}  // namespace
}  // namespace weighbridge::test
