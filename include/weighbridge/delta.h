// SPDX-License-Identifier: Apache-2.0
/// \file
/// Patches: the difference between two models as a model, which save() writes as an ordinary zTensor file.
/// docs/patching.md specifies it byte by byte.
///
/// A patch names its base and its result by their content digests, so it applies to any container with the base's
/// tensors. It never holds files beside the weights: configs, code, tokenizers.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weighbridge/context.h"
#include "weighbridge/hash.h"
#include "weighbridge/model.h"

namespace weighbridge {

/// What a patch says it changes.
struct PatchInfo {
  /// One tensor of the result that is not that of the base.
  struct Change {
    std::string name{};           ///< in the result
    std::string_view what{};      ///< "sparse", "dense", "rename", "whole" (stored as it is)
    std::string type{};           ///< "bf16 [4096, 4096]"
    std::string from{};           ///< its other name in the base, or empty
    std::uint64_t elements = 0;   ///< of sparse and dense ones
    std::uint64_t differing = 0;  ///< likewise
    std::uint64_t bytes = 0;      ///< stored
  };
  Digest base{};                   ///< content digest of the model that it applies to
  Digest result{};                 ///< content digest of what it makes
  std::uint64_t tensors = 0;       ///< in the result
  std::uint64_t changed = 0;       ///< some of their elements differ
  std::uint64_t added = 0;         ///< only the result has them
  std::uint64_t removed = 0;       ///< only the base has them
  std::uint64_t renamed = 0;       ///< same content, another name
  std::uint64_t replaced = 0;      ///< stored as they are: resized, recast, in another layout, or smaller this way
  std::uint64_t elements = 0;      ///< of the changed tensors
  std::uint64_t differing = 0;     ///< of these, those that differ; tensors stored as dense differences count all
  std::uint64_t bytes = 0;         ///< stored, of the changes
  bool replaces_metadata = false;  ///< changes metadata; neither digest covers them
  std::vector<Change> changes{};   ///< by name
  bool reencoded = false;          ///< another tool compressed it again, so that it is read in order: valid, and slower
};

/// Whether the model is a patch.
bool is_patch(const Model&) noexcept;
/// What the patch says. Error{malformed} if it is not valid; reads its index, not the changes.
PatchInfo patch_info(const Model& patch, const Context& = {});

/// How to make a patch.
struct PatchOptions {
  /// Where compressed changes wait until save() writes them: a path beside which a temporary file may be made, best the
  /// path of the output. Required.
  std::string scratch{};
  int level = 1;         ///< of zstd; higher ones are rarely smaller
  bool metadata = true;  ///< whether the patch changes metadata, too
};

/// [reads] The patch that turns `base` into `result`. Compares bits, never numbers. Tensors are matched by name, then
/// by content. Write it with save(patch, path, {.encoding = "zstd"}). Error{unsupported} if a model has no content
/// digest.
Model make_patch(const Model& base, const Model& result, const PatchOptions&, const Context& = {});
/// [reads] The model that the patches make of the base, one after the other: a view whose changed elements are computed
/// when they are read. Checks the patches, the base and the result by their digests first, so that nothing can be
/// written from a wrong base. Error{misuse}: no patches, or another base; Error{malformed}: an invalid patch, or one
/// whose result is not what it states.
Model patched(const Model& base, std::span<const Model> patches, const Context& = {});
/// [reads] One patch that does what these do one after the other. Error{misuse} if one does not begin where the one
/// before it ends, or if a combination needs the model.
Model fold_patches(std::span<const Model> patches, const PatchOptions&, const Context& = {});
/// [reads] The patch from the result back to the base. Error{misuse} if the patch does not hold what that needs:
/// replaced and removed tensors, values that are set.
Model reverse_patch(const Model& patch, const PatchOptions&, const Context& = {});

/// [reads] The patch that a folder of slime, miles, ModelExpress or SkyRL means for this base: compressed exclusive
/// ors, or slime's positions and bytes. Error{malformed} if the folder is not valid, or does not make what its
/// checksums state; Error{unsupported} for a checksum other than xxh3-128, adler32 and sha256.
Model import_patch(const Model& base, const std::string& folder, const PatchOptions&, const Context& = {});

/// How to publish a patch for programs that do not read patches.
struct PublishOptions {
  /// "slime", "slime-overwrite" (positions and bytes in place of exclusive ors) or "skyrl".
  std::string layout = "slime";
  std::string checksum = "xxh3-128";  ///< or "adler32", which SkyRL does not know
  std::uint64_t step = 1;             ///< the version that it states; that of the base is one less
};
/// The files of a folder that such a program reads.
struct Published {
  Model weights{};             ///< one tensor of compressed bytes for each that changes: safetensors
  std::string weights_name{};  ///< its file; empty: nothing changes
  std::string index{};         ///< JSON
  std::string index_name{};    ///< its file
};
/// [reads] The folder for a patch and its base. Error{misuse} if the patch does more than change elements.
Published export_patch(const Model& base, const Model& patch, const PublishOptions&, const PatchOptions&,
                       const Context& = {});

}  // namespace weighbridge
