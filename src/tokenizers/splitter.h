// SPDX-License-Identifier: Apache-2.0
// How byte-level tokenizers divide a text into words before they merge bytes: regular expressions, one after the other,
// each of which divides what the ones before have left. Owns the table of them, by the names of tokenizer.ggml.pre, and
// the matching of the few constructs that they use.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weighbridge::tokenizers {

class Splitter {
 public:
  // The names, and whether words that are tokens stay whole (ignore_merges).
  struct Named {
    std::string_view name;
    bool whole_words;
    std::span<const std::string_view> expressions;
  };
  static const Named* find(std::string_view name) noexcept;
  static constexpr std::string_view kHuggingFace = "hf-";  // prefix of those that differ from llama.cpp

  // The same divisions as a tokenizer.json spells them.
  struct Spelled {
    std::string_view name;            // of the division
    std::string_view pre, pre_whole;  // tokenizer.ggml.pre of it, and with words that stay whole; empty: none
    std::span<const std::string_view> expressions;
    std::string_view in_llama_cpp{};  // where llama.cpp divides texts in another way; empty: nowhere
  };
  static const Spelled* find(std::span<const std::string> expressions) noexcept;
  // How a tokenizer.json spells the division that llama.cpp has under this name; null: none is known.
  static const Spelled* spelled_as(const Named&) noexcept;
  // The expression of the step ByteLevel, if it divides texts.
  static const std::string_view kOfByteLevel;

  explicit Splitter(const Named&);
  // Where the words of the text end, ascending; the last is its size. Invalid UTF-8 counts as symbols, a byte each.
  // Time is linear in the text, but for runs of white space.
  std::vector<std::uint32_t> ends(std::string_view text) const;

 private:
  // A set of characters.
  struct Class {
    std::uint8_t kinds = 0;      // of unicode_classes_generated.h
    std::uint8_t not_kinds = 0;  // \S
    bool negated = false;
    std::vector<std::pair<char32_t, char32_t>> ranges{};  // inclusive
    std::vector<std::pair<char32_t, char32_t>> without{};
    bool has(char32_t c, std::uint8_t kinds_of_c) const noexcept;
  };
  struct Item {
    Class of;
    std::size_t minimum = 1, maximum = 1;
  };
  struct Alternative {
    std::vector<Item> items;
    bool before_white = false;        // (?!\S): white space or the end must follow
    std::vector<Alternative> then{};  // (?:...)? at the end
  };
  using Expression = std::vector<Alternative>;
  struct Character {
    char32_t code_point;
    std::uint8_t kinds;
    std::uint32_t end;  // in the text
  };

  static Expression parse(std::string_view& rest);
  static Class parse_class(std::string_view& rest);
  static std::size_t match(const Alternative&, std::size_t item, std::span<const Character>, std::size_t at);
  static std::size_t match(const Expression&, std::span<const Character>, std::size_t at);

  std::vector<Expression> expressions_;
};

}  // namespace weighbridge::tokenizers
