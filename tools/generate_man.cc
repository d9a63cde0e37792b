// SPDX-License-Identifier: Apache-2.0
// Generates the manual: weighbridge.1, and weighbridge-VERB.1 for each verb (cli/manual.cc).
//
// usage: generate_man FOLDER [DATE]
#include <cstdio>
#include <fstream>
#include <string>

#include "cli/help.h"

namespace cli = weighbridge::cli;

namespace {

bool write(const std::string& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
  return static_cast<bool>(out.flush());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) {
    std::fputs("usage: generate_man FOLDER [DATE]\n", stderr);
    return 2;
  }
  const std::string folder = argv[1], date = argc == 3 ? argv[2] : "";
  bool written = write(folder + "/weighbridge.1", cli::manual_page(date));
  for (const cli::Verb& verb : cli::verbs())
    written = written && write(folder + "/weighbridge-" + std::string(verb.name) + ".1", cli::manual_page(verb, date));
  if (written) return 0;
  std::fprintf(stderr, "generate_man: cannot write below %s\n", folder.c_str());
  return 4;
}
