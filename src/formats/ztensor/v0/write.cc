// SPDX-License-Identifier: Apache-2.0
// Model to zTensor 0.1: the one layout that plan and writer share. Tensors are dense, row-major and little-endian, in
// the given order, each at a multiple of 64 (reading Z6). From zt0 to zt0, stored bytes are copied verbatim. Equal
// extents are stored once and shared (G6).
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/fail.h"
#include "base/utf8.h"
#include "core/payload/extents.h"
#include "core/payload/part_digest.h"
#include "core/payload/payload.h"
#include "core/writing/layout.h"
#include "core/writing/plan_items.h"
#include "formats/ztensor/cbor_value.h"
#include "formats/ztensor/v0/format.h"
#include "formats/ztensor/v0/index.h"
#include "formats/ztensor/v0/layout.h"

namespace weighbridge::ztensor0 {
namespace {

using core::indexed, core::subject;
using Form = core::Payload::Form;

// The bound on sums of sizes, which leaves room for an index below 2^64.
constexpr std::uint64_t kMaxSum = UINT64_MAX - (std::uint64_t{1} << 40);

class Planner : core::Planning {
 public:
  Planner(const Model& model, const Options& options)
      : Planning(model, options),
        index_(std::make_shared<OutIndex>()),
        from_zt0_(!options.canonical && model.format() == "zt0") {
    index_->keep = out_.owner;
  }

  core::WriteLayout run() {
    out_.head = kMagic;
    check_root();
    for (std::uint32_t i = 0; i < model_.size(); ++i) judge(model_[i]);
    if (out_.blockers.empty()) place_all();
    finish();
    return std::move(out_);
  }

 private:
  void check_root() {
    core::drop_attributes(plan_items_, model_, "zTensor 0.1 has custom fields of tensors only");
    core::drop_extra(plan_items_, model_);
    core::drop_tokenizer(plan_items_, model_, "zTensor 0.1 has");
  }

  // Whether the tensor is from a zTensor 0.1 file and is copied unchanged, as unsupported and sparse ones are.
  bool opaque(const Tensor& tensor) const { return from_zt0_ && (tensor.unsupported() || is_blob(tensor)); }
  // Whether it is a sparse tensor in one blob.
  static bool is_blob(const Tensor& tensor) {
    return tensor.layout() != Layout::structural && core::cut_of(tensor.main()).has_value();
  }

  DType target_dtype(const Tensor& tensor) const {
    return opaque(tensor) ? tensor.dtype() : core::target_dtype(tensor, options_);
  }

  // Whether the stored bytes can be copied to the file.
  bool stores(const Tensor& tensor) const {
    if (opaque(tensor)) return true;
    const Part part = tensor.main();
    // A model built in memory, which has no format, may hold parts of zTensor 0.1 files.
    if (!from_zt0_ && (options_.canonical || !model_.format().empty())) return false;
    if (tensor.layout() != Layout::dense || target_dtype(tensor) != tensor.dtype() || !part.extent()) return false;
    if (!part.strides().empty() || (part.order() == Order::big && info(part.dtype()).swap_bytes > 1)) return false;
    if (part.encoding() == Encoding::raw && part.extent()->length != part.size()) return false;
    return options_.encoding.empty() || options_.encoding == name(part.encoding());
  }

  // Lists everything about one tensor that zTensor 0.1 cannot express.
  void judge(const Tensor& tensor) {
    if (!base::is_utf8(tensor.name()))
      plan_items_.block(LossKind::name, subject(tensor), "a name that is not UTF-8", "names are UTF-8");
    check_attributes(tensor);
    core::drop_extra(plan_items_, tensor);
    if (opaque(tensor)) {
      check_digest(tensor, tensor.main());
    } else if (core::check_known(plan_items_, tensor, "zTensor 0.1")) {
      check_layout(tensor);
      check_dtype(tensor);
    }
  }

  // Custom fields are encoded twice: here to record losses, and later for the index.
  void check_attributes(const Tensor& tensor) {
    OutEntry ignored;
    encode_attributes(tensor, ignored, [&](LossKind kind, const Value::Entry& e, std::string to) {
      plan_items_.lose(kind, subject(tensor) + "." + indexed("attributes", e.first), e.second.to_text(), std::move(to));
    });
  }

  void check_layout(const Tensor& tensor) {
    const Layout layout = tensor.layout();
    if (layout != Layout::dense)
      plan_items_.lose(LossKind::layout, subject(tensor), std::string(tensor.layout_name()),
                       "dense " + std::string(name(target_dtype(tensor))));
    for (std::uint32_t i = 0; i < tensor.part_count(); ++i) {
      const Part part = tensor.part(i);
      core::drop_extra(plan_items_, tensor, part);
      // The dense form of a quantized tensor is f32, whatever the dtype of its scales.
      if (is_quantized(layout) && part != tensor.main() && part.dtype() == DType::f64)
        plan_items_.lose(LossKind::precision, subject(tensor, part), "f64", "f32");
      if (layout != Layout::dense) continue;
      if (part != tensor.main())
        plan_items_.lose(LossKind::layout, subject(tensor, part), std::string(part.role()), "dropped");
      else
        check_stored(tensor, part);
    }
  }

  void check_stored(const Tensor& tensor, const Part& part) {
    check_digest(tensor, part);
    if (stores(tensor)) return;
    core::check_encoding(plan_items_, tensor, part,
                         options_.encoding.empty() ? Encoding::raw : core::encoding_named(options_.encoding));
  }

  bool keeps_checksum(const Tensor& tensor) const { return stores(tensor) && options_.digest.empty(); }

  void check_digest(const Tensor& tensor, const Part& part) {
    if (part.digest().empty() || keeps_checksum(tensor)) return;
    plan_items_.change(
        LossKind::extra, subject(tensor, part), std::string(part.digest()),
        core::digest_of(options_.digest) == core::PartDigest::none ? "no digest" : "a digest of the new bytes");
  }

  void check_dtype(const Tensor& tensor) {
    const DType from = tensor.dtype(), to = target_dtype(tensor);
    if (name_of(to).empty())
      return plan_items_.block(LossKind::dtype, subject(tensor), std::string(name(from)),
                               "no dtype of zTensor 0.1: a cast can make one of floating-point ones");
    core::check_cast(plan_items_, tensor, to);
    const auto elements = base::element_count(tensor.shape());
    if (!elements || !packed_size(to, *elements))
      plan_items_.block(LossKind::shape, subject(tensor), "its shape", "more than 2^64 - 1 bytes");
  }

  void place_all() {
    sharing_ = core::sharing(model_);
    payload_of_.assign(sharing_.first.size(), core::kNone);
    out_.tensors.reserve(model_.size());
    out_.payloads.reserve(model_.size());
    index_->entries.reserve(model_.size());
    std::uint32_t ordinal = 0;  // the index of the tensor's first part
    for (std::uint32_t i = 0; i < model_.size(); ordinal += model_[i++].part_count()) {
      const Tensor tensor = model_[i];
      const std::uint32_t main = core::main_part(tensor);
      if (!place(tensor, main, ordinal + main)) return;
    }
  }

  core::Payload payload_of(const Tensor& tensor, std::uint32_t main) {
    const Part part = tensor.part(main);
    core::Payload p;
    p.tensor = tensor;
    p.part = main;
    p.alignment = static_cast<std::uint32_t>(kAlignment);
    p.role = opaque(tensor) ? part.role() : "data";
    p.digest = core::digest_of(options_.digest);
    p.dtype = target_dtype(tensor);
    if (stores(tensor)) {
      p.form = Form::stored;
      p.dtype = part.dtype();
      p.encoding = part.encoding();
      p.logical_size = part.size();
      p.stored_size = part.extent()->length;
      return p;
    }
    const bool as_it_is = tensor.layout() == Layout::dense && p.dtype == tensor.dtype();
    p.form = as_it_is ? Form::logical : Form::dense;
    p.logical_size = *packed_size(p.dtype, *base::element_count(tensor.shape()));
    core::encode_payload(p, options_);
    out_.size_exact &= p.encoding == Encoding::raw;
    return p;
  }

  static bool same_bytes(const core::Payload& a, const core::Payload& b) {
    return a.form == b.form && a.form != Form::dense && a.encoding == b.encoding && a.dtype == b.dtype &&
           a.logical_size == b.logical_size && core::same_elements(a.tensor.main(), b.tensor.main());
  }

  // `ordinal` is the index of the part in sharing_. False if the file would exceed 2^64 bytes.
  bool place(const Tensor& tensor, std::uint32_t main, std::uint32_t ordinal) {
    core::Payload p = payload_of(tensor, main);
    std::uint32_t& own = payload_of_[ordinal];
    const std::uint32_t twin = payload_of_[sharing_.first[ordinal]], partly = sharing_.partly[ordinal];
    const bool shares = !options_.canonical && twin != core::kNone && same_bytes(out_.payloads[twin], p);
    if (twin != core::kNone && !shares) core::name_copy(plan_items_, tensor, out_.payloads[twin].tensor);
    if (partly != core::kNone) core::name_partial_copy(plan_items_, tensor, model_[sharing_.tensor[partly]]);
    own = shares ? twin : static_cast<std::uint32_t>(out_.payloads.size());
    add_entry(tensor, p, own);
    out_.tensors.push_back({.name = tensor.name(),
                            .from = tensor,
                            .layout = opaque(tensor) ? tensor.layout() : Layout::dense,
                            .dtype = target_dtype(tensor),
                            .shared_parts = (opaque(tensor) ? tensor.part_count() - 1 : 0U) + (shares ? 1U : 0U)});
    if (shares) return true;
    const auto start = base::align_up(at_, kAlignment);
    const auto end = start ? base::checked_add(*start, p.stored_size) : std::nullopt;
    if (!end || *end > kMaxSum) {
      plan_items_.block(LossKind::shape, subject(tensor), "its size", "more than 2^64 - 1 bytes in all");
      return false;
    }
    at_ = *end;
    p.out_tensor = static_cast<std::uint32_t>(out_.tensors.size() - 1);
    out_.payloads.push_back(std::move(p));
    return true;
  }

  void add_entry(const Tensor& tensor, const core::Payload& p, std::uint32_t payload) {
    OutEntry e;
    e.from = tensor;
    e.part = tensor.part(p.part);
    e.payload = payload;
    e.dtype = target_dtype(tensor);
    e.encoding = p.encoding;
    e.keep_checksum = keeps_checksum(tensor);
    e.keep_extra = p.form == Form::stored && opaque(tensor);
    e.big_endian = opaque(tensor) && is_blob(tensor) && core::cut_of(e.part)->swap > 1;
    if (has_layout_field(tensor))
      e.layout = !is_blob(tensor)                        ? tensor.layout_name()
                 : tensor.layout() == Layout::sparse_csr ? kSparseCsr
                                                         : kSparseCoo;
    else if (!options_.zt0.omit_layout_field)
      e.layout = kDense;
    encode_attributes(tensor, e, {});
    index_->entries.push_back(std::move(e));
  }

  // Fills the custom fields of the entry, sorted by the bytes of their keys, and calls `add_loss` for each loss.
  void encode_attributes(const Tensor& tensor, OutEntry& to,
                         const std::function<void(LossKind, const Value::Entry&, std::string)>& add_loss) const {
    const auto entries = tensor.attributes();
    if (entries.empty()) return;
    std::vector<const Value::Entry*> sorted;
    for (const Value::Entry& e : entries) {
      // Attributes that only describe the packing are dropped with the layout, which is recorded as the loss.
      if (!core::is_packing_attribute(tensor, e.first)) sorted.push_back(&e);
    }
    std::sort(sorted.begin(), sorted.end(),
              [](const Value::Entry* a, const Value::Entry* b) { return a->first < b->first; });
    wire::CborWriter out;
    for (const Value::Entry* e : sorted) {
      const auto& [key, value] = *e;
      std::string problem = why_not(tensor, key, value);
      if (!problem.empty()) {
        if (add_loss) add_loss(LossKind::attribute, *e, "dropped: " + std::move(problem));
        continue;
      }
      if (add_loss && !comes_back(value)) add_loss(LossKind::attribute_type, *e, "a plain value");
      if (key == kLayout) to.layout = {};
      ++to.attribute_count;
      out.text(key);
      ztensor::write_value(out, value, ztensor::Floats::shortest);
    }
    to.attributes = out.take();
  }

  // Why a custom field cannot be written; empty if it can.
  std::string why_not(const Tensor& tensor, std::string_view key, const Value& value) const {
    const auto text = value.as_text();
    if (!base::is_utf8(key) || (text && !base::is_utf8(*text))) return "it is not UTF-8";
    if (is_field(key)) return "zTensor 0.1 has a field of this name";
    if (key == kLayout && ((text && is_layout(*text)) || has_layout_field(tensor)))
      return "it would say how the data is laid out";
    return {};
  }

  // Whether the file must say how the tensor is laid out.
  bool has_layout_field(const Tensor& tensor) const { return opaque(tensor) && tensor.layout() != Layout::dense; }

  // Whether reading gives the same value with the same type.
  static bool comes_back(const Value& value) {
    wire::CborWriter writer;
    ztensor::write_value(writer, value, ztensor::Floats::shortest);
    wire::CborReader in(writer.data(), UINT32_MAX);
    core::Budget budget{UINT64_MAX};
    std::optional<std::size_t> duplicate;
    return ztensor::read_value(in, budget, duplicate, ztensor::Floats::shortest) == value;
  }

  void finish() {
    out_.owner = index_;
    if (!out_.blockers.empty()) return;
    // The size of the index; if sizes of payloads are only bounds, the largest that it can become.
    const core::PlannedPayloads planned = core::plan_payloads(out_, kMagicSize);
    out_.size = planned.end + index_->tail(planned.stored).size();
    out_.tail = [index = index_](std::span<const core::Stored> made) { return index->tail(made); };
  }

  std::shared_ptr<OutIndex> index_;
  const bool from_zt0_;
  std::uint64_t at_ = kMagicSize;
  core::Sharing sharing_;
  std::vector<std::uint32_t> payload_of_;  // the payload of each part of the model in order; kNone: none yet
};

}  // namespace

core::WriteLayout layout(const Model& model, const Options& options, const Context&) {
  return Planner(model, options).run();
}

}  // namespace weighbridge::ztensor0
