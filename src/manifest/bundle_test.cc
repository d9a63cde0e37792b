// SPDX-License-Identifier: Apache-2.0
// The grammar of bundles: what is written, and what hostile ones are refused for.
#include "manifest/bundle.h"

#include <gtest/gtest.h>

#include "codecs/checksum.h"

namespace weighbridge::signing {
namespace {

std::string digit(char c) { return std::string(64, c); }
std::string resource(const std::string& name, const std::string& digest, const std::string& more = "") {
  return R"({"name":")" + name + R"(","digest":")" + digest + R"(","algorithm":"sha256")" + more + "}";
}
// The digest of the subject, from the digests in order.
std::string root_of(const std::string& resources) {
  std::string raw;
  for (std::size_t at = 0; (at = resources.find("\"digest\":\"", at)) != resources.npos;) {
    at += 10;
    std::string one(32, '\0');
    if (codecs::from_hex(resources.substr(at, 64), std::as_writable_bytes(std::span(one)))) raw += one;
  }
  return codecs::to_hex(codecs::sha256(std::as_bytes(std::span(raw))));
}
const std::string kFiles = R"("method":"files","hash_type":"sha256","allow_symlinks":false)";
std::string statement(const std::string& resources, const std::string& serialization = kFiles,
                      const std::string& more = "") {
  return R"({"_type":"https://in-toto.io/Statement/v1","subject":[{"name":"m","digest":{"sha256":")" +
         root_of(resources) +
         R"("}}],"predicateType":"https://model_signing/signature/v1.0","predicate":{"resources":[)" + resources +
         R"(],"serialization":{)" + serialization + "}}" + more + "}";
}
std::string shards(std::uint64_t size) {
  return R"("method":"shards","hash_type":"sha256","allow_symlinks":false,"shard_size":)" + std::to_string(size);
}

// The rule of the error; "" if there is none.
std::string rule_of(const std::string& payload, Report* report = nullptr) {
  Report own;
  try {
    parse_statement(payload, {}, report == nullptr ? own : *report);
  } catch (const Error& error) {
    return error.finding().rule;
  }
  return "";
}
std::string bundle_rule(const std::string& text) {
  Report report;
  try {
    parse_bundle(text, {}, report);
  } catch (const Error& error) {
    return error.finding().rule;
  }
  return report.warnings() > 0 ? "warning " + report.findings().front().rule : "";
}

TEST(Statement, AGoodOne) {
  const std::string two = resource("a", digit('a')) + "," + resource("b/c", digit('b'), R"(,"uri":"https://x")");
  Report report;
  const Statement found = parse_statement(statement(two), {}, report);
  ASSERT_EQ(found.manifest.entries.size(), 2U);
  EXPECT_EQ(found.manifest.entries[1].file, "b/c");
  EXPECT_EQ(report.total(), 0U);
}

TEST(Statement, NamesThatEscapeAreRefused) {
  for (const char* name :
       {"../a", "a/../b", "a/..", "/etc/passwd", "a//b", "./a", "a/", "", "a\\\\b", "..\\\\a", "a\\u0000b", ".", "a/."})
    EXPECT_EQ(rule_of(statement(resource(name, digit('a')) + "," + resource("z", digit('b')))), "manifest/name")
        << name;
  for (const char* name : {"..a", "a..", "...", "a b", "\xc3\xa9", "a:b", "-rf"})
    EXPECT_EQ(rule_of(statement(resource(name, digit('a')))), "") << name;
  // The name that versions of the reference give the only file of a model that is one file.
  EXPECT_EQ(rule_of(statement(resource(".", digit('a')))), "");
  EXPECT_EQ(rule_of(statement(resource("a", digit('a')), kFiles + R"(,"ignore_paths":["../x"])")), "manifest/name");
  EXPECT_EQ(rule_of(statement(resource("a", digit('a')), kFiles + R"(,"ignore_paths":["."])")), "manifest/name");
}

TEST(Statement, WhatItMustHave) {
  const std::string good = resource("a", digit('a'));
  EXPECT_EQ(rule_of(statement(good + "," + good)), "manifest/duplicate");
  EXPECT_EQ(rule_of(statement("")), "manifest/statement");
  EXPECT_EQ(rule_of(statement(resource("a", std::string(64, 'A')))), "manifest/statement");
  EXPECT_EQ(rule_of(statement(resource("a", std::string(63, 'a')))), "manifest/statement");
  EXPECT_EQ(rule_of(statement(good, R"("method":"files","hash_type":"sha256")")), "manifest/statement");
  EXPECT_EQ(rule_of(statement(good, R"("method":"tensors","hash_type":"sha256","allow_symlinks":false)")),
            "manifest/statement");
  EXPECT_EQ(rule_of(statement(good, kFiles + R"(,"shard_size":5)")), "manifest/statement");
  EXPECT_EQ(rule_of(statement(good, R"("method":"shards","hash_type":"sha256","allow_symlinks":false)")),
            "manifest/statement");
  EXPECT_EQ(rule_of(statement(good, shards(0))), "manifest/statement");
  std::string text = statement(good);
  text.replace(text.find(root_of(good)), 64, digit('c'));
  EXPECT_EQ(rule_of(text), "manifest/root");
  text = statement(good);
  text.replace(text.find("signature/v1.0"), 14, "signature/v9.9");
  EXPECT_EQ(rule_of(text), "manifest/statement");
  text = statement(good);
  text.replace(text.find("Statement/v1"), 12, "Statement/v0");
  EXPECT_EQ(rule_of(text), "manifest/statement");
  EXPECT_EQ(rule_of(statement(good) + " x"), "manifest/statement");
  EXPECT_EQ(rule_of(std::string(1000, '[')), "manifest/statement");
}

// Readers disagree on which of two members counts, so what one verifies is not what another loads.
TEST(Statement, ARepeatedMemberIsRefused) {
  EXPECT_EQ(rule_of(R"({"_type":"a","_type":"b"})"), "manifest/statement");
  const std::string twice = R"({"name":"a","name":"b","digest":")" + digit('a') + R"(","algorithm":"sha256"})";
  EXPECT_EQ(rule_of(statement(twice)), "manifest/statement");
}

TEST(Statement, OtherDigestsAreRefusedByName) {
  for (const char* algorithm : {"blake2b", "blake3"}) {
    const std::string other = R"({"name":"a","digest":"00","algorithm":")" + std::string(algorithm) + R"("})";
    EXPECT_EQ(rule_of(statement(
                  other, R"("method":"files","hash_type":")" + std::string(algorithm) + R"(","allow_symlinks":false)")),
              "unsupported/digest");
  }
  EXPECT_EQ(rule_of(statement(R"({"name":"a","digest":"00","algorithm":"md5"})")), "manifest/statement");
}

TEST(Statement, RangesFollowEachOther) {
  const auto of = [](std::initializer_list<const char*> names, std::uint64_t size) {
    std::string all;
    for (const char* name : names) all += (all.empty() ? "" : ",") + resource(name, digit('a'));
    return rule_of(statement(all, shards(size)));
  };
  EXPECT_EQ(of({"f:0:10", "f:10:15"}, 10), "");
  EXPECT_EQ(of({"a:b:0:10", "a:b:10:20"}, 10), "");             // a colon in the name
  EXPECT_EQ(of({"f:10:15", "f:0:10"}, 10), "");                 // in any order
  EXPECT_EQ(of({"f:0:10", "f:11:15"}, 10), "manifest/shards");  // a gap
  EXPECT_EQ(of({"f:0:10", "f:9:15"}, 10), "manifest/shards");   // an overlap
  EXPECT_EQ(of({"f:5:10"}, 10), "manifest/shards");
  EXPECT_EQ(of({"f:0:5", "f:5:15"}, 10), "manifest/shards");  // a short one before the last
  EXPECT_EQ(of({"f:0:11"}, 10), "manifest/shards");           // too long
  EXPECT_EQ(of({"f:0:0"}, 10), "manifest/shards");
  EXPECT_EQ(of({"f:0:10", "f:0:10"}, 10), "manifest/duplicate");
  EXPECT_EQ(of({"f"}, 10), "manifest/shards");
  EXPECT_EQ(of({"f:00:10"}, 10), "manifest/shards");
  EXPECT_EQ(of({"f:-1:10"}, 10), "manifest/shards");
  EXPECT_EQ(of({"f:18446744073709551616:1"}, 10), "manifest/shards");
  EXPECT_EQ(of({"../f:0:10"}, 10), "manifest/name");
  EXPECT_EQ(of({":0:10"}, 10), "manifest/name");
}

// model-signing 1.1 names the digests of ranges so; the specification has plain "sha256" there too.
TEST(Statement, DigestsOfRangesByTheReferencesName) {
  const auto of = [](const std::string& algorithm, const std::string& serialization) {
    return rule_of(statement(R"({"name":"f:0:10","digest":")" + digit('a') + R"(","algorithm":")" + algorithm + R"("})",
                             serialization));
  };
  EXPECT_EQ(of("sha256-sharded-10", shards(10)), "");
  EXPECT_EQ(of("sha256-sharded-11", shards(10)), "manifest/statement");
  std::string spelled = shards(10);
  EXPECT_EQ(of("sha256", spelled + ".0"), "");  // as protobuf writes numbers
  EXPECT_EQ(of("sha256", spelled + "e0"), "");
  EXPECT_EQ(of("sha256", spelled + ".5"), "manifest/statement");
  EXPECT_EQ(of("sha256", spelled + "e99"), "manifest/statement");
  EXPECT_EQ(of("sha256", spelled.replace(spelled.rfind("10"), 2, "-10")), "manifest/statement");
  EXPECT_EQ(of("sha256-sharded-0", kFiles), "manifest/statement");
}

TEST(Statement, AnotherOrderIsAWarningOnly) {
  Report report;
  EXPECT_EQ(rule_of(statement(resource("b", digit('b')) + "," + resource("a", digit('a'))), &report), "");
  EXPECT_EQ(report.findings().at(0).rule, "manifest/order");
  // As versions of the reference sort: by components.
  Report components;
  EXPECT_EQ(rule_of(statement(resource("a/x", digit('b')) + "," + resource("a-b", digit('a'))), &components), "");
  EXPECT_EQ(components.total(), 0U);
}

std::string bundle(const std::string& material, const std::string& envelope) {
  return R"({"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json","verificationMaterial":)" + material +
         R"(,"dsseEnvelope":)" + envelope + "}";
}
const std::string kKey = R"({"publicKey":{"hint":"00"}})";
std::string envelope(const std::string& payload = "e30=", const std::string& signatures = R"([{"sig":"AA=="}])",
                     const std::string& type = "application/vnd.in-toto+json") {
  return R"({"payload":")" + payload + R"(","payloadType":")" + type + R"(","signatures":)" + signatures + "}";
}

TEST(Bundle, WhatItMustHave) {
  EXPECT_EQ(bundle_rule(bundle(kKey, envelope())), "");
  EXPECT_EQ(bundle_rule(bundle(R"({"publicKey":{"rawBytes":"00","keyDetails":"X"}})", envelope())), "");
  EXPECT_EQ(bundle_rule(bundle("{}", envelope())), "manifest/bundle");
  EXPECT_EQ(bundle_rule(bundle("{}", envelope("e30=", "[]"))), "");  // without a signature
  EXPECT_EQ(bundle_rule(bundle(R"({"publicKey":{}})", envelope())), "manifest/bundle");
  EXPECT_EQ(bundle_rule(bundle(R"({"x509CertificateChain":{"certificates":[]}})", envelope())), "manifest/bundle");
  EXPECT_EQ(bundle_rule(bundle(R"({"certificate":{"rawBytes":"AA=="}})", envelope())), "manifest/bundle");  // no log
  EXPECT_EQ(bundle_rule(bundle(R"({"certificate":{"rawBytes":"AA=="},"tlogEntries":[]})", envelope())),
            "manifest/bundle");
  EXPECT_EQ(bundle_rule(bundle(R"({"certificate":{"rawBytes":"AA=="},"tlogEntries":[{}]})", envelope())), "");
  EXPECT_EQ(bundle_rule(bundle(R"({"publicKey":{"hint":"00"},"certificate":{"rawBytes":"AA=="},"tlogEntries":[{}]})",
                               envelope())),
            "manifest/bundle");
  EXPECT_EQ(bundle_rule(bundle(kKey, envelope("e30=", R"([{"sig":"AA=="}])", "text/plain"))), "manifest/bundle");
  EXPECT_EQ(bundle_rule(bundle(kKey, envelope("e30=", R"([{"sig":""}])"))), "manifest/bundle");
  EXPECT_EQ(bundle_rule(bundle(kKey, envelope("e30=", R"([{"keyid":""}])"))), "manifest/bundle");
  EXPECT_EQ(bundle_rule(bundle(kKey, envelope("e30=", R"([{"sig":"AA==","keyid":null}])"))), "");
  EXPECT_EQ(bundle_rule(""), "manifest/bundle");
  EXPECT_EQ(bundle_rule("{}"), "manifest/bundle");
  EXPECT_EQ(bundle_rule(R"({"mediaType":"text/plain"})"), "manifest/bundle");
  EXPECT_EQ(bundle_rule(R"({"mediaType":"application/vnd.dev.sigstore.bundle.v0.4+json"})"), "unsupported/bundle");
  EXPECT_EQ(bundle_rule(R"({"mediaType":"a","mediaType":"b"})"), "manifest/bundle");
}

// DSSE: "either standard or URL-safe"; padding is optional in protobuf's JSON.
TEST(Bundle, TheForms0fBase64) {
  Report report;
  const std::string raw = "\xfb\xff\xfe{}";
  for (const char* payload : {"+//+e30=", "-__-e30=", "+//+e30", "-__-e30"})
    EXPECT_EQ(parse_bundle(bundle(kKey, envelope(payload)), {}, report).payload, raw) << payload;
  for (const char* payload : {"-//+e30=", "e30==", "e3 0=", "e30=\\n", "e31=", "e", "=", "e30=e30="})
    EXPECT_EQ(bundle_rule(bundle(kKey, envelope(payload))), "manifest/bundle") << payload;
}

TEST(Bundle, WhatIsSigned) {
  EXPECT_EQ(signed_bytes("hello world"), "DSSEv1 28 application/vnd.in-toto+json 11 hello world");
  // Python's repr() of bytes.
  EXPECT_EQ(signed_bytes_of_old_form("a\n\"\\\x01\xff"),
            "DSSEV1 28 application/vnd.in-toto+json 6 b'a\\n\"\\\\\\x01\\xff'");
  EXPECT_EQ(signed_bytes_of_old_form("it's"), "DSSEV1 28 application/vnd.in-toto+json 4 b\"it's\"");
  EXPECT_EQ(signed_bytes_of_old_form("'\""), "DSSEV1 28 application/vnd.in-toto+json 2 b'\\'\"'");
}

TEST(Bundle, WhatIsWrittenIsRead) {
  Manifest given;
  given.name = "model";
  given.shard_size = 10;
  given.ignored = {"logs"};
  given.format = "safetensors";
  given.content_digest.version = 2;
  for (std::uint64_t at = 0; at < 100; at += 10) given.entries.push_back({.file = "w:x", .begin = at, .end = at + 10});
  given.entries[3].sha256.bytes[0] = std::byte{7};
  Digest digest{.version = 2};
  digest.bytes[31] = std::byte{9};
  given.notes.push_back(
      {.file = "w:x", .size = 100, .format = "safetensors", .content_digest = digest, .tensors = {{"a\n", digest}}});
  Report report;
  const Bundle outer = parse_bundle(write_manifest(given), {}, report);
  const Manifest read = parse_statement(outer.payload, {}, report).manifest;
  EXPECT_EQ(report.total(), 0U);
  EXPECT_EQ(read.files(), 1U);
  ASSERT_EQ(read.entries.size(), 10U);  // "w:x:10:20" sorts before "w:x:0:10" as text
  EXPECT_EQ(entry_name(read.entries[3]), "w:x:30:40");
  EXPECT_EQ(read.entries[3].sha256, given.entries[3].sha256);
  ASSERT_NE(read.note("w:x"), nullptr);
  EXPECT_EQ(read.note("w:x")->size, 100U);
  EXPECT_EQ(read.note("w:x")->tensors, given.notes[0].tensors);
  EXPECT_EQ(read.format, "safetensors");
  EXPECT_EQ(read.ignored, (std::vector<std::string>{".git", ".gitattributes", ".github", ".gitignore", "logs"}));
}

// Every byte of a bundle changed, removed, and the text cut: an error or the same meaning, never a crash.
TEST(Bundle, DamageIsSurvived) {
  Manifest given;
  given.name = "m";
  given.entries.push_back({.file = "f"});
  given.notes.push_back({.file = "f", .size = 5});
  const std::string whole = bundle_text(statement_text(given), nullptr), payload = statement_text(given);
  for (std::size_t at = 0; at < whole.size(); ++at) {
    bundle_rule(whole.substr(0, at));
    for (const char c : {'"', '{', '\\', '\0', '9'}) {
      std::string other = whole;
      other[at] = c;
      bundle_rule(other);
    }
  }
  for (std::size_t at = 0; at < payload.size(); ++at) {
    EXPECT_NE(rule_of(payload.substr(0, at)), "");
    for (const char c : {'"', '{', '\\', '\0', '9'}) {
      std::string other = payload;
      other[at] = c;
      rule_of(other);
    }
  }
}

}  // namespace
}  // namespace weighbridge::signing
