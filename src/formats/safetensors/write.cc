// SPDX-License-Identifier: Apache-2.0
// Model to safetensors: the one layout that plan and writer share. What comes out is byte for byte what the writer of
// package 0.8 makes of the same tensors, its metadata keys sorted; what safetensors cannot say is named as a blocker or
// a loss.
#include <algorithm>
#include <charconv>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/endian.h"
#include "base/fail.h"
#include "core/plan_items.h"
#include "formats/safetensors/format.h"
#include "formats/safetensors/layout.h"
#include "wire/json_writer.h"

namespace weighbridge::safetensors {
namespace {

using core::indexed;
using core::subject;

void append_number(std::string& to, std::uint64_t value) {
  char digits[20];
  to.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

void refuse_options(const Options& options) {
  if (!options.encoding.empty() && options.encoding != "raw")
    base::misuse("encoding", "safetensors stores tensors raw only, not as " + options.encoding);
  if (!options.digest.empty() && options.digest != "none")
    base::misuse("digest", "safetensors has no digests, so " + options.digest + " cannot be stored");
  if (!options.quantize.empty()) base::misuse("quantise", "safetensors has no quantization " + options.quantize);
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
    out_.keep = std::make_shared<const Model>(model_);
    if (model_.tokenizer())
      ledger_.lose(LossKind::tokenizer, "tokenizer", "a tokenizer", "dropped: safetensors has no place for it");
    core::drop_extra(ledger_, model_);
    for (std::uint32_t i = 0; i < model_.size(); ++i) judge(model_[i]);
    name_aliases();
    lay_out();
    return std::move(out_);
  }

 private:
  DType target_dtype(const Tensor& tensor) const { return core::target_dtype(tensor, options_); }

  // Everything that safetensors cannot say of one tensor.
  void judge(const Tensor& tensor) {
    if (tensor.name() == kMetadata)
      ledger_.block(LossKind::name, subject(tensor), std::string(kMetadata), "a name that safetensors reserves");
    core::drop_attributes(ledger_, tensor);
    for (const auto& [key, value] : tensor.extra())
      if (value.grammar() != "json")
        ledger_.lose(LossKind::extra, subject(tensor) + "." + indexed("extra", key), value.to_text(), "dropped");
    if (!core::judge_known(ledger_, tensor, "safetensors states every shape")) return;
    core::judge_dense(ledger_, tensor, target_dtype(tensor));
    judge_dtype(tensor);
  }

  void judge_dtype(const Tensor& tensor) {
    const DType from = tensor.dtype(), to = target_dtype(tensor);
    if (dtype_rank(to) == kDTypeRanks) {
      ledger_.block(LossKind::dtype, subject(tensor), std::string(name(from)), "no dtype of safetensors");
      return;
    }
    core::judge_cast(ledger_, tensor, to);
    const auto elements = base::element_count(tensor.shape());
    const auto bits = elements ? base::checked_mul(*elements, info(to).bits) : std::nullopt;
    if (!bits)
      ledger_.block(LossKind::shape, subject(tensor), "its shape", "more than 2^64 - 1 bits");
    else if (*bits % 8 != 0)
      ledger_.block(LossKind::shape, subject(tensor), std::to_string(*bits) + " bits", "safetensors needs whole bytes");
  }

  // Tensors that share their bytes are written once each.
  void name_aliases() {
    std::vector<std::uint32_t> all(model_.size());
    std::iota(all.begin(), all.end(), 0U);
    core::name_copies(ledger_, model_, all);
  }

  // The order of the reference writer: the dtype of the highest rank first, then names by bytes.
  std::vector<std::uint32_t> order() const {
    std::vector<std::vector<std::uint32_t>> ranks(kDTypeRanks + 1);
    if (model_.size() > 0) {
      for (const std::uint32_t i : core::by_name(model_)) ranks[dtype_rank(target_dtype(model_[i]))].push_back(i);
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
        ledger_.block(LossKind::shape, subject(tensor), "its size", "more than 2^64 - 1 bytes in all");
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
    for (const auto& [key, value] : model_.attributes()) {
      const std::string where = indexed("attributes", key);
      std::string text = value.to_text();
      if (!core::can_be_text(key, value, text)) {
        ledger_.lose(LossKind::attribute, where, std::move(text), "dropped: it cannot be text");
        continue;
      }
      if (value.kind() != Value::Kind::text)
        ledger_.lose(LossKind::attribute_type, where, core::type_text(value), "text");
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
    for (const auto& [key, value] : tensor.extra()) {  // from another safetensors file, word for word
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
    out_.payloads.push_back(core::dense_payload(out_, tensor, dtype, size));
    out_.tensors.push_back({.name = tensor.name(), .from = tensor, .layout = Layout::dense, .dtype = dtype});
  }

  void finish_header(std::uint64_t data_size) {
    json_ += '}';
    json_.append((kHeaderAlignment - json_.size() % kHeaderAlignment) % kHeaderAlignment, ' ');
    if (json_.size() > kMaxHeader) {
      ledger_.block(LossKind::name, "tensors", std::to_string(json_.size()) + " bytes of header",
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
  core::Ledger ledger_{out_};
  std::string json_;
};

}  // namespace

core::WriteLayout layout(const Model& model, const Options& options) {
  refuse_options(options);
  return Planner(model, options).run();
}

}  // namespace weighbridge::safetensors
