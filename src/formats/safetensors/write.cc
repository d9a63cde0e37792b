// SPDX-License-Identifier: Apache-2.0
// Model to safetensors: the one layout that plan and writer share. The output is byte for byte what package 0.8 writes
// for the same tensors, with metadata keys sorted. What safetensors cannot express is a blocker or a loss.
#include <algorithm>
#include <charconv>
#include <string>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/endian.h"
#include "base/fail.h"
#include "core/reading/shards.h"
#include "core/writing/layout.h"
#include "core/writing/plan_items.h"
#include "formats/safetensors/format.h"
#include "formats/safetensors/layout.h"
#include "wire/json_writer.h"

namespace weighbridge::safetensors {
namespace {

void append_number(std::string& to, std::uint64_t value) {
  char digits[20];
  to.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

}  // namespace

void append_metadata(std::string& json, std::span<const std::pair<std::string_view, std::string>> texts) {
  if (texts.empty()) return;
  wire::append_json_string(json, kMetadata);
  char between = '{';
  json += ':';
  for (const auto& [key, text] : texts) {
    json += std::exchange(between, ',');
    wire::append_json_string(json, key);
    json += ':';
    wire::append_json_string(json, text);
  }
  json += '}';
}

void append_entry(std::string& json, const Tensor& tensor, std::string_view dtype, std::uint64_t begin,
                  std::uint64_t end) {
  if (json.size() > 1) json += ',';
  wire::append_json_string(json, tensor.name());
  json += ":{\"dtype\":";
  wire::append_json_string(json, dtype);
  json += ",\"shape\":[";
  bool first = true;
  for (const std::uint64_t dim : tensor.shape()) {
    if (!std::exchange(first, false)) json += ',';
    append_number(json, dim);
  }
  json += "],\"data_offsets\":[";
  append_number(json, begin);
  json += ',';
  append_number(json, end);
  json += ']';
  for (const auto& [key, value] : tensor.extra()) {  // from another safetensors file, verbatim
    if (value.grammar() != "json") continue;
    const auto raw = value.bytes();
    json += ',';
    wire::append_json_string(json, key);
    json += ':';
    json.append(reinterpret_cast<const char*>(raw.data()), raw.size());
  }
  json += '}';
}

namespace {

using core::indexed, core::subject;

class Planner : core::Planning {
 public:
  using Planning::Planning;

  core::WriteLayout run() {
    check_all();
    if (out_.blockers.empty()) lay_out(order(), out_);
    return std::move(out_);
  }

  core::WriteLayout run_files(std::string_view stem) {
    check_all();
    out_.folder = std::make_shared<core::OutFolder>();
    if (out_.blockers.empty()) lay_out_files(std::string(stem));
    return std::move(out_);
  }

 private:
  void check_all() {
    core::drop_tokenizer(plan_items_, model_, "safetensors has");
    core::drop_extra(plan_items_, model_);
    for (std::uint32_t i = 0; i < model_.size(); ++i) judge(model_[i]);
    core::name_copies(plan_items_, model_);  // tensors that share bytes each get a copy
    begin_header();
  }

  // Records everything that safetensors cannot express about one tensor.
  void judge(const Tensor& tensor) {
    if (tensor.name() == kMetadata)
      plan_items_.block(LossKind::name, subject(tensor), std::string(kMetadata), "a name that safetensors reserves");
    core::drop_attributes(plan_items_, tensor);
    for (const auto& [key, value] : tensor.extra())
      if (value.grammar() != "json")
        plan_items_.lose(LossKind::extra, subject(tensor) + "." + indexed("extra", key), value.to_text(), "dropped");
    if (!core::check_known(plan_items_, tensor, "safetensors")) return;
    core::check_dense(plan_items_, tensor, target_dtype(tensor));
    check_dtype(tensor);
  }

  void check_dtype(const Tensor& tensor) {
    const DType from = tensor.dtype(), to = target_dtype(tensor);
    if (dtype_rank(to) == kDTypeRanks)
      return plan_items_.block(LossKind::dtype, subject(tensor), std::string(name(from)), "no dtype of safetensors");
    core::check_cast(plan_items_, tensor, to);
    const auto elements = base::element_count(tensor.shape());
    const auto bits = elements ? base::checked_mul(*elements, info(to).bits) : std::nullopt;
    if (!bits)
      plan_items_.block(LossKind::shape, subject(tensor), "its shape", "more than 2^64 - 1 bits");
    else if (*bits % 8 != 0)
      plan_items_.block(LossKind::shape, subject(tensor), std::to_string(*bits) + " bits",
                        "safetensors needs whole bytes");
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

  std::uint64_t size_of(const Tensor& tensor) const {
    return *packed_size(target_dtype(tensor), *base::element_count(tensor.shape()));
  }

  // The tensors of each shard, divided as in huggingface_hub (split_state_dict_into_shards_factory): tensors keep the
  // model's order, and one that does not fit begins the next shard. A tensor above the limit is a shard of its own,
  // numbered before the shard that is being filled.
  std::vector<std::vector<std::uint32_t>> shards() const {
    const std::uint64_t maximum = options_.shards.max_size == 0 ? UINT64_MAX : options_.shards.max_size;
    std::vector<std::uint32_t> begun(model_.size());  // the shard of each tensor, in the order in which shards begin
    std::vector<std::uint32_t> number;                // the file of each such shard, in the order in which they close
    std::uint32_t count = 0, filling = core::kNone;
    std::uint64_t filled = 0;
    const auto begin = [&] {
      number.push_back(core::kNone);
      return static_cast<std::uint32_t>(number.size() - 1);
    };
    for (std::uint32_t i = 0; i < model_.size(); ++i) {
      const std::uint64_t size = size_of(model_[i]);
      if (size > maximum) {
        begun[i] = begin();
        number[begun[i]] = count++;
        continue;
      }
      if (filling == core::kNone || size > maximum - filled) {
        if (filling != core::kNone) number[filling] = count++;
        filling = begin();
        filled = 0;
      }
      begun[i] = filling;
      filled += size;
    }
    if (filling == core::kNone && number.empty()) filling = begin();
    if (filling != core::kNone) number[filling] = count++;
    std::vector<std::vector<std::uint32_t>> out(count);
    for (const std::uint32_t i : order()) out[number[begun[i]]].push_back(i);
    return out;
  }

  void lay_out_files(const std::string& stem) {
    core::OutFolder& folder = *out_.folder;
    folder.format = "safetensors";
    const std::string whole = stem + std::string(kSuffix), index = stem + std::string(kIndexSuffix);
    folder.stale = [index](std::string_view name) { return index_of_shard(name) == index; };
    const auto all = shards();
    std::vector<std::uint32_t> file_of(model_.size());
    std::uint64_t total_size = 0, total_elements = 0;
    for (std::size_t k = 0; k < all.size(); ++k) {
      folder.payloads.push_back(
          {all.size() == 1 ? whole : core::spell_shard_name({stem, k + 1, all.size()}, kSuffix), {}});
      lay_out(all[k], folder.payloads.back().layout);
      if (!out_.blockers.empty()) return;
      for (const std::uint32_t i : all[k]) {
        file_of[i] = static_cast<std::uint32_t>(k);
        const Tensor tensor = model_[i];
        total_size += size_of(tensor);
        total_elements += *base::element_count(tensor.shape());
      }
    }
    const bool one = all.size() == 1;
    folder.last = one ? whole : index;
    folder.small.push_back({one ? index : whole, std::nullopt});
    if (!one) folder.small.push_back({index, index_json(file_of, total_size, total_elements)});
  }

  // As huggingface_hub writes it: keys sorted, indented by two spaces.
  std::string index_json(const std::vector<std::uint32_t>& file_of, std::uint64_t total_size,
                         std::uint64_t total_elements) const {
    wire::JsonWriter json(wire::JsonWriter::Style::indented);
    json.begin_object();
    json.key("metadata").begin_object();
    json.key("total_parameters").u64(total_elements);
    json.key("total_size").u64(total_size);
    json.end_object();
    json.key("weight_map").begin_object();
    for (const std::uint32_t i : core::by_name(model_)) {
      json.key(model_.name(i)).string(out_.folder->payloads[file_of[i]].name);
    }
    json.end_object();
    json.end_object();
    return json.take() + "\n";
  }

  // Lays out the tensors `chosen`, which are in file order.
  void lay_out(const std::vector<std::uint32_t>& chosen, core::WriteLayout& out) {
    json_ = metadata_;
    out.tensors.reserve(chosen.size());
    out.payloads.reserve(chosen.size());
    std::uint64_t at = 0;
    for (const std::uint32_t i : chosen) {
      const Tensor tensor = model_[i];
      const DType dtype = target_dtype(tensor);
      const std::uint64_t size = size_of(tensor);
      const auto end = base::checked_add(at, size);
      if (!end || *end > UINT64_MAX - kLengthSize - kMaxHeader)
        return plan_items_.block(LossKind::shape, subject(tensor), "its size", "more than 2^64 - 1 bytes in all");
      append_entry(json_, tensor, kDTypes[dtype_rank(dtype)].name, at, *end);
      out.payloads.push_back(core::dense_payload(out, tensor, dtype, size));
      out.tensors.push_back({.name = tensor.name(), .from = tensor, .layout = Layout::dense, .dtype = dtype});
      at = *end;
    }
    finish_header(at, out);
  }

  // The beginning of the header, the same for every shard.
  void begin_header() {
    metadata_ = "{";
    std::vector<std::pair<std::string_view, std::string>> entries;
    for (const auto& [key, value] : model_.attributes()) {
      const std::string where = indexed("attributes", key);
      std::string text = value.to_text();
      if (!core::can_be_text(key, value, text)) {
        plan_items_.lose(LossKind::attribute, where, std::move(text), "dropped: it cannot be text");
        continue;
      }
      if (value.kind() != Value::Kind::text)
        plan_items_.lose(LossKind::attribute_type, where, core::type_text(value), "text");
      entries.emplace_back(key, std::move(text));
    }
    std::sort(entries.begin(), entries.end());
    append_metadata(metadata_, entries);
  }

  void finish_header(std::uint64_t data_size, core::WriteLayout& out) {
    json_ += '}';
    if (const std::uint64_t reserve = std::min(options_.header.reserve, kMaxHeader + 1); reserve > 0)
      json_.append(base::to_size(reserve), ' ');
    json_.append((kHeaderAlignment - json_.size() % kHeaderAlignment) % kHeaderAlignment, ' ');
    if (json_.size() > kMaxHeader)
      return plan_items_.block(LossKind::name, "tensors", std::to_string(json_.size()) + " bytes of header",
                               "more than the " + std::to_string(kMaxHeader) + " that safetensors allows");
    out.head.resize(kLengthSize);
    base::store_le<std::uint64_t>(out.head.data(), json_.size());
    out.head += json_;
    out.size = out.head.size() + data_size;
  }

  std::string metadata_;  // the beginning of every header
  std::string json_;      // the current header
};

}  // namespace

core::WriteLayout layout(const Model& model, const Options& options, const Context&) {
  return options.shards.max_size != 0 ? Planner(model, options).run_files(kStem) : Planner(model, options).run();
}

core::WriteLayout layout_files(const core::Inner& inner, const Options& options, const Context&) {
  return Planner(inner.model, options).run_files(inner.stem);
}

}  // namespace weighbridge::safetensors
