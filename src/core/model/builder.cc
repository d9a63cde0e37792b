// SPDX-License-Identifier: Apache-2.0
// Builder: makes a Model from memory, from tensors of other models, and from callbacks.
#include <fmt/format.h>

#include "base/checked.h"
#include "base/fail.h"
#include "base/utf8.h"
#include "core/model/draft.h"

namespace weighbridge {

namespace {

std::uint64_t part_size(std::string_view tensor, DType dtype, Shape shape) {
  if (shape.size() > 64)
    base::misuse("rank", fmt::format("tensor \"{}\" has rank {}, more than 64", tensor, shape.size()));
  const auto count = base::element_count(shape);
  const auto size = count ? packed_size(dtype, *count) : std::nullopt;
  if (!size) base::misuse("shape", fmt::format("the shape of tensor \"{}\" has no size in bytes", tensor));
  return *size;
}

void check_name(std::string_view name) {
  if (!base::is_utf8(name)) base::misuse("name", fmt::format("the name \"{}\" is not UTF-8", name));
}

}  // namespace

Builder::Builder() : d_(std::make_unique<core::Draft>()) {}
Builder::~Builder() = default;
Builder::Builder(Builder&&) noexcept = default;
Builder& Builder::operator=(Builder&&) noexcept = default;

Builder& Builder::attribute(std::string key, Value value) {
  check_name(key);
  if (d_->attribute(key) != nullptr)
    base::misuse("duplicate-attribute", fmt::format("attribute \"{}\" is set twice", key));
  d_->set_attribute(std::move(key), std::move(value));
  return *this;
}

Builder& Builder::tokenizer(Tokenizer tokenizer) {
  d_->set_tokenizer(std::move(tokenizer));
  return *this;
}

Builder& Builder::tensor(std::string name, DType dtype, std::vector<std::uint64_t> shape, Bytes bytes) {
  std::vector<PartSpec> parts;
  parts.push_back({"data", dtype, shape, std::move(bytes)});
  return object(std::move(name), Layout::dense, std::move(shape), {}, std::move(parts));
}

Builder& Builder::tensor(std::string name, DType dtype, std::vector<std::uint64_t> shape, Pull pull) {
  check_name(name);
  const std::uint64_t size = part_size(name, dtype, shape);
  d_->add_tensor(name, Layout::dense, dtype, shape);
  const std::uint32_t part = d_->add_part("data", dtype, shape, Encoding::computed, {}, size);
  d_->part(part).pull(std::move(pull));
  return *this;
}

Builder& Builder::tensor(std::string name, const Tensor& from) {
  check_name(name);
  d_->adopt(name, from);
  return *this;
}

Builder& Builder::object(std::string name, Layout layout, std::vector<std::uint64_t> shape,
                         std::vector<Value::Entry> attributes, std::vector<PartSpec> parts) {
  check_name(name);
  if (parts.empty()) base::misuse("no-parts", fmt::format("tensor \"{}\" has no parts", name));
  if (shape.size() > 64)
    base::misuse("rank", fmt::format("tensor \"{}\" has rank {}, more than 64", name, shape.size()));
  const bool quantized = is_quantized(layout);
  const std::uint32_t t = d_->add_tensor(name, layout, quantized ? DType::f32 : parts[0].dtype, shape);
  if (quantized) {
    const Value* const type = find(attributes, "type");  // "q8_0": which of the layout's quantizations
    const std::string_view said = (type ? type->as_text() : std::nullopt).value_or("");
    const BlockTypeInfo* const block = find_block_type(layout, said);
    if (block)
      d_->tensor(t).block_type(block);
    else
      d_->tensor(t).type_name(said.empty() ? weighbridge::name(layout) : said);
  }
  for (PartSpec& spec : parts) {
    const std::uint64_t size = part_size(name, spec.dtype, spec.shape);
    if (size != spec.bytes.span.size()) {
      base::misuse("size", fmt::format("tensor \"{}\", part \"{}\": its shape takes {} bytes, {} were given", name,
                                       spec.role, size, spec.bytes.span.size()));
    }
    const std::uint32_t source = d_->add_source(memory_source(std::move(spec.bytes)));
    d_->add_part(spec.role, spec.dtype, spec.shape, Encoding::raw, {source, 0, size}, size);
    if ((layout == Layout::sparse_csr || layout == Layout::sparse_coo) && spec.role == "values")
      d_->tensor(t).dtype(spec.dtype);
  }
  if (!attributes.empty()) d_->tensor(t).attributes(std::move(attributes));
  return *this;
}

Model Builder::build() {
  if (!d_) base::misuse("built-already", "this builder has built its model already");
  const auto duplicates = d_->index_names();
  if (!duplicates.empty()) {
    base::misuse("duplicate-name", fmt::format("two tensors are named \"{}\"", d_->name(duplicates[0].first)));
  }
  Model model = d_->finish();
  d_.reset();
  return model;
}

}  // namespace weighbridge
