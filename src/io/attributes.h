// SPDX-License-Identifier: Apache-2.0
// The extended attributes of a file that another one replaces. Owns which of them the new file gets.
#pragma once
#include <string>
#include <string_view>

#include "io/os.h"

namespace weighbridge::io {

// Gives the open file `to` what says who may use the open file `from`, or what it is: its access control list
// (system.posix_acl_access), its labels (security.*) and the attributes of users (user.*). Left out are those that are
// about the old bytes (security.capability, security.ima, security.evm), those of the filesystem itself (trusted.*,
// btrfs.*), and the lists that a file server keeps (system.nfs4_acl, system.cifs_acl): every file there has one, and
// follows the mode. A list that `to` has from its folder goes if `from` has none.
//
// Returns whether `to` has a list now: then its mode is that of `from`, and fchmod() sets the list's mask with it.
// Error io/<rule>, naming `file`, if the system refuses a list or an attribute of users: they are not lost silently. A
// label that this user may not set stays as the system sets it for new files. Does nothing where the filesystem or the
// system has no such attributes. If the old file could not be opened, `from` is empty with errno, which is an error
// too: nobody knows whom it admits.
bool keep_attributes(const Fd& from, const Fd& to, const std::string& file, std::string_view rule);

}  // namespace weighbridge::io
