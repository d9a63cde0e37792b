// SPDX-License-Identifier: Apache-2.0
// Model to zTensor 0.1: the one layout that plan and writer share. Tensors are dense, row-major and little-endian, in
// the given order, each at a multiple of 64 (reading Z6). From zt0 to zt0, stored bytes are copied verbatim. Equal
// extents are stored once and shared (G6).
#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/endian.h"
#include "base/fail.h"
#include "base/utf8.h"
#include "core/payload/extents.h"
#include "core/payload/part_digest.h"
#include "core/payload/payload.h"
#include "core/writing/layout.h"
#include "formats/ztensor/cbor_value.h"
#include "formats/ztensor/planning.h"
#include "formats/ztensor/v0/format.h"
#include "formats/ztensor/v0/layout.h"
#include "wire/cbor_writer.h"

namespace weighbridge::ztensor0 {
namespace {

using core::indexed, core::subject;
using Form = core::Payload::Form;

// The index of a file to write. The plan knows everything except offsets, sizes and checksums. Decides the order of
// keys (reading Z6).
struct OutEntry {
  Tensor from;  // name, shape
  Part part;    // of the input; gives the names of dtype, encoding and checksum if bytes are copied verbatim
  std::uint32_t payload = 0;
  DType dtype = DType::unknown;       // unknown: from.type_name()
  Encoding encoding = Encoding::raw;  // unknown: part.encoding_name()
  std::string_view layout;            // empty: the field is not written
  bool keep_checksum = false, keep_extra = false, big_endian = false;
  std::string attributes;  // custom fields: alternating keys and values
  std::uint64_t attribute_count = 0;
};

struct OutIndex {
  std::vector<OutEntry> entries;
  std::shared_ptr<const void> keep;

  // The index array and its size in bytes. stored[i] belongs to payload i.
  std::string tail(std::span<const core::Stored>) const;
};

// Z2: spells a checksum as the published packages do, with the digits of a CRC in upper case.
std::string spell(std::string digest) {
  constexpr std::string_view kCrc = "crc32c:0x";
  if (!digest.starts_with(kCrc)) return digest;
  for (std::size_t i = kCrc.size(); i < digest.size(); ++i)
    if (digest[i] >= 'a' && digest[i] <= 'f') digest[i] = static_cast<char>(digest[i] - 'a' + 'A');
  return digest;
}

void write_entry(wire::CborWriter& out, const OutEntry& e, const core::Stored& stored) {
  const std::string checksum = e.keep_checksum ? std::string(e.part.digest()) : spell(stored.digest);
  const auto extra = e.keep_extra ? e.part.extra() : Attributes();
  out.map(6 + (e.layout.empty() ? 0U : 1U) + extra.size() + (e.big_endian ? 1U : 0U) + (checksum.empty() ? 0U : 1U) +
          e.attribute_count);
  out.member(kName, e.from.name());
  out.member(kOffset, stored.offset);
  out.member(kSize, stored.length);
  out.member(kDtype, e.dtype == DType::unknown ? e.from.type_name() : name_of(e.dtype));
  if (!e.layout.empty()) out.member(kLayout, e.layout);
  out.text(kShape);
  out.numbers(e.from.shape());
  out.member(kEncoding, e.encoding == Encoding::unknown ? e.part.encoding_name() : name(e.encoding));
  for (const auto& [key, value] : extra) {  // data_endianness of tensors that this build does not support
    out.text(key);
    ztensor::write_value(out, value);
  }
  if (e.big_endian) out.member(kEndianness, kBig);
  if (!checksum.empty()) out.member(kChecksum, checksum);
  out.raw(e.attributes);
}

std::string OutIndex::tail(std::span<const core::Stored> stored) const {
  wire::CborWriter out;
  out.array(entries.size());
  for (const OutEntry& e : entries) write_entry(out, e, stored[e.payload]);
  std::string tail = out.take();
  char size[kFooterSize];
  base::store_le<std::uint64_t>(size, tail.size());
  tail.append(size, sizeof size);
  return tail;
}

class Planner : ztensor::Planning {
 public:
  Planner(const Model& model, const Options& options)
      : Planning(model, options, Subject::tensor),
        index_(std::make_shared<OutIndex>()),
        from_zt0_(!options.canonical && model.format() == "zt0") {
    index_->keep = out_.owner;
  }

  core::WriteLayout run() {
    out_.head = kMagic;
    check_root();
    for (std::uint32_t i = 0; i < model_.size(); ++i) judge(model_[i]);
    if (out_.blockers.empty()) place_all();
    out_.owner = index_;
    if (out_.blockers.empty()) add_tail(index_);
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
    begin_payloads(kMagicSize);
    index_->entries.reserve(model_.size());
    std::uint32_t ordinal = 0;  // the number of the tensor's first part
    for (std::uint32_t i = 0; i < model_.size() && out_.blockers.empty(); ordinal += model_[i++].part_count())
      place(model_[i], ordinal);
  }

  core::Payload payload_of(const Tensor& tensor, std::uint32_t main) {
    const Part part = tensor.part(main);
    core::Payload p;
    p.tensor = tensor;
    p.part = main;
    p.out_tensor = static_cast<std::uint32_t>(out_.tensors.size());
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

  void place(const Tensor& tensor, std::uint32_t first_part) {
    const std::uint32_t main = core::main_part(tensor);
    core::Payload p = payload_of(tensor, main);
    OutEntry entry = entry_of(tensor, p);
    const auto shared = shared_payload(p, first_part + main);
    const auto payload = shared ? shared : append_payload(std::move(p), first_part + main);
    if (!payload) return;
    entry.payload = *payload;
    index_->entries.push_back(std::move(entry));
    out_.tensors.push_back({.name = tensor.name(),
                            .from = tensor,
                            .layout = opaque(tensor) ? tensor.layout() : Layout::dense,
                            .dtype = target_dtype(tensor),
                            .shared_parts = (opaque(tensor) ? tensor.part_count() - 1 : 0U) + (shared ? 1U : 0U)});
  }
  OutEntry entry_of(const Tensor& tensor, const core::Payload& p) const {
    OutEntry e;
    e.from = tensor;
    e.part = tensor.part(p.part);
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
    return e;
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

  std::shared_ptr<OutIndex> index_;
  const bool from_zt0_;
};

}  // namespace

core::WriteLayout layout(const Model& model, const Options& options, const Context&) {
  return Planner(model, options).run();
}

}  // namespace weighbridge::ztensor0
