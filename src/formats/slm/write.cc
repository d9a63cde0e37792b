// SPDX-License-Identifier: Apache-2.0
// Model to .slm: the one layout that plan and writer share. Header, tokenizer section and directory come first, then
// each tensor's payload followed by its scales, all at multiples of 64 (reading M5). The checksum is written last.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/endian.h"
#include "base/fail.h"
#include "codecs/quantize.h"
#include "core/model/words.h"
#include "core/payload/elements.h"
#include "core/payload/payload.h"
#include "core/writing/layout.h"
#include "core/writing/plan_items.h"
#include "formats/slm/content.h"
#include "formats/slm/directory.h"
#include "formats/slm/format.h"
#include "formats/slm/header.h"
#include "formats/slm/hyper.h"
#include "formats/slm/layout.h"
#include "formats/slm/names.h"
#include "formats/slm/payload.h"
#include "tokenizers/tokenizer_rules.h"

namespace weighbridge::slm_format {
namespace {

using core::indexed, core::subject;
using Form = core::Payload::Form;

// The bound on sums of sizes.
constexpr std::uint64_t kMaxSum = UINT64_MAX / 4;

void refuse_options(const Options& options) {
  if (options.cast != DType::unknown && !options.quantize.empty())
    base::misuse("cast", "a cast to f32 and a quantization to " + options.quantize + " exclude each other");
}

// One tensor of the output.
struct Out {
  Tensor from;
  std::string name;
  std::optional<Respelled> respelled;  // set if the source has Hugging Face's name
  Entry entry;                         // lay_out() sets the offsets
  bool codes_as_they_are = false;      // copies the source's codes and scales
  bool f32_as_it_is = false;           // copies the source's values
  core::Heads heads{};                 // how rows are rearranged, in values
};

class Planner : core::Planning {
 public:
  Planner(const Model& model, const Options& options)
      : Planning(model, options),
        kept_(std::make_shared<Sealed>()),
        hyper_(derive_hyper(model, options, out_)),
        known_(std::min(hyper_.header.layer_count, model.size())) {}

  core::WriteLayout run() {
    kept_->model = model_;
    take_tokenizer();
    take_extra();
    for (std::uint32_t i = 0; i < model_.size(); ++i) judge(model_[i]);
    check_names();
    check_required();
    name_aliases();
    out_.owner = kept_;
    if (options_.canonical) std::ranges::sort(outs_, {}, &Out::name);  // not those of the source
    if (out_.blockers.empty()) lay_out();
    return std::move(out_);
  }

 private:
  void take_tokenizer() {
    const auto tokenizer = model_.tokenizer();
    if (tokenizer == nullptr)
      return plan_items_.block(
          LossKind::tokenizer, "tokenizer", core::kAbsent,
          "an .slm needs one: a folder's tokenizer.json, or the tokenizer file of a llama2.c checkpoint");
    for (const std::string& what : {rules_beyond_merges(), unheld()})
      if (!what.empty())
        plan_items_.lose(LossKind::tokenizer, "tokenizer", what,
                         "left out: an .slm holds a vocabulary and its merges only");
    EncodedTokenizer encoded = encode_tokenizer(*tokenizer, hyper_.header.vocab_size);
    if (!encoded.problem.empty()) plan_items_.block(LossKind::tokenizer, "tokenizer", "a tokenizer", encoded.problem);
    for (const auto& [key, id] : tokenizer->special)
      if (std::ranges::find(kSpecialNames, key) == std::end(kSpecialNames))
        plan_items_.lose(LossKind::tokenizer, "tokenizer." + indexed("special", key), std::to_string(id), "dropped");
    tokenizer_ = std::move(encoded.section);
  }

  // Lists what the source's tokenizer does besides vocabulary and merges.
  std::string rules_beyond_merges() const {
    const Value* const rules = model_.attribute(tokenizers::kTokenizerRules);
    if (rules == nullptr) return {};
    const auto parsed = tokenizers::parse_tokenizer_rules(rules->to_text());
    return parsed ? tokenizers::beyond_merges(*parsed) : rules->to_text();
  }
  std::string unheld() const {
    const Value* const unheld = model_.attribute(tokenizers::kTokenizerUnheld);
    return unheld == nullptr ? std::string{} : unheld->to_text();
  }

  void take_extra() {
    for (const auto& [key, value] : model_.extra()) {
      if (key == kHeaderExtra && value.grammar() == kGrammar && value.bytes().size() <= UINT32_MAX - kHeaderSize)
        header_extra_.assign(reinterpret_cast<const char*>(value.bytes().data()), value.bytes().size());
      else
        plan_items_.lose(LossKind::extra, indexed("extra", key), value.to_text(), "dropped");
    }
  }

  void judge(const Tensor& tensor) {
    if (is_rotary_table(tensor.name())) {
      plan_items_.change(LossKind::layout, subject(tensor), std::string(tensor.type_name()),
                         "left out: rope_theta implies it");
      return;
    }
    if (is_bias(model_, tensor.name()))
      return plan_items_.block(LossKind::name, subject(tensor), std::string(tensor.type_name()),
                               "an .slm has no biases");
    core::drop_extra(plan_items_, tensor);
    core::drop_attributes(plan_items_, tensor);
    if (!core::check_known(plan_items_, tensor, "an .slm")) return;
    const std::size_t before = out_.blockers.size();
    if (info(tensor.dtype()).kind != DTypeKind::real)
      plan_items_.block(LossKind::dtype, subject(tensor), std::string(name(tensor.dtype())),
                        "an .slm holds real numbers only");
    else if (!fits(tensor.shape()))
      plan_items_.block(LossKind::shape, subject(tensor), core::shape_text(tensor.shape()),
                        "an .slm has 1 to 4 dimensions of 1 to 4,294,967,295");
    if (out_.blockers.size() != before) return;
    Out& one = outs_.emplace_back();
    one.from = tensor;
    take_name(one);
    take_shape(one);
    take_dtype(one);
    check_parts(one);
  }

  static bool fits(Shape shape) noexcept {
    const auto elements = base::element_count(shape);
    const auto dim = [](std::uint64_t d) { return d >= 1 && d <= UINT32_MAX; };
    return !shape.empty() && shape.size() <= kMaxRank && std::ranges::all_of(shape, dim) && elements &&
           *elements <= kMaxSum / sizeof(float);
  }
  static std::uint64_t hash_of(std::string_view given) {
    if (const auto respelled = from_hugging_face(given)) return name_hash(respelled->name);
    return parse_hash(given).value_or(name_hash(given));
  }

  void take_name(Out& one) {
    const std::string_view given = one.from.name();
    one.respelled = from_hugging_face(given);
    const std::uint64_t hash = hash_of(given);
    const Known* const known = known_.find(hash);
    one.name = known_.name(hash);
    // A known name gets its own hash, even if the source used an alias.
    one.entry.name_hash = known ? name_hash(one.name) : hash;
    if (one.name == given) return;
    if (known)
      plan_items_.change(LossKind::name, subject(one.from), std::string(given), one.name);
    else
      plan_items_.lose(LossKind::name, subject(one.from), std::string(given), one.name + ": an .slm keeps hashes only");
  }

  // Sets the shape to write, with the added heads (M8).
  void take_shape(Out& one) {
    const Shape shape = one.from.shape();
    one.entry.rank = static_cast<std::uint32_t>(shape.size());
    for (std::size_t i = 0; i < shape.size(); ++i) one.entry.dims[i] = static_cast<std::uint32_t>(shape[i]);
    const Known* const known = known_.find(one.entry.name_hash);
    if (!known) return;
    const Header& h = hyper_.header;
    const Dims needed = dims_of(known->role, h);
    const auto found = shape_of(one.entry).two();
    const bool kv = known->role == Role::wk || known->role == Role::wv;
    if (kv && hyper_.kv_rows != 0 && found == Dims{hyper_.kv_rows, h.hidden_size}) {
      one.entry.dims[0] = h.hidden_size;
      if (options_.slm.keep_gqa) {
        one.heads.added_zeros = (h.hidden_size - hyper_.kv_rows) * h.hidden_size;
      } else {
        one.heads.head = std::uint64_t{h.head_dim} * h.hidden_size;
        one.heads.times = h.hidden_size / hyper_.kv_rows;
      }
    } else if (found != needed)
      return plan_items_.block(LossKind::shape, subject(one.from), core::shape_text(shape),
                               spell(needed) + " is what the header asks for");
    if (one.respelled && one.respelled->half_split) {
      one.heads.head = std::uint64_t{h.head_dim} * h.hidden_size;
      one.heads.row = h.hidden_size;
      plan_items_.change(LossKind::layout, subject(one.from), "rows whose halves rotate together",
                         "rows whose neighbors do, as an .slm rotates them");
    }
  }

  static bool stands(const Out& one) noexcept { return one.heads.head == 0 && one.heads.added_zeros == 0; }

  void take_dtype(Out& one) {
    const Tensor& tensor = one.from;
    const auto blocks = core::readable_blocks(tensor);
    const Stored now = blocks ? stored_of(blocks->type) : Stored::f32;
    const Extents x = *extents_of(one.entry);
    Stored then = options_.cast == DType::f32 || !stands(one) ? Stored::f32 : now;
    if (!options_.quantize.empty() && (one.entry.rank > 1 || options_.slm.quantize_norms))
      then = stored_from_name(options_.quantize) == Stored::q4_0 && x.columns % 2 == 0 ? Stored::q4_0 : Stored::q8_0;
    one.entry.dtype = static_cast<std::uint32_t>(then);
    one.codes_as_they_are = now != Stored::f32 && then == now && stands(one) && blocks->group <= UINT32_MAX;
    one.f32_as_it_is =
        then == Stored::f32 && stands(one) && tensor.layout() == Layout::dense && tensor.dtype() == DType::f32;
    if (then != Stored::f32) {
      const std::uint64_t block_size = one.codes_as_they_are  ? blocks->group
                                       : then == Stored::q8_0 ? x.columns
                                                              : codecs::q4_block_for(x.columns);
      if (block_size > UINT32_MAX)
        plan_items_.block(LossKind::shape, subject(tensor), core::shape_text(tensor.shape()),
                          "a row too long for its block_size");
      one.entry.block_size = static_cast<std::uint32_t>(block_size);
    }
    name_dtype(one, then);
  }

  void name_dtype(const Out& one, Stored then) {
    if (one.codes_as_they_are || one.f32_as_it_is) return;
    const Tensor& tensor = one.from;
    const std::string to(stored_name(static_cast<std::uint32_t>(then)));
    const bool dense = tensor.layout() == Layout::dense;
    if (then != Stored::f32) {
      plan_items_.lose(LossKind::precision, subject(tensor),
                       std::string(dense ? name(tensor.dtype()) : tensor.type_name()), to);
    } else if (!dense) {
      plan_items_.lose(LossKind::layout, subject(tensor), std::string(tensor.layout_name()), "dense f32");
    } else if (tensor.dtype() == DType::f64) {
      plan_items_.lose(LossKind::precision, subject(tensor), "f64", to);
    } else if (tensor.dtype() != DType::f32) {
      plan_items_.change(LossKind::dtype, subject(tensor), std::string(name(tensor.dtype())), to);
    }
  }

  void check_parts(const Out& one) {
    const Tensor& tensor = one.from;
    for (std::uint32_t i = 0; i < tensor.part_count(); ++i) {
      const Part part = tensor.part(i);
      core::drop_extra(plan_items_, tensor, part);
      const bool main = part == tensor.main();
      if ((tensor.layout() == Layout::dense && !main) || (one.codes_as_they_are && !main && part.role() != kScales)) {
        plan_items_.lose(LossKind::layout, subject(tensor, part), std::string(part.role()), "dropped");
        continue;
      }
      core::check_encoding(plan_items_, tensor, part, Encoding::raw);
      if (!part.digest().empty())
        plan_items_.change(LossKind::extra, subject(tensor, part), std::string(part.digest()), "no digest");
    }
  }

  void check_names() {
    std::vector<const Out*> order;
    for (const Out& one : outs_) order.push_back(&one);
    std::ranges::stable_sort(order, {}, [](const Out* one) { return one->entry.name_hash; });
    for (std::size_t i = 1; i < order.size(); ++i)
      if (order[i]->entry.name_hash == order[i - 1]->entry.name_hash)
        plan_items_.block(LossKind::name, subject(order[i]->from), spell_hash(order[i]->entry.name_hash),
                          "the name hash of " + subject(order[i - 1]->from));
  }

  void check_required() {
    const Header& h = hyper_.header;
    if (h.layer_count == 0) return;  // already a blocker
    if (h.layer_count > known_.layers())
      return plan_items_.block(LossKind::attribute, indexed("attributes", "slm.layer_count"),
                               std::to_string(h.layer_count),
                               "more layers than the " + std::to_string(model_.size()) + " tensors can make");
    std::vector<bool> there(known_.places());
    for (std::uint32_t i = 0; i < model_.size(); ++i) {
      const std::string_view given = model_.name(i);
      if (const Known* const known = known_.find(hash_of(given))) there[KnownNames::place(*known)] = true;
    }
    const auto need = [&](Role role, std::uint32_t layer, std::string why) {
      if (!there[KnownNames::place(role, layer)])
        plan_items_.block(LossKind::name, indexed("tensors", spell(role, layer)), core::kAbsent, std::move(why));
    };
    const std::string needed = "an .slm needs it";
    need(Role::tok_embeddings, 0, needed);
    need(Role::norm, 0, needed);
    if ((h.flags & kTiedOutput) == 0)
      need(Role::output, 0, needed + " unless the attribute slm.flags is 1 or tie_word_embeddings true");
    for (std::uint32_t layer = 0; layer < h.layer_count; ++layer)
      for (std::uint32_t r = 0; r < kLayerRoles; ++r) need(static_cast<Role>(kModelRoles + r), layer, needed);
  }

  // Tensors that share bytes each get a copy.
  void name_aliases() {
    std::vector<std::uint32_t> tensors;
    for (const Out& one : outs_) tensors.push_back(one.from.index());
    core::name_copies(plan_items_, model_, tensors);
  }

  void lay_out() {
    Header h = hyper_.header;
    h.header_length = static_cast<std::uint32_t>(kHeaderSize + header_extra_.size());
    h.tokenizer_offset = h.header_length;
    h.tokenizer_length = tokenizer_.size();
    h.tensor_directory_offset = *base::align_up(h.tokenizer_offset + h.tokenizer_length, kAlignment);
    h.tensor_count = static_cast<std::uint32_t>(outs_.size());
    h.tensor_data_offset = *base::align_up(h.tensor_directory_offset + outs_.size() * kEntrySize, kAlignment);
    std::uint64_t at = h.tensor_data_offset;
    out_.payloads.reserve(2 * outs_.size());
    for (Out& one : outs_) {
      place(one, at);
      if (at <= kMaxSum) continue;
      plan_items_.block(LossKind::shape, subject(one.from), "its size", "more than 2^62 bytes in all");
      return;
    }
    std::string& head = out_.head = base::store_record(h) + header_extra_ + tokenizer_;
    head.resize(base::to_size(h.tensor_directory_offset), '\0');
    for (const Out& one : outs_) base::append_record(head, one.entry);
    head.resize(base::to_size(h.tensor_data_offset), '\0');
    out_.size = *base::align_up(at, kAlignment);
    out_.tail = [padding = out_.size - at](std::span<const core::Stored>) {
      return std::string(base::to_size(padding), '\0');
    };
    out_.finalize = [kept = kept_](const core::WrittenFile& file) { seal(*kept, file); };
  }

  // Places payload and scales of one tensor at `at`, and moves `at` past them.
  void place(Out& one, std::uint64_t& at) {
    const auto index = static_cast<std::uint32_t>(out_.tensors.size());
    const auto dtype = static_cast<Stored>(one.entry.dtype);
    const BlockTypeInfo* const type = block_type(dtype);
    const Extents x = *extents_of(one.entry);
    kept_->names.push_back(one.name);
    out_.tensors.push_back({.name = kept_->names.back(),
                            .from = one.from,
                            .layout = type ? type->layout : Layout::dense,
                            .dtype = DType::f32,
                            .same_shape = one.heads.times == 1 && one.heads.added_zeros == 0});
    const DType stored = dtype == Stored::f32 ? DType::f32 : dtype == Stored::q8_0 ? DType::i8 : DType::u8;
    core::Payload data = payload(one, kData, stored, one.entry.byte_length = payload_size(one.entry.dtype, x));
    const bool codes = dtype != Stored::f32 && !one.codes_as_they_are;
    const auto values = [&] { return core::with_heads(core::elements_of(one.from, DType::f32), one.heads); };
    if (codes)
      core::fill_with(data, codes_of(one.from, values(), *type->codec->scaled, one.entry.block_size));
    else if (dtype == Stored::f32 && !stands(one))
      core::fill_with(data, values());
    else if (dtype == Stored::f32 && !one.f32_as_it_is)
      data.form = Form::dense;
    one.entry.byte_offset = append(std::move(data), index, dtype == Stored::f32, at);
    if (dtype == Stored::f32) return;
    const std::uint64_t length = scale_count(one.entry.dtype, one.entry.block_size, x) * sizeof(float);
    core::Payload scales = payload(one, kScales, DType::f32, length);
    if (codes) core::fill_with(scales, scales_of(one.from, values(), *type->codec->scaled, one.entry.block_size));
    one.entry.scale_offset = append(std::move(scales), index, true, at);
  }

  // A payload that copies the source's part; the caller may change it.
  core::Payload payload(const Out& one, std::string_view role, DType dtype, std::uint64_t size) const {
    core::Payload out;
    out.tensor = one.from;
    out.role = role;
    out.dtype = dtype;
    out.logical_size = out.stored_size = size;
    out.alignment = static_cast<std::uint32_t>(kAlignment);
    for (const Part& part : one.from.parts()) {
      if (role == kScales ? part.role() == kScales : part == one.from.main()) break;
      if (out.part + 1 < one.from.part_count()) ++out.part;
    }
    return out;
  }

  std::uint64_t append(core::Payload payload, std::uint32_t tensor, bool values, std::uint64_t& at) {
    const std::uint64_t begin = *base::align_up(at, kAlignment);
    at = begin + payload.stored_size;
    payload.out_tensor = tensor;
    if (values)
      kept_->ranges.push_back(
          {begin, payload.stored_size, tensor, payload.role == kScales ? ValueRule::positive : ValueRule::finite});
    out_.payloads.push_back(std::move(payload));
    return begin;
  }

  std::shared_ptr<Sealed> kept_;
  Hyper hyper_;
  KnownNames known_;
  std::string tokenizer_, header_extra_;
  std::vector<Out> outs_;
};

}  // namespace

core::WriteLayout layout(const Model& model, const Options& options, const Context&) {
  refuse_options(options);
  return Planner(model, options).run();
}

// Seals a file.
namespace {

// The written file as the Source that sum_payload() reads.
class Written final : public Source {
 public:
  explicit Written(const core::WrittenFile& file) : file_(file) {}
  std::uint64_t size() const noexcept override { return file_.size; }
  void read_at(std::uint64_t offset, std::span<std::byte> out) const override { file_.read(offset, out); }
  std::string_view name() const noexcept override { return "<output>"; }

 private:
  const core::WrittenFile& file_;
};

}  // namespace

void seal(const Sealed& sealed, const core::WrittenFile& file) {
  const Written source(file);
  const PayloadSums sums = sum_payload(source, sealed.ranges, {});
  if (!sums.bad.empty()) throw Error(bad_value_finding(sums.bad[0], source, sealed.names[sums.bad[0].tensor]));
  if (sums.checksum == 0)
    base::misuse("checksum",
                 "the checksum of the output comes out as 0, which an .slm cannot hold: "
                 "another order of tensors gives another one");
  std::byte bytes[kChecksumSize];
  base::store_le(bytes, sums.checksum);
  file.write(kChecksumAt, bytes);
}

}  // namespace weighbridge::slm_format
