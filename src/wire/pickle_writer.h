// SPDX-License-Identifier: Apache-2.0
// Writes a pickle of protocol 2, which every reader of PyTorch's files takes: numbers, texts, containers, globals and
// calls of them. A global and a repeated text are stored once; further mentions refer to the memo. The caller keeps the
// order of operations: a container's items lie between begin() and the call that takes them.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace weighbridge::wire {

class PickleWriter {
 public:
  PickleWriter() : out_("\x80\x02", 2) {}

  void none() { out_ += 'N'; }
  void boolean(bool value) { out_ += value ? '\x88' : '\x89'; }
  void integer(std::int64_t);
  void integer(std::uint64_t);
  void real(double);
  // A text of at most 2^32 - 1 bytes of UTF-8.
  void text(std::string_view);
  // The same, remembered: for texts that come often.
  void common_text(std::string_view);
  // A class or function, by its names, which hold no line feed.
  void global(std::string_view module, std::string_view name);
  // Bytes, as protocol 2 has them: the call _codecs.encode(text, "latin1").
  void bytes(std::string_view);

  void begin() { out_ += '('; }  // items follow
  void tuple() { out_ += 't'; }  // of the items since begin()
  void empty_tuple() { out_ += ')'; }
  void empty_list() { out_ += ']'; }
  void empty_dict() { out_ += '}'; }
  void append() { out_ += 'e'; }      // the items since begin() to the list before it
  void set() { out_ += 'u'; }         // the keys and values since begin() in the dict before it
  void call() { out_ += 'R'; }        // of the global before the tuple before it
  void build() { out_ += 'b'; }       // gives the value before it to the object before that, as its state
  void persistent() { out_ += 'Q'; }  // the object with the id before it

  // Ends the pickle.
  std::string take() {
    out_ += '.';
    return std::move(out_);
  }

 private:
  // Refers to what was stored under the key, or returns false.
  bool recall(const std::string& key);
  void remember(std::string key);
  template <class T> void fixed(char opcode, T value);

  std::string out_;
  std::map<std::string, std::uint32_t, std::less<>> memo_{};
};

}  // namespace weighbridge::wire
