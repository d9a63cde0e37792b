// SPDX-License-Identifier: Apache-2.0
// The corpus of every format in one list. A new format adds its line in all_cases.cc.
#pragma once
#include <string>
#include <vector>

#include "core/reading/format.h"
#include "support/corpus_case.h"
#include "weighbridge/source.h"

namespace weighbridge::test {

struct FormatCorpus {
  const core::Format* format;
  std::vector<core::CorpusCase> cases;

  // The usual extension, or the format's name if it has none.
  std::string extension() const;
  // The path of the case's file below corpus/: "<format>/<case>.<extension>".
  std::string path(const core::CorpusCase&) const;
  // The case's bytes in memory, under that name, with its sidecar as the neighbor.
  std::shared_ptr<const Source> source(const core::CorpusCase&) const;
};

// `source`, and the sidecar beside it.
std::shared_ptr<const Source> with_sidecar(std::shared_ptr<const Source> source, const core::CorpusSidecar&);
// The path of the sidecar of a file whose path ends with the format's extension.
std::string sidecar_path(std::string path, const core::CorpusSidecar&);

// Built once.
const std::vector<FormatCorpus>& all_cases();

// The text of corpus/index.tsv: what each committed file is, for programs that try other readers (corpus/conform.py).
std::string index_of_cases();

// The text of cli/rule_examples_generated.h: the message of the first finding by each rule, about a committed file.
std::string examples_of_cases();

}  // namespace weighbridge::test
