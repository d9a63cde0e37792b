// SPDX-License-Identifier: Apache-2.0
// Model to safetensors: the one layout that plan and writer share. What comes out is byte for byte what the writer of
// package 0.8 makes of the same tensors, its metadata keys sorted; what safetensors cannot say is named as a blocker or
// a loss.
#include <algorithm>
#include <charconv>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/endian.h"
#include "base/fail.h"
#include "base/utf8.h"
#include "formats/safetensors/format.h"
#include "formats/safetensors/layout.h"
#include "wire/json_writer.h"

namespace weighbridge::safetensors {
namespace {

// Attributes that say how a quantised tensor is packed: its layout is named as the loss, they go with it.
constexpr std::string_view kPackingKeys[] = {"bits", "group_size", "packing", "type", "block_size"};

std::string indexed(std::string_view what, std::string_view key) {
  return std::string(what) + "[\"" + std::string(key) + "\"]";
}

void append_number(std::string& to, std::uint64_t value) {
  char digits[20];
  to.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

void refuse_options(const Options& options) {
  if (!options.encoding.empty() && options.encoding != "raw")
    base::misuse("encoding", "safetensors stores tensors raw only, not as " + options.encoding);
  if (!options.digest.empty() && options.digest != "none")
    base::misuse("digest", "safetensors has no digests, so " + options.digest + " cannot be stored");
  if (!options.quantise.empty()) base::misuse("quantise", "safetensors has no quantisation " + options.quantise);
  if (!options.version.empty())
    base::misuse("version", "safetensors has no versions, so " + options.version + " cannot be asked for");
  if (options.cast != DType::unknown &&
      (info(options.cast).kind != DTypeKind::real || dtype_rank(options.cast) == kDTypeRanks))
    base::misuse("cast", "safetensors tensors cannot be cast to " + std::string(name(options.cast)) +
                             ", which is no floating-point dtype that it has");
}

class Planner {
 public:
  Planner(const Model& model, const Options& options) : model_(model), options_(options) {}

  core::WriteLayout run() {
    out_.keep = core::Access::share(model_);
    if (model_.tokenizer())
      lose(LossKind::tokenizer, "tokenizer", "a tokenizer", "dropped: safetensors has no place for it");
    for (const auto& [key, value] : model_.extra().entries())
      lose(LossKind::extra, indexed("extra", key), value.to_text(), "dropped");
    for (std::uint32_t i = 0; i < model_.size(); ++i) judge(model_[i]);
    name_aliases();
    lay_out();
    return std::move(out_);
  }

 private:
  void lose(LossKind kind, std::string subject, std::string from, std::string to) {
    out_.losses.push_back({kind, std::move(subject), std::move(from), std::move(to)});
  }
  void block(LossKind kind, std::string subject, std::string from, std::string to) {
    out_.blockers.push_back({kind, std::move(subject), std::move(from), std::move(to)});
  }
  void change(LossKind kind, std::string subject, std::string from, std::string to) {
    out_.changes.push_back({kind, std::move(subject), std::move(from), std::move(to)});
  }
  // Spelt only where something is to be said: most tensors pass without an allocation.
  static std::string subject(const Tensor& tensor) { return indexed("tensors", tensor.name()); }

  DType target_dtype(const Tensor& tensor) const {
    const DType dtype = tensor.dtype();
    return options_.cast != DType::unknown && info(dtype).kind == DTypeKind::real ? options_.cast : dtype;
  }

  // Everything that safetensors cannot say of one tensor.
  void judge(const Tensor& tensor) {
    if (tensor.name() == kMetadata)
      block(LossKind::name, subject(tensor), std::string(kMetadata), "a name that safetensors reserves");
    judge_attributes(tensor);
    for (const auto& [key, value] : tensor.extra().entries())
      if (value.grammar() != "json")
        lose(LossKind::extra, subject(tensor) + "." + indexed("extra", key), value.to_text(), "dropped");
    if (const Finding* why = tensor.unsupported()) {
      block(LossKind::unsupported, subject(tensor), std::string(tensor.type_name()), "unknown: " + why->message);
      return;
    }
    if (!tensor.has_shape()) {
      block(LossKind::shape, subject(tensor), "an unknown shape", "safetensors states every shape");
      return;
    }
    judge_parts(tensor);
    judge_dtype(tensor);
  }

  void judge_attributes(const Tensor& tensor) {
    const bool packed = is_quantised(tensor.layout());
    for (const auto& [key, value] : tensor.attributes().entries()) {
      if (packed && std::ranges::find(kPackingKeys, key) != std::end(kPackingKeys)) continue;
      lose(LossKind::attribute, subject(tensor) + "." + indexed("attributes", key), value.to_text(), "dropped");
    }
  }

  static bool is_quantised(Layout layout) {
    return layout == Layout::quantized_group || layout == Layout::quantized_row || layout == Layout::quantized_block;
  }

  void judge_parts(const Tensor& tensor) {
    const Layout layout = tensor.layout();
    if (layout != Layout::dense) {
      lose(LossKind::layout, subject(tensor), std::string(tensor.layout_name()),
           "dense " + std::string(name(target_dtype(tensor))));
    }
    for (std::uint32_t i = 0; i < tensor.part_count(); ++i) {
      const Part part = tensor.part(i);
      const auto where = [&] { return subject(tensor) + "." + indexed("parts", part.role()); };
      for (const auto& [key, value] : part.extra().entries())
        lose(LossKind::extra, where() + "." + indexed("extra", key), value.to_text(), "dropped");
      // The dense form of a quantised tensor is f32, whatever its scales are.
      if (is_quantised(layout) && (part.role() == "scales" || part.role() == "zeros") && part.dtype() == DType::f64)
        lose(LossKind::precision, where(), "f64", "f32");
      if (layout != Layout::dense) continue;
      if (part.role() != tensor.main().role()) {
        lose(LossKind::layout, where(), std::string(part.role()), "dropped");
        continue;
      }
      if (part.encoding() == Encoding::zstd) change(LossKind::layout, where(), "zstd", "raw");
      if (part.order() == Order::big) change(LossKind::layout, where(), "big-endian", "little-endian");
      if (!part.strides().empty()) change(LossKind::layout, where(), "strided", "row-major");
      if (!part.digest().empty()) change(LossKind::extra, where(), std::string(part.digest()), "no digest");
    }
  }

  void judge_dtype(const Tensor& tensor) {
    const DType from = tensor.dtype(), to = target_dtype(tensor);
    if (dtype_rank(to) == kDTypeRanks) {
      block(LossKind::dtype, subject(tensor), std::string(name(from)), "no dtype of safetensors");
      return;
    }
    if (from != to) {
      const bool wider = info(to).bits > info(from).bits && info(from).bits >= 16;
      lose(wider ? LossKind::dtype : LossKind::precision, subject(tensor), std::string(name(from)),
           std::string(name(to)));
    }
    const auto elements = base::element_count(tensor.shape());
    const auto bits = elements ? base::checked_mul(*elements, info(to).bits) : std::nullopt;
    if (!bits)
      block(LossKind::shape, subject(tensor), "its shape", "more than 2^64 - 1 bits");
    else if (*bits % 8 != 0)
      block(LossKind::shape, subject(tensor), std::to_string(*bits) + " bits", "safetensors needs whole bytes");
  }

  // Tensors that share their bytes are written once each.
  void name_aliases() {
    struct Stored {
      std::uint64_t offset, length;
      std::uint32_t source, tensor;
    };
    std::vector<Stored> stored;
    stored.reserve(model_.size());
    for (std::uint32_t i = 0; i < model_.size(); ++i) {
      const Tensor tensor = model_[i];
      if (tensor.part_count() == 0) continue;
      const auto extent = tensor.main().extent();
      if (extent && extent->length > 0) stored.push_back({extent->offset, extent->length, extent->source, i});
    }
    const auto key = [](const Stored& s) { return std::tie(s.source, s.offset, s.length, s.tensor); };
    const auto before = [&](const Stored& a, const Stored& b) { return key(a) < key(b); };
    if (!std::is_sorted(stored.begin(), stored.end(), before)) std::sort(stored.begin(), stored.end(), before);
    for (std::size_t i = 1; i < stored.size(); ++i) {
      const Stored &a = stored[i - 1], &b = stored[i];
      if (a.source != b.source || a.offset != b.offset || a.length != b.length) continue;
      lose(LossKind::alias, subject(model_[b.tensor]), "the bytes of " + subject(model_[a.tensor]), "a copy of them");
    }
  }

  // The order of the reference writer: the dtype of the highest rank first, then names by bytes.
  std::vector<std::uint32_t> order() const {
    std::vector<std::vector<std::uint32_t>> ranks(kDTypeRanks + 1);
    if (model_.size() > 0) {
      for (const std::uint32_t i : core::Access::state(model_)->by_name)
        ranks[dtype_rank(target_dtype(model_[i]))].push_back(i);
    }
    std::vector<std::uint32_t> out;
    out.reserve(model_.size());
    for (std::size_t rank = kDTypeRanks; rank-- > 0;) out.insert(out.end(), ranks[rank].begin(), ranks[rank].end());
    return out;
  }

  void lay_out() {
    append_metadata();
    if (!out_.blockers.empty()) return;  // there is nothing to lay out
    out_.tensors.reserve(model_.size());
    out_.payloads.reserve(model_.size());
    std::uint64_t at = 0;
    for (const std::uint32_t i : order()) {
      const Tensor tensor = model_[i];
      const DType dtype = target_dtype(tensor);
      const std::uint64_t size = *packed_size(dtype, *base::element_count(tensor.shape()));
      const auto end = base::checked_add(at, size);
      if (!end || *end > UINT64_MAX - kLengthSize - kMaxHeader) {
        block(LossKind::shape, subject(tensor), "its size", "more than 2^64 - 1 bytes in all");
        return;
      }
      append_entry(tensor, dtype, at, *end);
      add_payload(tensor, dtype, size);
      at = *end;
    }
    finish_header(at);
  }

  void append_separator() {
    if (json_.size() > 1) json_ += ',';
  }

  void append_metadata() {
    json_ = "{";
    std::vector<std::pair<std::string_view, std::string>> entries;
    for (const auto& [key, value] : model_.attributes().entries()) {
      const std::string where = indexed("attributes", key);
      std::string text = value.to_text();
      if (value.kind() == Value::Kind::foreign || !base::is_utf8(key) || !base::is_utf8(text)) {
        lose(LossKind::attribute, where, std::move(text), "dropped: it cannot be text");
        continue;
      }
      if (value.kind() != Value::Kind::text) lose(LossKind::attribute_type, where, type_text(value), "text");
      entries.emplace_back(key, std::move(text));
    }
    if (entries.empty()) return;
    std::sort(entries.begin(), entries.end());
    wire::append_json_string(json_, kMetadata);
    char between = '{';
    json_ += ':';
    for (const auto& [key, text] : entries) {
      json_ += between;
      between = ',';
      wire::append_json_string(json_, key);
      json_ += ':';
      wire::append_json_string(json_, text);
    }
    json_ += '}';
  }

  static std::string type_text(const Value& value) {
    switch (value.kind()) {
      case Value::Kind::integer:
      case Value::Kind::real: return std::string(name(value.type()));
      case Value::Kind::boolean: return "boolean";
      case Value::Kind::bytes: return "bytes";
      case Value::Kind::map: return "map";
      case Value::Kind::list:
      case Value::Kind::texts:
      case Value::Kind::numbers: return "list";
      default: return "null";
    }
  }

  void append_entry(const Tensor& tensor, DType dtype, std::uint64_t begin, std::uint64_t end) {
    append_separator();
    wire::append_json_string(json_, tensor.name());
    json_ += ":{\"dtype\":\"";
    json_ += kDTypes[dtype_rank(dtype)].name;
    json_ += "\",\"shape\":[";
    bool first = true;
    for (const std::uint64_t dim : tensor.shape()) {
      if (!std::exchange(first, false)) json_ += ',';
      append_number(json_, dim);
    }
    json_ += "],\"data_offsets\":[";
    append_number(json_, begin);
    json_ += ',';
    append_number(json_, end);
    json_ += ']';
    for (const auto& [key, value] : tensor.extra().entries()) {  // from another safetensors file, word for word
      if (value.grammar() != "json") continue;
      const auto raw = value.bytes();
      json_ += ',';
      wire::append_json_string(json_, key);
      json_ += ':';
      json_.append(reinterpret_cast<const char*>(raw.data()), raw.size());
    }
    json_ += '}';
  }

  void add_payload(const Tensor& tensor, DType dtype, std::uint64_t size) {
    const bool as_it_is = tensor.layout() == Layout::dense && dtype == tensor.dtype();
    core::Payload payload;
    payload.form = as_it_is ? core::Payload::Form::logical : core::Payload::Form::dense;
    payload.dtype = dtype;
    payload.tensor = tensor;
    if (as_it_is) {
      while (tensor.part(payload.part).role() != tensor.main().role()) ++payload.part;
    }
    payload.out_tensor = static_cast<std::uint32_t>(out_.tensors.size());
    payload.role = "data";
    payload.logical_size = payload.stored_size = size;
    out_.payloads.push_back(std::move(payload));
    out_.tensors.push_back({.name = tensor.name(), .from = tensor, .layout = Layout::dense, .dtype = dtype});
  }

  void finish_header(std::uint64_t data_size) {
    json_ += '}';
    json_.append((kHeaderAlignment - json_.size() % kHeaderAlignment) % kHeaderAlignment, ' ');
    if (json_.size() > kMaxHeader) {
      block(LossKind::name, "tensors", std::to_string(json_.size()) + " bytes of header",
            "more than the " + std::to_string(kMaxHeader) + " that safetensors allows");
      return;
    }
    out_.head.resize(kLengthSize);
    base::store_le<std::uint64_t>(out_.head.data(), json_.size());
    out_.head += json_;
    out_.size = out_.head.size() + data_size;
  }

  const Model& model_;
  const Options& options_;
  core::WriteLayout out_;
  std::string json_;
};

}  // namespace

core::WriteLayout layout(const Model& model, const Options& options) {
  refuse_options(options);
  return Planner(model, options).run();
}

}  // namespace weighbridge::safetensors
