// SPDX-License-Identifier: Apache-2.0
// What reading and checking the archive of an npz share.
#pragma once
#include <string_view>

#include "core/zip.h"
#include "formats/numpy/rules.h"

namespace weighbridge::numpy {

inline constexpr core::ZipRules kZipRules{
    .end = npz::kEnd,
    .disks = npz::kDisks,
    .directory = npz::kDirectory,
    .entry = npz::kEntry,
    .name = npz::kMemberUtf8,
    .path = npz::kMemberPath,
    .duplicate = npz::kDuplicateMember,
    .overlap = npz::kOverlap,
    .local = npz::kLocalHeader,
    .size = npz::kMemberSize,
    .encrypted = npz::kEncrypted,
    .method = npz::kMethod,
};

// The name of the array in a member: without ".npy".
std::string_view array_name(std::string_view member) noexcept;

}  // namespace weighbridge::numpy
