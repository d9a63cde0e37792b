// SPDX-License-Identifier: Apache-2.0
// The ledger, the registry made from it, MiniModel manifests and import receipts.
#include <thread>

#include "chain/promotion.h"
#include "support/admission_chain.h"

namespace weighbridge::chain {
using namespace internal;
namespace {

using test::thrown, test::read_file, test::write_file, test::TemporaryFolder;
using namespace testing;

// Two models and an adapter for the first one, all promoted.
class Promotion : public ::testing::Test {
 protected:
  Promotion() {
    append_to_ledger(ledger_, a_, {}, {});
    append_to_ledger(ledger_, b_, {}, {});
    const Model base = open(a_.artifact);
    Builder deltas;
    const std::vector<float> ones(8, 0.5F);
    const auto held = std::make_shared<std::vector<float>>(ones);
    deltas.tensor("norm.weight", DType::f32, {8}, Bytes{std::as_bytes(std::span(*held)), held});
    const std::string adapter = folder_ / "shift.adp1";
    slm::plan_adapter(base, deltas.build(), slm::AdapterKind::dense).execute(adapter);
    append_to_ledger(ledger_, a_, std::span(&adapter, 1), "2026-01-31T12:00:00Z");
  }
  // The ledger's text with only the entries in `order`, renumbered.
  std::string rearranged(const std::vector<std::uint64_t>& order) {
    const Record old = read_record(ledger_schema(), ledger_).record;
    Record out(ledger_schema());
    out.set("ledger_version", "1").set("entries", std::uint64_t{order.size()});
    for (std::size_t i = 0; i < order.size(); ++i)
      for (const auto& [key, value] : old.lines())
        if (const std::string row = entry_row(order[i]); key.starts_with(row))
          out.set(entry_row(i) + key.substr(row.size()), old.get(key));
    return out.set("head", old.get(entry_row(order.back()) + "digest")).text();
  }
  Finding verified(const std::string& text) {
    write_file(ledger_, text);
    return thrown([&] { verify_ledger(ledger_); });
  }

  const TemporaryFolder folder_{};
  const std::string ledger_ = folder_ / "promotion.ledger", registry_ = folder_ / "selector.registry";
  const Evidence a_ = make_chain(folder_ / "a.slm"),
                 b_ = make_chain(folder_ / "b.slm", slm::Fixture::tiny_tied, kTrainedKind, "q8_0");
};

TEST_F(Promotion, EachBrokenLinkIsNamed) {
  EXPECT_TRUE(verify_ledger(ledger_).passed);
  const std::string text = read_file(ledger_);
  expect_each_field_is_caught(ledger_schema(), ledger_, [&] { verify_ledger(ledger_); });
  const auto expect = [&](const std::vector<std::uint64_t>& order, const std::string& key) {
    const Finding finding = verified(rearranged(order));
    EXPECT_EQ(finding.rule, "chain/ledger");
    EXPECT_TRUE(finding.message.starts_with(key)) << finding.message;
    write_file(ledger_, text);
  };
  expect({0, 2}, "entry.1.previous");     // removed
  expect({1, 2}, "entry.0.previous");     // the first one removed
  expect({1, 0, 2}, "entry.0.previous");  // reordered
  expect({0, 2, 1}, "entry.1.previous");
  expect({0, 1, 1, 2}, "entry.2.previous");  // repeated
  std::string cut = text;
  cut.resize(cut.find("entry.2."));
  EXPECT_TRUE(verified(cut).message.starts_with("entries")) << "the last one removed";
}

TEST_F(Promotion, AnEntryCannotLeadOutOfTheFolder) {
  Record forged = read_record(ledger_schema(), ledger_).record;
  forged.set("entry.2.path", "../shift.adp1");
  std::string lines;
  for (const auto& [key, value] : forged.lines())
    if (key.starts_with("entry.2.") && key != "entry.2.digest") lines += key + "=" + value + "\n";
  const std::string digest = sha256_hex(lines);
  const Finding finding = verified(forged.set("entry.2.digest", digest).set("head", digest).text());
  EXPECT_TRUE(finding.message.starts_with("entry.2.path")) << finding.message;
}

TEST_F(Promotion, TwoAppendsAtOnceLoseNoEntry) {
  const std::string ledger = folder_ / "other.ledger";
  std::thread other([&] { append_to_ledger(ledger, a_, {}, {}); });
  append_to_ledger(ledger, b_, {}, {});
  other.join();
  EXPECT_EQ(parse_record(ledger_schema(), verify_ledger(ledger).record).number("entries"), 2U);
}

// The package was checked at its path and stamped at its path: another file could come between the two.
TEST_F(Promotion, AnAdapterIsOpenedOnceForItsCheckAndItsDigest) {
  const std::string adapter = folder_ / "shift.adp1", good = read_file(adapter);
  const std::string other = good.substr(0, good.size() - 1) + static_cast<char>(good.back() ^ 1);  // no valid package
  int ledgers = 0;
  // Appends to a new ledger, with the file replaced at this call of the hook. Returns the number of calls.
  const auto append = [&](int replace_at) {
    write_file(adapter, good);
    write_file(folder_ / "other", other);
    const std::string ledger = folder_ / ("l" + std::to_string(ledgers++) + ".ledger");
    int calls = 0;
    Context context;
    context.progress = [&](std::uint64_t, std::uint64_t) {
      if (++calls == replace_at) std::filesystem::rename(folder_ / "other", adapter);
      return true;
    };
    try {
      append_to_ledger(ledger, a_, std::span(&adapter, 1), {}, context);
    } catch (const Error& error) {
      EXPECT_NE(error.finding().rule, "io/open") << error.what();
      return calls;  // the other file was seen and refused, or that the file is another
    }
    EXPECT_EQ(read_file(ledger).find(sha256_hex(other)), std::string::npos) << replace_at;
    return calls;
  };
  const int calls = append(0);
  ASSERT_GT(calls, 2);
  for (int i = 1; i <= calls; ++i) append(i);
}

TEST_F(Promotion, NeedsTheAdmissionAndSomethingNew) {
  EXPECT_EQ(thrown([&] { append_to_ledger(ledger_, a_, {}, {}); }).rule, "chain/promoted");
  std::filesystem::remove(a_.admission);
  EXPECT_EQ(thrown([&] { append_to_ledger(ledger_, a_, {}, {}); }).rule, "chain/missing-evidence");
  const std::string adapter = folder_ / "shift.adp1";
  EXPECT_EQ(thrown([&] { append_to_ledger(ledger_, b_, std::span(&adapter, 1), {}); }).rule, "chain/adapter");
  const TemporaryFolder other;
  EXPECT_EQ(thrown([&] { append_to_ledger(other / "promotion.ledger", b_, {}, {}); }).rule, "chain/path");
}

TEST_F(Promotion, TheRegistryListsWhatTheLedgerPromoted) {
  const Outcome outcome = write_selector_registry(ledger_, registry_);
  const Record registry = parse_record(selector_schema(), outcome.record);
  EXPECT_EQ(registry.number("selector_model_byte_budget"), 33554432U);
  EXPECT_EQ(registry.number("models"), 2U);
  EXPECT_EQ(registry.get("model.0.path"), "a.slm");
  EXPECT_EQ(registry.get("model.1.quantization"), "mixed");  // norms stay f32
  EXPECT_EQ(registry.number("adapters"), 1U);
  EXPECT_EQ(registry.get("adapter.0.base_sha256"), registry.get("model.0.sha256"));
  EXPECT_EQ(read_file(registry_), outcome.record);
  EXPECT_EQ(write_selector_registry(ledger_, registry_, {.replace = true}).record, outcome.record);
  expect_each_field_is_caught(selector_schema(), registry_, [&] { check_selector_registry(ledger_, registry_); });
}

TEST_F(Promotion, ALargerOrChangedArtifactIsRefusedByName) {
  write_selector_registry(ledger_, registry_);
  const Finding large = thrown([&] { write_selector_registry(ledger_, registry_, {.byte_budget = 1000}); });
  EXPECT_EQ(large.rule, "chain/byte-budget");
  EXPECT_NE(large.message.find("'a.slm'"), std::string::npos) << large.message;
  for (const char* const name : {"b.slm", "shift.adp1"}) {
    const std::string bytes = read_file(folder_ / name);
    std::string edited = bytes;
    edited.back() = static_cast<char>(edited.back() ^ 1);
    write_file(folder_ / name, edited);
    const Finding finding = thrown([&] { check_selector_registry(ledger_, registry_); });
    EXPECT_EQ(finding.rule, "chain/changed-artifact");
    EXPECT_NE(finding.message.find(name), std::string::npos) << finding.message;
    write_file(folder_ / name, bytes);
  }
  const TemporaryFolder other;
  EXPECT_EQ(thrown([&] { write_selector_registry(ledger_, other / "selector.registry"); }).kind, Kind::misuse);
}

TEST_F(Promotion, AnAdapterThatDoesNotRunIsNotPromoted) {
  Builder deltas;
  const auto held = std::make_shared<std::vector<float>>(8, 3e38F);
  deltas.tensor("norm.weight", DType::f32, {8}, Bytes{std::as_bytes(std::span(*held)), held});
  const std::string adapter = folder_ / "large.adp1";
  slm::plan_adapter(open(a_.artifact), deltas.build(), slm::AdapterKind::dense).execute(adapter);
  EXPECT_EQ(thrown([&] { append_to_ledger(ledger_, a_, std::span(&adapter, 1), {}); }).rule, "chain/adapter");
}

TEST_F(Promotion, TheRegistryIsNotWrittenOverTheLedgerOrAModel) {
  for (const std::string& over : {ledger_, a_.artifact, folder_ / "shift.adp1"})
    EXPECT_EQ(thrown([&] { write_selector_registry(ledger_, over, {.replace = true}); }).rule,
              "misuse/output-is-input");
}

// The first model with its manifest, receipt and registry, as a user interface reads them.
class Offered : public Promotion {
 protected:
  Offered() {
    write_selector_registry(ledger_, registry_);
    minimodel_template(a_.artifact, with_.manifest, {}, false);
    std::string text = read_file(with_.manifest);
    for (const char* const key :
         {"license.route", "model_card.route", "model.id", "model.version", "publisher.id", "publisher.key_id"})
      replace_line(text, key, "test/one");
    write_file(with_.manifest, text);
    write_import_receipt(a_.artifact, with_.manifest, with_.receipt, {}, false);
  }
  // The rule by which the adapter is not offered; empty if it is.
  std::string refusal(const std::string& adapter) const {
    const Offers found = offers(a_.artifact, with_, std::span(&adapter, 1));
    EXPECT_EQ(found.adapters.size(), 1U);
    return found.adapters[0].why_not ? found.adapters[0].why_not->rule : "";
  }
  // The first check that fails.
  std::optional<Offers::Check> failed() const {
    for (Offers::Check& check : offers(a_.artifact, with_, {}).checks)
      if (check.why_not) return std::move(check);
    return std::nullopt;
  }
  const std::string adapter_ = folder_ / "shift.adp1";
  OfferEvidence with_{folder_ / "a.minimodel", folder_ / "a.receipt", registry_, ledger_};
};

TEST_F(Offered, AListedAdapterThatFits) {
  EXPECT_FALSE(failed());
  EXPECT_EQ(refusal(adapter_), "");
  with_.ledger.clear();
  EXPECT_EQ(refusal(adapter_), "");
}

TEST_F(Offered, NothingWithoutEachOfTheRecords) {
  for (std::string OfferEvidence::*const one :
       {&OfferEvidence::manifest, &OfferEvidence::receipt, &OfferEvidence::registry}) {
    const std::string path = std::exchange(with_.*one, "");
    EXPECT_EQ(failed().value().why_not->rule, "chain/missing-evidence");
    EXPECT_EQ(refusal(adapter_), "chain/not-offered");
    with_.*one = folder_ / "absent";
    EXPECT_NE(refusal(adapter_), "");
    with_.*one = path;
  }
}

TEST_F(Offered, NoAdapterThatTheRegistryDoesNotListOrThatWasChanged) {
  const std::string other = folder_ / "other.adp1";
  std::string bytes = read_file(adapter_);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  write_file(other, bytes);
  EXPECT_EQ(refusal(other), "chain/not-listed");
  EXPECT_EQ(refusal(folder_ / "absent.adp1"), "io/open");
  const Offers other_model = offers(b_.artifact, {.registry = registry_, .ledger = ledger_}, {});
  EXPECT_FALSE(other_model.checks.back().why_not) << "the registry lists it, the other records are another's";
}

TEST_F(Offered, NothingOnceAnyRecordIsTamperedWith) {
  with_.ledger.clear();  // the registry's seal must suffice
  expect_each_field_is_caught(selector_schema(), registry_, [&] {
    if (const auto found = failed()) throw Error(*found->why_not);
  });
  std::string bytes = read_file(a_.artifact);
  bytes[bytes.size() - 100] = static_cast<char>(bytes[bytes.size() - 100] ^ 1);
  write_file(a_.artifact, bytes);
  EXPECT_EQ(failed().value().step, "artifact");
  EXPECT_EQ(failed().value().why_not->rule, "slm/checksum");
  EXPECT_EQ(refusal(adapter_), "chain/not-offered");
}

class MiniModelManifest : public ::testing::Test {
 protected:
  MiniModelManifest() {
    plan(slm::fixture(slm::Fixture::tiny), "slm").execute(artifact_);
    minimodel_template(artifact_, manifest_, {}, false);
    text_ = read_file(manifest_);
    for (const char* const key :
         {"license.route", "model_card.route", "model.id", "model.version", "publisher.id", "publisher.key_id"})
      replace_line(text_, key, "test/one");
    write_file(manifest_, text_);
  }
  // The rule by which verify-manifest refuses this text.
  std::string rule_of(const std::string& text) {
    write_file(manifest_, text);
    return thrown([&] { verify_minimodel_manifest(manifest_); }).rule;
  }
  std::string edited(const std::string& key, const std::string& value) {
    std::string out = text_;
    replace_line(out, key, value);
    return out;
  }
  const TemporaryFolder folder_{};
  const std::string artifact_ = folder_ / "m.slm", manifest_ = folder_ / "m.minimodel",
                    receipt_ = folder_ / "m.minimodel-receipt";
  std::string text_{};
};

TEST_F(MiniModelManifest, IsReadWithEitherLineEndAndHasOneSignedForm) {
  const Outcome plain = verify_minimodel_manifest(manifest_);
  EXPECT_EQ(plain.record, text_);
  std::string other = "# a comment\r\n";
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text_.size(); at = text_.find('\n', at) + 1)
    lines.push_back(text_.substr(at, text_.find('\n', at) - at));
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) other += *line + "\r\n";
  write_file(manifest_, other);
  EXPECT_EQ(verify_minimodel_manifest(manifest_).record, text_);
  write_file(manifest_, text_ + "signature.algorithm=ed25519\nsignature.value=AAAA\n");
  const Outcome with_signature = verify_minimodel_manifest(manifest_);
  EXPECT_EQ(with_signature.record, text_);
  EXPECT_EQ(with_signature.report.warnings(), 1U);
}

TEST_F(MiniModelManifest, RefusesWhatItMustNotHold) {
  const std::string sealed = text_ + "signature.algorithm=ed25519\nsignature.value=AAAA\n";
  EXPECT_EQ(rule_of("# no\n" + sealed), "chain/comment");
  EXPECT_EQ(rule_of(sealed + "\n"), "chain/comment");
  EXPECT_EQ(rule_of(text_ + "signature.value=AAAA\n"), "chain/missing");
  EXPECT_EQ(rule_of(text_ + "install.command=reboot\n"), "chain/active-content");
  EXPECT_EQ(rule_of(text_ + "post_install.script=a.sh\n"), "chain/active-content");
  EXPECT_EQ(rule_of(text_ + "on.import_callback=f\n"), "chain/active-content");
  EXPECT_EQ(rule_of(text_ + "artifact.url=x\n"), "chain/active-content");
  EXPECT_EQ(rule_of(edited("license.route", "https://example.org/l")), "chain/active-content");
  EXPECT_EQ(rule_of(edited("model_card.route", "javascript:alert(1)")), "chain/active-content");
  EXPECT_EQ(rule_of(edited("artifact.project_server_url", "http://example.org")), "chain/active-content");
  EXPECT_EQ(rule_of(edited("artifact.project_server_url", "here")), "chain/value");
  EXPECT_EQ(rule_of(text_ + "Model.id=a\n"), "chain/key");
  EXPECT_EQ(rule_of(text_ + "model.color=a\n"), "chain/key");
  EXPECT_EQ(rule_of(text_ + "model.id=a\n"), "chain/duplicate");
  EXPECT_EQ(rule_of(edited("model.id", "<model>")), "chain/placeholder");
  EXPECT_EQ(rule_of(edited("manifest.version", "1")), "chain/value");
  EXPECT_EQ(rule_of(edited("manifest.schema_checksum", "sha256:" + std::string(64, 'a'))), "chain/value");
  EXPECT_EQ(rule_of(text_.substr(0, text_.find("slm.vocab_size")) + "slm.vocab_size=260"), "chain/line");
  for (const Key& key : minimodel_schema().keys) {
    std::string without = text_;
    const std::size_t at = without.find(std::string(key.name) + "=");
    if (!key.required || at == std::string::npos) continue;
    without.erase(at, without.find('\n', at) + 1 - at);
    EXPECT_EQ(rule_of(without), "chain/missing") << key.name;
  }
}

TEST_F(MiniModelManifest, TheArtifactIsJudgedByItselfNotByWhatIsSaidOfIt) {
  EXPECT_TRUE(verify_minimodel_artifact(artifact_, manifest_).passed);
  const auto rule = [&] { return thrown([&] { verify_minimodel_artifact(artifact_, manifest_); }).rule; };
  for (const char* const key :
       {"artifact.byte_count", "artifact.sha256", "slm.checksum", "slm.tokenizer_checksum",
        "slm.tensor_layout_checksum", "slm.vocab_size", "slm.hidden_size", "slm.layer_count", "slm.head_count",
        "slm.kv_head_count", "slm.head_dim", "slm.ffn_size", "slm.max_context"}) {
    write_file(manifest_, edited(key, changed(std::string(parse_record(minimodel_schema(), text_).get(key)))));
    EXPECT_EQ(rule(), "chain/artifact-mismatch") << key;
  }
  // The manifest matches a broken file exactly, so the validator must find the damage.
  std::string bytes = read_file(artifact_);
  bytes[bytes.size() - 100] = static_cast<char>(bytes[bytes.size() - 100] ^ 1);
  write_file(artifact_, bytes);
  write_file(manifest_, edited("artifact.sha256", tagged(sha256_hex(bytes))));
  EXPECT_EQ(rule(), "slm/checksum");
  EXPECT_EQ(thrown([&] { write_import_receipt(artifact_, manifest_, receipt_, {}, false); }).rule, "slm/checksum");
  EXPECT_FALSE(std::filesystem::exists(receipt_));
}

TEST_F(MiniModelManifest, TheReceiptTellsWhetherFileAndManifestAreStillTheSame) {
  const Outcome written = write_import_receipt(artifact_, manifest_, receipt_, "2026-01-31T12:00:00Z", false);
  EXPECT_EQ(written.record, read_file(receipt_));
  const auto check = [&] { check_import_receipt(artifact_, manifest_, receipt_); };
  expect_each_field_is_caught(receipt_schema(), receipt_, check);
  expect_each_field_is_caught(minimodel_schema(), manifest_, check);
  std::string bytes = read_file(artifact_);
  bytes[bytes.size() - 100] = static_cast<char>(bytes[bytes.size() - 100] ^ 1);
  write_file(artifact_, bytes);
  EXPECT_EQ(thrown(check).rule, "chain/artifact-mismatch");
}

}  // namespace
}  // namespace weighbridge::chain
