// SPDX-License-Identifier: Apache-2.0
// From what an object's keys said to a tensor of the model, or to findings. Owns the rules of sections II.2, II.3 and
// III.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/draft.h"
#include "core/findings.h"
#include "formats/ztensor1/entry.h"
#include "weighbridge/context.h"

namespace weighbridge::ztensor1 {

class Judge {
 public:
  Judge(const Source& source, const Context& context, core::Findings& findings, core::Draft& draft,
        std::uint64_t manifest_begin)
      : source_(source),
        context_(context),
        findings_(findings),
        draft_(draft),
        end_(manifest_begin),
        probes_left_(source.size()) {}

  // Adds the object to the draft, unless it is broken. Takes the values out of it.
  void judge(Entry&);

 private:
  void report(const Rule&, const Entry&, std::uint64_t at, std::string_view detail, std::string expected = {},
              std::string found = {});
  // The same, and the object is broken.
  bool reject(const Rule&, Entry&, std::uint64_t at, std::string_view detail, std::string expected = {},
              std::string found = {});
  void doubt(const Rule&, const Entry&, std::uint64_t at, std::string_view detail);

  void check_fields(Entry&);
  void check_dense_size(Entry&, Layout);
  void check_component(Entry&, Component&);
  void resolve_dtype(Entry&, Component&);
  void check_digest(Entry&, const Component&);
  DType lookup(std::string_view dtype);

  Component* need(Entry&, std::string_view role);
  bool demand(Entry&, Component&, std::optional<std::uint64_t> elements, const Rule& raw_rule);
  bool within_limit(Entry&, const Component&);
  bool loose(Entry&, Component&);
  void loose_rest(Entry&, std::initializer_list<const Component*> known);

  void dense(Entry&);
  void csr(Entry&);
  void coo(Entry&);
  void quantized(Entry&);
  // The layout of a quantization of reading Y10, where the object says one that fits; else it is an unknown format.
  std::optional<Layout> scaled(Entry&);
  // Elements that the length or the key says; nullopt when only decoding tells, or when the object became broken.
  std::optional<std::uint64_t> stated_count(Entry&, const Component&);
  std::optional<std::uint64_t> probed_count(Entry&, const Component&);
  std::optional<std::uint64_t> probe(Entry&, const Component&);

  void add(Entry&, Layout);
  void add_part(Entry&, Component&);

  const Source& source_;
  const Context& context_;
  core::Findings& findings_;
  core::Draft& draft_;
  const std::uint64_t end_;       // where components must end: the start of the manifest
  std::optional<Finding> doubt_;  // why the object's elements cannot be had
  std::string_view last_name_;    // of lookup()
  DType last_dtype_ = DType::unknown;
  struct Probe {
    std::uint64_t offset, length, size;
  };
  std::vector<Probe> probes_;
  std::uint64_t probes_left_;  // stored bytes that open may still decode: overlapping parts cannot make it quadratic
};

}  // namespace weighbridge::ztensor1
