// SPDX-License-Identifier: Apache-2.0
/// \file
/// The content digest, equal for the same tensors in any container; byte by byte in docs/content-digest.md.
#pragma once
#include <array>
#include <cstddef>
#include <memory>
#include <string>

#include "weighbridge/context.h"
#include "weighbridge/model.h"
#include "weighbridge/source.h"

namespace weighbridge {

/// A SHA-256 or a content digest.
struct Digest {
  std::array<std::byte, 32> bytes{};  ///< in the order of hex()
  std::string hex() const;            ///< 64 lower-case digits
  bool operator==(const Digest&) const = default;
};

/// [reads] Content digest v1 of names, dtypes, shapes, layouts and logical bytes; container, order, encoding and
/// attributes do not count. Without names the tensors' nodes are taken in the order of their own digests. Throws
/// Error{unsupported} for a model with a tensor whose elements cannot be had. Parallel over the executor.
Digest content_digest(const Model&, const Context& = {}, bool with_names = true);
/// [reads] Of one tensor, its name left out; likewise.
Digest content_digest(const Tensor&, const Context& = {});
/// [reads] Plain SHA-256 of all bytes of a file.
Digest file_sha256(const Source&, const Context& = {});

}  // namespace weighbridge
