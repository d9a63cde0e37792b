// SPDX-License-Identifier: Apache-2.0
// The outer layers of a bundle: Sigstore's JSON and the DSSE envelope.
#include <optional>

#include "manifest/bundle.h"
#include "manifest/text.h"
#include "wire/base64.h"

namespace weighbridge::signing {
namespace {

constexpr std::string_view kMediaTypes = "application/vnd.dev.sigstore.bundle";

// In either alphabet of RFC 4648, with padding or without, as readers of DSSE and of protobuf's JSON must accept it.
Octets base64(const Text& text, std::string given, std::string_view what) {
  const bool has_url = given.find_first_of("-_") != given.npos, has_standard = given.find_first_of("+/") != given.npos;
  std::optional<Octets> bytes;
  if (!(has_url && has_standard)) {
    for (char& c : given) c = c == '-' ? '+' : c == '_' ? '/' : c;
    if (given.find('=') == given.npos) given.append((4 - given.size() % 4) % 4, '=');
    bytes = wire::decode_base64(given);
  }
  if (!bytes) text.fail(std::string(what) + " is not base64");
  if (bytes->empty()) text.fail(std::string(what) + " is empty");
  return std::move(*bytes);
}

Octets certificate(Text& text) {
  std::optional<Octets> out;
  text.object("a certificate",
              {{"rawBytes", [&] { out = base64(text, text.string("a certificate's 'rawBytes'"), "a certificate"); }}});
  if (!out) text.fail("a certificate has no 'rawBytes'");
  return std::move(*out);
}

// Section 4.1.
void verification_material(Text& text, Bundle& out) {
  std::uint64_t log_entries = 0;
  const auto skip = [&] { text.skip(); };
  const auto public_key = [&] {
    out.method = SigningMethod::key;
    const auto hint = [&] { out.hint = text.string_or_null("'hint'"); };
    const Text::Keys keys = text.object("'publicKey'", {{"hint", hint},
                                                        {"rawBytes", skip},  // before version 1.1; the reader's counts
                                                        {"keyDetails", skip}});
    const bool named = keys.contains("hint") || keys.contains("rawBytes") || keys.contains("keyDetails");
    if (!named) text.fail("'publicKey' has neither 'hint' nor 'rawBytes'");
  };
  const auto read_certificate = [&] { out.chain.push_back(certificate(text)); };
  const auto chain = [&] {
    out.method = SigningMethod::certificate;
    text.object("'x509CertificateChain'", {{"certificates", [&] { text.array("'certificates'", read_certificate); }}});
    if (out.chain.empty()) text.fail("'x509CertificateChain' has no certificate");
  };
  const auto of_sigstore = [&] {
    out.method = SigningMethod::sigstore;
    read_certificate();
  };
  const auto log_entry = [&] {
    ++log_entries;
    text.skip();
  };
  const Text::Keys keys =
      text.object("'verificationMaterial'", {{"publicKey", public_key},
                                             {"x509CertificateChain", chain},
                                             {"certificate", of_sigstore},
                                             {"tlogEntries", [&] { text.array("'tlogEntries'", log_entry); }},
                                             {"timestampVerificationData", skip}});
  if (keys.count("publicKey") + keys.count("x509CertificateChain") + keys.count("certificate") > 1)
    text.fail("'verificationMaterial' has more than one of 'publicKey', 'x509CertificateChain' and 'certificate'");
  if (out.method == SigningMethod::sigstore && log_entries == 0)
    text.fail("'verificationMaterial' has a certificate of Sigstore, but no entry of its log ('tlogEntries')");
}

void envelope(Text& text, Bundle& out) {
  const auto payload = [&] {
    const Octets bytes = base64(text, text.string("'payload'"), "the payload");
    out.payload.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  const auto type = [&] {
    const std::string given = text.string("'payloadType'");
    if (given != kPayloadType) text.fail("the payload is of type " + quote(given) + ", not " + quote(kPayloadType));
  };
  const auto signature = [&] {
    const auto sig = [&] { out.signatures.push_back(base64(text, text.string("'sig'"), "a signature")); };
    const auto key_id = [&] { text.string_or_null("'keyid'"); };
    if (!text.object("a signature", {{"sig", sig}, {"keyid", key_id}}).contains("sig"))
      text.fail("a signature has no 'sig'");
  };
  const auto signatures = [&] { text.array("'signatures'", signature); };
  text.object("'dsseEnvelope'",
              {{"payload", payload, true}, {"payloadType", type, true}, {"signatures", signatures, true}});
}

}  // namespace

Bundle parse_bundle(std::string_view given, const Limits& limits, Report& report) {
  Text text(given, limits, "the manifest", "manifest/bundle", report);
  Bundle out;
  const auto type = [&] {
    const std::string media = text.string("'mediaType'");
    if (media != kMediaType)
      media.starts_with(kMediaTypes)
          ? base::unsupported("unsupported/bundle", "the bundle has the media type " + quote(media) +
                                                        "; this build reads " + quote(kMediaType))
          : text.fail("'mediaType' is " + quote(media) + ", not " + quote(kMediaType));
  };
  text.object("the bundle", {{"mediaType", type, true},
                             {"verificationMaterial", [&] { verification_material(text, out); }, true},
                             {"dsseEnvelope", [&] { envelope(text, out); }, true}});
  text.finish();
  if (out.signatures.empty()) {
    out.method = SigningMethod::none;
  } else if (out.method == SigningMethod::none) {
    text.fail("'verificationMaterial' has none of 'publicKey', 'x509CertificateChain' and 'certificate'");
  }
  return out;
}

}  // namespace weighbridge::signing
