// SPDX-License-Identifier: Apache-2.0
// Times the recipes of quantized folders on one core, from memory to memory: 1 GiB of 16-bit numbers from codes and
// scales, in reads of 1 MiB, as conversions make them; one row of an embedding; and a copy loop, the roof. Rows of each
// kind of code are compared with plain arithmetic before the clock starts; src/convert/recipes_test.cc compares with
// the libraries that own the schemes.
#include <benchmark/benchmark.h>

#include <bit>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/endian.h"
#include "codecs/cast.h"
#include "recipes/match.h"
#include "weighbridge/model.h"

namespace {

namespace wb = weighbridge;
using wb::DType;
using Memory = std::vector<std::byte>;

constexpr std::uint64_t kRead = std::uint64_t{1} << 20;  // bytes

const Memory& noise(std::size_t size) {
  static Memory out;
  std::uint64_t x = 1;
  if (out.size() < size) out.resize(size);
  for (std::size_t i = 0; i + 8 <= size; i += 8) {
    x = x * 6364136223846793005U + 1442695040888963407U;
    std::memcpy(out.data() + i, &x, 8);
  }
  return out;
}

// The tensors of one layer, and its number at (row, column) by plain arithmetic in f32.
struct Layer {
  struct Part {
    std::string name;
    DType dtype;
    std::vector<std::uint64_t> shape;
    std::shared_ptr<Memory> bytes;
  };
  std::vector<Part> parts;
  std::string config;
  std::function<float(std::uint64_t row, std::uint64_t column)> value;

  std::byte at(std::size_t part, std::uint64_t byte) const { return (*parts[part].bytes)[byte]; }
  std::uint32_t word(std::size_t part, std::uint64_t i) const {
    return wb::base::load_le<std::uint32_t>(parts[part].bytes->data() + 4 * i);
  }
  float number(std::size_t part, std::uint64_t i) const {
    const DType dtype = parts[part].dtype;
    const std::size_t width = wb::info(dtype).bits / 8;
    float out = 0;
    wb::codecs::cast(dtype, std::span(*parts[part].bytes).subspan(i * width, width), DType::f32,
                     std::as_writable_bytes(std::span(&out, 1)), 1);
    return out;
  }
  // Random bytes; of each two, the bits in `random` only, and those in `fixed`.
  void add(std::string name, DType dtype, std::vector<std::uint64_t> shape, std::uint16_t random = 0xffff,
           std::uint16_t fixed = 0) {
    std::uint64_t count = wb::info(dtype).bits / 8;
    for (const std::uint64_t each : shape) count *= each;
    const Memory& from = noise(count);
    auto bytes = std::make_shared<Memory>(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(count));
    for (std::size_t i = 0; random != 0xffff && i + 2 <= bytes->size(); i += 2) {
      std::uint16_t both;
      std::memcpy(&both, bytes->data() + i, 2);
      both = static_cast<std::uint16_t>((both & random) | fixed);
      std::memcpy(bytes->data() + i, &both, 2);
    }
    parts.push_back({std::move(name), dtype, std::move(shape), std::move(bytes)});
  }
};

constexpr float kE2m1[16] = {0, .5F, 1, 1.5F, 2, 3, 4, 6, 0, -.5F, -1, -1.5F, -2, -3, -4, -6};

Layer fp8(std::uint64_t rows, std::uint64_t columns) {
  Layer out;
  out.config = R"({"quant_method":"fp8","weight_block_size":[128,128]})";
  out.add("w.weight", DType::f8_e4m3, {rows, columns}, 0xf7f7);
  out.add("w.weight_scale_inv", DType::bf16, {rows / 128, columns / 128}, 0x03ff, 0x3c00);
  out.value = [=](std::uint64_t r, std::uint64_t c) {
    return out.number(0, r * columns + c) * out.number(1, r / 128 * (columns / 128) + c / 128);
  };
  return out;
}
Layer nvfp4(std::uint64_t rows, std::uint64_t columns) {
  Layer out;
  out.config = R"({"quant_method":"modelopt","quant_algo":"NVFP4"})";
  out.add("w.weight", DType::u8, {rows, columns / 2});
  out.add("w.weight_scale", DType::f8_e4m3, {rows, columns / 16}, 0x7777);
  out.add("w.weight_scale_2", DType::f32, {}, 0x03ff, 0x3800);
  out.value = [=](std::uint64_t r, std::uint64_t c) {
    const auto byte = std::to_integer<unsigned>(out.at(0, r * (columns / 2) + c / 2));
    const float scale = out.number(1, r * (columns / 16) + c / 16) * out.number(2, 0);
    return kE2m1[c % 2 == 0 ? byte & 15 : byte >> 4] * scale;
  };
  return out;
}
Layer awq(std::uint64_t rows, std::uint64_t columns) {
  Layer out;
  out.config = R"({"quant_method":"awq","bits":4,"group_size":128,"version":"gemm"})";
  out.add("w.qweight", DType::i32, {columns, rows / 8});
  out.add("w.qzeros", DType::i32, {columns / 128, rows / 8});
  out.add("w.scales", DType::f16, {columns / 128, rows}, 0x03ff, 0x2400);
  out.value = [=](std::uint64_t r, std::uint64_t c) {
    constexpr unsigned kShift[8] = {0, 16, 4, 20, 8, 24, 12, 28};
    const auto code = [&](std::size_t part, std::uint64_t line) {
      return static_cast<float>(out.word(part, line * (rows / 8) + r / 8) >> kShift[r % 8] & 15);
    };
    return (code(0, c) - code(1, c / 128)) * out.number(2, c / 128 * rows + r);
  };
  return out;
}
Layer gptq(std::uint64_t rows, std::uint64_t columns, bool act_order) {
  Layer out;
  out.config = R"({"quant_method":"gptq","bits":4,"group_size":128,"checkpoint_format":"gptq_v2"})";
  out.add("w.qweight", DType::i32, {columns / 8, rows});
  out.add("w.qzeros", DType::i32, {columns / 128, rows / 8});
  out.add("w.scales", DType::f16, {columns / 128, rows}, 0x03ff, 0x2400);
  const auto group = [=](std::uint64_t c) { return act_order ? c % (columns / 128) : c / 128; };
  if (act_order) {
    out.add("w.g_idx", DType::i32, {columns});
    for (std::uint64_t c = 0; c < columns; ++c)
      wb::base::store_le(out.parts.back().bytes->data() + 4 * c, static_cast<std::uint32_t>(group(c)));
  }
  out.value = [=](std::uint64_t r, std::uint64_t c) {
    const auto code = static_cast<float>(out.word(0, c / 8 * rows + r) >> c % 8 * 4 & 15);
    const auto zero = static_cast<float>(out.word(1, group(c) * (rows / 8) + r / 8) >> r % 8 * 4 & 15);
    return (code - zero) * out.number(2, group(c) * rows + r);
  };
  return out;
}
Layer nf4(std::uint64_t rows, std::uint64_t columns) {
  Layer out;
  out.add("w.weight", DType::u8, {rows * columns / 2, 1});
  out.add("w.weight.absmax", DType::f32, {rows * columns / 64}, 0x03ff, 0x3c00);
  out.add("w.weight.quant_map", DType::f32, {16}, 0x83ff, 0x3c00);
  const std::string state = R"({"quant_type":"nf4","blocksize":64,"dtype":"bfloat16","shape":[)" +
                            std::to_string(rows) + "," + std::to_string(columns) + "]}";
  const auto text = std::as_bytes(std::span(state));
  out.parts.push_back({"w.weight.quant_state.bitsandbytes__nf4",
                       DType::u8,
                       {state.size()},
                       std::make_shared<Memory>(text.begin(), text.end())});
  out.value = [=](std::uint64_t r, std::uint64_t c) {
    const std::uint64_t i = r * columns + c;
    const auto byte = std::to_integer<unsigned>(out.at(0, i / 2));
    return out.number(2, i % 2 == 0 ? byte >> 4 : byte & 15) * out.number(1, i / 64);
  };
  return out;
}

wb::core::ElementsPtr elements_of(const Layer& layer) {
  wb::Builder builder;
  if (!layer.config.empty()) builder.attribute("hf.quantization_config", wb::Value::text(layer.config));
  for (const Layer::Part& each : layer.parts)
    builder.tensor(each.name, each.dtype, each.shape, {*each.bytes, each.bytes});
  const auto found = wb::recipes::matches_of(builder.build(), {});
  if (found.size() != 1 || !found[0].recipe) return nullptr;
  return wb::recipes::elements_of(found[0].recipe, true);
}

// The first difference from plain arithmetic in some rows; empty: none.
std::string difference(const Layer& layer, const wb::core::Elements& elements, std::uint64_t rows,
                       std::uint64_t columns, std::span<const std::byte> all) {
  const std::size_t width = wb::info(elements.dtype()).bits / 8;
  for (std::uint64_t row = 0; row < rows; row += rows / 16 + 1)
    for (std::uint64_t column = 0; column < columns; ++column) {
      const float value = layer.value(row, column);
      std::array<std::byte, 4> right{};
      wb::codecs::cast(DType::f32, std::as_bytes(std::span(&value, 1)), elements.dtype(), std::span(right).first(width),
                       1);
      if (std::memcmp(right.data(), all.data() + (row * columns + column) * width, width) != 0)
        return "the element at " + std::to_string(row) + ", " + std::to_string(column) + " is wrong";
    }
  return {};
}

void dequantize(benchmark::State& state, const std::function<Layer(std::uint64_t, std::uint64_t)>& make,
                std::uint64_t rows, std::uint64_t columns) {
  const std::uint64_t layers = (std::uint64_t{1} << 29) / (rows * columns);  // 1 GiB of two bytes each
  std::vector<wb::core::ElementsPtr> all;
  std::uint64_t bytes = 0;
  Memory out(rows * columns * 2 * layers);
  for (std::uint64_t i = 0; i < layers; ++i) {
    const Layer layer = make(rows, columns);
    all.push_back(elements_of(layer));
    if (!all.back() || wb::info(all.back()->dtype()).bits != 16) return state.SkipWithError("it has no recipe");
    for (const auto& each : layer.parts) bytes += each.bytes->size();
    if (i > 0) continue;
    all[0]->read(0, rows * columns, std::span(out).first(rows * columns * 2), {});
    if (const std::string why = difference(layer, *all[0], rows, columns, out); !why.empty())
      return state.SkipWithError(why.c_str());
  }
  for (auto _ : state) {
    std::byte* to = out.data();
    for (const auto& each : all)
      for (std::uint64_t first = 0; first < each->count(); first += kRead / 2, to += kRead)
        each->read(first, kRead / 2, {to, kRead}, {});
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes + out.size()));
}

// Bytes read and written.
void roof_copy(benchmark::State& state) {
  const Memory& from = noise(std::size_t{1} << 30);
  Memory out(std::size_t{1} << 30);
  for (auto _ : state) {
    for (std::size_t at = 0; at < out.size(); at += kRead) std::memcpy(out.data() + at, from.data() + at, kRead);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(2 * out.size()));
}

// One row, near the end, of an embedding.
void row(benchmark::State& state, const std::function<Layer(std::uint64_t, std::uint64_t)>& make) {
  constexpr std::uint64_t kRows = 128256, kColumns = 4096, kRow = 100000;
  const Layer layer = make(kRows, kColumns);
  const auto elements = elements_of(layer);
  if (!elements) return state.SkipWithError("it has no recipe");
  Memory out(kColumns * 2);
  for (auto _ : state) {
    elements->read(kRow * kColumns, kColumns, out, {});
    benchmark::ClobberMemory();
  }
}

[[maybe_unused]] const int kRegistered = [] {
  const std::pair<const char*, std::function<Layer(std::uint64_t, std::uint64_t)>> kinds[] = {
      {"fp8_128x128", fp8},
      {"nvfp4", nvfp4},
      {"awq", awq},
      {"gptq", [](std::uint64_t r, std::uint64_t c) { return gptq(r, c, false); }},
      {"gptq_act_order", [](std::uint64_t r, std::uint64_t c) { return gptq(r, c, true); }},
      {"nf4", nf4}};
  const auto one = [](benchmark::internal::Benchmark* of) { of->Unit(benchmark::kMillisecond)->MinTime(0.1); };
  one(benchmark::RegisterBenchmark("roof_copy", roof_copy));
  for (const auto& [name, make] : kinds) {
    one(benchmark::RegisterBenchmark(("dequantize/" + std::string(name)).c_str(), dequantize, make, 4096, 4096));
    one(benchmark::RegisterBenchmark(("dequantize/" + std::string(name) + "/down_proj").c_str(), dequantize, make, 4096,
                                     16384));
    one(benchmark::RegisterBenchmark(("row/" + std::string(name)).c_str(), row, make));
  }
  return 0;
}();

}  // namespace
