// SPDX-License-Identifier: Apache-2.0
// What a cursor reads, field by field, for explain(). The fields are reported once the structure that they make is
// complete, so that explain() shows none of a structure that was refused.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/model/words.h"
#include "core/reading/findings.h"

namespace weighbridge::core {

class FieldNotes {
 public:
  // Offsets count from `base`.
  explicit FieldNotes(const Findings& findings, std::uint64_t base = 0) : findings_(&findings), base_(base) {}

  // `value` is a text, a number, or a function that makes a text and is called only for wanted bytes.
  template <class Value> void add(std::string_view what, std::uint64_t begin, std::uint64_t end, const Value& value) {
    if (!findings_->wanted(base_ + begin, base_ + end)) return;
    if constexpr (Count<Value>)
      fields_.push_back({std::string(what), begin, end, std::to_string(value)});
    else if constexpr (requires { std::string(value()); })
      fields_.push_back({std::string(what), begin, end, value()});
    else
      fields_.push_back({std::string(what), begin, end, excerpt(value, kShown)});
  }
  // Reports the structure in [begin, end), and the fields in it.
  void report(Span::Kind kind, std::string_view what, std::uint64_t begin, std::uint64_t end) {
    findings_->span(kind, base_ + begin, base_ + end, what);
    for (const Field& field : fields_)
      findings_->span(Span::Kind::field, base_ + field.begin, base_ + field.end, field.what, field.value);
    fields_.clear();
  }

 private:
  static constexpr std::size_t kShown = 200;  // bytes of a text: about two lines
  struct Field {
    std::string what;
    std::uint64_t begin, end;
    std::string value;
  };
  const Findings* findings_;
  std::uint64_t base_;
  std::vector<Field> fields_{};
};

}  // namespace weighbridge::core
