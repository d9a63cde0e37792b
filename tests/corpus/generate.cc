// SPDX-License-Identifier: Apache-2.0
// corpus_generate FOLDER [EXAMPLES]: writes every committed file of the corpus below FOLDER, and its index, and removes
// those that no case makes; writes the examples of rules to the file EXAMPLES.
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>
#include <string_view>

#include "corpus/all_cases.h"

int main(int argc, char** argv) try {
  namespace fs = std::filesystem;
  // A word that looks like a flag is not a folder: once, such a folder was made and filled.
  const std::string_view word = argc == 2 || argc == 3 ? argv[1] : "";
  const bool help = word == "--help" || word == "-h";
  if (help || word.empty() || word.starts_with('-')) {
    (help ? std::cout : std::cerr)
        << "usage: corpus_generate FOLDER [EXAMPLES]\n"
           "Writes the committed files of the corpus below FOLDER, and removes those that no "
           "case makes. Writes the examples of rules to EXAMPLES.\n";
    return help ? 0 : 2;
  }
  const fs::path folder = argv[1];
  std::set<fs::path> made;
  const auto write = [&](const fs::path& path, const std::string& bytes) {
    std::ofstream out(path, std::ios::binary | std::ios::trunc);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    if (!out.flush()) throw std::runtime_error("cannot write " + path.string());
    made.insert(path);
  };
  for (const auto& corpus : weighbridge::test::all_cases()) {
    fs::create_directories(folder / corpus.format->info.name);
    for (const auto& c : corpus.cases) {
      if (c.generated_only) continue;
      const fs::path path = folder / corpus.path(c);
      write(path, c.bytes);
      if (c.sidecar) write(weighbridge::test::sidecar_path(path.string(), *c.sidecar), c.sidecar->bytes);
    }
    for (const auto& entry : fs::directory_iterator(folder / corpus.format->info.name))
      if (!made.contains(entry.path())) fs::remove(entry.path());
  }
  write(folder / "index.tsv", weighbridge::test::index_of_cases());
  if (argc == 3) write(argv[2], weighbridge::test::examples_of_cases());
  std::cout << made.size() << " files\n";
  return 0;
} catch (const std::exception& error) {
  std::cerr << "corpus_generate: " << error.what() << '\n';
  return 4;
}
