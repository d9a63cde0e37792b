// SPDX-License-Identifier: Apache-2.0
// The machine of pickles: one function for each group of opcodes, over a builder that knows none. What Python would
// refuse ends the reading, because nothing after it would be done; a doubt that would not stop Python is an error too,
// but reading goes on, so that no global hides behind it.
#include "wire/pickle.h"

#include <algorithm>
#include <bit>
#include <map>

#include "base/checked.h"
#include "base/endian.h"
#include "wire/json_reader.h"
#include "wire/pickle_opcodes.h"

namespace weighbridge::wire {

using namespace pickle;

// What the machine works with: the window over the input, the stack with its marks, the memo, and the values that are
// made. Owns the limit of memory and the first error; knows no opcode.
class PickleBuilder {
 protected:
  PickleBuilder(const PickleInput& input, std::uint64_t start, std::uint64_t memory)
      : input_(input), at_(start), memory_(memory) {
    out_.begin_ = start;
  }

  using Ref = Pickle::Ref;
  using Kind = PickleKind;
  static constexpr std::uint32_t kNothing = Pickle::kNothing;

  // Errors. The first one counts. record_fault() lets the reading go on.
  void record_fault(PickleFault fault, std::string_view sentence) {
    if (out_.error_.fault == PickleFault::none) out_.error_ = {fault, op_at_, sentence};
  }
  bool stop(PickleFault fault, std::string_view sentence) {
    record_fault(fault, sentence);
    stopped_ = true;
    return false;
  }

  std::uint64_t used() const noexcept {
    return out_.nodes_.size() * sizeof(Pickle::Node) + out_.children_.size() * sizeof(Ref) +
           out_.batches_.size() * sizeof(Pickle::Batch) + out_.objects_.size() * sizeof(Pickle::Object) +
           out_.texts_.size() * sizeof(Pickle::Text) + out_.names_.size() * sizeof(Pickle::Names) +
           out_.globals_.size() * sizeof(Pickle::Global) + out_.data_.size() * sizeof(PickleData) + out_.kept_.size() +
           window_.size() + (stack_.size() + marks_.size() + memo_.size()) * sizeof(Ref) + far_memo_.size() * 48;
  }

  // Input. Each returns false after reporting that the input ends.
  const char* need(std::uint64_t n) {
    if (n > input_.size - std::min(at_, input_.size)) {
      stop(PickleFault::end, "the pickle ends inside an opcode, or before its end");
      return nullptr;
    }
    if (at_ < window_at_ || !base::fits(at_ - window_at_, n, window_.size())) {
      window_.resize(base::to_size(std::min(std::max(n, next_window_), input_.size - at_)));
      next_window_ = std::min(2 * next_window_, kWindow);
      window_at_ = at_;
      if (!window_.empty()) input_.read(at_, std::as_writable_bytes(std::span(window_)));
    }
    return window_.data() + (at_ - window_at_);
  }
  bool byte(unsigned char& out) {
    const char* const from = need(1);
    if (from == nullptr) return false;
    out = static_cast<unsigned char>(*from);
    ++at_;
    return true;
  }
  template <class Number> bool number(Number& out) {
    const char* const from = need(sizeof(Number));
    if (from == nullptr) return false;
    out = base::load_le<Number>(from);
    at_ += sizeof(Number);
    return true;
  }
  // Up to the line feed, which is skipped. Valid until the next read. Memory is taken for a line once its end is found.
  bool line(std::string_view& out) {
    const std::uint64_t there = std::min<std::uint64_t>(256, input_.size - at_);
    const char* const from = need(there);
    if (from == nullptr) return false;
    std::size_t end = std::string_view(from, base::to_size(there)).find('\n');
    if (end == std::string_view::npos && !find_line_end(there, end)) return false;
    const char* const whole = need(end + 1);
    if (whole == nullptr) return false;
    out = {whole, end};
    at_ += end + 1;
    return true;
  }
  // The same for a line of at least `from` bytes, read in pieces.
  bool find_line_end(std::uint64_t from, std::size_t& end) {
    std::string piece;
    for (std::uint64_t n = from; n < input_.size - at_; n += piece.size()) {
      if (n > memory_) return stop(PickleFault::memory, "a line longer than the limit allows");
      piece.resize(base::to_size(std::min(kWindow, input_.size - at_ - n)));
      input_.read(at_ + n, std::as_writable_bytes(std::span(piece)));
      if (const std::size_t found = piece.find('\n'); found != piece.npos) {
        end = base::to_size(n) + found;
        return true;
      }
    }
    return stop(PickleFault::end, "the pickle ends inside a line");
  }

  // Values.
  Ref add(Kind kind, std::uint64_t value) {
    if (out_.nodes_.size() >= kNothing - 1) {
      stop(PickleFault::memory, "more values than the limit allows");
      return 0;
    }
    out_.nodes_.push_back({std::uint64_t{static_cast<std::uint8_t>(kind)} << 56 | op_at_, value});
    return static_cast<Ref>(out_.nodes_.size() - 1);
  }
  static std::uint64_t pair(std::uint64_t a, std::uint64_t b) { return a | b << 32; }
  void push(Ref r) { stack_.push_back(r); }
  void push(Kind kind, std::uint64_t value) { push(add(kind, value)); }

  std::uint32_t keep(std::string_view bytes) {
    if (bytes.size() > memory_ - std::min<std::uint64_t>(memory_, used()) ||
        out_.kept_.size() + bytes.size() >= kNothing) {
      stop(PickleFault::memory, "more text than the limit allows");
      return kNothing;
    }
    out_.kept_ += bytes;
    return static_cast<std::uint32_t>(out_.kept_.size() - bytes.size());
  }
  Ref add_text(Kind kind, const Pickle::Text& text) {
    out_.texts_.push_back(text);
    return add(kind, out_.texts_.size() - 1);
  }
  // The next `length` bytes of the input.
  bool string(Kind kind, std::uint64_t length) {
    if (length > input_.size - at_) return stop(PickleFault::end, "the pickle ends inside a string");
    std::uint32_t kept = kNothing;
    if (length <= Pickle::kInline) {
      const char* const from = need(length);
      if (from == nullptr) return false;
      kept = keep({from, base::to_size(length)});
    }
    push(add_text(kind, {at_, length, kept, true}));
    at_ += length;
    return true;
  }
  Ref decoded(Kind kind, std::string_view text) { return add_text(kind, {op_at_, text.size(), keep(text), false}); }

  // The stack. What lies below a mark is out of reach.
  std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  bool has(std::size_t n) {
    return stack_.size() - floor() >= n ||
           stop(PickleFault::stack, "an opcode takes more from the stack than is there");
  }
  Ref pop() {
    const Ref out = stack_.back();
    stack_.pop_back();
    return out;
  }
  // The values above the last mark, which goes away with them: [first, stack_.size()).
  bool above_mark(std::size_t& first) {
    if (marks_.empty()) return stop(PickleFault::stack, "an opcode looks for a mark that is not there");
    first = marks_.back();
    marks_.pop_back();
    return true;
  }
  std::span<const Ref> top(std::size_t first) const { return std::span(stack_).subspan(first); }

  std::uint32_t add_children(std::span<const Ref> refs) {
    const std::size_t first = out_.children_.size();
    if (first + refs.size() >= kNothing) stop(PickleFault::memory, "more values than the limit allows");
    out_.children_.insert(out_.children_.end(), refs.begin(), refs.end());
    return static_cast<std::uint32_t>(first);
  }
  void make_tuple(std::span<const Ref> refs, std::size_t first) {
    const std::uint32_t children = add_children(refs);
    const auto count = refs.size();
    stack_.resize(first);
    push(Kind::tuple, pair(children, count));
  }
  void make_container(Kind kind, std::size_t first) {
    const Ref made = add(kind, pair(kNothing, kNothing));
    append(made, top(first));
    stack_.resize(first);
    push(made);
  }
  // Adds to a container, or to an object that may be one.
  void append(Ref to, std::span<const Ref> refs) {
    if (refs.empty()) return;
    std::uint32_t first = kNothing, last = kNothing;
    const Kind kind = out_.nodes_[to].kind();
    if (kind == Kind::object) {
      first = out_.objects_[out_.nodes_[to].a()].first_batch;
      last = out_.objects_[out_.nodes_[to].a()].last_batch;
    } else {
      first = out_.nodes_[to].a();
      last = out_.nodes_[to].b();
    }
    const auto count = static_cast<std::uint32_t>(refs.size());
    const std::uint32_t children = add_children(refs);
    // What one opcode at a time appends is one batch while nothing else was added in between.
    if (last != kNothing && out_.batches_[last].first + out_.batches_[last].count == children) {
      out_.batches_[last].count += count;
      return;
    }
    const auto batch = static_cast<std::uint32_t>(out_.batches_.size());
    out_.batches_.push_back({children, count, kNothing});
    if (last != kNothing) out_.batches_[last].next = batch;
    if (first == kNothing) first = batch;
    if (kind == Kind::object) {
      out_.objects_[out_.nodes_[to].a()].first_batch = first;
      out_.objects_[out_.nodes_[to].a()].last_batch = batch;
    } else {
      out_.nodes_[to].value = pair(first, batch);
    }
  }
  bool append_all(std::span<const Ref> refs, std::size_t first, bool pairs) {
    if (first == floor()) return stop(PickleFault::stack, "an opcode takes more from the stack than is there");
    const Ref to = stack_[first - 1];
    const Kind kind = out_.nodes_[to].kind();
    const bool fits = kind == Kind::object || (pairs ? kind == Kind::dict : kind == Kind::list || kind == Kind::set);
    if (pairs && refs.size() % 2 != 0)
      return stop(PickleFault::stack, "an opcode sets an odd number of keys and values in a dictionary");
    if (fits)
      append(to, refs);
    else
      record_fault(PickleFault::kind, "an opcode adds to a value that is not a container of its kind");
    stack_.resize(first);
    return true;
  }

  Ref add_global(Ref module, Ref name) {
    out_.names_.push_back({module, name});
    const Ref out = add(Kind::global, pair(out_.names_.size() - 1, out_.globals_.size()));
    out_.globals_.push_back({out, false, false});
    return out;
  }
  bool read_global(Ref& out) {
    std::string_view text;
    if (!line(text)) return false;
    const Ref module = decoded(Kind::text, text);
    if (!line(text)) return false;
    out = add_global(module, decoded(Kind::text, text));
    return true;
  }
  void add_object(Ref callee, Ref arguments, Ref keywords, bool by_new) {
    if (out_.nodes_[callee].kind() == Kind::global || out_.nodes_[callee].kind() == Kind::extension) {
      Pickle::Global& global = out_.globals_[out_.nodes_[callee].b()];
      global.called = true;
      global.run = global.run || !by_new;
    }
    out_.objects_.push_back({callee, arguments, keywords, kNothing, kNothing, kNothing, by_new});
    push(Kind::object, out_.objects_.size() - 1);
  }

  // The memo.
  void memo_put(std::uint64_t index) {
    if (!has(1)) return;
    if (index < memo_.size() + kMemoGap) {
      if (index >= memo_.size()) memo_.resize(base::to_size(index) + 1, kNothing);
      if (memo_[base::to_size(index)] == kNothing) ++memo_count_;
      memo_[base::to_size(index)] = stack_.back();
    } else {
      memo_count_ += far_memo_.insert_or_assign(index, stack_.back()).second ? 1U : 0U;
    }
  }
  bool memo_get(std::uint64_t index) {
    Ref found = index < memo_.size() ? memo_[base::to_size(index)] : kNothing;
    if (found == kNothing)
      if (const auto far = far_memo_.find(index); far != far_memo_.end()) found = far->second;
    if (found == kNothing) return stop(PickleFault::memo, "an opcode takes a value from the memo that is not there");
    push(found);
    return true;
  }
  bool memo_line(std::uint64_t& index) {
    std::string_view text;
    if (!line(text)) return false;
    if (const auto value = as_u64(text)) {
      index = *value;
      return true;
    }
    // Python takes blanks, a sign, zeros and underscores too, and goes on.
    record_fault(PickleFault::number, "a number of the memo is malformed");
    std::string digits;
    for (const char c : text)
      if (c >= '0' && c <= '9' ? !digits.empty() || c != '0' : false) digits += c;
    index = as_u64(digits.empty() ? "0" : digits).value_or(UINT64_MAX);
    return true;
  }

  const PickleInput& input_;
  std::uint64_t at_, op_at_ = 0;
  const std::uint64_t memory_;
  std::string window_;
  std::uint64_t window_at_ = 0, next_window_ = kFirstWindow;
  Pickle out_;
  std::vector<Ref> stack_, memo_;
  std::vector<std::size_t> marks_;
  std::map<std::uint64_t, Ref> far_memo_;
  std::uint64_t memo_count_ = 0;
  bool stopped_ = false;

 private:
  // What is read at once grows from the first to the second: many pickles are short.
  static constexpr std::uint64_t kFirstWindow = 512, kWindow = std::uint64_t{64} << 10;
  // Numbers of the memo up to this far beyond the last one are in an array.
  static constexpr std::uint64_t kMemoGap = 16;
};

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
      if (op == kBuild && !stopped_ && input_.data != nullptr) take_data(stack_.back());
    }
    out_.end_ = at_;
    std::ranges::stable_sort(out_.data_, {}, &PickleData::object);
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
    if (at_ < frame_end_) record_fault(PickleFault::frame, "the pickle ends inside a frame");
  }

  // Frames change nothing for a reader that ignores them, as pickletools does. Python reads one at once: where an
  // opcode goes on after the end of its frame, pickle.load() of a file drops the bytes up to there and goes on with
  // those after the frame, and the version in Python stops. So frames must be those of a writer.
  void frame() {
    std::uint64_t length = 0;
    if (!number(length)) return;
    if (op_at_ < frame_end_) record_fault(PickleFault::frame, "a frame begins inside another one");
    const std::uint64_t rest = input_.size - at_;
    if (length > rest) record_fault(PickleFault::end, "the pickle ends inside a frame");
    frame_end_ = at_ + std::min(length, rest);
  }
  void check_frame() {
    if (op_at_ >= frame_end_ || at_ <= frame_end_) return;
    record_fault(PickleFault::frame, "a frame ends inside an opcode");
    frame_end_ = 0;
  }

  void take_data(Ref object) {
    if (out_.nodes_[object].kind() != Kind::object) return;
    auto data = input_.data(input_, out_, object, at_);
    if (!data) return;
    if (!base::fits(data->offset, data->length, input_.size)) {
      stop(PickleFault::end, "the pickle ends inside the data of an object");
      return;
    }
    data->object = object;
    at_ = data->offset + data->length;
    out_.data_.push_back(*data);
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
        record_fault(PickleFault::number, "a number is malformed");
      push(Kind::real, std::bit_cast<std::uint64_t>(value.value_or(special)));
      return;
    }
    while (text.ends_with('\r') || text.ends_with(' ')) text.remove_suffix(1);
    // Not "-0", which is False for one of Python's two readers, nor "017", which is octal or an error.
    const std::string_view digits = text.substr(text.starts_with('-') ? 1 : 0);
    if (digits.empty() || digits.find_first_not_of("0123456789") != digits.npos ||
        (digits[0] == '0' && (digits.size() > 1 || text.size() > 1)))
      record_fault(PickleFault::number, "a number is malformed");
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
    if (!value) record_fault(PickleFault::text, "a text of protocol 0 is malformed");
    push(decoded(Kind::text, value ? *value : std::string()));
    out_.texts_.back().str = op == kString;
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
    if (string(kind, length)) out_.texts_.back().str = op == kBinString || op == kShortBinString;
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
          record_fault(PickleFault::kind, "an opcode sets the state of a value that has none");
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
