// SPDX-License-Identifier: Apache-2.0
// Keys, certificates and chains: which are good enough to sign and to trust.
#include "manifest/signature.h"

#include <gtest/gtest.h>

#include "support/signing_keys.h"

namespace weighbridge::signing {
namespace {

using test::CertificateOptions;
using test::Chain;
using test::Key;

std::span<const std::byte> bytes(const std::string& text) { return std::as_bytes(std::span(text)); }
const std::string kMessage = "DSSEv1 ...";

template <class Work> std::string error_of(Work&& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.finding().rule + ": " + error.finding().message;
  }
  return "no error";
}

TEST(Signature, EachCurveSignsWithItsOwnDigest) {
  for (const char* curve : {"P-256", "P-384", "P-521"}) {
    const Key key(curve), other(curve);
    const Signed made = sign({.key = key.private_pem()}, bytes(kMessage));
    const PublicKey good = PublicKey::from_pem(key.public_pem());
    EXPECT_EQ(good.fingerprint(), made.fingerprint);
    EXPECT_TRUE(good.accepts(made.signature, bytes(kMessage)));
    EXPECT_FALSE(good.accepts(made.signature, bytes("DSSEv1 ..!")));
    EXPECT_FALSE(PublicKey::from_pem(other.public_pem()).accepts(made.signature, bytes(kMessage)));
    // SHA-256 is the digest of P-256 alone.
    EXPECT_EQ(good.accepts(made.signature, bytes(kMessage), true), std::string(curve) == "P-256");
    for (std::size_t size = 0; size < made.signature.size(); ++size)
      EXPECT_FALSE(good.accepts(std::span(made.signature).first(size), bytes(kMessage)));
    Octets longer = made.signature;
    longer.push_back(std::byte{0});
    EXPECT_FALSE(good.accepts(longer, bytes(kMessage)));
  }
}

TEST(Signature, AKeyOfOneCurveRefusesASignatureOfAnother) {
  const Key small("P-256"), large("P-384");
  const Signed made = sign({.key = small.private_pem()}, bytes(kMessage));
  EXPECT_FALSE(PublicKey::from_pem(large.public_pem()).accepts(made.signature, bytes(kMessage)));
}

TEST(Signature, OtherKeysAreRefusedByName) {
  EXPECT_NE(error_of([] { sign({.key = Key("secp256k1").private_pem()}, bytes(kMessage)); }).find("secp256k1"),
            std::string::npos);
  EXPECT_NE(error_of([] { sign({.key = Key("RSA").private_pem()}, bytes(kMessage)); }).find("type RSA"),
            std::string::npos);
  EXPECT_NE(error_of([] { PublicKey::from_pem(Key("ED25519").public_pem()); }).find("type ED25519"), std::string::npos);
  EXPECT_NE(error_of([] { sign({.key = Key().public_pem()}, bytes(kMessage)); }).find("needs the private one"),
            std::string::npos);
  EXPECT_NE(error_of([] { PublicKey::from_pem(Key().private_pem()); }).find("a private key"), std::string::npos);
  EXPECT_NE(error_of([] { PublicKey::from_pem(Chain().leaf.pem()); }).find("a certificate"), std::string::npos);
  EXPECT_NE(error_of([] { PublicKey::from_pem("hello"); }).find("not a public key"), std::string::npos);
  EXPECT_NE(error_of([] { sign({.key = Key().private_pem("secret")}, bytes(kMessage)); }).find("encrypted"),
            std::string::npos);
}

// What sign() writes into a bundle for this chain.
std::vector<Octets> der(const Chain& chain, bool with_between = true) {
  std::vector<std::string> rest;
  if (with_between) rest.push_back(chain.between.pem());
  return sign({.key = chain.key.private_pem(), .certificate = chain.leaf.pem(), .chain = rest}, bytes(kMessage)).chain;
}

TEST(Certificate, AChainLeadsToTheGivenRootOnly) {
  const Chain chain, stranger({}, "another root");
  EXPECT_EQ(error_of([&] { require_chain(der(chain), chain.root.pem()); }), "no error");
  EXPECT_EQ(error_of([&] { require_chain(der(chain), stranger.root.pem() + chain.root.pem()); }), "no error");
  EXPECT_NE(error_of([&] { require_chain(der(chain), stranger.root.pem()); }).find("manifest/certificate: "),
            std::string::npos);
  EXPECT_NE(error_of([&] { require_chain(der(chain, false), chain.root.pem()); }).find("manifest/certificate: "),
            std::string::npos);
  EXPECT_NE(error_of([&] { require_chain(der(chain), "no certificate"); }).find("misuse/roots"), std::string::npos);
  EXPECT_EQ(subject_of(der(chain).front()).name, "CN=signer");
}

TEST(Certificate, TheBundleCannotBringItsOwnRoot) {
  const Chain chain, stranger;
  std::vector<Octets> all = der(chain);
  const std::vector<Octets> root =
      sign({.key = chain.key.private_pem(), .certificate = chain.leaf.pem(), .chain = {chain.root.pem()}},
           bytes(kMessage))
          .chain;
  all.push_back(root.back());
  EXPECT_NE(error_of([&] { require_chain(all, stranger.root.pem()); }), "no error");
}

TEST(Certificate, AServersCertificateSignsNoModel) {
  const auto said = [](CertificateOptions options) {
    const Chain chain(options);
    return error_of([&] { der(chain); });
  };
  EXPECT_NE(said({.purposes = "serverAuth"}).find("not for signing"), std::string::npos);
  EXPECT_NE(said({.usage = "critical,keyAgreement"}).find("not for signing"), std::string::npos);
  EXPECT_NE(said({.usage = nullptr, .purposes = nullptr}).find("not for signing"), std::string::npos);
  EXPECT_EQ(said({.usage = nullptr}), "no error");
  EXPECT_EQ(said({.purposes = nullptr}), "no error");
}

// As the reference: a chain is judged at the moment from which the signer's certificate is valid.
TEST(Certificate, AnExpiredCertificateIsToldApart) {
  const Chain chain({.from = -2, .to = -1});
  // The authorities have been valid for an hour.
  EXPECT_EQ(error_of([&] { require_chain(der(chain), chain.root.pem()); }), "no error");
  EXPECT_TRUE(subject_of(der(chain).front()).expired);
  const Chain early({.from = -7200});
  EXPECT_NE(error_of([&] { require_chain(der(early), early.root.pem()); }).find("not yet valid"), std::string::npos);
}

TEST(Certificate, OfAnotherKeyIsRefused) {
  const Chain chain;
  EXPECT_NE(error_of([&] {
              sign({.key = Key().private_pem(), .certificate = chain.leaf.pem()}, bytes(kMessage));
            }).find("belongs to another key"),
            std::string::npos);
}

TEST(Certificate, DamagedOnesAreRefused) {
  const Chain chain;
  const Octets whole = der(chain).front();
  for (std::size_t size = 0; size < whole.size(); size += 7)
    EXPECT_NE(error_of([&] { PublicKey::from_certificate(std::span(whole).first(size)); }), "no error");
  Octets longer = whole;
  longer.push_back(std::byte{0});
  EXPECT_NE(error_of([&] { PublicKey::from_certificate(longer); }), "no error");
  EXPECT_NE(error_of([&] { require_chain(std::vector<Octets>(33, whole), chain.root.pem()); }).find("1 to 32"),
            std::string::npos);
}

}  // namespace
}  // namespace weighbridge::signing
