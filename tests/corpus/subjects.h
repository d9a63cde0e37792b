// SPDX-License-Identifier: Apache-2.0
// What malformed.cc generates files for: one subject for each single-file format, for folders and for modules. A
// subject makes a suspect completely in memory and then tries it.
#pragma once
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "corpus/mutate.h"

namespace weighbridge::test {

// The generated files, with names that have the usual extensions.
using Suspect = std::vector<std::pair<std::string, std::string>>;

struct Tally {
  bool opened = false;
  double seconds = 0;  // processor time of verify and open
  std::set<std::string> rules{};
};

class Subject {
 public:
  virtual ~Subject() = default;
  virtual std::string name() const = 0;
  // Ids of the rules that could be hit.
  virtual std::set<std::string> rules() const = 0;
  virtual Suspect make(Mutator&) const = 0;
  // Ends the program with a message if a check of hostile.h fails.
  virtual Tally try_one(const Suspect&) const = 0;
};

// Formats in the registry's order, then "hf", then "khlnary".
std::vector<std::unique_ptr<Subject>> subjects();
// "planted-time" and "planted-memory": each must be caught.
std::vector<std::unique_ptr<Subject>> planted();

}  // namespace weighbridge::test
