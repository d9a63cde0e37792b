// SPDX-License-Identifier: Apache-2.0
// Named byte ranges of a file, which its walker reports while it reads. Keeps only ranges with bytes that the caller
// wants. Walkers report through core::Findings, which every part of a walker has at hand.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/record.h"
#include "weighbridge/explain.h"

namespace weighbridge::core {

enum class Grammar : std::uint8_t { json, cbor };

class Spans {
 public:
  // Keeps ranges with bytes in [begin, end).
  Spans(std::uint64_t begin, std::uint64_t end, std::uint64_t maximum) : begin_(begin), end_(end), maximum_(maximum) {}

  bool wanted(std::uint64_t begin, std::uint64_t end) const noexcept {
    return begin < end_ && begin_ < end && begin < end;
  }
  void add(Span::Kind, std::uint64_t begin, std::uint64_t end, std::string_view what, std::string value);
  // The fields of a record, one after the other from `at`. Fields past the end of the bytes are left out.
  void add_fields(std::uint64_t at, std::string_view bytes, std::span<const base::FieldRow>);
  // A text in a grammar, and everything nested in it. Ends at the first error.
  void add_tree(Grammar, Span::Kind, std::string_view what, std::uint64_t at, std::string_view text);

  // The ranges, outer ones first, each once.
  std::vector<Span> take();
  std::uint64_t left_out() const noexcept { return left_out_; }

 private:
  std::uint64_t begin_, end_, maximum_;
  std::uint64_t left_out_ = 0;
  std::vector<Span> all_;
};

}  // namespace weighbridge::core
