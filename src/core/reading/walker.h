// SPDX-License-Identifier: Apache-2.0
// What the walkers of all formats begin with: the file, the limits, the sink of findings, and the draft to fill.
#pragma once
#include <cstdint>
#include <utility>

#include "core/model/draft.h"
#include "core/reading/findings.h"
#include "core/reading/rules.h"
#include "weighbridge/context.h"
#include "weighbridge/source.h"

namespace weighbridge::core {

class Walker {
 public:
  Walker(const Source& source, const Context& context, Findings& findings, Draft& draft)
      : source_(source),
        context_(context),
        limits_(context.limits),
        findings_(findings),
        draft_(draft),
        size_(source.size()) {}

 protected:
  ~Walker() = default;

  // Whether the file has that many bytes; reports it if not.
  bool has_bytes(const Rule& too_short, std::uint64_t minimum) {
    return size_ >= minimum || findings_.fail(too_short, {.offset = size_}, in_bytes(minimum), in_bytes(size_));
  }
  // Whether the model may have that many tensors; reports it if not.
  bool few_enough(At at, std::uint64_t tensors) {
    return tensors <= limits_.tensors ||
           findings_.fail(rules::kLimitTensors, std::move(at), at_most(limits_.tensors), tensors);
  }
  // Whether that much of a header may be in memory; reports it if not.
  bool within_limit(At at, std::uint64_t size, const Said& what = {}) {
    return size <= limits_.header ||
           findings_.fail(rules::kLimitHeader, std::move(at), at_most(in_bytes(limits_.header)), in_bytes(size), what);
  }

  const Source& source_;
  const Context& context_;
  const Limits& limits_;
  Findings& findings_;
  Draft& draft_;
  const std::uint64_t size_;  // of the file
};

}  // namespace weighbridge::core
