// SPDX-License-Identifier: Apache-2.0
// What the fuzz targets share: a check that ends the program with a sentence, and small budgets, so that a thousand
// inputs a second are tried rather than one large one. Leaves to the targets which doors they open.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weighbridge/context.h"
#include "weighbridge/error.h"
#include "weighbridge/formats.h"
#include "weighbridge/source.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace weighbridge::fuzz {

// Ends the program, which the fuzzer and the replay both take as a finding.
[[noreturn]] inline void fail(std::string_view sentence) {
  std::fprintf(stderr, "%.*s\n", static_cast<int>(sentence.size()), sentence.data());
  std::abort();
}

inline void expect(bool holds, std::string_view sentence) {
  if (!holds) fail(sentence);
}

inline Context small_context() {
  Context context;
  context.limits = {.memory = std::uint64_t{64} << 20,
                    .header = std::uint64_t{16} << 20,
                    .tensors = 100'000,
                    .decoded = std::uint64_t{16} << 20,
                    .depth = 32};
  return context;
}

// The input as a source of exactly its bytes: a sanitizer sees a read past either end.
inline std::shared_ptr<const Source> source_of(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::make_shared<std::vector<std::byte>>(size);
  if (size != 0) std::memcpy(bytes->data(), data, size);
  bytes->shrink_to_fit();
  return memory_source({std::span<const std::byte>(*bytes), bytes});
}

// "" (by content), then every format of one file that reads: what detection turns away still meets every walker.
inline std::vector<std::string> doors() {
  std::vector<std::string> out{""};
  for (const FormatInfo& format : formats())
    if (format.reads && !format.folder) out.emplace_back(format.name);
  return out;
}

// What a file may be guilty of; io and misuse would be the library's own mistakes, as the bytes are all there and the
// callers here ask for nothing wrong.
inline void expect_files_fault(const Finding& finding) {
  expect(finding.kind == Kind::malformed || finding.kind == Kind::unsupported,
         "the file is blamed with the wrong kind: " + finding.rule + ": " + finding.message);
}

inline void expect_report(const Report& report, std::uint64_t size) {
  for (const Finding& finding : report.findings()) {
    expect_files_fault(finding);
    expect(!finding.rule.empty() && !finding.message.empty(), "a finding without rule or sentence");
    expect(!finding.offset || *finding.offset <= size, "a finding behind the end of the file: " + finding.message);
  }
}

// For the planted bugs: signs that stand in no seed's names (# does, in names that are hashes), and that a fuzzer puts
// there by changing one byte.
inline bool has_forbidden_sign(std::string_view name) {
  return name.find_first_of("!$%&*+;<=>?@GHJKQXY`{|}~") != std::string_view::npos;
}

}  // namespace weighbridge::fuzz
