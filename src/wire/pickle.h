// SPDX-License-Identifier: Apache-2.0
// An interpreter of Python's pickles, protocols 0 to 5, that builds values and never does what they ask for. Owns the
// opcodes, the stack, the memo and the values; knows no class and calls, imports and looks up nothing. A global is a
// pair of names, and what a pickle would call is an object that says what with which arguments. The opcodes are those
// of pickletools.py.
//
// A pickle is read in one pass through a window. Values are nodes of an arena that refer to one another by number, so a
// value that the memo repeats is stored once, and containers may contain themselves: a walk over them must be bounded.
// A text or byte string above kInline bytes stays in the input, and its node says where. So the memory is a small
// multiple of the pickle's bytes without its long strings, and the caller limits it.
//
// Also owns how pickles spell texts and bytes that have no stated length.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weighbridge::wire {

class Pickle;
// Bytes between two opcodes that the reader of an object takes once its state is set.
struct PickleData {
  std::uint32_t object = 0;
  std::uint64_t offset = 0, length = 0;  // in the input
  bool pickle = false;                   // they are a pickle of their own
};

// Where a pickle is read from. `read` fills the whole span, which lies in [0, size), and may throw.
struct PickleInput {
  std::uint64_t size = 0;
  std::function<void(std::uint64_t offset, std::span<std::byte> out)> read{};
  // The data of an object whose state ends at `at`; nullopt: it has none. Null: no object has any.
  std::optional<PickleData> (*data)(const PickleInput&, const Pickle&, std::uint32_t object,
                                    std::uint64_t at) = nullptr;
};

enum class PickleKind : std::uint8_t {
  none,
  boolean,
  integer,     // fits 64 bits with a sign
  long_bytes,  // an integer that does not: its bytes, little-endian two's complement
  long_text,   // the same in decimal
  real,
  text,   // of any bytes that the pickle has; Python expects UTF-8
  bytes,  // also a bytearray
  tuple,
  list,
  set,  // also a frozenset
  dict,
  global,      // a class or function, by its names
  object,      // what a call would return
  persistent,  // what the reader would make of an id
  extension,   // a global by its number in a registry that is not in the file
  buffer,      // bytes that are not in the file
};

enum class PickleFault : std::uint8_t {
  none,
  end,     // the input ends inside the pickle
  opcode,  // a byte that is not an opcode
  stack,   // an opcode takes more from the stack than there is, or a mark that is not there
  memo,    // a value that was never stored
  kind,    // an opcode for a value of another kind
  frame,   // a frame that does not end between two opcodes of its pickle
  number,  // a malformed number
  text,    // a malformed text of protocol 0
  memory,  // more values than the limit allows
};

struct PickleError {
  PickleFault fault = PickleFault::none;
  std::uint64_t offset = 0;     // of the opcode, in the input
  std::string_view sentence{};  // lower case, no full stop; static
};

// The values of one pickle.
class Pickle {
 public:
  using Ref = std::uint32_t;
  // Bytes of a string that are kept in memory.
  static constexpr std::uint64_t kInline = std::uint64_t{64} << 10;

  struct Span {
    std::uint64_t offset = 0, length = 0;  // in the input
  };
  // A global that the pickle names, in order.
  struct Global {
    Ref ref;
    bool called;  // it is also called, not only named
    bool run;     // it is called other than as a class whose __new__ makes an object
  };

  // Reads one pickle from `start` up to its STOP or its first error. `memory` limits the bytes of its values.
  static Pickle read(const PickleInput&, std::uint64_t start, std::uint64_t memory);

  const PickleError& error() const noexcept { return error_; }
  bool ok() const noexcept { return error_.fault == PickleFault::none; }
  // Whether it was read to its STOP, malformed or not.
  bool ended() const noexcept { return ended_; }
  std::uint64_t begin() const noexcept { return begin_; }
  std::uint64_t end() const noexcept { return end_; }  // of the last opcode that was read
  unsigned protocol() const noexcept { return protocol_; }
  // The value that it stands for. Only if ok().
  Ref root() const noexcept { return root_; }
  // Also those before an error.
  const std::vector<Global>& globals() const noexcept { return globals_; }
  // What PickleInput::data found, in the order of the objects.
  const std::vector<PickleData>& data() const noexcept { return data_; }

  PickleKind kind(Ref r) const noexcept { return nodes_[r].kind(); }
  std::uint64_t at(Ref r) const noexcept { return nodes_[r].at(); }  // of its opcode, in the input
  bool boolean(Ref r) const noexcept { return nodes_[r].value != 0; }
  std::int64_t integer(Ref r) const noexcept { return static_cast<std::int64_t>(nodes_[r].value); }
  double real(Ref r) const noexcept;
  // Of text, bytes, long_bytes, long_text: the bytes if they are in memory, else nullopt.
  std::optional<std::string_view> text(Ref r) const noexcept;
  // Whether a text is a str of Python 2, which may be any bytes: it is not encoded in UTF-8.
  bool is_str(Ref r) const noexcept { return kind(r) == PickleKind::text && texts_[nodes_[r].a()].str; }
  // The length of text or bytes, and where they are in the input if they are there as they are.
  std::uint64_t length(Ref r) const noexcept;
  std::optional<Span> span(Ref r) const noexcept;

  // Of tuple, list, set; of dict: keys and values in turn. Of an object: what was appended to it, or set in it.
  void for_each(Ref r, const std::function<bool(Ref)>& visit) const;
  std::vector<Ref> items(Ref r) const;
  std::size_t size(Ref r) const noexcept;  // how many for_each() visits
  std::span<const Ref> tuple(Ref r) const noexcept;

  // How many values there are: every number below it is one.
  Ref count() const noexcept { return static_cast<Ref>(nodes_.size()); }

  // Of a global.
  std::string_view module(Ref r) const noexcept;
  std::string_view name(Ref r) const noexcept;
  // Whether its names are results of calls, and therefore unknown.
  bool computed(Ref r) const noexcept;

  // Of an object. Its arguments are a tuple unless the pickle is malformed; keywords are none, or a dict.
  Ref callee(Ref r) const noexcept { return objects_[nodes_[r].a()].callee; }
  Ref arguments(Ref r) const noexcept { return objects_[nodes_[r].a()].arguments; }
  std::optional<Ref> keywords(Ref r) const noexcept;
  std::optional<Ref> state(Ref r) const noexcept;  // what its __setstate__ or its attributes would get
  // Whether its class's __new__ would be called, rather than a function or the class.
  bool made_by_new(Ref r) const noexcept { return objects_[nodes_[r].a()].by_new; }

  Ref persistent_id(Ref r) const noexcept { return nodes_[r].a(); }
  std::uint32_t extension(Ref r) const noexcept { return nodes_[r].a(); }

 private:
  friend class PickleBuilder;
  friend class PickleMachine;
  static constexpr std::uint32_t kNothing = UINT32_MAX;

  // The kind is in the top byte of the offset. `value` is a number, or two of 32 bits.
  struct Node {
    std::uint64_t kind_and_at, value;
    PickleKind kind() const noexcept { return static_cast<PickleKind>(kind_and_at >> 56); }
    std::uint64_t at() const noexcept { return kind_and_at & ((std::uint64_t{1} << 56) - 1); }
    std::uint32_t a() const noexcept { return static_cast<std::uint32_t>(value); }
    std::uint32_t b() const noexcept { return static_cast<std::uint32_t>(value >> 32); }
  };
  // Children that one opcode added to a container.
  struct Batch {
    std::uint32_t first, count, next;  // in children_; the next batch
  };
  struct Object {
    Ref callee, arguments, keywords, state;
    std::uint32_t first_batch, last_batch;
    bool by_new;
  };
  // A string: in kept_ if `kept`, and in the input if `there`.
  struct Text {
    std::uint64_t offset, length;  // in the input
    std::uint32_t kept;            // its place in kept_, or kNothing
    bool there;                    // the input has these bytes as they are
    bool str = false;              // a str of Python 2
  };
  struct Names {
    Ref module, name;
  };

  std::uint32_t first_batch(Ref r) const noexcept;

  std::vector<Node> nodes_;
  std::vector<Ref> children_;
  std::vector<Batch> batches_;
  std::vector<Object> objects_;
  std::vector<Text> texts_;
  std::vector<Names> names_;
  std::vector<Global> globals_;
  std::vector<PickleData> data_;
  std::string kept_;
  PickleError error_{};
  std::uint64_t begin_ = 0, end_ = 0;
  unsigned protocol_ = 0;
  Ref root_ = 0;
  bool ended_ = false;
};

// How pickles spell texts and bytes that have no stated length: Python's escapes in protocol 0, and the bytes that
// protocol 2 has as a text of Latin-1.

// The text of STRING, without its quotes. nullopt: a malformed escape.
std::optional<std::string> unescape_string(std::string_view);
// The text of UNICODE: Latin-1 with \uXXXX and \UXXXXXXXX, as UTF-8. nullopt: a malformed escape.
std::optional<std::string> unescape_unicode(std::string_view);
// The bytes whose Latin-1 is here in UTF-8. nullopt: it has other characters.
std::optional<std::string> from_latin1(std::string_view utf8);

}  // namespace weighbridge::wire
