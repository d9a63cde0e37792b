// SPDX-License-Identifier: Apache-2.0
// The machine of pickles: one function for each group of opcodes. What Python would refuse ends the reading, because
// nothing after it would be done; a doubt that would not stop Python is an error too, but reading goes on, so that no
// global hides behind it.
#include <bit>

#include "wire/pickle.h"
#include "wire/pickle_builder.h"
#include "wire/pickle_opcodes.h"

namespace weighbridge::wire {

using namespace pickle;

class PickleMachine final : PickleBuilder {
 public:
  PickleMachine(const PickleInput& input, std::uint64_t start, std::uint64_t memory)
      : PickleBuilder(input, start, memory) {}

  Pickle run() {
    constexpr unsigned kBetweenChecks = 256;
    for (unsigned steps = 0; !stopped_; ++steps) {
      op_at_ = at_;
      if (steps % kBetweenChecks == 0 && used() > memory_)
        stop(PickleFault::memory, "more values than the limit allows");
      unsigned char op = 0;
      if (stopped_ || !byte(op)) break;
      step(op);
      check_frame();
    }
    out_.end_ = at_;
    return std::move(out_);
  }

 private:
  void step(unsigned char op) {
    switch (op) {
      case kMark: marks_.push_back(stack_.size()); return;
      case kStop: finish(); return;
      case kPop: pop_one(); return;
      case kPopMark: {
        std::size_t first = 0;
        if (above_mark(first)) stack_.resize(first);
        return;
      }
      case kDup:
        if (has(1)) push(stack_.back());
        return;
      case kNone: push(Kind::none, 0); return;
      case kNewTrue: push(Kind::boolean, 1); return;
      case kNewFalse: push(Kind::boolean, 0); return;
      case kProto: protocol(); return;
      case kFrame: frame(); return;
      case kInt:
      case kLong:
      case kFloat: text_number(op); return;
      case kBinInt:
      case kBinInt1:
      case kBinInt2:
      case kLong1:
      case kLong4:
      case kBinFloat: binary_number(op); return;
      case kString:
      case kUnicode: text_string(op); return;
      case kBinString:
      case kShortBinString:
      case kBinUnicode:
      case kShortBinUnicode:
      case kBinUnicode8:
      case kBinBytes:
      case kShortBinBytes:
      case kBinBytes8:
      case kByteArray8: binary_string(op); return;
      case kEmptyTuple: push(Kind::tuple, 0); return;
      case kTuple1:
      case kTuple2:
      case kTuple3: {
        const std::size_t count = op - kTuple1 + 1U;
        if (has(count)) make_tuple(top(stack_.size() - count), stack_.size() - count);
        return;
      }
      case kTuple:
      case kList:
      case kDict:
      case kFrozenSet: from_mark(op); return;
      case kEmptyList: push(Kind::list, pair(kNothing, kNothing)); return;
      case kEmptyDict: push(Kind::dict, pair(kNothing, kNothing)); return;
      case kEmptySet: push(Kind::set, pair(kNothing, kNothing)); return;
      case kAppend:
        if (has(2)) append_all(top(stack_.size() - 1), stack_.size() - 1, false);
        return;
      case kSetItem:
        if (has(3)) append_all(top(stack_.size() - 2), stack_.size() - 2, true);
        return;
      case kAppends:
      case kAddItems:
      case kSetItems: {
        std::size_t first = 0;
        if (above_mark(first)) append_all(top(first), first, op == kSetItems);
        return;
      }
      case kGet:
      case kBinGet:
      case kLongBinGet:
      case kPut:
      case kBinPut:
      case kLongBinPut:
      case kMemoize: memo(op); return;
      case kNextBuffer: push(Kind::buffer, 0); return;
      case kReadonlyBuffer: has(1); return;
      default: call(op); return;
    }
  }

  void finish() {
    if (!has(1)) return;
    out_.root_ = pop();
    out_.ended_ = true;
    stopped_ = true;
    if (at_ < frame_end_) doubt(PickleFault::frame, "the pickle ends inside a frame");
  }

  // Frames change nothing for a reader that ignores them, as pickletools does. Python reads one at once: where an
  // opcode goes on after the end of its frame, pickle.load() of a file drops the bytes up to there and goes on with
  // those after the frame, and the version in Python stops. So frames must be those of a writer.
  void frame() {
    std::uint64_t length = 0;
    if (!number(length)) return;
    if (op_at_ < frame_end_) doubt(PickleFault::frame, "a frame begins inside another one");
    const std::uint64_t rest = input_.size - at_;
    if (length > rest) doubt(PickleFault::end, "the pickle ends inside a frame");
    frame_end_ = at_ + std::min(length, rest);
  }
  void check_frame() {
    if (op_at_ >= frame_end_ || at_ <= frame_end_) return;
    doubt(PickleFault::frame, "a frame ends inside an opcode");
    frame_end_ = 0;
  }

  void pop_one() {
    if (!marks_.empty() && marks_.back() == stack_.size())
      marks_.pop_back();
    else if (has(1))
      stack_.pop_back();
  }

  void protocol() {
    unsigned char value = 0;
    if (!byte(value)) return;
    if (value > kNewest) stop(PickleFault::opcode, "the protocol is newer than 5");
    out_.protocol_ = value;
  }

  void text_number(unsigned char op) {
    std::string_view text;
    if (!line(text)) return;
    if (op == kInt && (text == "00" || text == "01")) return push(Kind::boolean, text == "01" ? 1 : 0);
    if (op == kLong && text.ends_with('L')) text.remove_suffix(1);
    if (op == kFloat) {
      const auto value = text == "nan" || text == "inf" || text == "-inf" ? std::nullopt : as_double(text);
      const double special = text == "nan"   ? std::bit_cast<double>(std::uint64_t{0x7FF8} << 48)
                             : text == "inf" ? std::bit_cast<double>(std::uint64_t{0x7FF0} << 48)
                                             : std::bit_cast<double>(std::uint64_t{0xFFF0} << 48);
      if (!value && text != "nan" && text != "inf" && text != "-inf")
        doubt(PickleFault::number, "a number is malformed");
      push(Kind::real, std::bit_cast<std::uint64_t>(value.value_or(special)));
      return;
    }
    while (text.ends_with('\r') || text.ends_with(' ')) text.remove_suffix(1);
    // Not "-0", which is False for one of Python's two readers, nor "017", which is octal or an error.
    const std::string_view digits = text.substr(text.starts_with('-') ? 1 : 0);
    if (digits.empty() || digits.find_first_not_of("0123456789") != digits.npos ||
        (digits[0] == '0' && (digits.size() > 1 || text.size() > 1)))
      doubt(PickleFault::number, "a number is malformed");
    else if (const auto value = as_i64(text))
      return push(Kind::integer, static_cast<std::uint64_t>(*value));
    push(decoded(Kind::long_text, text));
  }

  void binary_number(unsigned char op) {
    if (op == kBinFloat) {
      const char* const from = need(8);
      if (from == nullptr) return;
      const auto bits = base::load_be<std::uint64_t>(from);
      at_ += 8;
      return push(Kind::real, bits);
    }
    if (op == kBinInt) {
      std::uint32_t value = 0;
      if (number(value))
        push(Kind::integer, static_cast<std::uint64_t>(std::int64_t{static_cast<std::int32_t>(value)}));
      return;
    }
    if (op == kBinInt2) {
      std::uint16_t value = 0;
      if (number(value)) push(Kind::integer, value);
      return;
    }
    unsigned char first = 0;
    std::uint32_t length = 0;
    if (op == kLong4 ? !number(length) : !byte(first)) return;
    if (op == kBinInt1) return push(Kind::integer, first);
    if (op == kLong1) length = first;
    if (length > INT32_MAX) {
      stop(PickleFault::number, "the length of a number is negative");
      return;
    }
    if (length > 8) {
      string(Kind::long_bytes, length);
      return;
    }
    const char* const from = need(length);
    if (from == nullptr) return;
    std::uint64_t value = length > 0 && static_cast<signed char>(from[length - 1]) < 0 ? ~std::uint64_t{0} : 0;
    for (std::uint32_t i = length; i-- > 0;) value = value << 8 | static_cast<unsigned char>(from[i]);
    at_ += length;
    push(Kind::integer, value);
  }

  void text_string(unsigned char op) {
    std::string_view text;
    // Whoever reads pickles stops at a text without quotes, however long it is.
    const char* const first = op == kUnicode || at_ == input_.size ? nullptr : need(1);
    if (first != nullptr && *first != '\'' && *first != '"') {
      stop(PickleFault::text, "a text of protocol 0 is not quoted");
      return;
    }
    if (!line(text)) return;
    std::optional<std::string> value;
    if (op == kUnicode) {
      value = unescape_unicode(text);
    } else {
      if (text.size() >= 2 && (text[0] == '\'' || text[0] == '"') && text.back() == text[0])
        value = unescape_string(text.substr(1, text.size() - 2));
    }
    if (!value) doubt(PickleFault::text, "a text of protocol 0 is malformed");
    push(decoded(Kind::text, value ? *value : std::string()));
  }

  void binary_string(unsigned char op) {
    const Kind kind =
        op == kBinBytes || op == kShortBinBytes || op == kBinBytes8 || op == kByteArray8 ? Kind::bytes : Kind::text;
    std::uint64_t length = 0;
    if (op == kShortBinString || op == kShortBinUnicode || op == kShortBinBytes) {
      unsigned char short_length = 0;
      if (!byte(short_length)) return;
      length = short_length;
    } else if (op == kBinUnicode8 || op == kBinBytes8 || op == kByteArray8) {
      if (!number(length)) return;
    } else {
      std::uint32_t middle = 0;
      if (!number(middle)) return;
      if (op == kBinString && middle > INT32_MAX) {
        stop(PickleFault::number, "the length of a string is negative");
        return;
      }
      length = middle;
    }
    string(kind, length);
  }

  void from_mark(unsigned char op) {
    std::size_t first = 0;
    if (!above_mark(first)) return;
    if (op == kTuple) return make_tuple(top(first), first);
    if (op == kDict && (stack_.size() - first) % 2 != 0) {
      stop(PickleFault::stack, "an opcode sets an odd number of keys and values in a dictionary");
      return;
    }
    make_container(op == kList ? Kind::list : op == kDict ? Kind::dict : Kind::set, first);
  }

  void memo(unsigned char op) {
    std::uint64_t index = 0;
    if (op == kMemoize) return memo_put(memo_count_);
    if (op == kGet || op == kPut) {
      if (!memo_line(index)) return;
    } else if (op == kBinGet || op == kBinPut) {
      unsigned char narrow = 0;
      if (!byte(narrow)) return;
      index = narrow;
    } else {
      std::uint32_t wide = 0;
      if (!number(wide)) return;
      index = wide;
    }
    if (op == kPut || op == kBinPut || op == kLongBinPut)
      memo_put(index);
    else
      memo_get(index);
  }

  // Globals, and what would call them.
  void call(unsigned char op) {
    switch (op) {
      case kGlobal: {
        Ref global = 0;
        if (read_global(global)) push(global);
        return;
      }
      case kStackGlobal: {
        if (!has(2)) return;
        const Ref name = pop(), module = pop();
        return push(add_global(module, name));
      }
      case kInst: {
        Ref global = 0;
        std::size_t first = 0;
        if (!read_global(global) || !above_mark(first)) return;
        make_tuple(top(first), first);
        return add_object(global, pop(), kNothing, false);
      }
      case kObj: {
        std::size_t first = 0;
        if (!above_mark(first)) return;
        if (stack_.size() == first) {
          stop(PickleFault::stack, "an opcode takes more from the stack than is there");
          return;
        }
        const Ref callee = stack_[first];
        make_tuple(top(first + 1), first + 1);
        const Ref arguments = pop();
        stack_.resize(first);
        return add_object(callee, arguments, kNothing, false);
      }
      case kReduce:
      case kNewObj: {
        if (!has(2)) return;
        const Ref arguments = pop(), callee = pop();
        return add_object(callee, arguments, kNothing, op == kNewObj);
      }
      case kNewObjEx: {
        if (!has(3)) return;
        const Ref keywords = pop(), arguments = pop(), callee = pop();
        return add_object(callee, arguments, keywords, true);
      }
      case kBuild: {
        if (!has(2)) return;
        const Ref state = pop(), on = stack_.back();
        if (out_.nodes_[on].kind() == Kind::object)
          out_.objects_[out_.nodes_[on].a()].state = state;
        else
          doubt(PickleFault::kind, "an opcode sets the state of a value that has none");
        return;
      }
      case kExt1:
      case kExt2:
      case kExt4: return extension(op);
      case kPersId: {
        std::string_view text;
        if (line(text)) push(Kind::persistent, decoded(Kind::text, text));
        return;
      }
      case kBinPersId:
        if (has(1)) {
          const Ref id = pop();
          push(Kind::persistent, id);
        }
        return;
      default: stop(PickleFault::opcode, "a byte is not an opcode");
    }
  }

  void extension(unsigned char op) {
    std::uint32_t code = 0;
    unsigned char narrow = 0;
    std::uint16_t middle = 0;
    if (op == kExt1) {
      if (!byte(narrow)) return;
      code = narrow;
    } else if (op == kExt2) {
      if (!number(middle)) return;
      code = middle;
    } else if (!number(code)) {
      return;
    }
    const Ref made = add(Kind::extension, pair(code, out_.globals_.size()));
    out_.globals_.push_back({made, false, false});
    push(made);
  }

  std::uint64_t frame_end_ = 0;  // of the last frame
};

Pickle Pickle::read(const PickleInput& input, std::uint64_t start, std::uint64_t memory) {
  return PickleMachine(input, start, memory).run();
}

}  // namespace weighbridge::wire
