// SPDX-License-Identifier: Apache-2.0
// One file of a format's corpus, built by its cases.cc. For tests and fuzzers only.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <utility>
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

// The cases of one format, as its cases.cc adds them.
class CorpusCases {
 public:
  explicit CorpusCases(std::string_view format) : prefix_(std::string(format) + "/") {}
  // Rules are written without the format's name, and those of another owner, such as "limit/header", whole.
  CorpusCase& add(std::string name, std::string rule, std::string bytes, std::vector<std::string> others = {}) {
    complete(rule);
    for (std::string& other : others) complete(other);
    return cases_.emplace_back(CorpusCase{
        .name = std::move(name), .rule = std::move(rule), .bytes = std::move(bytes), .others = std::move(others)});
  }
  // Read with these limits; it is invalid only under them.
  void limited(std::string name, std::string rule, std::string bytes, const Limits& limits) {
    CorpusCase& out = add(std::move(name), std::move(rule), std::move(bytes));
    out.limits = limits;
    out.generated_only = true;
  }
  CorpusCase& last() { return cases_.back(); }
  std::vector<CorpusCase> take() { return std::move(cases_); }

 private:
  void complete(std::string& rule) const {
    if (!rule.empty() && rule.find('/') == rule.npos) rule.insert(0, prefix_);
  }

  std::string prefix_;
  std::vector<CorpusCase> cases_;
};

}  // namespace weighbridge::core
