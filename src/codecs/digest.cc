// SPDX-License-Identifier: Apache-2.0
// SHA-256 through OpenSSL or, in builds without it, sha256_portable.h; XXH3-128 through xxh3_kernel.h; hexadecimal. The
// CRCs are in crc.cc.
#ifndef WEIGHBRIDGE_PORTABLE_CHECKSUMS
#include <openssl/crypto.h>
#include <openssl/evp.h>
#endif

#include <array>
#include <cstdint>
#include <cstring>
#include <new>

#include "base/endian.h"
#include "codecs/checksum.h"
#include "codecs/sha256_portable.h"
#include "codecs/xxh3_kernel.h"

namespace weighbridge::codecs {
namespace {

constexpr char kDigits[] = "0123456789abcdef";

// Value of each digit, -1 for any other byte. A table, because branches on varying text are mispredicted.
constexpr auto kDigitValues = [] {
  std::array<std::int8_t, 256> out{};
  out.fill(-1);
  for (std::int8_t i = 0; i < 10; ++i) out[static_cast<std::size_t>('0' + i)] = i;
  for (std::int8_t i = 0; i < 6; ++i)
    out[static_cast<std::size_t>('a' + i)] = out[static_cast<std::size_t>('A' + i)] = static_cast<std::int8_t>(10 + i);
  return out;
}();
int digit_value(char c) noexcept { return kDigitValues[static_cast<unsigned char>(c)]; }

}  // namespace

#ifdef WEIGHBRIDGE_PORTABLE_CHECKSUMS
namespace {
PortableSha256* context(void* p) noexcept { return static_cast<PortableSha256*>(p); }
}  // namespace

void Sha256::Free::operator()(void* p) const noexcept { delete context(p); }
Sha256::Sha256() : context_(new PortableSha256(sha256_hardware())) {}
void Sha256::reset() { context(context_.get())->reset(); }
void Sha256::update(std::span<const std::byte> data) { context(context_.get())->update(data); }
Digest256 Sha256::finish() { return context(context_.get())->finish(); }
#else
namespace {

// Fetches the algorithm once, without OpenSSL's configuration files: they cost start-up time, and a broken one would
// break this. Never freed, because threads may outlive static objects.
const EVP_MD* sha256_algorithm() {
  static const EVP_MD* const algorithm = [] {
    OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_ATEXIT, nullptr);
    return EVP_MD_fetch(nullptr, "SHA256", nullptr);
  }();
  if (algorithm == nullptr) throw std::bad_alloc();
  return algorithm;
}

EVP_MD_CTX* context(void* p) noexcept { return static_cast<EVP_MD_CTX*>(p); }

}  // namespace

void Sha256::Free::operator()(void* p) const noexcept { EVP_MD_CTX_free(context(p)); }
Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  if (!context_) throw std::bad_alloc();
  reset();
}

// OpenSSL can fail below only if out of memory: algorithm and lengths are fixed.
void Sha256::reset() {
  if (EVP_DigestInit_ex2(context(context_.get()), sha256_algorithm(), nullptr) != 1) throw std::bad_alloc();
}
void Sha256::update(std::span<const std::byte> data) {
  if (EVP_DigestUpdate(context(context_.get()), data.data(), data.size()) != 1) throw std::bad_alloc();
}
Digest256 Sha256::finish() {
  unsigned char out[32];
  unsigned size = sizeof out;
  if (EVP_DigestFinal_ex(context(context_.get()), out, &size) != 1) throw std::bad_alloc();
  Digest256 digest;
  std::memcpy(digest.data(), out, sizeof out);
  return digest;
}
#endif

Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

Digest256 sha256(std::span<const std::byte> data) {
  thread_local Sha256 hasher;  // saves four allocations per call: callers hash many small leaves
  hasher.reset();
  hasher.update(data);
  return hasher.finish();
}

void Xxh3_128::Free::operator()(void* p) const noexcept { xxh3_kernel().destroy(p); }
Xxh3_128::Xxh3_128() : state_(xxh3_kernel().create()) {
  if (!state_) throw std::bad_alloc();
  reset();
}
Xxh3_128::~Xxh3_128() = default;
Xxh3_128::Xxh3_128(Xxh3_128&&) noexcept = default;
Xxh3_128& Xxh3_128::operator=(Xxh3_128&&) noexcept = default;

void Xxh3_128::reset() noexcept { xxh3_kernel().reset(state_.get()); }
void Xxh3_128::update(std::span<const std::byte> data) noexcept {
  if (!data.empty()) xxh3_kernel().update(state_.get(), data.data(), data.size());
}
Hash128 Xxh3_128::finish() const noexcept {
  const Xxh3Kernel::Result hash = xxh3_kernel().digest(state_.get());
  return {hash.low, hash.high};
}
Hash128 xxh3_128(std::span<const std::byte> data) noexcept {
  const Xxh3Kernel::Result hash = xxh3_kernel().at_once(data.data(), data.size());
  return {hash.low, hash.high};
}

std::uint64_t Xxh3_64::finish() const noexcept { return xxh3_kernel().digest64(state_.state_.get()); }
std::uint64_t xxh3_64(std::span<const std::byte> data) noexcept {
  return xxh3_kernel().at_once64(data.data(), data.size());
}

std::string to_hex(std::span<const std::byte> bytes) {
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const std::byte b : bytes) {
    text += kDigits[std::to_integer<unsigned>(b) >> 4];
    text += kDigits[std::to_integer<unsigned>(b) & 15];
  }
  return text;
}
std::string to_hex(std::uint32_t value) {
  std::byte bytes[4];
  base::store_be(bytes, value);
  return to_hex(bytes);
}
std::string to_hex(std::uint64_t value) {
  std::byte bytes[8];
  base::store_be(bytes, value);
  return to_hex(bytes);
}
std::string to_hex(const Hash128& value) {
  std::byte bytes[16];
  base::store_be(bytes, value.high);
  base::store_be(bytes + 8, value.low);
  return to_hex(bytes);
}

bool from_hex(std::string_view text, std::span<std::byte> out) noexcept {
  if (text.size() / 2 != out.size() || text.size() % 2 != 0) return false;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const int high = digit_value(text[2 * i]), low = digit_value(text[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    out[i] = static_cast<std::byte>(high * 16 + low);
  }
  return true;
}
std::optional<std::uint32_t> u32_from_hex(std::string_view text) noexcept {
  std::byte bytes[4];
  if (!from_hex(text, bytes)) return std::nullopt;
  return base::load_be<std::uint32_t>(bytes);
}

}  // namespace weighbridge::codecs
