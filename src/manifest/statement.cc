// SPDX-License-Identifier: Apache-2.0
// The statement that a conversion leaves: an in-toto statement with a SLSA provenance, both ways. Source: in-toto
// attestation framework 1.0, statement; slsa.dev, provenance 1.0.
#include <optional>

#include "manifest/bundle.h"
#include "manifest/text.h"
#include "weighbridge/json_writer.h"

namespace weighbridge {
namespace {

constexpr std::string_view kProvenance = "https://slsa.dev/provenance/v1", kBuildType = "weighbridge/convert/v1",
                           kContent = "weighbridgeContent", kSha256 = "sha256", kSource = "source";

void digest_set(JsonWriter& out, const Digest& sha256, const Digest& content) {
  out.key("digest").begin_object();
  if (sha256 != Digest{}) out.member(kSha256, sha256.hex());
  if (content != Digest{}) out.member(kContent, content.text());
  out.end_object();
}

// One resource: its name and its digests.
struct Named {
  std::string name;
  Digest sha256{}, content{};
};
Named named(signing::Text& in, std::string_view what) {
  Named out;
  const auto digest = [&](Digest& to, bool of_content) {
    const std::string given = in.string("a digest");
    const std::optional<Digest> parsed = parse_digest(given);
    if (!parsed || (of_content ? parsed->version != kDigestVersion : parsed->version != 1))
      in.fail("a digest of " + signing::quote(out.name) + " is " + signing::quote(given));
    to = {parsed->bytes, of_content ? parsed->version : 0};
  };
  in.object(what,
            {{"name", [&] { out.name = in.string("a name"); }, true},
             {"digest",
              [&] {
                in.object(
                    "'digest'",
                    {{kSha256, [&] { digest(out.sha256, false); }}, {kContent, [&] { digest(out.content, true); }}},
                    signing::Text::Others::skipped);
              },
              true}},
            signing::Text::Others::skipped);
  return out;
}

}  // namespace

std::string write_statement(const Statement& statement) {
  JsonWriter out;
  const auto resource = [&](std::string_view name, const Digest& sha256, const Digest& content) {
    out.begin_object();
    out.member("name", name);
    digest_set(out, sha256, content);
    out.end_object();
  };
  out.begin_object();
  out.member("_type", signing::kStatementType);
  out.key("subject").begin_array();
  resource(statement.name, statement.sha256, statement.content);
  out.end_array();
  out.member("predicateType", kProvenance);
  out.key("predicate").begin_object();
  out.key("buildDefinition").begin_object();
  out.member("buildType", kBuildType);
  out.key("externalParameters").begin_object();
  out.member("to", statement.to);
  out.key("options").begin_array();
  for (const auto& [name, value] : statement.options) {
    out.begin_object();
    out.member("name", name);
    out.member("value", value);
    out.end_object();
  }
  out.end_array();
  out.end_object();
  out.key("resolvedDependencies").begin_array();
  resource(kSource, {}, statement.source);
  for (const auto& [option, digest] : statement.files) resource(option, digest, {});
  out.end_array();
  out.end_object();
  out.key("runDetails").begin_object();
  out.key("builder").begin_object();
  out.member("id", signing::kOurs);
  out.key("version").begin_object();
  out.member(signing::kOurs, statement.program);
  out.end_object();
  out.end_object();
  out.end_object();
  out.end_object();
  out.end_object();
  return out.take();
}

Statement read_statement(std::string_view text, const Limits& limits) {
  using Others = signing::Text::Others;
  Report report;
  signing::Text in(text, limits, "the statement", "manifest/statement", report);
  Statement out;
  bool sourced = false;
  const auto fixed = [&](std::string_view key, std::string_view value) {
    if (const std::string found = in.string(key); found != value)
      in.fail(std::string(key) + " is " + signing::quote(found) + ", not " + signing::quote(value));
  };
  const auto option = [&] {
    auto& one = out.options.emplace_back();
    in.object("an option", {{"name", [&] { one.first = in.string("'name'"); }, true},
                            {"value", [&] { one.second = in.string("'value'"); }, true}});
  };
  const auto dependency = [&] {
    const Named one = named(in, "a dependency");
    if (one.name != kSource) return static_cast<void>(out.files.emplace_back(one.name, one.sha256));
    out.source = one.content;
    sourced = true;
  };
  const auto definition = [&] {
    in.object("'buildDefinition'",
              {{"buildType", [&] { fixed("buildType", kBuildType); }, true},
               {"externalParameters",
                [&] {
                  in.object("'externalParameters'", {{"to", [&] { out.to = in.string("'to'"); }, true},
                                                     {"options", [&] { in.array("'options'", option); }, true}});
                },
                true},
               {"resolvedDependencies", [&] { in.array("'resolvedDependencies'", dependency); }, true}},
              Others::skipped);
  };
  const auto version = [&] {
    in.object("'version'", {{signing::kOurs, [&] { out.program = in.string("a version"); }}}, Others::skipped);
  };
  const auto details = [&] {
    in.object("'runDetails'",
              {{"builder",
                [&] {
                  in.object("'builder'", {{"version", version}}, Others::skipped);
                },
                true}},
              Others::skipped);
  };
  const auto subject = [&] {
    if (!out.name.empty()) in.fail("the statement has several subjects");
    const Named one = named(in, "a subject");
    out.name = one.name;
    out.sha256 = one.sha256;
    out.content = one.content;
  };
  in.object("the statement", {{"_type", [&] { fixed("_type", signing::kStatementType); }, true},
                              {"subject", [&] { in.array("'subject'", subject); }, true},
                              {"predicateType", [&] { fixed("predicateType", kProvenance); }, true},
                              {"predicate",
                               [&] {
                                 in.object("'predicate'",
                                           {{"buildDefinition", definition, true}, {"runDetails", details, true}},
                                           Others::skipped);
                               },
                               true}});
  in.finish();
  if (out.sha256 == Digest{} || !sourced || out.source == Digest{})
    in.fail("the statement lacks the digest of its subject or of its source");
  return out;
}

}  // namespace weighbridge
