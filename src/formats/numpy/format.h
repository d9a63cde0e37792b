// SPDX-License-Identifier: Apache-2.0
// The descriptors of npy and npz for the registry, and the functions that they point to. Also owns what reading and
// checking an archive share.
#pragma once
#include <string_view>
#include "core/archive/zip.h"
#include "core/reading/format.h"
#include "formats/numpy/rules.h"

namespace weighbridge::numpy {

extern const core::Format kNpy, kNpz;

void read_npy(const Source&, const Context&, core::Findings&, core::Draft&);
void read_npz(const Source&, const Context&, core::Findings&, core::Draft&);
core::WriteLayout layout_npy(const Model&, const Options&, const Context& = {});
core::WriteLayout layout_npz(const Model&, const Options&, const Context& = {});
void check_npy(const Model&, const Context&, core::Findings&);
void check_npz(const Model&, const Context&, core::Findings&);

// The corpora: at least one file for each rule. Defined in cases.cc, which only tests and fuzzers link.
std::vector<core::CorpusCase> npy_cases();
std::vector<core::CorpusCase> npz_cases();

// What reading and checking the archive of an npz share.

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
