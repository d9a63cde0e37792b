// SPDX-License-Identifier: Apache-2.0
// Keys, signatures and certificates through OpenSSL 3.
#include "manifest/signature.h"

#include <utility>

#include "base/fail.h"
#include "codecs/checksum.h"

#ifndef WEIGHBRIDGE_PORTABLE_CHECKSUMS
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <ctime>
#include <limits>
#endif

namespace weighbridge {

#ifdef WEIGHBRIDGE_PORTABLE_CHECKSUMS

bool can_sign() noexcept { return false; }

namespace signing {
namespace {
[[noreturn]] void refuse() {
  base::unsupported("unsupported/signature", "this build has no OpenSSL: it can neither sign nor check signatures");
}
}  // namespace

struct PublicKey::Key {};
PublicKey::PublicKey(std::unique_ptr<Key> key) : key_(std::move(key)) {}
PublicKey::~PublicKey() = default;
PublicKey::PublicKey(PublicKey&&) noexcept = default;
PublicKey PublicKey::from_pem(std::string_view) { refuse(); }
PublicKey PublicKey::from_certificate(std::span<const std::byte>) { refuse(); }
bool PublicKey::accepts(std::span<const std::byte>, std::span<const std::byte>, bool) const { refuse(); }
Signed sign(const SigningKey&, std::span<const std::byte>) { refuse(); }
Subject subject_of(std::span<const std::byte>) { return {}; }
void require_chain(std::span<const Octets>, std::string_view) { refuse(); }
}  // namespace signing

#else

bool can_sign() noexcept { return true; }

namespace signing {
namespace {

template <auto release> struct Releaser {
  template <class T> void operator()(T* p) const noexcept { release(p); }
};
using Bio = std::unique_ptr<BIO, Releaser<BIO_free_all>>;
using Pkey = std::unique_ptr<EVP_PKEY, Releaser<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Releaser<X509_free>>;
using Digesting = std::unique_ptr<EVP_MD_CTX, Releaser<EVP_MD_CTX_free>>;

// More than any real chain has. A hostile bundle could make the search for a path take long.
constexpr std::size_t kMaxCertificates = 32;

// Without OpenSSL's configuration files, like codecs/digest.cc, and with an empty queue of errors when it ends.
class Calls {
 public:
  Calls() { OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_ATEXIT, nullptr); }
  ~Calls() { ERR_clear_error(); }
  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;
};

template <class T> T made(T&& object) {
  if (!object) throw std::bad_alloc();
  return std::forward<T>(object);
}

int length_of(std::size_t size, std::string_view what) {
  if (size > static_cast<std::size_t>(std::numeric_limits<int>::max()))
    base::misuse("key", std::string(what) + " is too large");
  return static_cast<int>(size);
}

Bio bio_of(std::string_view text) {
  return made(Bio(BIO_new_mem_buf(text.data(), length_of(text.size(), "the PEM text"))));
}
Bio empty_bio() { return made(Bio(BIO_new(BIO_s_mem()))); }
std::string text_of(const Bio& bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return size > 0 ? std::string(data, static_cast<std::size_t>(size)) : std::string();
}

// Never asks for a passphrase on the terminal.
int no_passphrase(char*, int, int, void*) { return -1; }

// "prime256v1"; empty for a curve that is spelled out by its parameters, or another kind of key.
std::string curve_of(const EVP_PKEY* key) {
  char name[64] = {};
  std::size_t size = 0;
  if (EVP_PKEY_get_base_id(key) != EVP_PKEY_EC || EVP_PKEY_get_group_name(key, name, sizeof name, &size) != 1)
    return {};
  return std::string(name, size);
}

// "SHA256" for P-256 and so on; null for any other key.
const char* digest_for(const EVP_PKEY* key) {
  const std::string name = curve_of(key);
  if (name == "prime256v1" || name == "P-256") return "SHA256";
  if (name == "secp384r1" || name == "P-384") return "SHA384";
  if (name == "secp521r1" || name == "P-521") return "SHA512";
  return nullptr;
}

std::string kind_of(const EVP_PKEY* key) {
  if (EVP_PKEY_get_base_id(key) == EVP_PKEY_EC) {
    const std::string curve = curve_of(key);
    return curve.empty() ? "a key on a curve without a name" : "a key on the curve " + curve;
  }
  const char* const name = EVP_PKEY_get0_type_name(key);
  return name == nullptr ? std::string("a key of another kind") : "a key of type " + std::string(name);
}

constexpr std::string_view kCurves = "keys on the curves P-256, P-384 and P-521 can sign manifests";

void require_curve(const EVP_PKEY* key) {
  if (digest_for(key) == nullptr) base::misuse("key", "this is " + kind_of(key) + "; " + std::string(kCurves));
}

std::string hex_sha256(std::string_view bytes) {
  return codecs::to_hex(codecs::sha256(std::as_bytes(std::span(bytes))));
}

// The public key as PEM and as DER, with its point in the plain form whatever form it was given in.
std::pair<std::string, std::string> spellings(EVP_PKEY* key) {
  EVP_PKEY_set_utf8_string_param(key, OSSL_PKEY_PARAM_EC_POINT_CONVERSION_FORMAT, "uncompressed");
  const Bio pem = empty_bio(), der = empty_bio();
  if (PEM_write_bio_PUBKEY(pem.get(), key) != 1 || i2d_PUBKEY_bio(der.get(), key) != 1) throw std::bad_alloc();
  return {text_of(pem), text_of(der)};
}

Certificate certificate_of(std::span<const std::byte> der) {
  const auto* at = reinterpret_cast<const unsigned char*>(der.data());
  const unsigned char* const begin = at;
  Certificate out(d2i_X509(nullptr, &at, length_of(der.size(), "a certificate")));
  if (!out || at != begin + der.size())
    base::malformed("manifest/certificate", "a certificate of the bundle is not X.509");
  return out;
}

// Every certificate of a PEM text.
std::vector<Certificate> certificates_of(std::string_view pem, std::string_view what, std::string_view rule) {
  const Bio bio = bio_of(pem);
  std::vector<Certificate> out;
  for (;;) {
    Certificate next(PEM_read_bio_X509(bio.get(), nullptr, no_passphrase, nullptr));
    if (!next) break;
    out.push_back(std::move(next));
  }
  const unsigned long error = ERR_peek_last_error();
  if (out.empty() || ERR_GET_REASON(error) != PEM_R_NO_START_LINE)
    base::misuse(rule, std::string(what) + (out.empty() ? " has no certificate in PEM form"
                                                        : " has a certificate that cannot be read"));
  ERR_clear_error();
  return out;
}

Octets der_of(X509* certificate) {
  unsigned char* data = nullptr;
  const int size = i2d_X509(certificate, &data);
  if (size < 0) throw std::bad_alloc();
  const auto* const begin = reinterpret_cast<const std::byte*>(data);
  Octets out(begin, begin + size);
  CRYPTO_free(data, "", 0);  // OPENSSL_free() would add this file's path, which depends on where it is compiled
  return out;
}

std::string text_of(const ASN1_TIME* time) {
  const Bio bio = empty_bio();
  ASN1_TIME_print_ex(bio.get(), time, ASN1_DTFLGS_ISO8601);
  return text_of(bio);
}

std::string name_of(const X509* certificate) {
  const Bio bio = empty_bio();
  X509_NAME_print_ex(bio.get(), X509_get_subject_name(certificate), 0, XN_FLAG_RFC2253 & ~ASN1_STRFLGS_ESC_MSB);
  std::string name = text_of(bio);
  if (!name.empty()) return name;
  using Names = std::unique_ptr<GENERAL_NAMES, Releaser<GENERAL_NAMES_free>>;
  const Names names(static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  if (names && sk_GENERAL_NAME_num(names.get()) > 0) {
    const GENERAL_NAME* const first = sk_GENERAL_NAME_value(names.get(), 0);
    if (first->type == GEN_EMAIL || first->type == GEN_DNS || first->type == GEN_URI)
      name.assign(reinterpret_cast<const char*>(ASN1_STRING_get0_data(first->d.ia5)),
                  static_cast<std::size_t>(ASN1_STRING_length(first->d.ia5)));
  }
  return name;
}

// RFC 5280: a stated purpose is binding, so a server's certificate cannot sign models. At least one must be stated.
void require_purpose(X509* certificate) {
  const std::uint32_t flags = X509_get_extension_flags(certificate);
  const bool has_usage = (flags & EXFLAG_KUSAGE) != 0, has_purposes = (flags & EXFLAG_XKUSAGE) != 0;
  const bool signs = !has_usage || (X509_get_key_usage(certificate) & X509v3_KU_DIGITAL_SIGNATURE) != 0;
  const bool code = !has_purposes || (X509_get_extended_key_usage(certificate) & (XKU_CODE_SIGN | XKU_ANYEKU)) != 0;
  if ((flags & EXFLAG_INVALID) != 0 || (!has_usage && !has_purposes) || !signs || !code)
    base::malformed("manifest/certificate",
                    "the signer's certificate (" + name_of(certificate) +
                        ") is not for signing: it needs the key usage digitalSignature or the extended key usage "
                        "codeSigning, and must not be limited to others");
}

}  // namespace

struct PublicKey::Key {
  Pkey held;
};
PublicKey::PublicKey(std::unique_ptr<Key> key) : key_(std::move(key)) {
  const auto [pem, der] = spellings(key_->held.get());
  fingerprint_ = hex_sha256(pem);
  der_fingerprint_ = hex_sha256(der);
}
PublicKey::~PublicKey() = default;
PublicKey::PublicKey(PublicKey&&) noexcept = default;

PublicKey PublicKey::from_pem(std::string_view pem) {
  const Calls calls;
  const Bio bio = bio_of(pem);
  Pkey key(PEM_read_bio_PUBKEY(bio.get(), nullptr, no_passphrase, nullptr));
  if (!key) {
    const bool is_private = pem.find("PRIVATE KEY-----") != pem.npos,
               is_certificate = pem.find("BEGIN CERTIFICATE-----") != pem.npos;
    base::misuse("key", is_private
                            ? "this is a private key; signatures are checked with the public one: openssl pkey -pubout"
                        : is_certificate ? "this is a certificate, not a public key; give certificates as roots"
                                         : "this is not a public key in PEM form");
  }
  require_curve(key.get());
  return PublicKey(std::make_unique<Key>(Key{std::move(key)}));
}

PublicKey PublicKey::from_certificate(std::span<const std::byte> der) {
  const Calls calls;
  const Certificate certificate = certificate_of(der);
  Pkey key(X509_get_pubkey(certificate.get()));
  if (!key || digest_for(key.get()) == nullptr)
    base::malformed("manifest/certificate", "the certificate has " + (key ? kind_of(key.get()) : "an unknown key") +
                                                "; " + std::string(kCurves));
  return PublicKey(std::make_unique<Key>(Key{std::move(key)}));
}

bool PublicKey::accepts(std::span<const std::byte> signature, std::span<const std::byte> message, bool sha256) const {
  const Calls calls;
  const Digesting context = made(Digesting(EVP_MD_CTX_new()));
  const char* const digest = sha256 ? "SHA256" : digest_for(key_->held.get());
  if (EVP_DigestVerifyInit_ex(context.get(), nullptr, digest, nullptr, nullptr, key_->held.get(), nullptr) != 1)
    throw std::bad_alloc();
  return EVP_DigestVerify(context.get(), reinterpret_cast<const unsigned char*>(signature.data()), signature.size(),
                          reinterpret_cast<const unsigned char*>(message.data()), message.size()) == 1;
}

Signed sign(const SigningKey& given, std::span<const std::byte> message) {
  const Calls calls;
  const Bio bio = bio_of(given.key);
  const Pkey key(PEM_read_bio_PrivateKey(bio.get(), nullptr, no_passphrase, nullptr));
  if (!key) {
    if (given.key.find("ENCRYPTED") != given.key.npos)
      base::misuse("key", "the private key is encrypted; decrypt it first: openssl pkey -in KEY -out DECRYPTED");
    base::misuse("key", given.key.find("PUBLIC KEY-----") != given.key.npos
                            ? "this is a public key; signing needs the private one"
                            : "this is not a private key in PEM form");
  }
  require_curve(key.get());
  Signed out;
  out.fingerprint = hex_sha256(spellings(key.get()).first);
  if (!given.certificate.empty()) {
    std::vector<Certificate> chain = certificates_of(given.certificate, "the certificate's file", "certificate");
    if (X509_check_private_key(chain.front().get(), key.get()) != 1)
      base::misuse("certificate", "the certificate belongs to another key");
    for (const std::string& text : given.chain)
      for (Certificate& each : certificates_of(text, "a file of the chain", "certificate"))
        chain.push_back(std::move(each));
    if (chain.size() > kMaxCertificates)
      base::misuse("certificate", "a chain has at most " + std::to_string(kMaxCertificates) + " certificates");
    try {
      require_purpose(chain.front().get());
    } catch (const Error& error) {
      base::misuse("certificate", error.finding().message);
    }
    for (const Certificate& each : chain) out.chain.push_back(der_of(each.get()));
  }
  const Digesting context = made(Digesting(EVP_MD_CTX_new()));
  std::size_t size = 0;
  const auto* const bytes = reinterpret_cast<const unsigned char*>(message.data());
  if (EVP_DigestSignInit_ex(context.get(), nullptr, digest_for(key.get()), nullptr, nullptr, key.get(), nullptr) != 1 ||
      EVP_DigestSign(context.get(), nullptr, &size, bytes, message.size()) != 1)
    base::misuse("key", "the private key cannot sign");
  out.signature.resize(size);
  if (EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(out.signature.data()), &size, bytes,
                     message.size()) != 1)
    base::misuse("key", "the private key cannot sign");
  out.signature.resize(size);
  return out;
}

Subject subject_of(std::span<const std::byte> der) {
  const Calls calls;
  const Certificate certificate = certificate_of(der);
  const ASN1_TIME *const from = X509_get0_notBefore(certificate.get()), *const to =
                                                                            X509_get0_notAfter(certificate.get());
  return {.name = name_of(certificate.get()),
          .not_before = text_of(from),
          .not_after = text_of(to),
          .expired = X509_cmp_current_time(to) < 0,
          .not_yet = X509_cmp_current_time(from) > 0};
}

void require_chain(std::span<const Octets> chain, std::string_view roots) {
  const Calls calls;
  if (chain.empty() || chain.size() > kMaxCertificates)
    base::malformed("manifest/certificate", "a bundle has 1 to " + std::to_string(kMaxCertificates) +
                                                " certificates, not " + std::to_string(chain.size()));
  using Store = std::unique_ptr<X509_STORE, Releaser<X509_STORE_free>>;
  using Checking = std::unique_ptr<X509_STORE_CTX, Releaser<X509_STORE_CTX_free>>;
  const Store store = made(Store(X509_STORE_new()));
  for (const Certificate& root : certificates_of(roots, "the file of roots", "roots"))
    if (X509_STORE_add_cert(store.get(), root.get()) != 1) throw std::bad_alloc();
  std::vector<Certificate> held;
  for (const Octets& each : chain) held.push_back(certificate_of(each));
  struct Others {
    STACK_OF(X509) * list = sk_X509_new_null();
    ~Others() { sk_X509_free(list); }
  } others;
  if (others.list == nullptr) throw std::bad_alloc();
  for (std::size_t i = 1; i < held.size(); ++i)
    if (sk_X509_push(others.list, held[i].get()) == 0) throw std::bad_alloc();
  const Checking checking = made(Checking(X509_STORE_CTX_new()));
  if (X509_STORE_CTX_init(checking.get(), store.get(), held.front().get(), others.list) != 1) throw std::bad_alloc();
  X509_VERIFY_PARAM* const parameters = X509_STORE_CTX_get0_param(checking.get());
  std::tm from{};
  if (ASN1_TIME_to_tm(X509_get0_notBefore(held.front().get()), &from) != 1)
    base::malformed("manifest/certificate", "the signer's certificate has no valid date");
  X509_VERIFY_PARAM_set_time(parameters, ::timegm(&from));
  X509_VERIFY_PARAM_set_auth_level(parameters, 1);  // neither SHA-1 nor RSA keys below 1024 bits
  if (X509_verify_cert(checking.get()) != 1) {
    const X509* const at = X509_STORE_CTX_get_current_cert(checking.get());
    base::malformed("manifest/certificate",
                    "the signer's certificate does not lead to the roots: " +
                        std::string(X509_verify_cert_error_string(X509_STORE_CTX_get_error(checking.get()))) +
                        (at == nullptr ? "" : " (at " + name_of(at) + ")"));
  }
  require_purpose(held.front().get());
}

}  // namespace signing

#endif

}  // namespace weighbridge
