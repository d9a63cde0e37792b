// SPDX-License-Identifier: Apache-2.0
// Formats results: cells, first elements of tensors, and the JSON of each action.
#include <bit>

#include "base/endian.h"
#include "core/model/values.h"
#include "runtime/khlnary/module.h"
#include "weighbridge/khlnary.h"
#include "wire/json_writer.h"

namespace weighbridge::khlnary {
using namespace internal;
namespace {

using wire::JsonWriter;

constexpr std::uint64_t kJsonSchema = 3;  // also in json.h, a layer above
constexpr std::size_t kMaxOfStack = 16;   // cells of the top of the stack in a step's JSON

void begin(JsonWriter& out, std::string_view path, std::string_view action) {
  out.begin_object();
  out.member("schema", kJsonSchema);
  out.member("path", path);
  out.member("action", action);
}

void texts(JsonWriter& out, std::string_view key, const std::vector<std::string>& list) {
  out.key(key).begin_array();
  for (const std::string& text : list) out.string(text);
  out.end_array();
}

void cell(JsonWriter& out, const Cell& c) {
  out.begin_object();
  out.member("kind", name(c.kind));
  if (c.kind == Cell::Kind::integer) {
    out.key("value").i64(c.integer);
  } else {
    out.member("file", c.file);
  }
  if (c.kind == Cell::Kind::tensor) out.member("id", c.tensor);
  out.end_object();
}

void cells(JsonWriter& out, std::string_view key, std::span<const Cell> list) {
  out.key(key).begin_array();
  for (const Cell& c : list) cell(out, c);
  out.end_array();
}

void loaded(JsonWriter& out, const Loaded& l, std::size_t maximum, const Context& context) {
  out.begin_object();
  out.member("file", l.file);
  out.member("id", l.id);
  out.member("path", l.path);
  out.member("name", l.tensor.name());
  out.member("dtype", l.tensor.type_name());
  out.key("shape");
  if (l.tensor.has_shape()) {
    out.begin_array();
    for (const std::uint64_t dim : l.tensor.shape()) out.u64(dim);
    out.end_array();
  } else {
    out.null();
  }
  out.key("supported").boolean(l.tensor.unsupported() == nullptr);
  if (l.tensor.unsupported()) out.member("reason", l.tensor.unsupported()->message);
  out.member("times", l.times);
  out.key("first").begin_array();
  for (const Value& value : first_values(l.tensor, maximum, context)) core::write_value(out, value);
  out.end_array();
  out.end_object();
}

void region(JsonWriter& out, const Region& r) {
  out.begin_object();
  out.member("file", r.file);
  out.member("path", r.path);
  out.key("mapped").boolean(r.bytes.keep != nullptr);
  out.end_object();
}

// One element of a dtype that STB has.
Value value_of(DType dtype, const std::byte* at) {
  switch (dtype) {
    case DType::f32: return Value::real(std::bit_cast<float>(base::load_le<std::uint32_t>(at)), DType::f32);
    case DType::i8: return Value::integer(std::int64_t{std::to_integer<std::int8_t>(*at)}, DType::i8);
    default:
      return Value::integer(std::int64_t{std::bit_cast<std::int32_t>(base::load_le<std::uint32_t>(at))}, DType::i32);
  }
}

}  // namespace

std::string_view name(Cell::Kind kind) noexcept {
  switch (kind) {
    case Cell::Kind::integer: return "integer";
    case Cell::Kind::tensor: return "tensor";
    case Cell::Kind::region: break;
  }
  return "region";
}

std::string to_text(const Cell& c) {
  switch (c.kind) {
    case Cell::Kind::integer: return std::to_string(c.integer);
    case Cell::Kind::tensor: return "tensor " + std::to_string(c.file) + "/" + std::to_string(c.tensor);
    case Cell::Kind::region: break;
  }
  return "region " + std::to_string(c.file);
}

std::vector<Value> first_values(const Tensor& tensor, std::size_t maximum, const Context& context) {
  std::vector<Value> out;
  if (tensor.unsupported() || !tensor.has_shape() || maximum == 0) return out;
  const Part part = tensor.main();
  const DType dtype = part.dtype() == DType::f16 ? DType::f32 : part.dtype();
  const std::size_t width = info(dtype).bits / 8;
  const auto take = [&](std::span<const std::byte> piece) {
    for (std::size_t at = 0; at + width <= piece.size() && out.size() < maximum; at += width)
      out.push_back(value_of(dtype, piece.data() + at));
    return out.size() < maximum;
  };
  dtype == part.dtype() ? part.stream(context, take) : tensor.stream_dense(dtype, context, take);
  return out;
}

std::string to_json(const Step& step) {
  JsonWriter out(JsonWriter::Style::shown);
  out.begin_object();
  out.member("offset", step.index * kWordSize);
  out.member("glyph", disassemble(step.word));
  out.member("depth", step.stack.size());
  cells(out, "stack", step.stack.last(std::min(step.stack.size(), kMaxOfStack)));
  out.end_object();
  return out.take();
}

std::string to_json(std::string_view path, const Module& module, const Result& result, std::size_t maximum,
                    std::string_view trace, const Context& context) {
  JsonWriter out(JsonWriter::Style::shown);
  begin(out, path, "run");
  out.key("sidecar");
  module.sidecar() ? out.string(module.sidecar()->name()) : out.null();
  out.member("steps", result.steps);
  out.key("result");
  result.value ? cell(out, *result.value) : out.null();
  cells(out, "stack", result.stack);
  out.key("loaded").begin_array();
  for (const Loaded& l : result.loaded) loaded(out, l, maximum, context);
  out.end_array();
  out.key("regions").begin_array();
  for (const Region& r : result.regions) region(out, r);
  out.end_array();
  if (!trace.empty()) {
    out.key("trace").raw(trace);
  }
  out.end_object();
  return out.take();
}

std::string to_json(std::string_view path, const Packed& packed) {
  JsonWriter out(JsonWriter::Style::shown);
  begin(out, path, "pack");
  out.member("module", packed.module);
  out.member("sidecar", packed.sidecar);
  texts(out, "files", packed.files);
  out.member("tensors", packed.tensors);
  out.member("bytes", packed.bytes);
  texts(out, "left_out", packed.left_out);
  out.end_object();
  return out.take();
}

std::string to_json(std::string_view path, std::string_view action, std::uint64_t words, std::string_view output,
                    std::string_view text) {
  JsonWriter out(JsonWriter::Style::shown);
  begin(out, path, action);
  out.member("words", words);
  out.key("output");
  output.empty() ? out.null() : out.string(output);
  if (output.empty()) out.member("text", text);
  out.end_object();
  return out.take();
}

}  // namespace weighbridge::khlnary
