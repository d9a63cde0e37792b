// SPDX-License-Identifier: Apache-2.0
// The interpreter. All words were decoded before it starts; errors at run time name the word where they occur. Leaves
// files to bin_files.h.
#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "base/fail.h"
#include "core/model/progress.h"
#include "runtime/khlnary/bin_files.h"
#include "runtime/khlnary/module.h"

namespace weighbridge::khlnary {
using namespace internal;
namespace {

constexpr std::uint64_t kStepsBetweenProgress = 1 << 16;

class Machine {
 public:
  Machine(const Module::Rep& module, const RunOptions& options, const Context& context)
      : module_(module),
        words_(module.words),
        options_(options),
        context_(context),
        files_(module, context),
        ends_(match_functions(module.words)) {}

  Result run() {
    while (!ended_ && at_ < words_.size()) {
      if (result_.steps == options_.max_steps)
        refuse(rules::kStepLimit, here("max-steps"), core::at_most(options_.max_steps, " steps"));
      if (result_.steps % kStepsBetweenProgress == 0) report_progress();
      if (options_.trace) options_.trace({at_, words_[at_], result_.stack});
      const Word word = fields(words_[at_]);
      next_ = at_ + 1;
      step(static_cast<Glyph::Id>(word.glyph), word);
      at_ = next_;
      ++result_.steps;
    }
    if (!result_.stack.empty()) result_.value = result_.stack.back();
    return std::move(result_);
  }

 private:
  core::At here() const { return {.offset = at_ * kWordSize}; }
  // The current word, with a hint to raise this option.
  core::At here(std::string_view option) const {
    return {.offset = at_ * kWordSize, .hint = base::option_hint(option)};
  }

  void report_progress() const {
    if (!core::goes_on(context_, result_.steps, options_.max_steps)) throw Cancelled{};
  }

  void step(Glyph::Id glyph, const Word& word) {
    switch (glyph) {
      case Glyph::Id::nop:
      case Glyph::Id::while_head:
      case Glyph::Id::while_tail: return;
      case Glyph::Id::const_i8: return push({.integer = signed_payload(word.payload)});
      case Glyph::Id::add_i32: return add();
      case Glyph::Id::ret: return leave();
      case Glyph::Id::ifz_jump8:
        if (pop_integer() == 0) jump(word.payload);
        return;
      case Glyph::Id::jump8: return jump(word.payload);
      case Glyph::Id::func_def: return skip_function();
      case Glyph::Id::func_end: refuse(rules::kNoReturn, here());
      case Glyph::Id::call: return call(word.payload);
      case Glyph::Id::load_bin_tensor: return load(file_of(word.payload), tensor_of(word.payload));
      case Glyph::Id::mmap_bin_region: return map(word);
      case Glyph::Id::prefetch_bin: files_.prefetch(word.payload); return;
    }
  }

  void push(const Cell& cell) {
    if (result_.stack.size() >= options_.max_stack)
      refuse(rules::kStackLimit, here("max-stack"), core::at_most(options_.max_stack, " values"));
    result_.stack.push_back(cell);
  }

  Cell pop() {
    if (result_.stack.empty()) refuse(rules::kStackUnderflow, here());
    const Cell top = result_.stack.back();
    result_.stack.pop_back();
    return top;
  }

  std::int32_t pop_integer() {
    const Cell top = pop();
    if (top.kind != Cell::Kind::integer) refuse(rules::kValueType, here(), "a number", to_text(top));
    return top.integer;
  }

  // The sum wraps modulo 2^32.
  void add() {
    const auto b = static_cast<std::uint32_t>(pop_integer()), a = static_cast<std::uint32_t>(pop_integer());
    push({.integer = static_cast<std::int32_t>(a + b)});
  }

  void jump(std::uint8_t payload) {
    const auto target = jump_target(at_, payload, words_.size());
    if (!target)
      refuse(rules::kJump, here(), {"a word from 0 to ", words_.size() - 1},
             {"word ", static_cast<std::int64_t>(at_) + signed_payload(payload)});
    next_ = *target;
  }

  void skip_function() {
    if (ends_[at_] == kNowhere) refuse(rules::kNoFunctionEnd, here());
    next_ = std::size_t{ends_[at_]} + 1;
  }

  // Caller and callee share one stack: the argument stays on top of it.
  void call(std::uint8_t id) {
    const stb::Function* const function = module_.sidecar.function(id);
    if (!function) refuse(rules::kFunction, here(), {}, id);
    if (result_.stack.empty()) refuse(rules::kStackUnderflow, here());
    if (returns_.size() >= options_.max_calls)
      refuse(rules::kCallDepth, here(), core::at_most(options_.max_calls, " calls"));
    returns_.push_back(next_);
    next_ = base::to_size(function->offset) + 1;
  }

  // The result stays on top too, and everything below it remains.
  void leave() {
    if (result_.stack.empty()) refuse(rules::kStackUnderflow, here());
    ended_ = returns_.empty();
    if (ended_) return;
    next_ = returns_.back();
    returns_.pop_back();
  }

  void load(std::uint8_t file_id, std::uint8_t tensor_id) {
    const OpenFile& file = files_.open(file_id, here().offset);
    const auto tensor = file.tensor(tensor_id);
    if (!tensor) refuse(rules::kTensorId, here(), {}, tensor_id, {"file ", file_id});
    push({.kind = Cell::Kind::tensor, .file = file_id, .tensor = tensor_id});
    std::uint32_t& place = loaded_[file_id * kTensorsPerFile + tensor_id];
    if (place != 0) {
      ++result_.loaded[place - 1].times;
      return;
    }
    result_.loaded.push_back(
        {.file = file_id, .id = tensor_id, .path = file.path, .model = file.model, .tensor = *tensor});
    place = static_cast<std::uint32_t>(result_.loaded.size());
  }

  void map(const Word& word) {
    if (word.arity != 0) pop();
    const OpenFile& file = files_.open(word.payload, here().offset);
    push({.kind = Cell::Kind::region, .file = word.payload});
    const auto same = [&](const Region& region) { return region.file == word.payload; };
    if (std::ranges::any_of(result_.regions, same)) return;
    result_.regions.push_back({word.payload, file.path, file.source->map(0, file.source->size())});
  }

  const Module::Rep& module_;
  const std::span<const std::uint32_t> words_;
  const RunOptions& options_;
  const Context& context_;
  BinFiles files_;
  const std::vector<std::uint32_t> ends_;
  std::vector<std::size_t> returns_{};
  std::array<std::uint32_t, kMaxPackedFiles * kTensorsPerFile> loaded_{};  // 1 + the index in result_.loaded
  std::size_t at_ = 0, next_ = 0;
  bool ended_ = false;
  Result result_{};
};

}  // namespace

Result run(const Module& module, const RunOptions& options, const Context& context) {
  require_authority(options.authority);
  Report report;
  core::Findings findings(report, core::Findings::Mode::first_error);
  try {
    check_words(module.rep(), options.authority, findings);
  } catch (const core::Stop&) {
    throw Error(*report.first_error());
  }
  return Machine(module.rep(), options, context).run();
}

}  // namespace weighbridge::khlnary
