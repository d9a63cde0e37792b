// SPDX-License-Identifier: Apache-2.0
// Marks what this user's runs write for later runs, so that another user's files cannot pass for them. Owns the key in
// the user's state folder (XDG Base Directory Specification), and the permissions of both.
//
// A mark is an HMAC-SHA-256 made with the key: somebody who reads a journal on a shared folder cannot make another one.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "codecs/checksum.h"

namespace weighbridge::io {

// The folder "weighbridge" in one of the user's folders: that of `variable`, or `below_home` in the home. Empty if
// there is neither.
std::string user_folder(const char* variable, const char* below_home);

enum class Missing : std::uint8_t { make, ignore };

// The mark of a text. Empty if this user has no key; with Missing::make, creates a key if possible.
std::optional<codecs::Digest256> mark_of(std::string_view text, Missing);
// Whether this is the mark of the text. False without a key.
bool is_marked(std::string_view text, std::span<const std::byte> mark);
// Why a journal without this user's mark is not trusted, as a clause.
std::string why_unmarked();

}  // namespace weighbridge::io
