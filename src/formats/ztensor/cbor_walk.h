// SPDX-License-Identifier: Apache-2.0
// Base of the walkers over a CBOR index, for all generations of zTensor. Reads items and the fields that all share,
// reports invalid CBOR, and stops. Formats own the keys and their meaning.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/reading/walker.h"
#include "formats/ztensor/cbor_entry.h"
#include "formats/ztensor/cbor_value.h"
#include "weighbridge/context.h"
#include "wire/cbor_reader.h"

namespace weighbridge::ztensor {

using core::Draft, core::Findings, core::HeaderMemory, core::Said;

class CborWalk : protected core::Walker {
 protected:
  // Thrown when the rest of the index is unusable, after the reason was reported.
  struct Abandon {};
  struct Rules {
    const Rule& trailing;  // bytes after the item
    const Rule& broken;    // malformed CBOR
  };

  CborWalk(const Source& source, const Context& context, Findings& findings, Draft& draft, Rules rules)
      : Walker(source, context, findings, draft), rules_(rules), budget_{limits_.memory / 4} {}
  ~CborWalk() = default;

  // Retains the index, which begins at `begin` in the file; messages call it `what`. Each tensor takes at least
  // `shortest` bytes of it, so its length bounds how many tensors are reserved.
  void enter(HeaderMemory index, std::uint64_t begin, std::size_t shortest, std::string_view what);

  // Calls walk(). If it stops because the index cannot be read to its end, empties the draft and returns false.
  template <class Walk> bool attempt(Walk walk) {
    try {
      walk();
      return true;
    } catch (const Abandon&) {
      draft_.clear();
      return false;
    }
  }

  std::uint64_t at(std::size_t offset) const noexcept { return begin_ + offset; }
  std::uint64_t here() const noexcept { return at(in_.offset()); }

  // Call when the reader returns false: returns only if the CBOR is well-formed.
  void need_sound() {
    if (!in_.ok()) abandon_broken();
  }
  // After the last item.
  void finish() {
    in_.finish();
    need_sound();
  }
  // Skips the next `count` items.
  void pass_items(int count) {
    while (count-- > 0)
      if (!in_.skip_item()) need_sound();
  }
  // Counts one more tensor against the limit.
  void count_tensor() {
    if (++count_ > context_.limits.tensors) abandon_many();
  }

  // Texts of indefinite length are joined and stored in `kept`.
  static std::string_view text_of(const wire::CborString& text, std::deque<std::string>& kept) {
    return text.indefinite ? wire::cbor_text(text, kept.emplace_back()) : text.raw;
  }
  // Fast path: reads the next text if it is one of these, as nearly every key of an index is.
  template <class... Texts> bool known_text(std::string_view& out, Texts... texts) {
    return ((in_.accept_text(texts) && (out = texts, true)) || ...);
  }

  // Reads the value of a key of this size, within the budget of the file. Sets `duplicate` to the offset of a repeated
  // key in a map. `too_much` names what exceeds the limit.
  Value keep_value(std::size_t key_size, std::optional<std::size_t>& duplicate, std::string_view too_much,
                   Floats floats = Floats::own_width);
  // Reads the numbers of the entered array, as many as fit; calls `bad` at the first invalid one. Returns the number of
  // elements.
  template <class Bad> std::size_t read_dims(std::span<std::uint64_t> out, Bad bad) {
    std::size_t rank = 0;
    bool reported = false;
    while (in_.next_element()) {
      std::uint64_t dim = 0;
      if (in_.read_u64(dim)) {
        if (rank < out.size()) out[rank] = dim;
        ++rank;
        continue;
      }
      need_sound();
      if (!reported) bad();
      reported = true;
      pass_items(1);
    }
    need_sound();
    return rank;
  }

  // The functions below take offsets in the file.

  // Reports an error of the entry, which is broken by it.
  void broken(CborEntry&, const Rule&, std::uint64_t at, const Said& detail, const Said& expected = {},
              const Said& found = {});
  // Reports that the entry's next value has the wrong type, and skips it.
  void wrong_type(CborEntry&, const Rule&, std::string_view field, const char* expected);
  // Reads the next key of the entry. False if it is not text: then it is reported, and skipped with its value.
  bool read_key(CborEntry&, std::string_view& key, const Rule&, std::string_view detail = {});
  // Read the value of a key; if it has another type, report and skip it.
  void read_text(CborEntry& entry, std::string_view& out, const Rule& rule, std::string_view field) {
    wire::CborString text;
    if (in_.read_text(text))
      out = text_of(text, entry.texts);
    else
      wrong_type(entry, rule, field, "text");
  }
  void read_number(CborEntry& entry, std::uint64_t& out, const Rule& rule, std::string_view field) {
    if (!in_.read_u64(out)) wrong_type(entry, rule, field, "an unsigned integer below 2^64");
  }
  // Reads the value of the key "shape".
  void read_shape(CborEntry&, const Rule& field, const Rule& rank);
  // Reports an error of the file that leaves the rest of the index readable. The walk continues until
  // stop_if_reported() ends it.
  void report_and_go_on(const Rule&, std::uint64_t at, const Said& detail, const Said& expected = {},
                        const Said& found = {});
  void stop_if_reported() const {
    if (reported_) throw Abandon{};
  }
  // Gives the draft the root's attributes and the tokenizer that is one of them.
  void set_attributes(std::vector<Value::Entry>);

  // Notes the name of the next tensor. `in_one_piece`: it is a slice of the index.
  void note_name(std::string_view name, bool in_one_piece) {
    ascending_ = ascending_ && (count_ == 1 || last_name_ < name) && in_one_piece;
    last_name_ = name;
  }
  // Builds the index of names; reports duplicates and drops the later tensor of each.
  void check_names(const Rule& duplicate);

  wire::CborReader in_{std::string_view{}};

 private:
  [[noreturn]] void abandon_broken();
  [[noreturn]] void abandon_many();
  std::uint32_t depth() const noexcept;

  Rules rules_;
  std::string_view text_;    // the index
  std::uint64_t begin_ = 0;  // its offset in the file
  std::uint64_t count_ = 0;  // of tensors
  core::Budget budget_;
  std::string_view last_name_;
  bool reported_ = false;
  bool ascending_ = true;  // all names so far are ascending and in one piece
};

}  // namespace weighbridge::ztensor
