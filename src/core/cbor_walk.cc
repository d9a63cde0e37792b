// SPDX-License-Identifier: Apache-2.0
// Walking an index in CBOR: stopping, kept values, and names.
#include "core/cbor_walk.h"

#include <functional>
#include <numeric>
#include <utility>
#include <vector>

#include "core/common_rules.h"

namespace weighbridge::core {
namespace {

// Caps the caller's limit, because values are read by recursion as deep as the index nests.
constexpr std::uint32_t kDeepest = 1000;

}  // namespace

std::uint32_t CborWalk::depth() const noexcept { return std::min(context_.limits.depth, kDeepest); }

void CborWalk::enter(std::string index, std::uint64_t begin, std::size_t shortest) {
  begin_ = begin;
  text_ = draft_.retain_header(std::move(index));
  in_ = wire::CborReader(text_, depth());
  const std::size_t most = text_.size() / shortest + 1;
  draft_.reserve(most, most, most);
}

void CborWalk::abandon_broken() {
  const wire::CborError& error = in_.error();
  const At where{.offset = at(error.offset)};
  if (error.code == wire::CborErrorCode::too_deep)
    findings_.report(rules::kLimitDepth, where, "at most " + std::to_string(depth()));
  else if (error.code == wire::CborErrorCode::trailing_bytes)
    findings_.report(rules_.trailing, where);
  else
    findings_.report(rules_.broken, where, {}, {}, error.sentence);
  throw Abandon{};
}

void CborWalk::abandon_many() {
  findings_.report(rules::kLimitTensors, {.offset = here()}, "at most " + std::to_string(context_.limits.tensors));
  throw Abandon{};
}

Value CborWalk::keep_value(std::size_t key_size, std::optional<std::size_t>& duplicate, std::string_view too_much,
                           Floats floats) {
  const std::size_t value_at = in_.offset();
  Value value = read_value(in_, budget_, duplicate, floats);
  need_sound();
  if (!budget_.take(kValueCost + key_size + (in_.offset() - value_at))) {
    findings_.report(rules::kLimitMemory, {.offset = at(value_at)}, {}, {}, too_much);
    throw Abandon{};
  }
  return value;
}

void CborWalk::check_names(const Rule& duplicate) {
  if (ascending_) {  // as our writers and the published ones write them: the index is the order of the file
    draft_.index_sorted_names();
    return;
  }
  std::vector<std::uint32_t> later;
  for (const auto& [first, second] : draft_.index_names()) {
    const std::string_view name = draft_.name(second);
    At where{.tensor = name};
    if (std::less_equal<>{}(text_.data(), name.data()) && std::less<>{}(name.data(), text_.data() + text_.size()))
      where.offset = at(static_cast<std::size_t>(name.data() - text_.data()));
    findings_.report(duplicate, where);
    later.push_back(second);
  }
  draft_.drop(later);
}

}  // namespace weighbridge::core
