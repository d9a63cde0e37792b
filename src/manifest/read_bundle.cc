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
  text.object("a certificate", [&](std::string_view key) {
    if (key != "rawBytes") return false;
    out = base64(text, text.string("a certificate's 'rawBytes'"), "a certificate");
    return true;
  });
  if (!out) text.fail("a certificate has no 'rawBytes'");
  return std::move(*out);
}

// Section 4.1.
void verification_material(Text& text, Bundle& out) {
  std::uint64_t contents = 0, log_entries = 0;
  text.object("'verificationMaterial'", [&](std::string_view key) {
    if (key == "publicKey") {
      ++contents;
      out.method = SigningMethod::key;
      bool named = false;
      text.object("'publicKey'", [&](std::string_view member) {
        if (member == "hint") {
          named = true;
          if (!text.null()) out.hint = text.string("'hint'");
          return true;
        }
        if (member != "rawBytes" && member != "keyDetails") return false;
        named = true;  // before version 1.1; the reader's own key counts
        return text.skip();
      });
      if (!named) text.fail("'publicKey' has neither 'hint' nor 'rawBytes'");
      return true;
    }
    if (key == "x509CertificateChain") {
      ++contents;
      out.method = SigningMethod::certificate;
      text.object("'x509CertificateChain'", [&](std::string_view member) {
        if (member != "certificates") return false;
        text.array("'certificates'", [&] { out.chain.push_back(certificate(text)); });
        return true;
      });
      if (out.chain.empty()) text.fail("'x509CertificateChain' has no certificate");
      return true;
    }
    if (key == "certificate") {
      ++contents;
      out.method = SigningMethod::sigstore;
      out.chain.push_back(certificate(text));
      return true;
    }
    if (key == "tlogEntries") {
      text.array("'tlogEntries'", [&] {
        ++log_entries;
        text.skip();
      });
      return true;
    }
    return key == "timestampVerificationData" && text.skip();
  });
  if (contents > 1)
    text.fail("'verificationMaterial' has more than one of 'publicKey', 'x509CertificateChain' and 'certificate'");
  if (out.method == SigningMethod::sigstore && log_entries == 0)
    text.fail("'verificationMaterial' has a certificate of Sigstore, but no entry of its log ('tlogEntries')");
}

void envelope(Text& text, Bundle& out) {
  bool payload = false, type = false, signatures = false;
  text.object("'dsseEnvelope'", [&](std::string_view key) {
    if (key == "payload") {
      payload = true;
      const Octets bytes = base64(text, text.string("'payload'"), "the payload");
      out.payload.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      return true;
    }
    if (key == "payloadType") {
      type = true;
      const std::string given = text.string("'payloadType'");
      if (given != kPayloadType) text.fail("the payload is of type " + quote(given) + ", not " + quote(kPayloadType));
      return true;
    }
    if (key != "signatures") return false;
    signatures = true;
    text.array("'signatures'", [&] {
      bool has = false;
      text.object("a signature", [&](std::string_view member) {
        if (member == "sig") {
          has = true;
          out.signatures.push_back(base64(text, text.string("'sig'"), "a signature"));
          return true;
        }
        if (member != "keyid") return false;
        if (!text.null()) text.string("'keyid'");
        return true;
      });
      if (!has) text.fail("a signature has no 'sig'");
    });
    return true;
  });
  if (!payload || !type || !signatures)
    text.fail("'dsseEnvelope' lacks " + std::string(!payload ? "'payload'" : !type ? "'payloadType'" : "'signatures'"));
}

}  // namespace

Bundle parse_bundle(std::string_view given, const Limits& limits, Report& report) {
  Text text(given, limits, "the manifest", "manifest/bundle", report);
  Bundle out;
  bool type = false, material = false, has_envelope = false;
  text.object("the bundle", [&](std::string_view key) {
    if (key == "mediaType") {
      type = true;
      const std::string media = text.string("'mediaType'");
      if (media != kMediaType)
        media.starts_with(kMediaTypes)
            ? base::unsupported("unsupported/bundle", "the bundle has the media type " + quote(media) +
                                                          "; this build reads " + quote(kMediaType))
            : text.fail("'mediaType' is " + quote(media) + ", not " + quote(kMediaType));
    } else if (key == "verificationMaterial") {
      material = true;
      verification_material(text, out);
    } else if (key == "dsseEnvelope") {
      has_envelope = true;
      envelope(text, out);
    } else {
      return false;
    }
    return true;
  });
  text.finish();
  if (!type || !material || !has_envelope)
    text.fail("the bundle lacks " + std::string(!type       ? "'mediaType'"
                                                : !material ? "'verificationMaterial'"
                                                            : "'dsseEnvelope'"));
  if (out.signatures.empty()) {
    out.method = SigningMethod::none;
  } else if (out.method == SigningMethod::none) {
    text.fail("'verificationMaterial' has none of 'publicKey', 'x509CertificateChain' and 'certificate'");
  }
  return out;
}

}  // namespace weighbridge::signing
