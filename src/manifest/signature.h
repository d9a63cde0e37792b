// SPDX-License-Identifier: Apache-2.0
// Signatures by OpenSSL: ECDSA over the curves P-256, P-384 and P-521, and chains of X.509 certificates. Owns which
// keys and certificates are good enough. Builds without OpenSSL refuse each call with Error{unsupported}.
#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weighbridge/manifest.h"

namespace weighbridge::signing {

using Octets = std::vector<std::byte>;

struct Signed {
  Octets signature;           // DER
  std::string fingerprint;    // of the public key
  std::vector<Octets> chain;  // the certificate and its chain, DER; empty without a certificate
};
// Error misuse/key, misuse/certificate.
Signed sign(const SigningKey&, std::span<const std::byte> message);

// A key to check signatures with.
class PublicKey {
 public:
  // Error misuse/key if it is not a public key on one of the curves.
  static PublicKey from_pem(std::string_view pem);
  // The key of a certificate. Error manifest/certificate.
  static PublicKey from_certificate(std::span<const std::byte> der);
  ~PublicKey();
  PublicKey(PublicKey&&) noexcept;

  // With the digest that belongs to the curve, or with SHA-256 as versions before 1.0 of the reference did.
  bool accepts(std::span<const std::byte> signature, std::span<const std::byte> message, bool sha256 = false) const;
  // The SHA-256 of the key as PEM text, which the reference writes as its hint.
  const std::string& fingerprint() const noexcept { return fingerprint_; }
  // Likewise of its DER form.
  const std::string& der_fingerprint() const noexcept { return der_fingerprint_; }

 private:
  struct Key;
  explicit PublicKey(std::unique_ptr<Key>);
  std::unique_ptr<Key> key_;
  std::string fingerprint_, der_fingerprint_;
};

// What a certificate says of itself.
struct Subject {
  std::string name;  // "CN=Someone", or the first alternative name if the name is empty
  std::string not_before, not_after;
  bool expired = false, not_yet = false;  // by the clock of this machine
};
Subject subject_of(std::span<const std::byte> der);
// Whether the chain, the signer's certificate first, leads to one of the roots, and the certificate may sign. Validity
// is judged at the moment from which the signer's certificate is valid, as the reference does, because the bundle does
// not prove when it was signed. Error manifest/certificate; misuse/roots.
void require_chain(std::span<const Octets> chain, std::string_view roots);

}  // namespace weighbridge::signing
