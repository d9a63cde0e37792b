// SPDX-License-Identifier: Apache-2.0
// Keys and certificates made for one test, by OpenSSL, as PEM texts.
#pragma once
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>

namespace weighbridge::test {

inline std::string drain(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  std::string out(data, static_cast<std::size_t>(size));
  BIO_free(bio);
  return out;
}

class Key {
 public:
  // "P-256", "secp256k1", ...; "RSA" and "ED25519" too.
  explicit Key(const std::string& curve = "P-256")
      : key_(curve == "RSA"       ? EVP_RSA_gen(2048)
             : curve == "ED25519" ? EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519")
                                  : EVP_EC_gen(curve.c_str()),
             EVP_PKEY_free) {
    EXPECT_TRUE(key_) << curve;
  }
  std::string private_pem(const char* passphrase = nullptr) const {
    BIO* const bio = BIO_new(BIO_s_mem());
    PEM_write_bio_PKCS8PrivateKey(bio, get(), passphrase == nullptr ? nullptr : EVP_aes_256_cbc(), nullptr, 0, nullptr,
                                  const_cast<char*>(passphrase));
    return drain(bio);
  }
  std::string public_pem() const {
    BIO* const bio = BIO_new(BIO_s_mem());
    PEM_write_bio_PUBKEY(bio, get());
    return drain(bio);
  }
  EVP_PKEY* get() const { return key_.get(); }

 private:
  std::shared_ptr<EVP_PKEY> key_;
};

struct CertificateOptions {
  bool authority = false;
  const char* usage = "critical,digitalSignature";  // null: none
  const char* purposes = "codeSigning";             // likewise
  long from = -3600, to = 86400;                    // seconds from now
};

class Certificate {
 public:
  // Of `key`, issued by `issuer` with `issuer_key`; by itself if there is no issuer.
  Certificate(const std::string& name, const Key& key, const Certificate* issuer, const Key& issuer_key,
              CertificateOptions options)
      : x509_(X509_new(), X509_free) {
    X509* const x = x509_.get();
    X509_set_version(x, 2);
    static long serial = 0;
    ASN1_INTEGER_set(X509_get_serialNumber(x), ++serial);
    X509_gmtime_adj(X509_getm_notBefore(x), options.from);
    X509_gmtime_adj(X509_getm_notAfter(x), options.to);
    X509_set_pubkey(x, key.get());
    X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_UTF8,
                               reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
    X509_set_issuer_name(x, X509_get_subject_name(issuer == nullptr ? x : issuer->x509_.get()));
    add(NID_basic_constraints, options.authority ? "critical,CA:TRUE" : "critical,CA:FALSE");
    add(NID_key_usage, options.authority ? "critical,keyCertSign" : options.usage);
    if (!options.authority) add(NID_ext_key_usage, options.purposes);
    EXPECT_GT(X509_sign(x, issuer_key.get(), EVP_sha256()), 0);
  }
  std::string pem() const {
    BIO* const bio = BIO_new(BIO_s_mem());
    PEM_write_bio_X509(bio, x509_.get());
    return drain(bio);
  }

 private:
  void add(int nid, const char* value) {
    if (value == nullptr) return;
    X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, nullptr, nid, value);
    X509_add_ext(x509_.get(), extension, -1);
    X509_EXTENSION_free(extension);
  }
  std::shared_ptr<X509> x509_;
};

// A root, an intermediate authority, and a signer.
struct Chain {
  explicit Chain(CertificateOptions signer = {}, const std::string& name = "root")
      : root(name, root_key, nullptr, root_key, {.authority = true}),
        between("between", between_key, &root, root_key, {.authority = true}),
        leaf("signer", key, &between, between_key, signer) {}
  Key root_key, between_key, key;
  Certificate root, between, leaf;
};

}  // namespace weighbridge::test
