// SPDX-License-Identifier: Apache-2.0
// The text of a bundle, both ways: a Sigstore bundle (JSON) that holds a DSSE envelope, whose payload is an in-toto
// statement (JSON) with the manifest. Owns the grammar of the three, and which names of files are harmless. Sections
// are those of the OMS specification 1.0.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "manifest/signature.h"
#include "weighbridge/context.h"
#include "weighbridge/manifest.h"

namespace weighbridge::signing {

inline constexpr std::string_view kMediaType = "application/vnd.dev.sigstore.bundle.v0.3+json";
inline constexpr std::string_view kMediaTypeOfAny = "application/vnd.dev.sigstore.bundle";  // of every version
inline constexpr std::string_view kPayloadType = "application/vnd.in-toto+json";
inline constexpr std::string_view kStatementType = "https://in-toto.io/Statement/v1";
inline constexpr std::string_view kPredicate = "https://model_signing/signature/v1.0";
inline constexpr std::string_view kOurs = "weighbridge";  // the annotation with our notes

inline std::string quote(std::string_view text) { return "'" + std::string(text) + "'"; }

// The outer two layers. Nothing in it is signed but the payload.
struct Bundle {
  SigningMethod method = SigningMethod::none;
  std::string hint;           // of the key; empty in bundles before 1.1
  std::vector<Octets> chain;  // certificates, DER, the signer's first
  std::string payload;        // decoded
  std::vector<Octets> signatures;
};
// Error manifest/...; adds warnings to the report.
Bundle parse_bundle(std::string_view text, const Limits&, Report&);

struct Statement {
  Manifest manifest;
  bool old_form = false;  // of version 0.2 of the reference, whose subjects are the files
};
// Error manifest/..., unsupported/digest; likewise.
Statement parse_statement(std::string_view payload, const Limits&, Report&);

// What a signature is made over (DSSE, "PAE"); the old form has what Python made of it in versions before 1.0.
std::string signed_bytes(std::string_view payload);
std::string signed_bytes_of_old_form(std::string_view payload);

// The statement as JSON.
std::string statement_text(const Manifest&);
// The bundle around a payload. Without a signature it has none.
std::string bundle_text(std::string_view payload, const Signed*);

// Empty if the name can be in a manifest; else why not: "is absolute", "leads out of the folder", ...
std::string_view fault_of_name(std::string_view name) noexcept;

}  // namespace weighbridge::signing
