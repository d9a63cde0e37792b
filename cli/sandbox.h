// SPDX-License-Identifier: Apache-2.0
// Confinement: the system refuses this process whatever its command line does not need. sandbox.cc owns which files a
// verb may read and write; os_sandbox.cc how that is enforced, and which calls of the system no verb makes. In the
// command only: a library must not confine the program that uses it.
#pragma once
#include <map>
#include <string>

#include "arguments.h"

namespace weighbridge::cli {

// What this kernel and this build can enforce.
struct Sandbox {
  int landlock = 0;      // the version of its interface; 0: none
  bool seccomp = false;  // whether calls can be filtered
};
Sandbox sandbox() noexcept;
// For --version: "landlock 7, seccomp", "none".
std::string sandbox_text();

// From here on the process can read the folders of the files that it was given, write the folders of its outputs, and
// neither reach a network, start a program nor map memory as code. Called before the first thread starts, since what
// the kernel enforces holds for this thread and those that it starts. What the kernel lacks is left out.
void confine(const Arguments&);

namespace os {

// What the process may do with a file, or with a folder and what is beneath it.
enum Allowed : unsigned { kRead = 1, kKeep = kRead | 2, kWrite = kKeep | 4 };  // kKeep: files, but no folders
using Places = std::map<std::string, unsigned>;
// Enforces what `can` says, or nothing if the system refuses to.
void confine(const Places&, const Sandbox& can);

}  // namespace os
}  // namespace weighbridge::cli
