// SPDX-License-Identifier: Apache-2.0
/// \file
/// The content digest, equal for the same tensors in any container; byte by byte in docs/content-digest.md.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "weighbridge/context.h"
#include "weighbridge/model.h"
#include "weighbridge/source.h"

namespace weighbridge {

/// The version of the content digest that is made unless another is asked for. Version 1 was weighbridge 0.1's.
inline constexpr std::uint32_t kDigestVersion = 2;

/// A SHA-256 or a content digest.
struct Digest {
  std::array<std::byte, 32> bytes{};  ///< in the order of hex()
  std::uint32_t version = 0;          ///< of the content digest, 1 or 2; 0: a plain SHA-256 of a file's bytes
  std::string hex() const;            ///< 64 lower-case digits
  /// As it is printed and read: "wb2:" and hex() for a content digest of version 2, so that nobody takes it for what
  /// sha256sum prints; hex() for the others.
  std::string text() const;
  bool operator==(const Digest&) const = default;
};

/// The content digest that a text names, exact spelling: "wb2:" and 64 lower-case digits, or 64 digits alone, which is
/// version 1. nullopt for anything else.
std::optional<Digest> parse_digest(std::string_view text) noexcept;

/// [reads] Content digest of names, dtypes, block types, shapes, layouts and logical bytes; container, order, encoding
/// and attributes do not count. Without names the tensors' nodes are taken in the order of their own digests. Throws
/// Error{unsupported} for a model with a tensor whose elements cannot be had, Error{misuse} for a version that is
/// neither 1 nor 2. Parallel over the executor.
Digest content_digest(const Model&, const Context& = {}, bool with_names = true,
                      std::uint32_t version = kDigestVersion);
/// [reads] Of one tensor, its name left out; likewise.
Digest content_digest(const Tensor&, const Context& = {}, std::uint32_t version = kDigestVersion);
/// [reads] Plain SHA-256 of all bytes of a file, version 0.
Digest file_sha256(const Source&, const Context& = {});

}  // namespace weighbridge
