// SPDX-License-Identifier: Apache-2.0
// Base of the classes that check the entries of a CBOR index and make tensors or findings of them. Has the checks that
// all generations of zTensor share; each generation has its own rules, fields and layouts.
#pragma once
#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "core/model/draft.h"
#include "core/payload/part_digest.h"
#include "core/reading/findings.h"
#include "formats/ztensor/cbor_entry.h"
#include "weighbridge/context.h"

namespace weighbridge::ztensor {

using core::DigestText, core::Draft, core::Findings, core::PartDraft, core::Said, core::TensorDraft;

class CborJudge {
 protected:
  // `noun` is what the format calls a part, in messages.
  CborJudge(const Context& context, Findings& findings, Draft& draft, std::string_view noun)
      : context_(context), findings_(findings), draft_(draft), noun_(noun) {}
  ~CborJudge() = default;

  // `at` is an offset in the file; that of a part is its own, and then the finding names the part.
  void report(const Rule&, const CborEntry&, std::uint64_t at, const Said& detail, const Said& expected = {},
              const Said& found = {});
  // The same, and marks the entry as broken. False.
  bool reject(const Rule&, CborEntry&, std::uint64_t at, const Said& detail = {}, const Said& expected = {},
              const Said& found = {});
  bool reject(const Rule&, CborEntry&, const CborPart&, const Said& expected = {}, const Said& found = {});
  // Keeps the first reason why the entry's elements cannot be read.
  void mark_unsupported(const Rule&, const CborEntry&, std::uint64_t at, const Said& detail);
  void mark_unsupported(const Rule&, const CborEntry&, const CborPart&, std::string_view what);
  Said role_text(const CborPart*, std::string_view then = {}, std::string_view more = {}) const;  // part "data"

  // Rejects each field that is missing from the entry, or from the part if one is given.
  using Field = std::pair<bool, std::string_view>;  // seen, key
  void require(const Rule&, CborEntry&, const CborPart*, std::initializer_list<Field>);

  // Where parts may lie: at multiples of `alignment`, from `alignment` up to `end`.
  struct Bounds {
    const Rule &misplaced, &outside;
    std::uint64_t alignment = 1, end = 0;
  };
  void check_extent(const Bounds&, CborEntry&, const CborPart*, std::uint64_t offset, std::uint64_t length);
  bool within_limit(CborEntry&, const CborPart*, std::uint64_t decoded);
  void check_digest(const Rule& malformed, const Rule& unknown, CborEntry&, const CborPart&, const DigestText&);
  // Sets the logical dtype of a part whose storage dtype is set. False if its type requires another.
  bool resolve_type(const Rule& unknown, const Rule& mismatch, std::span<const LogicalType>, CborEntry&, CborPart&);

  // Rejects the object, and returns false, if its roles would make more than `maximum` different roles in the model.
  template <class Object> bool takes_roles(const Rule& rule, Object& e, std::size_t maximum) {
    std::size_t roles = draft_.roles().size();
    for (const auto& p : e.parts) {
      const auto known = draft_.roles();
      roles += std::find(known.begin(), known.end(), p.role) == known.end() ? 1U : 0U;
      if (roles > maximum) return reject(rule, e, p.at, p.role);
    }
    return true;
  }
  // The main part of the object: the first of these roles that it has, or its first part.
  template <class Object> static auto main_part(Object& e, std::initializer_list<std::string_view> roles) {
    for (const std::string_view role : roles)
      if (auto* const part = e.find(role)) return part;
    return e.parts.empty() ? nullptr : &e.parts.front();
  }
  // Gives the tensor the object's attributes and unknown keys, and reports why its elements cannot be read, if they
  // cannot.
  template <class Object> void finish(TensorDraft tensor, Object& e) {
    if (!e.attributes.empty()) tensor.attributes(std::move(e.attributes));
    if (!e.extra.empty()) tensor.extra(std::move(e.extra));
    report_unsupported(tensor);
  }
  void report_unsupported(TensorDraft);
  // Gives the part its digest and its unknown keys.
  void finish(PartDraft, const CborPart&, std::vector<Value::Entry>& part_extras);

  // Parts lie before `end`, and bytes of none may be a second beginning of the file.
  void check_rest(const Source& file, std::uint64_t end) {
    if (reach_ < end) core::report_second_beginning(findings_, file, end - reach_);
  }

  const Context& context_;
  Findings& findings_;
  Draft& draft_;
  const std::string_view noun_;
  std::uint64_t reach_ = 0;  // the end of the last part
  std::optional<Finding> unsupported_;
};

}  // namespace weighbridge::ztensor
