// SPDX-License-Identifier: Apache-2.0
// Base of the judges that turn entries of an index in CBOR into tensors, or into findings. Has what the generations of
// zTensor check in the same way; their rules, fields and layouts are their own.
#pragma once
#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "core/cbor_entry.h"
#include "core/draft.h"
#include "core/findings.h"
#include "core/part_digest.h"
#include "weighbridge/context.h"

namespace weighbridge::core {

class CborJudge {
 protected:
  // `noun` is what the format calls a part, in messages.
  CborJudge(const Context& context, Findings& findings, Draft& draft, std::string_view noun)
      : context_(context), findings_(findings), draft_(draft), noun_(noun) {}
  ~CborJudge() = default;

  // `at` is an offset in the file; that of a part is its own, and then the finding names the part.
  void report(const Rule&, const CborEntry&, std::uint64_t at, std::string_view detail, Said expected = {},
              Said found = {});
  // The same, and marks the entry as broken. False.
  bool reject(const Rule&, CborEntry&, std::uint64_t at, std::string_view detail = {}, Said expected = {},
              Said found = {});
  bool reject(const Rule&, CborEntry&, const CborPart&, Said expected = {}, Said found = {});
  // Keeps the first reason why the entry's elements cannot be read.
  void doubt(const Rule&, const CborEntry&, std::uint64_t at, std::string_view detail);
  void doubt(const Rule&, const CborEntry&, const CborPart&, std::string_view what);
  std::string role_text(const CborPart&) const;  // part "data"

  // Rejects each field that was not seen; those of the part, if there is one.
  using Field = std::pair<bool, std::string_view>;  // seen, key
  void require(const Rule&, CborEntry&, const CborPart*, std::initializer_list<Field>);

  // Where bytes may be: from `alignment` on, at a multiple of it, and before `end`.
  struct Bounds {
    const Rule &misplaced, &outside;
    std::uint64_t alignment = 1, end = 0;
  };
  void check_extent(const Bounds&, CborEntry&, const CborPart*, std::uint64_t offset, std::uint64_t length);
  bool within_limit(CborEntry&, const CborPart*, std::uint64_t decoded);
  void check_digest(const Rule& malformed, const Rule& unknown, CborEntry&, const CborPart&, const DigestText&);
  // Sets the logical dtype of a part whose storage dtype is set. False if its type requires another.
  bool resolve_type(const Rule& unknown, const Rule& mismatch, std::span<const LogicalType>, CborEntry&, CborPart&);

  // Whether the model has no more than `most` roles with those of the object, which is rejected if not.
  template <class Object> bool takes_roles(const Rule& rule, Object& e, std::size_t most) {
    std::size_t roles = draft_.roles().size();
    for (const auto& p : e.parts) {
      const auto known = draft_.roles();
      roles += std::find(known.begin(), known.end(), p.role) == known.end() ? 1U : 0U;
      if (roles > most) return reject(rule, e, p.at, p.role);
    }
    return true;
  }
  // The part that the object is about: the first of these roles that it has, or its first part.
  template <class Object> static auto main_part(Object& e, std::initializer_list<std::string_view> roles) {
    for (const std::string_view role : roles)
      if (auto* const part = e.find(role)) return part;
    return e.parts.empty() ? nullptr : &e.parts.front();
  }
  // Gives the tensor the object's attributes and unknown keys, and reports the doubt.
  template <class Object> void finish(TensorDraft tensor, Object& e) {
    if (!e.attributes.empty()) tensor.attributes(std::move(e.attributes));
    if (!e.extra.empty()) tensor.extra(std::move(e.extra));
    state_doubt(tensor);
  }
  void state_doubt(TensorDraft);
  // Gives the part its digest and its unknown keys.
  void finish(PartDraft, const CborPart&, std::vector<Value::Entry>& part_extras);

  const Context& context_;
  Findings& findings_;
  Draft& draft_;
  const std::string_view noun_;
  std::optional<Finding> doubt_;
};

}  // namespace weighbridge::core
