// SPDX-License-Identifier: Apache-2.0
// One file of a format's corpus, built by its cases.cc. For tests and fuzzers only.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weighbridge/context.h"

namespace weighbridge::core {

// A small file beside the case's file, with the same name and another extension, as core::Companion is for a writer.
struct CorpusSidecar {
  std::string extension;  // ".khm.json"
  std::string bytes;
  std::string name{};  // used instead of the case's name with `extension`
};

struct CorpusCase {
  std::string name;  // file name without the extension: the rule's id after the slash, then what distinguishes the case
  std::string rule;  // the first rule that the file breaks; "" for a file without findings
  std::string bytes;                  // the whole file
  std::vector<std::string> others{};  // further rules that verify reports, in order
  // not committed (too large, or invalid only under `limits`) but built when the tests run
  bool generated_only = false;
  Limits limits{};  // limits to read it with, for the rules "limit/..."
  std::optional<CorpusSidecar> sidecar{};
  std::string extension{};  // in place of the format's default; without the dot
};

}  // namespace weighbridge::core
