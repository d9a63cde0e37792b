// SPDX-License-Identifier: Apache-2.0
/// \file
/// The content digest, which is equal for the same tensors in any container. src/core/payload/README.md defines it byte
/// byte.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weighbridge/context.h"
#include "weighbridge/model.h"
#include "weighbridge/source.h"

namespace weighbridge {

/// The default version of the content digest. weighbridge 0.1 used version 1.
inline constexpr std::uint32_t kDigestVersion = 2;

/// A SHA-256 or a content digest.
struct Digest {
  std::array<std::byte, 32> bytes{};  ///< in the order of hex()
  std::uint32_t version = 0;          ///< of the content digest, 1 or 2; 0: the SHA-256 of a file's bytes
  std::string hex() const;            ///< 64 lower-case digits
  /// The text form: "wb2:" and hex() for a content digest of version 2, so that it is not mistaken for output of
  /// sha256sum; hex() for the others.
  std::string text() const;
  bool operator==(const Digest&) const = default;
};

/// Parses the text form of a content digest: "wb2:" and 64 lower-case digits, or 64 digits alone for version 1. nullopt
/// for anything else.
std::optional<Digest> parse_digest(std::string_view text) noexcept;

/// [reads] Content digest of names, dtypes, block types, shapes, layouts and logical bytes; container, order, encoding
/// and attributes do not count. Without names, tensors are ordered by their own digests. Throws Error{unsupported} if
/// the elements of a tensor cannot be read, and Error{misuse} for a version other than 1 and 2. Runs in parallel on the
/// executor.
Digest content_digest(const Model&, const Context& = {}, bool with_names = true,
                      std::uint32_t version = kDigestVersion);
/// The content digests of a model and of its tensors.
struct ContentDigests {
  Digest model{};                 ///< content_digest() with names
  std::vector<Digest> tensors{};  ///< of each tensor without its name, in the order of the model
};
/// [reads] All of these digests in one pass; likewise.
ContentDigests content_digests(const Model&, const Context& = {});
/// [reads] The content digest of one tensor, without its name; likewise.
Digest content_digest(const Tensor&, const Context& = {}, std::uint32_t version = kDigestVersion);
/// The content digest of the zTensor 2 specification (Draft 4, section 6.4), with SHA-256, as version 0: of names,
/// shapes, layouts, attributes and the digests of all parts, however they are stored. Reads no payload and trusts the
/// stated digests; verify() checks them. Throws Error{misuse} if it is undefined: for a part without a digest, or a
/// model that was not opened from a zTensor 2 file.
Digest zt_content_digest(const Model&);
/// [reads] The SHA-256 of everything after the header of one safetensors file, as version 0: what programs for image
/// models call AutoV3 and state as sshs_model_hash and modelspec.hash_sha256. Throws Error{misuse} for another model.
Digest data_sha256(const Model&, const Context& = {});
/// [reads] The SHA-256 of all bytes of a file, as version 0.
Digest file_sha256(const Source&, const Context& = {});

}  // namespace weighbridge
