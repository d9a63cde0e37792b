// SPDX-License-Identifier: Apache-2.0
// The walk over the objects of an HDF5 file, which is all of a source or a member of an archive.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "core/archive/zip.h"
#include "core/model/draft.h"
#include "core/reading/findings.h"
#include "formats/hdf5/rules.h"
#include "weighbridge/context.h"

namespace weighbridge::hdf5 {

// The file is [begin, end) of the source, which is the draft's first. Reports errors; if they concern the whole file,
// the draft stays empty. Returns the version of the superblock, if it can be read.
std::optional<std::uint8_t> walk(const Source&, std::uint64_t begin, std::uint64_t end, const Rules&, const Context&,
                                 core::Findings&, core::Draft&);

// The beginning of what a limit says about a dataset whose elements all have the fill value.
inline constexpr std::string_view kNeverWritten = "a dataset that was never written";

// Whether a model's configuration (JSON) has a layer that contains code.
bool has_lambda(std::string_view json, std::uint32_t depth);

inline constexpr core::ZipRules kZipRules{
    .end = keras::kEnd,
    .disks = keras::kDisks,
    .directory = keras::kDirectory,
    .entry = keras::kEntry,
    .name = keras::kMemberUtf8,
    .path = keras::kMemberPath,
    .duplicate = keras::kDuplicateMember,
    .overlap = keras::kOverlap,
    .local = keras::kLocalHeader,
    .size = keras::kMemberSize,
    .encrypted = keras::kEncrypted,
    .method = keras::kMethod,
};

}  // namespace weighbridge::hdf5
