// SPDX-License-Identifier: Apache-2.0
// The forms of a checkpoint, and which member of its archive is what. Shared by detection, the walker and the checks of
// content.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/archive/zip.h"
#include "core/reading/findings.h"
#include "formats/pytorch/format.h"
#include "formats/pytorch/layout.h"

namespace weighbridge::pytorch {

enum class Form : std::uint8_t { archive, legacy, tar, pickle };
inline constexpr std::size_t kHead = 512;  // the bytes that show it
Form form_of(std::string_view head);
// Whether a file of the form `pickle` really is one. Protocols 2 and above begin with their number. Older ones are
// text, so the file's name or the pickle's effects must show it.
bool is_pickle(std::string_view head, std::uint64_t size, std::string_view extension);

inline constexpr core::ZipRules kZipRules{.end = rules::kEnd,
                                          .disks = rules::kDisks,
                                          .directory = rules::kDirectory,
                                          .entry = rules::kEntry,
                                          .name = rules::kMemberUtf8,
                                          .path = rules::kMemberPath,
                                          .duplicate = rules::kDuplicateMember,
                                          .overlap = rules::kOverlap,
                                          .local = rules::kLocalHeader,
                                          .size = rules::kMemberSize,
                                          .encrypted = rules::kEncrypted,
                                          .method = rules::kMethod};

// The folder of the archive that PyTorch reads, with its slash (reading P1); empty: there is no data.pkl.
std::string_view top_folder(const core::Zip&) noexcept;
// Reports names that PyTorch cannot distinguish, and members that it takes for folders. False: PyTorch may read another
// member than this program does.
bool check_members(const core::Zip&, core::Findings&);

}  // namespace weighbridge::pytorch
