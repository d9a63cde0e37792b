// SPDX-License-Identifier: Apache-2.0
// Merges adapters: a view whose changed tensors are computed while they are read, one block at a time.
#include "weighbridge/lora.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/fail.h"
#include "codecs/cast.h"
#include "codecs/kernels.h"
#include "convert/adapter.h"
#include "convert/derived.h"
#include "convert/rep.h"
#include "core/model/coded.h"
#include "core/model/draft.h"
#include "core/model/plan_text.h"
#include "core/model/view.h"
#include "core/model/words.h"
#include "core/payload/elements.h"
#include "core/reading/json_file.h"
#include "core/writing/claims.h"
#include "recipes/match.h"
#include "weighbridge/open.h"
#include "wire/json_reader.h"

namespace weighbridge {
namespace {

using convert::Change, convert::Factor;

bool is_finite(std::span<const double> values) noexcept {
  // A product with zero can be skipped, unless the other factor is infinite or NaN.
  double sum = 0;
  for (const double value : values) sum += value * 0;
  return sum == 0;
}

// The matrix [first, second] of f64, row-major; `turned`: stored as [second, first].
std::vector<double> matrix(const Factor& factor, std::uint64_t first, std::uint64_t second, bool turned,
                           const Context& context) {
  std::vector<double> stored(base::to_size(first * second));
  std::size_t filled = 0;
  const auto take = [&](std::span<const std::byte> piece) {
    if (piece.size() > (stored.size() - filled) * sizeof(double))
      base::malformed("part/size", "a factor of an adapter has more numbers than its shape");
    std::memcpy(stored.data() + filled, piece.data(), piece.size());
    filled += piece.size() / sizeof(double);
    return true;
  };
  const core::ElementsPtr numbers =
      factor.role.empty()
          ? core::elements_of(factor.tensor, DType::f64)
          : core::cast_of(factor.tensor, core::elements_of(factor.tensor.part(std::string_view(factor.role)).value()),
                          DType::f64);
  numbers->stream(context, take);
  if (filled != stored.size()) base::malformed("part/size", "a factor of an adapter has fewer numbers than its shape");
  if (!is_finite(stored))
    base::misuse("lora-values",
                 "the tensor " + core::quoted(factor.tensor.name()) + " of the adapter has values that are not finite");
  if (!turned) return stored;
  std::vector<double> out(stored.size());
  for (std::size_t i = 0; i < second; ++i)
    for (std::size_t k = 0; k < first; ++k) out[k * base::to_size(second) + i] = stored[i * base::to_size(first) + k];
  return out;
}

// A tensor of the base and all changes to it, by adapter in the order given.
struct Target {
  Tensor base;
  DType to = DType::unknown;
  std::vector<Change> changes;
  // What the changes are made to, or what takes the place of the tensor.
  const Tensor& own_base() const noexcept { return changes[0].replaces_all() ? changes[0].left.tensor : base; }
};

// The factors of one change as matrices.
struct Loaded {
  std::vector<double> left, right;
};
using Factors = std::vector<Loaded>;

// The factors of the targets that were read last. Threads that divide one target load them once.
class Recent {
 public:
  // [reads] The factors of the target's changes.
  std::shared_ptr<const Factors> of(const std::shared_ptr<const Target>& target, const Context& context) {
    const std::shared_ptr<Slot> slot = slot_of(target);
    const std::lock_guard lock(slot->mutex);
    if (!slot->factors) {
      auto loaded = std::make_shared<Factors>();
      for (const Change& change : target->changes)
        loaded->push_back(
            change.rank == 0
                ? Loaded{matrix(change.left, change.tokens.size(), change.columns, false, context), {}}
                : Loaded{matrix(change.left, change.rows, change.rank, change.left.by_rank, context),
                         matrix(change.right, change.rank, change.columns, !change.right.by_rank, context)});
      slot->factors = std::move(loaded);
    }
    return slot->factors;
  }

 private:
  struct Slot {
    std::shared_ptr<const Target> target;
    std::mutex mutex{};
    std::shared_ptr<const Factors> factors{};
  };
  std::shared_ptr<Slot> slot_of(const std::shared_ptr<const Target>& target) {
    constexpr std::size_t kMaxSlots = 4;
    const std::lock_guard lock(mutex_);
    const auto at = std::ranges::find(slots_, target, &Slot::target);
    auto slot = at == slots_.end() ? std::make_shared<Slot>() : *at;
    slot->target = target;
    if (at != slots_.end())
      slots_.erase(at);
    else if (slots_.size() == kMaxSlots)
      slots_.pop_back();
    slots_.insert(slots_.begin(), slot);
    return slot;
  }

  std::mutex mutex_;
  std::vector<std::shared_ptr<Slot>> slots_;
};

// Puts rows in the place of those of the block, of which the first value has index `at`.
void put_into(std::span<double> values, std::uint64_t at, const Change& change, const Loaded& loaded) {
  for (std::size_t i = 0; i < change.tokens.size(); ++i) {
    const std::uint64_t begin = change.tokens[i] * change.columns, end = begin + change.columns;
    const std::uint64_t from = std::max(begin, at), to = std::min<std::uint64_t>(end, at + values.size());
    const double* const row = loaded.left.data() + i * base::to_size(change.columns);
    for (std::uint64_t k = from; k < to; ++k) values[base::to_size(k - at)] = row[base::to_size(k - begin)];
  }
}

// The block of values may begin and end in the middle of a row; `at` is the index of its first.
void add_to(std::span<double> values, std::uint64_t at, const Change& change, const Loaded& loaded) {
  const std::size_t columns = base::to_size(change.columns), rank = base::to_size(change.rank);
  const std::uint64_t begin = change.first_row * change.columns, end = begin + change.rows * change.columns;
  if (at >= end || at + values.size() <= begin) return;
  if (at < begin) values = values.subspan(base::to_size(begin - std::exchange(at, begin)));
  values = values.first(base::to_size(std::min<std::uint64_t>(values.size(), end - at)));
  at -= begin;
  while (!values.empty()) {
    const auto row = base::to_size(at / columns), column = base::to_size(at % columns);
    const bool whole = column == 0 && values.size() >= columns;
    const std::size_t rows = whole ? values.size() / columns : 1,
                      wide = whole ? columns : std::min(columns - column, values.size());
    codecs::kernels().add_low_rank({.left = loaded.left.data() + row * rank,
                                    .right = loaded.right.data() + column,
                                    .values = values.data(),
                                    .left_stride = rank,
                                    .right_stride = columns,
                                    .stride = columns,
                                    .rows = rows,
                                    .columns = wide,
                                    .rank = rank,
                                    .scale = change.scale});
    values = values.subspan(rows * wide);
    at += rows * wide;
  }
}

// Adds all changes to a block of the base's elements, of which the first has index `at`.
void add_changes(const Target& target, const Factors& factors, std::uint64_t at, std::span<const std::byte> in,
                 std::span<std::byte> out) {
  const std::size_t n = out.size() / (info(target.to).bits / 8);
  std::vector<double> values(n), delta;
  codecs::cast(target.base.dtype(), in, DType::f64, std::as_writable_bytes(std::span(values)), n);
  const bool sound = is_finite(values);
  for (std::size_t c = 0; c < factors.size(); ++c) {
    const Change& change = target.changes[c];
    if (!change.tokens.empty()) {
      put_into(values, at, change, factors[c]);
      continue;
    }
    if (!change.rounds) {
      add_to(values, at, change, factors[c]);
      continue;
    }
    delta.assign(n, 0.0);
    add_to(delta, at, change, factors[c]);
    for (std::size_t i = 0; i < n; ++i) values[i] = static_cast<float>(values[i]) + static_cast<float>(delta[i]);
  }
  codecs::CastTally tally;
  codecs::cast(DType::f64, std::as_bytes(std::span(values)), target.to, out, n, &tally);
  if (tally.overflowed > 0 || (sound && !is_finite(values)))
    base::misuse("lora-overflow", "with the adapter, the tensor " + core::quoted(target.base.name()) +
                                      " gets values that are too large for " + std::string(name(target.to)));
}

// The name of a change in a plan. `rows`: that the model's tensor has.
std::string change_text(const Change& change, std::uint64_t rows) {
  const auto resized = [&](const Tensor& by) {
    const std::uint64_t now = by.shape().empty() ? rows : by.shape()[0];
    return now == rows ? std::string() : ", with " + std::to_string(now) + " rows in place of " + std::to_string(rows);
  };
  if (change.replaces_all()) return "the tensor of the adapter in its place" + resized(change.left.tensor);
  if (change.base) {
    Change of_own = change;
    of_own.base.reset();
    return "the tensor of the adapter in its place" + resized(*change.base) + ", " + change_text(of_own, rows);
  }
  if (!change.tokens.empty())
    return "the rows of " + std::to_string(change.tokens.size()) + (change.tokens.size() == 1 ? " token" : " tokens") +
           " of the adapter in their places";
  char scale[32];
  std::snprintf(scale, sizeof scale, "%.6g", change.scale);
  return "merged with a LoRA change of rank " + std::to_string(change.rank) + ", scale " + scale;
}

class Merger {
 public:
  Merger(const Model& base, std::span<const Lora> adapters, std::optional<DType> dequantize, const Context& context)
      : base_(with_head(convert::as_checked(base))), dequantize_(dequantize), context_(context) {
    targets_.resize(base_.size());
    for (const Lora& lora : adapters) {
      Lora checked = lora;
      checked.adapter = convert::as_checked(lora.adapter);
      for (Change& change : convert::changes_of(base_, checked, context)) add(std::move(change));
      adapters_.push_back(std::move(checked.adapter));
    }
  }

  // `changes`: those that gave the model its numbers.
  Model run(std::vector<Item> changes) {
    changes_ = std::move(changes);
    const std::optional<std::uint32_t> untouched = settle_head();
    settle_vocabulary(untouched);
    core::Draft draft;
    draft.begin_view(base_);
    for (std::uint32_t i = 0; i < base_.size(); ++i) {
      if (untouched == i) continue;
      const Tensor tensor = base_[i];
      if (!targets_[i]) {
        draft.adopt(tensor.name(), tensor);
        continue;
      }
      Target& target = *targets_[i];
      std::string text;
      const std::uint64_t rows = tensor.shape().empty() ? 0 : tensor.shape()[0];
      for (const Change& change : target.changes) text += (text.empty() ? "" : ", ") + change_text(change, rows);
      changes_.push_back({LossKind::precision, core::subject(tensor), std::string(name(target.to)), std::move(text)});
      if (target.changes[0].replaces_all())
        replace(draft, tensor, target);
      else
        compute(draft, tensor, target);
    }
    draft.index_names();
    for (const Model& adapter : adapters_)
      if (const core::Incomplete* const part = core::incomplete(adapter)) draft.set_incomplete(*part);
    draft.set_attributes(std::move(attributes_));
    const std::uint32_t left[] = {untouched.value_or(0)};
    return core::made_with(draft.finish(), untouched ? core::view_without(base_, left) : base_, adapters_,
                           std::move(losses_), std::move(changes_));
  }

 private:
  void add(Change change) {
    const std::uint32_t i = change.target;
    if (!targets_[i]) targets_[i] = std::make_unique<Target>(target_of(base_[i]));
    std::vector<Change>& changes = targets_[i]->changes;
    if (!changes.empty() && (change.replaces_all() || changes[0].replaces_all() || change.base))
      base::misuse("lora-twice", "the tensor " + core::quoted(base_.name(i)) +
                                     " is replaced as a whole by one adapter and changed by another");
    if (change.base) targets_[i]->base = *change.base;
    changes.push_back(std::move(change));
  }

  // If the output embedding is the input embedding, gives it a second name, so that an adapter can change it alone.
  Model with_head(Model model) {
    const core::Embeddings found = core::embeddings_of(model);
    const Value* const stated = model.attribute(kTied);
    const bool tied = found.input && !found.output && (stated == nullptr || stated->as_bool() != false) &&
                      (found.output_name == "lm_head.weight" || model.format() == "gguf");
    if (!tied) return model;
    core::Draft draft;
    draft.begin_view(model);
    for (const Tensor& tensor : model) draft.adopt(tensor.name(), tensor);
    added_ = draft.adopt(found.output_name, *found.input);
    draft.index_names();
    draft.set_attributes({model.attributes().begin(), model.attributes().end()});
    return draft.finish();
  }

  // Updates what config.json says about tied embeddings. Returns the head that the output leaves out.
  std::optional<std::uint32_t> settle_head() {
    attributes_.assign(base_.attributes().begin(), base_.attributes().end());
    const core::Embeddings found = core::embeddings_of(base_);
    if (!found.input || !found.output) return std::nullopt;
    const std::uint32_t input = found.input->index(), output = found.output->index();
    const auto claim = core::claims_tied(base_);
    if (!claim && !added_) return std::nullopt;
    if (targets_[output] && !targets_[input] && rows_of(output) != rows_of(input))  // peft saves one of two tied names
      add({.target = input, .left = {targets_[output]->own_base(), {}, false}});
    if (targets_[output] && targets_[input] && added_ && targets_[output]->changes[0].replaces_all() &&
        targets_[input]->changes[0].replaces_all() &&
        core::have_same_values(targets_[input]->own_base(), targets_[output]->own_base(), context_))
      return output;
    if (targets_[output]) {
      untie(claim);
    } else if (targets_[input] && (added_ || core::have_same_values(*found.input, *found.output, context_))) {
      changes_.push_back({LossKind::name, core::subject(*found.output), "tied to " + core::quoted(found.input->name()),
                          added_ ? "changes with it" : "left out: it changes with it"});
      return output;
    } else if (targets_[input]) {
      untie(claim);
    } else if (added_) {
      return output;
    }
    return std::nullopt;
  }

  std::uint64_t rows_of(std::uint32_t tensor) const {
    const Tensor& as = targets_[tensor] ? targets_[tensor]->own_base() : base_[tensor];
    return as.has_shape() && !as.shape().empty() ? as.shape()[0] : 0;
  }

  // What else says how many tokens there are, if an adapter gave the embeddings other rows. `left_out`: the head that
  // the output does not have.
  void settle_vocabulary(const std::optional<std::uint32_t>& left_out) {
    const core::Embeddings found = core::embeddings_of(base_);
    if (!found.input) return;
    const std::uint32_t input = found.input->index();
    const std::uint64_t rows = rows_of(input);
    if (found.output && found.output->index() != left_out && rows != rows_of(found.output->index()) &&
        (targets_[input] || targets_[found.output->index()]))
      base::misuse("lora-vocabulary", "with the adapter, " + core::quoted(found.input->name()) + " has " +
                                          std::to_string(rows) + " rows and " + core::quoted(found.output->name()) +
                                          " has " + std::to_string(rows_of(found.output->index())) +
                                          ": the adapter was saved without one of them");
    if (!targets_[input] || rows == found.input->shape()[0]) return;
    if (base_.format() != "hf" && base_.tokenizer())
      base::misuse("lora-vocabulary", "the vocabulary in the " + std::string(base_.format()) +
                                          " file lacks the tokens of the adapter: merge it into the Hugging Face "
                                          "folder that the file was made from, and convert the result");
    bool stated = false, has_config = false;
    for (auto& [key, value] : attributes_) {
      has_config = has_config || key.starts_with("hf.");
      if (key != "hf.vocab_size" && key != "vocab_size") continue;
      stated = true;
      const Value now = value.kind() == Value::Kind::integer
                            ? Value::integer(static_cast<std::int64_t>(rows), value.type())
                            : Value::text(std::to_string(rows));
      changes_.push_back({LossKind::attribute, core::indexed("attributes", key), value.to_text(), now.to_text()});
      value = now;
    }
    if (has_config && !stated)
      base::misuse("lora-vocabulary",
                   "config.json has no vocab_size that could become " + std::to_string(rows) +
                       ": resize the vocabulary of the model first, with the program that made the adapter");
  }

  void untie(const std::optional<std::string>& claim) {
    const std::string key = claim ? *claim : std::string(kTied);
    const auto at = std::ranges::find(attributes_, key, &Value::Entry::first);
    const bool has_config =
        std::ranges::any_of(attributes_, [](const Value::Entry& entry) { return entry.first.starts_with("hf."); });
    if (at == attributes_.end() && !has_config) return;  // a head that is there says it
    changes_.push_back({LossKind::attribute, core::indexed("attributes", key),
                        at == attributes_.end() ? std::string(core::kAbsent) : at->second.to_text(), "false"});
    if (at == attributes_.end())
      attributes_.emplace_back(key, Value::text("false"));
    else
      at->second = at->second.kind() == Value::Kind::boolean ? Value::boolean(false) : Value::text("false");
  }

  Target target_of(const Tensor& tensor) {
    const bool quantized = is_quantized(tensor.layout());
    if (quantized && !dequantize_)
      base::misuse("lora-quantized",
                   "the tensor " + core::quoted(tensor.name()) + " is " + std::string(tensor.type_name()) +
                       ", and a change cannot be added to quantized values: make them dense",
                   base::option_hint("dequantize", "f16"));
    const DType own = core::write_as(tensor) == DType::unknown ? tensor.dtype() : core::write_as(tensor);
    const DType to = quantized && *dequantize_ != DType::unknown ? *dequantize_ : own;
    const bool sums = to == DType::f64 || to == DType::f32 || to == DType::f16 || to == DType::bf16;
    if (tensor.unsupported() || (!quantized && tensor.layout() != Layout::dense) || !sums)
      base::misuse("lora-target", "the tensor " + core::quoted(tensor.name()) + " is " +
                                      std::string(tensor.layout_name()) + " of " + std::string(tensor.type_name()) +
                                      ": a change is added to dense f64, f32, f16 or bf16");
    if (quantized)
      losses_.push_back(
          {LossKind::layout, core::subject(tensor), std::string(tensor.type_name()), convert::dense_text(to)});
    return {.base = tensor, .to = to, .changes = {}};
  }

  static void replace(core::Draft& draft, const Tensor& tensor, const Target& target) {
    const Tensor& with = target.changes[0].left.tensor;
    const std::uint32_t at = draft.adopt(tensor.name(), with);
    draft.tensor(at).id(tensor.id());
    if (with.dtype() != target.to) draft.tensor(at).write_as(target.to);
  }

  void compute(core::Draft& draft, const Tensor& tensor, Target& target) const {
    const DType to = target.to;
    const Tensor from = target.base;
    const std::uint64_t size = packed_size(to, *base::element_count(from.shape())).value_or(0);
    const std::uint32_t at = draft.add_tensor(tensor.name(), Layout::dense, to, from.shape());
    draft.tensor(at).id(tensor.id());
    if (!is_quantized(tensor.layout()) && !tensor.attributes().empty())
      draft.tensor(at).attributes({tensor.attributes().begin(), tensor.attributes().end()});
    const std::uint32_t part = draft.add_part("data", to, from.shape(), Encoding::computed, {}, size);
    const auto make = [recent = recent_, target = std::make_shared<const Target>(std::move(target))](
                          std::uint64_t first, std::span<const std::byte> in, std::span<std::byte> out,
                          const Context& context,
                          codecs::CastTally*) { add_changes(*target, *recent->of(target, context), first, in, out); };
    draft.part(part).elements(core::mapped(core::elements_of(from, from.dtype()), {.dtype = to, .make = make}));
  }

  static constexpr std::string_view kTied = "hf.tie_word_embeddings";
  std::optional<std::uint32_t> added_;  // the head that with_head() added; declared before base_, which needs it
  const Model base_;
  const std::optional<DType> dequantize_;
  const Context& context_;
  std::vector<Value::Entry> attributes_;
  std::vector<Model> adapters_;
  std::vector<std::unique_ptr<Target>> targets_;  // by the index of the tensor
  const std::shared_ptr<Recent> recent_ = std::make_shared<Recent>();
  std::vector<Item> losses_, changes_;
};

constexpr std::string_view kConfig = "adapter_config.json";

}  // namespace

Lora open_lora(const std::string& path, double scale, const Context& context) {
  const std::shared_ptr<const Place> place = place_at(path);
  std::shared_ptr<const Source> file = place->file();
  if (place->kind() == Place::Kind::folder)
    for (const std::string_view name :
         {"adapter_model.safetensors", "adapter_model.bin", "adapters.safetensors", "adapters.npz"})
      if (!file) file = place->open(name);
  if (!file)
    base::misuse_of(path, "lora-folder",
                    "the folder has neither adapter_model.safetensors nor adapter_model.bin: it is not an adapter of "
                    "peft; nor adapters.safetensors, which mlx-lm writes");
  Lora out{.adapter = open(file, context), .scale = scale};
  if (const std::shared_ptr<const Source> config = place->open(kConfig))
    out.config = core::whole_text(*config, context.limits, kConfig);
  return out;
}

Lora lora_from_text(std::string_view text, const Context& context) {
  const std::size_t at = text.rfind('=');
  if (at == text.npos) return open_lora(std::string(text), 1, context);
  const std::string_view digits = text.substr(at + 1);
  if (const auto scale = wire::as_double(digits)) return open_lora(std::string(text.substr(0, at)), *scale, context);
  try {
    return open_lora(std::string(text), 1, context);  // a name may contain =
  } catch (const Error& error) {
    if (error.finding().rule != "io/open") throw;
  }
  base::misuse("lora-scale", "the scale of an adapter must be a finite number, as in ADAPTER=0.5, not " +
                                 core::quoted(core::excerpt(digits)));
}

Model merge_lora(const Model& given, std::span<const Lora> adapters, std::optional<DType> dequantize,
                 const Context& context) {
  if (adapters.empty()) return given;
  core::Derived numbers{.model = given};
  if (!core::uses_of_codes(given).empty())
    numbers = recipes::numbers_of(given, dequantize.value_or(DType::unknown), context);
  const Model& model = numbers.model;
  core::require_values(model, "an adapter cannot be merged into a model with such tensors", "convert");
  for (const Lora& lora : adapters) core::require_values(lora.adapter, "such an adapter cannot be merged", "convert");
  numbers.changes.insert(numbers.changes.begin(), numbers.losses.begin(), numbers.losses.end());
  return Merger(model.size() > 0 ? model : Builder().build(), adapters, dequantize, context)
      .run(std::move(numbers.changes));
}

}  // namespace weighbridge
