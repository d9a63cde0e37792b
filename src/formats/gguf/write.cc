// SPDX-License-Identifier: Apache-2.0
// Model to GGUF: the one layout for plan and writer. Version 3, little-endian; tensors and metadata in the order of the
// model, each tensor padded to the alignment. What GGUF cannot express is a blocker or a loss.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/endian.h"
#include "base/fail.h"
#include "codecs/blocks.h"
#include "core/model/words.h"
#include "core/payload/elements.h"
#include "core/reading/shards.h"
#include "core/writing/file_types.h"
#include "core/writing/layout.h"
#include "core/writing/plan_items.h"
#include "formats/gguf/format.h"
#include "formats/gguf/importance.h"
#include "formats/gguf/layout.h"
#include "formats/gguf/mix.h"
#include "formats/gguf/write_metadata.h"
#include "weighbridge/block_type.h"

namespace weighbridge::gguf {
namespace {

using core::indexed, core::subject;
using Form = core::Payload::Form;

constexpr std::uint64_t kMaxSum = UINT64_MAX / 4;               // the bound on sums of sizes
constexpr std::uint64_t kMaxReserve = std::uint64_t{64} << 20;  // every reader has to read it

// The row of kElementTypes for a tensor's type in the output.
const ElementType* element_type(DType dtype) noexcept {
  for (const ElementType& row : kElementTypes)
    if (row.dtype == dtype && dtype != DType::unknown) return &row;
  return nullptr;
}
const ElementType* element_type(const BlockTypeInfo& block) noexcept {
  for (const ElementType& row : kElementTypes)
    if (row.block == block.id) return &row;
  return nullptr;
}
void refuse_options(const Options& options) {
  if (options.header.reserve > kMaxReserve)
    base::misuse("reserve", "a header of GGUF can have at most " + std::to_string(kMaxReserve) + " bytes to spare");
  if (options.cast != DType::unknown && !options.quantize.empty())
    base::misuse("cast", "a cast and a quantization exclude each other");
}

// The bytes of the tensor's values as blocks: by rows, if these have an importance.
core::ElementsPtr blocks_of(const Tensor& tensor, const BlockTypeInfo& type, const Options& options,
                            const std::shared_ptr<const Importance>& importance) {
  const std::vector<float>* weights = nullptr;
  if (importance && type.codec->importance != codecs::Importance::ignored)
    if (const auto at = importance->entries.find(tensor.name()); at != importance->entries.end()) weights = &at->second;
  const std::uint64_t columns = tensor.shape().back();
  const std::uint64_t rows = tensor.shape().size() > 1 ? tensor.shape()[tensor.shape().size() - 2] : 1;
  const std::uint64_t unit = weights != nullptr ? columns : type.block_elements;
  const auto encode = [=, keep = importance, codec = type.codec,
                       terms =
                           codecs::GgmlTerms{.as_ggml = options.gguf.as_ggml, .contracted = options.gguf.contracted},
                       bytes = type.block_bytes, each = type.block_elements,
                       name = type.name](std::uint64_t first, std::span<const std::byte> in, std::span<std::byte> out,
                                         const Context&, codecs::CastTally*) {
    const std::span values(reinterpret_cast<const float*>(in.data()), in.size() / sizeof(float));
    const std::uint64_t at_once = weights != nullptr ? columns : values.size();
    for (std::uint64_t at = 0; at < values.size(); at += at_once) {
      codecs::GgmlTerms here = terms;
      if (weights != nullptr)
        here.importance = weights->data() + (first + at / columns) / rows * columns % weights->size();
      const auto some = values.subspan(base::to_size(at), base::to_size(at_once));
      const std::size_t bad = codec->encode(some, here, out.data() + at / each * bytes);
      if (bad == some.size()) continue;
      const std::uint64_t element = first * unit + at + bad;
      const float value = some[bad];
      base::malformed(std::isfinite(value) ? "convert/too-large" : "convert/not-finite",
                      fmt::format("element {} of row {} of tensor {} is {}, {}", element % columns, element / columns,
                                  core::quoted(tensor.name()), value,
                                  std::isfinite(value) ? "which no block of " + std::string(name) + " can hold"
                                                       : "so the tensor cannot be quantized"),
                      tensor.name());
    }
  };
  return core::mapped(
      core::elements_of(tensor, DType::f32),
      {.dtype = DType::u8, .from = unit, .to = unit / type.block_elements * type.block_bytes, .make = encode});
}

// One tensor of the output.
struct Out {
  Tensor from;
  const ElementType* type = nullptr;
  const BlockTypeInfo* block = nullptr;  // null: a scalar type
  const MixTensor* mixed = nullptr;      // with Options::quantize
  bool copied = false;                   // blocks as they are
  std::uint64_t size = 0;
};

class Planner : core::Planning {
 public:
  Planner(const Model& model, const Options& options, std::shared_ptr<const Importance> importance)
      : Planning(model, options), importance_(std::move(importance)) {}

  core::WriteLayout run() {
    check_all();
    if (out_.blockers.empty()) lay_out(0, outs_.size(), metadata_, out_);
    return std::move(out_);
  }

  core::WriteLayout run_files() {
    check_all();
    out_.folder = std::make_shared<core::OutFolder>();
    if (out_.blockers.empty()) lay_out_files();
    return std::move(out_);
  }

 private:
  void check_all() {
    if (model_.tokenizer() && !model_.attribute("tokenizer.ggml.tokens"))
      plan_items_.lose(LossKind::tokenizer, "tokenizer", "a tokenizer", "dropped");
    core::drop_extra(plan_items_, model_);
    take_metadata();
    if (options_.header.reserve > 0)
      metadata_.add(kPadding, Value::text(std::string(base::to_size(options_.header.reserve), ' ')));
    outs_.reserve(model_.size());
    if (options_.quantize.empty()) {
      for (std::uint32_t i = 0; i < model_.size(); ++i) judge(model_[i], nullptr);
    } else {
      mix_ = mix(model_, options_);
      for (const MixTensor& each : mix_) judge(each.tensor, &each);
      if (has_names_of_llama_cpp(model_)) state_file_type();
    }
    core::name_copies(plan_items_, model_);
  }

  void take_metadata() {
    for (const auto& [key, value] : model_.attributes()) {
      if (key == kAlignment) {
        take_alignment(value);
      } else if (key == kPadding) {
        plan_items_.change(LossKind::attribute, indexed("attributes", key), value.to_text(),
                           "left out: the key is weighbridge's own");
      } else if (key.starts_with(kSplitPrefix)) {
        plan_items_.change(LossKind::attribute, indexed("attributes", key), value.to_text(),
                           "left out: it describes the files of another output");
      } else if (options_.quantize.empty() || !has_names_of_llama_cpp(model_) ||
                 (key != kVersionKey && key != kTypeKey)) {
        metadata_.add(key, value, plan_items_);
      }
    }
  }

  // What llama-quantize adds, in its order. claims.h updates values that are there.
  void state_file_type() {
    const auto add = [&](std::string_view key, const Value& value) {
      if (!model_.attribute(key)) metadata_.add(key, value);
    };
    const auto add_last = [&](std::string_view key, const Value& value) {
      if (const Value* const had = model_.attribute(key)) metadata_.add(key, *had, plan_items_);
      add(key, value);
    };
    const core::FileType* const type = core::find_file_type(options_.quantize);
    add_last(kVersionKey, Value::integer(std::uint64_t{2}, DType::u32));
    add_last(kTypeKey, Value::integer(std::uint64_t{type->number}, DType::u32));
    if (!importance_) return;
    constexpr std::size_t kMost = 127;
    add("quantize.imatrix.file", Value::text(importance_->file.substr(0, kMost)));
    if (!importance_->dataset.empty())
      add("quantize.imatrix.dataset", Value::text(importance_->dataset.substr(0, kMost)));
    add("quantize.imatrix.entries_count", Value::integer(std::uint64_t{importance_->entries.size()}, DType::u32));
    if (importance_->chunks > 0) add("quantize.imatrix.chunks_count", Value::integer(importance_->chunks, DType::u32));
  }

  void take_alignment(const Value& value) {
    const auto stated = value.as_u64();
    if (!stated || !std::has_single_bit(*stated) || *stated > std::uint64_t{1} << 31)
      return plan_items_.lose(LossKind::attribute, indexed("attributes", kAlignment), value.to_text(),
                              "dropped: it is not a power of two");
    // Each tensor is padded to it, so a large alignment makes a large file of a small model.
    if (*stated > kMaxAlignment)
      return plan_items_.lose(LossKind::attribute, indexed("attributes", kAlignment), value.to_text(),
                              "dropped: tensors are aligned to at most " + std::to_string(kMaxAlignment) + " bytes");
    alignment_ = *stated;
    metadata_.add(kAlignment, Value::integer(alignment_, DType::u32));
  }

  void judge(const Tensor& tensor, const MixTensor* mixed) {
    core::drop_extra(plan_items_, tensor);
    core::drop_attributes(plan_items_, tensor);
    if (!core::check_known(plan_items_, tensor, "GGUF")) return;
    const std::size_t before = out_.blockers.size();
    if (tensor.shape().size() > kMaxRank)
      plan_items_.block(LossKind::shape, subject(tensor), core::shape_text(tensor.shape()),
                        "GGUF has at most 4 dimensions");
    if (tensor.name().size() > kMaxName)
      plan_items_.change(LossKind::name, subject(tensor), std::to_string(tensor.name().size()) + " bytes",
                         "the same: llama.cpp opens names of at most 63 bytes");
    Out& one = outs_.emplace_back();
    one.from = tensor;
    one.mixed = mixed;
    choose_type(one);
    if (out_.blockers.size() != before) return;
    const auto elements = base::element_count(tensor.shape());
    const std::uint64_t block = one.block ? one.block->block_elements : 1;
    const auto bytes = elements ? base::checked_mul(*elements / block,
                                                    one.block ? one.block->block_bytes : info(one.type->dtype).bits / 8)
                                : std::nullopt;
    if (!bytes || *bytes > kMaxSum)
      plan_items_.block(LossKind::shape, subject(tensor), "its shape", "more than 2^62 bytes");
    else
      one.size = *bytes;
  }

  void choose_type(Out& one) {
    const Tensor& tensor = one.from;
    const bool real = info(tensor.dtype()).kind == DTypeKind::real;
    if (one.mixed != nullptr && one.mixed->asked != nullptr) {
      const auto [type, asked] = std::pair(one.mixed->type, one.mixed->asked);
      if (type != asked)
        plan_items_.change(LossKind::layout, subject(tensor), std::string(tensor.type_name()),
                           (type != nullptr ? std::string(type->name) + ", " : std::string()) + "not " +
                               std::string(asked->name) + ": rows of " + std::to_string(one.mixed->columns) +
                               " elements cannot be divided into blocks of " +
                               std::to_string(find_block_type(asked->block)->block_elements));
      if (type != nullptr) {
        const BlockTypeInfo* const block = find_block_type(type->block);
        if (block == nullptr) return to_dense(one, type->dtype);
        return tensor.block_type() == block ? copy(one, *block) : encode(one, *block);
      }
    }
    const BlockTypeInfo* const own = tensor.block_type();
    if (own && element_type(*own) && options_.cast == DType::unknown && core::readable_blocks(tensor))
      return copy(one, *own);
    const bool as_llama_cpp = one.mixed != nullptr || !options_.gguf.naming.empty();
    const bool named = !options_.gguf.naming.empty() && stays_f32(tensor.name());
    if (as_llama_cpp && real && (tensor.shape().size() <= 1 || named)) return to_dense(one, DType::f32);
    to_dense(one, core::target_dtype(tensor, options_));
  }

  void copy(Out& one, const BlockTypeInfo& block) {
    one.block = &block;
    one.type = element_type(block);
    one.copied = true;
    const Part part = one.from.main();
    core::drop_extra(plan_items_, one.from, part);
    if (!part.digest().empty())
      plan_items_.change(LossKind::extra, subject(one.from, part), std::string(part.digest()), "no digest");
    if (part.encoding() != Encoding::raw && part.encoding() != Encoding::computed)
      plan_items_.change(LossKind::layout, subject(one.from, part), std::string(part.encoding_name()), "raw");
  }

  void encode(Out& one, const BlockTypeInfo& block) {
    one.block = &block;
    one.type = one.mixed->type;
    if (one.mixed->columns % block.block_elements != 0)
      return plan_items_.block(LossKind::shape, subject(one.from), core::shape_text(one.from.shape()),
                               std::string(block.name) + " has blocks of " + std::to_string(block.block_elements));
    check_importance(one, block);
    if (one.from.block_type() == nullptr)
      core::check_dense(plan_items_, one.from, DType::f32);
    else  // blocks of another type: it stays quantized
      for (const Part& part : one.from.parts()) core::drop_extra(plan_items_, one.from, part);
    plan_items_.lose(one.from.block_type() == nullptr ? LossKind::precision : LossKind::requantize, subject(one.from),
                     std::string(one.from.type_name()), std::string(block.name));
  }

  // An entry has a weight for each column of each matrix, or of one.
  void check_importance(const Out& one, const BlockTypeInfo& block) {
    const auto at = importance_ ? importance_->entries.find(one.from.name()) : decltype(importance_->entries.end()){};
    const bool found = importance_ && at != importance_->entries.end();
    if (found && at->second.size() != one.mixed->columns * one.mixed->matrices)
      plan_items_.block(LossKind::shape, subject(one.from), core::shape_text(one.from.shape()),
                        "the importance matrix has " + std::to_string(at->second.size()) + " weights for it");
    if (!found && (one.mixed->needs_importance || block.codec->importance == codecs::Importance::required))
      plan_items_.block(LossKind::precision, subject(one.from), std::string(one.from.type_name()),
                        std::string(block.name) + " needs an importance matrix, and " +
                            (importance_ ? "the one that was given has no entry for this tensor" : "none was given"));
  }

  void to_dense(Out& one, DType dtype) {
    one.type = element_type(dtype);
    if (!one.type)
      return plan_items_.block(LossKind::dtype, subject(one.from), std::string(name(dtype)), "no element type of GGUF");
    core::check_dense(plan_items_, one.from, dtype);
    if (one.mixed != nullptr && info(dtype).bits > info(one.from.dtype()).bits)
      plan_items_.change(LossKind::dtype, subject(one.from), std::string(name(one.from.dtype())),
                         std::string(name(dtype)));
    else
      core::check_cast(plan_items_, one.from, dtype);
  }

  // Divides tensors like llama.cpp's splitter: they keep their order, and one that does not fit begins the next file.
  void lay_out_files() {
    core::OutFolder& folder = *out_.folder;
    folder.format = "gguf";
    folder.stale = [](std::string_view file) {
      const auto parsed = core::parse_shard_name(file, kSuffix);
      return parsed && parsed->stem == kStem;
    };
    const std::uint64_t maximum = options_.shards.max_size == 0 ? UINT64_MAX : options_.shards.max_size;
    std::vector<std::size_t> begins{0};
    std::uint64_t filled = 0;
    for (std::size_t i = 0; i < outs_.size(); ++i) {
      const std::uint64_t size = base::align_up(outs_[i].size, alignment_).value_or(UINT64_MAX);
      if (i > begins.back() && size > maximum - std::min(maximum, filled)) {
        begins.push_back(i);
        filled = 0;
      }
      filled += size;
    }
    const std::size_t count = begins.size();
    if (count > kMaxFiles)
      return plan_items_.block(LossKind::shape, "tensors", std::to_string(count) + " files",
                               "more than the 65,535 that split.count can state");
    for (std::size_t k = 0; k < count; ++k) {
      MetadataOut metadata = k == 0 ? metadata_ : MetadataOut();
      if (count > 1) add_split(metadata, k, count);
      if (count > 1 && k > 0 && alignment_ != kDefaultAlignment)
        metadata.add(kAlignment, Value::integer(alignment_, DType::u32));
      folder.payloads.push_back(
          {count == 1 ? std::string(kWholeName) : core::spell_shard_name({kStem, k + 1, count}, kSuffix), {}});
      lay_out(begins[k], k + 1 < count ? begins[k + 1] : outs_.size(), metadata, folder.payloads.back().layout);
      if (!out_.blockers.empty()) return;
    }
    folder.last = folder.payloads.front().name;
    if (count > 1) folder.small.push_back({std::string(kWholeName), std::nullopt});
  }

  void add_split(MetadataOut& metadata, std::size_t number, std::size_t count) const {
    metadata.add(kSplitNumber, Value::integer(std::uint64_t{number}, DType::u16));
    metadata.add(kSplitCount, Value::integer(std::uint64_t{count}, DType::u16));
    metadata.add(kSplitTensors, Value::integer(static_cast<std::int64_t>(outs_.size()), DType::i32));
  }

  void lay_out(std::size_t first, std::size_t last, const MetadataOut& metadata, core::WriteLayout& out) {
    std::string& head = out.head;
    head = kMagic;
    base::append_le(head, kVersion);
    base::append_le(head, std::uint64_t{last - first});
    base::append_le(head, metadata.count());
    head += metadata.bytes();
    std::uint64_t at = 0;
    out.tensors.reserve(last - first);
    out.payloads.reserve(last - first);
    for (std::size_t i = first; i < last; ++i) {
      const Out& one = outs_[i];
      const Shape shape = one.from.shape();
      append_text(head, one.from.name());
      base::append_le(head, static_cast<std::uint32_t>(shape.size()));
      for (std::size_t d = shape.size(); d > 0; --d) base::append_le(head, shape[d - 1]);
      base::append_le(head, one.type->number);
      base::append_le(head, at);
      place(one, out);
      at = base::align_up(at + one.size, alignment_).value_or(UINT64_MAX);
      if (at > kMaxSum)
        return plan_items_.block(LossKind::shape, subject(one.from), "its size", "more than 2^62 bytes in all");
    }
    // The first payload's alignment pads the header.
    out.size = (last > first ? *base::align_up(head.size(), alignment_) : head.size()) + at;
    const std::uint64_t end = out.payloads.empty() ? 0 : at - padding_of(outs_[last - 1].size);
    out.tail = [padding = at - end](std::span<const core::Stored>) {
      return std::string(base::to_size(padding), '\0');
    };
  }
  std::uint64_t padding_of(std::uint64_t size) const { return (alignment_ - size % alignment_) % alignment_; }

  void place(const Out& one, core::WriteLayout& out) const {
    const DType dtype = one.block ? DType::u8 : one.type->dtype;
    core::Payload payload = core::dense_payload(out, one.from, dtype, one.size);
    payload.alignment = static_cast<std::uint32_t>(alignment_);
    if (one.copied) {
      payload.form = Form::logical;
      payload.part = core::main_part(one.from);
    } else if (one.block) {
      core::fill_with(payload, blocks_of(one.from, *one.block, options_, importance_));
    }
    out.payloads.push_back(std::move(payload));
    out.tensors.push_back({.name = one.from.name(),
                           .from = one.from,
                           .layout = one.block ? one.block->layout : Layout::dense,
                           .dtype = one.block ? DType::f32 : dtype,
                           .type = one.type->name});
  }

  static constexpr std::string_view kVersionKey = "general.quantization_version", kTypeKey = "general.file_type";
  static constexpr std::size_t kMaxFiles = 65535;  // split.no and split.count are u16
  std::shared_ptr<const Importance> importance_;
  std::vector<MixTensor> mix_;
  MetadataOut metadata_;
  std::uint64_t alignment_ = kDefaultAlignment;
  std::vector<Out> outs_;
};

}  // namespace

bool quantizes_to(std::string_view type) noexcept { return core::find_file_type(type) != nullptr; }

core::WriteLayout layout(const Model& model, const Options& options, const Context& context) {
  refuse_options(options);
  std::shared_ptr<const Importance> importance;
  if (options.gguf.imatrix)
    importance = std::make_shared<const Importance>(read_importance(options.gguf.imatrix, context));
  Planner planner(model, options, std::move(importance));
  return options.shards.max_size != 0 ? planner.run_files() : planner.run();
}

}  // namespace weighbridge::gguf
