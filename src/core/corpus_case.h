// SPDX-License-Identifier: Apache-2.0
// One file of a format's corpus, made in code by its cases.cc. For tests and fuzzers only.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weighbridge/context.h"

namespace weighbridge::core {

// A small file that lies beside the case's, under its name with another ending: what core::Companion is to a writer.
struct CorpusSidecar {
  std::string extension;  // ".khm.json"
  std::string bytes;
  std::string name{};  // in place of the case's name with `extension`
};

struct CorpusCase {
  std::string name;   // file name without the extension: the rule's id after the slash, then what is special
  std::string rule;   // the rule that the file breaks first, "" for a file without findings
  std::string bytes;  // the whole file
  std::vector<std::string> others{};  // further rules that verify reports, in order
  bool generated_only = false;  // not committed (too large, or only wrong under `limits`): built when the tests run
  Limits limits{};              // that the file is read under: for the rules "limit/..."
  std::optional<CorpusSidecar> sidecar{};
  std::string extension{};  // in place of the format's usual one; without the dot
};

}  // namespace weighbridge::core
