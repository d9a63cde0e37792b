// SPDX-License-Identifier: Apache-2.0
// The numbers of quantized layers are those of the libraries that made the files: every fixture, if they are there, in
// every range, and wrong decoders, each of which fails. Beside them, layers of a few elements whose numbers a library
// computed, and what files leave open.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>

#include "base/checked.h"
#include "base/endian.h"
#include "codecs/cast.h"
#include "codecs/kernels.h"
#include "recipes/match.h"
#include "support/temporary_folder.h"
#include "support/test_data.h"
#include "weighbridge/model.h"
#include "weighbridge/open.h"
#include "weighbridge/scheme.h"

namespace weighbridge::recipes {
namespace {

namespace fs = std::filesystem;

std::vector<std::byte> all_of(const core::Elements& elements) {
  std::vector<std::byte> out(base::to_size(*packed_size(elements.dtype(), elements.count())));
  elements.read(0, elements.count(), out, {});
  return out;
}

Bytes held(std::vector<std::byte> data) {
  const auto owner = std::make_shared<const std::vector<std::byte>>(std::move(data));
  return {*owner, owner};
}

// The first element that differs; nullopt: none does. Values that are not numbers are equal.
std::optional<std::uint64_t> difference(DType dtype, std::span<const std::byte> a, std::span<const std::byte> b) {
  if (a.size() != b.size()) return UINT64_MAX;
  const std::size_t width = info(dtype).bits / 8;
  std::vector<float> x(a.size() / width), y(x.size());
  codecs::cast(dtype, a, DType::f32, std::as_writable_bytes(std::span(x)), x.size());
  codecs::cast(dtype, b, DType::f32, std::as_writable_bytes(std::span(y)), y.size());
  for (std::size_t i = 0; i < x.size(); ++i)
    if (!std::ranges::equal(a.subspan(i * width, width), b.subspan(i * width, width)) &&
        !(std::isnan(x[i]) && std::isnan(y[i])))
      return i;
  return std::nullopt;
}

core::ElementsPtr with(core::ElementsPtr from, std::function<float(float)> change) {
  return core::mapped(std::move(from), {.dtype = DType::f32,
                                        .make = [change](std::uint64_t, std::span<const std::byte> in,
                                                         std::span<std::byte> out, const Context&, codecs::CastTally*) {
                                          for (std::size_t i = 0; i < in.size(); i += 4) {
                                            float value;
                                            std::memcpy(&value, in.data() + i, 4);
                                            value = change(value);
                                            std::memcpy(out.data() + i, &value, 4);
                                          }
                                        }});
}

// An array that the library's decoder gave: FOLDER/expected/NAME.TYPE.npy.
struct Expected {
  std::string name, path;
  DType dtype;
  bool as_stored = false;  // gpt-oss: not transposed
};
std::vector<Expected> expected_of(const fs::path& folder) {
  std::vector<Expected> out;
  for (const auto& file : fs::directory_iterator(folder / "expected")) {
    std::string name = file.path().stem().string();
    const auto dtype = dtype_from_name(name.substr(name.rfind('.') + 1));
    name.resize(name.rfind('.'));
    const bool as_stored = name.ends_with(".row_major");
    if (as_stored) name.resize(name.rfind('.'));
    out.push_back({name, file.path().string(), *dtype, as_stored});
  }
  return out;
}

std::vector<std::uint64_t> shape_of(const Model& array) {
  const Tensor tensor = array[0];
  return {tensor.shape().begin(), tensor.shape().end()};
}

// The case as it is opened, with what its files leave open: Quanto's are no whole models, which would say the shape.
Model open_case(const fs::path& folder, std::vector<std::string> scheme = {}) {
  if (folder.filename() == "quanto_qint4" || folder.filename() == "quanto_qint2") {
    scheme.push_back("quanto:columns=" + std::to_string(shape_of(open(expected_of(folder).front().path)).back()));
  }
  return open(folder.string(), {}, {.scheme = std::move(scheme)});
}

using Change = std::function<void(Recipe&, const Model&, const Match&)>;

// "", or where the numbers of the case differ from the library's.
std::string fault_of(const fs::path& folder, const Model& model, const Change& change = {}, bool ranges = false) {
  const auto matches = matches_of(model, {});
  for (const Expected& each : expected_of(folder)) {
    const auto match = std::ranges::find(matches, each.name, &Match::name);
    if (match == matches.end()) return each.name + " is not found";
    if (!match->recipe) return each.name + ": " + match->refusal;
    auto recipe = std::make_shared<Recipe>(*match->recipe);
    if (each.as_stored) recipe->transposed = false;
    const bool wide = each.dtype == DType::f32 && recipe->result != DType::f32;
    if (!wide) {
      recipe->result = each.dtype;
      if (recipe->rounded_scale != DType::unknown) recipe->rounded_scale = each.dtype;
    }
    if (change) change(*recipe, model, *match);
    const Model wanted = open(each.path);
    if (!each.as_stored && recipe->shape != shape_of(wanted)) return each.name + ": another shape";
    const std::vector<std::byte> right = all_of(*core::elements_of(wanted[0].main()));
    for (const codecs::Kernels* const set : codecs::all_kernels()) try {
        if (!ranges && set != codecs::all_kernels()[0]) break;
        const auto elements = elements_of(recipe, !wide, ranges ? set : nullptr);
        const std::vector<std::byte> found = all_of(*elements);
        if (const auto at = difference(each.dtype, found, right))
          return each.name + " differs at " + std::to_string(*at);
        if (!ranges) continue;
        const std::size_t width = info(elements->dtype()).bits / 8;
        std::mt19937_64 random(1);
        for (int i = 0; i < 300; ++i) {
          const std::uint64_t first = random() % elements->count();
          const std::uint64_t n = i % 3 == 0 ? 1 : random() % (elements->count() - first) + 1;
          std::vector<std::byte> some(base::to_size(n * width));
          elements->read(first, n, some, {});
          if (!std::ranges::equal(some, std::span(found).subspan(base::to_size(first) * width, some.size())))
            return each.name + ": another range at " + std::to_string(first) + ", " + std::to_string(n);
        }
        const std::uint64_t row = std::max<std::uint64_t>(shape_of(wanted).back(), 1);
        for (std::uint64_t at = elements->count() / row; at-- > 0;) {
          std::vector<std::byte> some(base::to_size(row) * width);
          elements->read(at * row, row, some, {});
          if (!std::ranges::equal(some, std::span(found).subspan(base::to_size(at * row) * width, some.size())))
            return each.name + ": another row " + std::to_string(at);
        }
      } catch (const Error& error) {
        return each.name + ": " + error.what();
      }
  }
  return "";
}

std::vector<fs::path> cases(const std::string& root, std::string_view begin = "") {
  std::vector<fs::path> out;
  for (const auto& entry : fs::directory_iterator(root))
    if (entry.is_directory() && entry.path().filename().string().starts_with(begin)) out.push_back(entry.path());
  std::ranges::sort(out);
  return out;
}

TEST(Recipes, GiveTheNumbersOfTheLibrariesInEveryRange) {
  WB_REQUIRE_TEST_DATA(root, "quantized");
  std::size_t equal = 0;
  for (const fs::path& folder : cases(root)) {
    const std::string name = folder.filename();
    const std::string fault = fault_of(folder, open_case(folder), {}, true);
    if (fault.empty()) ++equal;
    if (name == "awq_gemv_fast_g64") {
      EXPECT_TRUE(fault.ends_with("gemv_fast' is not decoded") || fault.ends_with("gemv_fast is not decoded")) << fault;
    } else {
      EXPECT_EQ(fault, "") << name;
    }
  }
  EXPECT_EQ(equal, 93U);
}

// What verify says of files that are right.
TEST(Recipes, NothingIsWrongWithTheFilesOfTheLibraries) {
  WB_REQUIRE_TEST_DATA(root, "quantized");
  for (const fs::path& folder : cases(root))
    for (const Match& match : matches_of(open_case(folder), {}, Look::closely))
      for (const Fault& fault : match.faults)
        ADD_FAILURE() << folder.filename() << ": " << match.name << ": " << fault.rule->id << ", expected "
                      << fault.expected << ", found " << fault.found << ", " << fault.detail;
}

// ---- wrong decoders, as they were published: each must fail ----

struct Planted {
  std::string_view what, cases;  // the beginning of the names of the cases
  Change change;
};

float number(const Model& model, const Match& match, std::string_view end) {
  for (const std::uint32_t each : match.tensors)
    if (model.name(each).ends_with(end)) {
      float out = 0;
      const std::vector<std::byte> bytes = all_of(*core::elements_of(model[each].main()));
      std::memcpy(&out, bytes.data(), 4);
      return out;
    }
  return 0;
}

// 16 bytes hold 32 codes as GGUF's MXFP4 has them: byte j codes j and j + 16.
core::ElementsPtr as_halves(core::ElementsPtr codes) {
  return core::mapped(std::move(codes), {.dtype = DType::u8,
                                         .from = 16,
                                         .to = 16,
                                         .make = [](std::uint64_t, std::span<const std::byte> in,
                                                    std::span<std::byte> out, const Context&, codecs::CastTally*) {
                                           for (std::size_t i = 0; i < in.size(); ++i) {
                                             const std::size_t k = i % 16, block = i - k;
                                             const auto code = [&](std::size_t n) {
                                               const std::byte both = in[block + n % 16];
                                               return n < 16 ? both & std::byte{15} : both >> 4;
                                             };
                                             out[i] = code(2 * k) | code(2 * k + 1) << 4;
                                           }
                                         }});
}

const Planted kPlanted[] = {
    {"bitsandbytes: the first element in the low nibble", "bnb_nf4",
     [](Recipe& r, const Model&, const Match&) {
       r.packing = Packing::stream;
       r.row_bytes = (r.columns + 1) / 2;
     }},
    {"bitsandbytes: SCB / 127 first", "bnb_int8",
     [](Recipe& r, const Model&, const Match&) {
       r.factor = 1;
       r.scale.values = with(r.scale.values, [](float v) { return v / 127; });
     }},
    {"AWQ: nibbles in order", "awq_gemm",
     [](Recipe& r, const Model&, const Match&) {
       std::swap(r.rows, r.columns);
       r.transposed = true;
       r.packing = Packing::stream;
       r.row_bytes = r.columns / 2;
       for (Grid* const grid : {&r.scale, &r.zero}) {
         std::swap(grid->rows, grid->columns);
         std::swap(grid->row_step, grid->column_step);
       }
     }},
    {"AWQ: zeros minus one", "awq_gemm",
     [](Recipe& r, const Model&, const Match&) { r.zero.values = with(r.zero.values, [](float v) { return v - 1; }); }},
    {"GPTQ: g_idx ignored", "gptq_v1_b4_act_order", [](Recipe& r, const Model&, const Match&) { r.groups.clear(); }},
    {"transposed", "fp8_block_128", [](Recipe& r, const Model&, const Match&) { r.transposed = true; }},
    {"transposed", "gptq_v1_b4_g32_sym", [](Recipe& r, const Model&, const Match&) { r.transposed = true; }},
    {"FP8: the scale ignored", "fp8_", [](Recipe& r, const Model&, const Match&) { r.scale = {}; }},
    {"FP8: the scale rounded to bf16 first", "fp8_block_128",
     [](Recipe& r, const Model&, const Match&) { r.rounded_scale = DType::bf16; }},
    {"FP8: the block inferred from the grid", "fp8_block_edge",
     [](Recipe& r, const Model&, const Match&) {
       const std::uint64_t across = r.scale.row_step, down = r.scale.values->count() / across;
       r.scale.columns = (r.columns + across - 1) / across;
       r.scale.rows = (r.rows + down - 1) / down;
     }},
    {"an exponent in u8 read as a number", "ct_mxfp8",
     [](Recipe& r, const Model&, const Match&) {
       r.scale.values = with(r.scale.values, [](float v) { return std::log2(v) + 127; });
     }},
    {"an exponent in u8 read as a number", "modelopt_mxfp4",
     [](Recipe& r, const Model&, const Match&) {
       r.scale.values = with(r.scale.values, [](float v) { return std::log2(v) + 127; });
     }},
    {"NVFP4: multiplied by a divisor", "ct_nvfp4",
     [](Recipe& r, const Model& model, const Match& match) {
       const float by = number(model, match, "_global_scale");
       r.scale.values = with(r.scale.values, [by](float v) { return v * by * by; });
     }},
    {"NVFP4: divided by a factor", "modelopt_nvfp4",
     [](Recipe& r, const Model& model, const Match& match) {
       const float by = number(model, match, "_scale_2");
       r.scale.values = with(r.scale.values, [by](float v) { return v / by / by; });
     }},
    {"MX: the halves of a block in the nibbles", "ct_mxfp4",
     [](Recipe& r, const Model&, const Match&) { r.codes = as_halves(r.codes); }},
    {"3 bits: dense read as padded", "ct_pack_int3",
     [](Recipe& r, const Model&, const Match&) {
       r.packing = Packing::padded;
       r.row_bytes = (r.columns + 9) / 10 * 4;
       std::vector<std::byte> codes = all_of(*r.codes);
       codes.resize(base::to_size(r.rows * r.row_bytes));
       const std::uint64_t count = codes.size();
       r.codes = core::held_elements(DType::u8, count, held(std::move(codes)));
     }},
    {"3 bits: padded read as dense", "ct_old_int3",
     [](Recipe& r, const Model&, const Match&) { r.packing = Packing::stream; }},
    {"MLX: rounded once", "mlx_affine",
     [](Recipe& r, const Model&, const Match&) {
       r.rounded = DType::unknown;
       r.keeps_rounding = false;
     }},
    {"GPTQ: planes read as a stream", "gptq_p_b3",
     [](Recipe& r, const Model&, const Match&) { r.packing = Packing::columns; }},
    {"HQQ: the first part in the low bits", "hqq_b4",
     [](Recipe& r, const Model&, const Match&) { r.first_high = false; }},
};

TEST(Recipes, EveryPlantedDecoderFails) {
  WB_REQUIRE_TEST_DATA(root, "quantized");
  for (const Planted& planted : kPlanted) {
    std::size_t wrong = 0;
    const auto all = cases(root, planted.cases);
    for (const fs::path& folder : all)
      if (fault_of(folder, open_case(folder), planted.change).find(" differs at ") != std::string::npos) ++wrong;
    EXPECT_GT(wrong, 0U) << planted.what << ", " << planted.cases << " of " << all.size();
  }
}

TEST(Recipes, GptqV1AndV2ExchangedFail) {
  WB_REQUIRE_TEST_DATA(root, "quantized");
  for (const auto& [name, scheme] :
       {std::pair{"gptq_v1_b4_g32_asym", "gptq:zeros=v2"}, std::pair{"gptq_v1_b4_g32_sym", "gptq:zeros=v2"},
        std::pair{"gptq_v2_b4_g32_asym", "gptq:zeros=v1"}}) {
    const fs::path folder = fs::path(root) / name;
    EXPECT_NE(fault_of(folder, open_case(folder, {scheme})), "") << name;
  }
}

TEST(Recipes, ANestedOffsetThatIsDroppedFails) {
  WB_REQUIRE_TEST_DATA(root, "quantized");
  const test::TemporaryFolder folder;
  const fs::path from = fs::path(root) / "bnb_nf4_dq_bf16", to = folder / "case";
  fs::copy(from, to, fs::copy_options::recursive);
  std::fstream file(to / "model.safetensors", std::ios::in | std::ios::out | std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  std::size_t at = bytes.find("\"nested_offset\":");
  ASSERT_NE(at, bytes.npos);
  for (at += 16; bytes[at] != ',' && bytes[at] != '}'; ++at)
    if (bytes[at] >= '1' && bytes[at] <= '9') bytes[at] = '0';
  file.seekp(0);
  file << bytes << std::flush;
  EXPECT_EQ(fault_of(from, open_case(from)), "");
  EXPECT_NE(fault_of(from, open_case(to)), "");
}

// ---- small layers ----

std::vector<std::byte> bytes(std::string_view hex) {
  std::vector<std::byte> out;
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    out.push_back(static_cast<std::byte>(digit(hex[i]) * 16 + digit(hex[i + 1])));
  return out;
}

struct StoredPart {
  std::string name;
  DType dtype;
  std::vector<std::uint64_t> shape;
  std::string hex{};  // empty: zeros
};
Model made_of(std::span<const StoredPart> parts, std::string_view config = {}, std::vector<std::string> said = {}) {
  Builder builder;
  if (!config.empty()) builder.attribute("quantization_config", Value::text(std::string(config)));
  for (const StoredPart& each : parts) {
    std::vector<std::byte> data = bytes(each.hex);
    data.resize(base::to_size(*packed_size(each.dtype, *base::element_count(each.shape))));
    builder.tensor(each.name, each.dtype, each.shape, held(std::move(data)));
  }
  return with_scheme(builder.build(), said);
}

// The numbers are those of transformers 5.24.0 (Fp8Dequantize._dequantize_one, convert_moe_packed_tensors), MLX 0.32.4
// (mx.dequantize on a CPU), AutoAWQ 0.2.9 (packing_utils.dequantize_gemm, transposed) and bitsandbytes 0.50.2
// (backends.default.ops._dequantize_4bit_compute).
struct Small {
  std::string_view what, config;
  std::vector<StoredPart> parts;
  std::string_view numbers;
};
const Small kSmall[] = {
    {"fp8",
     R"({"quant_method":"fp8","weight_block_size":[2,2]})",
     {{"a.weight", DType::f8_e4m3, {4, 4}, "38b93a7e018740c83152e37408192a3b"},
      {"a.weight_scale_inv", DType::f32, {2, 2}, "cdcccc3d333353406f12833a3333333f"}},
     "cd3de6bd8440b9444d39b3bad34053c1133a243cf6c1064383379338603e763f"},
    {"mxfp4",
     R"({"quant_method":"mxfp4"})",
     {{"a.x_proj_blocks", DType::u8, {1, 1, 1, 16}, "0f1e2d3c4b5a69788796a5b4c3d2e1f0"},
      {"a.x_proj_scales", DType::u8, {1, 1, 1}, "7d"}},
     "c0bf000080bf003e40bf803e00bfc03ec0be003f80be403f00be803f0080c03fc03f0080803f00be403f80be003fc0bec03e00bf803e40bf0"
     "03e"
     "80bf0000c0bf"},
    {"mlx",
     R"({"group_size":32,"bits":4})",
     {{"a.weight", DType::u32, {1, 4}, "1032547698badcfedf9b5713ce8a4602"},
      {"a.scales", DType::f16, {1, 1}, "662e"},
      {"a.biases", DType::f16, {1, 1}, "29ba"}},
     "29ba5cb990b886b7ecb552b474b180aca02728305c334635de363d380939d739d7393d384635283080ac52b486b75cb90939de365c33a0277"
     "4b1"
     "ecb590b829ba"},
    {"awq",
     R"({"quant_method":"awq","bits":4,"group_size":2,"version":"gemm"})",
     {{"a.qweight", DType::i32, {2, 1}, "7856341298badcfe"},
      {"a.qzeros", DType::i32, {1, 1}, "3c2d1e0f"},
      {"a.scales", DType::f16, {1, 8}, "662e6632cd3466360038cd389a39663a"}},
     "66b666b600c066b6cd3c343f663acc4400c300becdc7cdb834404d46663a004a"},
    {"bitsandbytes",
     R"({"quant_method":"bitsandbytes"})",
     {{"a.weight", DType::u8, {8, 1}, "0123456789abcde0"},
      {"a.weight.absmax", DType::f32, {2}, "cdcccc3d00002040"},
      {"a.weight.quant_map",
       DType::f32,
       {16},
       "000080bfb13932bf306b06bfa032cabe4da291be3f353dbe7178babd00000000fffaa23de3ca243edd047c3e3a03ad3eb8a4e13eab07103"
       "fb313393f0000803f"},
      {"a.weight.quant_state.bitsandbytes__nf4",
       DType::u8,
       {67},
       "7b227175616e745f74797065223a226e6634222c22626c6f636b73697a65223a382c226474797065223a2262666c6f61743136222c22736"
       "8617065223a5b332c355d7d"}},
     "cdbd8fbd57bd22bde9bc97bc15bc00004c3ece3e1e3f583f8d3fb43fe73f"},
};

TEST(Recipes, GiveTheNumbersOfTheLibrariesForLayersOfAFewElements) {
  for (const Small& small : kSmall) {
    const auto matches = matches_of(made_of(small.parts, small.config), {});
    ASSERT_EQ(matches.size(), 1U) << small.what;
    ASSERT_TRUE(matches[0].recipe) << small.what << ": " << matches[0].refusal;
    EXPECT_EQ(
        difference(matches[0].recipe->result, all_of(*elements_of(matches[0].recipe, true)), bytes(small.numbers)),
        std::nullopt)
        << small.what;
    EXPECT_EQ(matches[0].tensors.size(), small.parts.size()) << small.what;
  }
}

// ---- what files leave open, and what is refused by name ----

Match only(std::span<const StoredPart> parts, std::string_view config = {}, std::vector<std::string> said = {}) {
  auto all = matches_of(made_of(parts, config, std::move(said)), {});
  EXPECT_EQ(all.size(), 1U);
  return all.empty() ? Match{} : all[0];
}
std::vector<StoredPart> gptq_layer(std::string zeros = {}) {
  return {{"a.qweight", DType::i32, {4, 8}},
          {"a.qzeros", DType::i32, {1, 1}, std::move(zeros)},
          {"a.scales", DType::f16, {1, 8}}};
}

TEST(Recipes, AskForWhatABareFileLeavesOpen) {
  struct Open {
    std::vector<StoredPart> parts;
    std::string hint;
    std::vector<std::string> said;
  };
  const Open all[] = {
      {{{"a.weight", DType::f8_e4m3, {256, 128}}, {"a.weight_scale_inv", DType::f32, {2, 1}}},
       "fp8:block=128x128",
       {"fp8:block=128x128"}},
      {{{"a.weight", DType::f8_e4m3, {64, 64}}, {"a.weight_scale_inv", DType::f32, {2, 2}}},
       "fp8:block=RxC",
       {"fp8:block=32x32"}},
      {gptq_layer("77777777"), "gptq:zeros=auto", {"gptq:zeros=auto"}},
      {gptq_layer("12345678"), "gptq:zeros=v1 or gptq:zeros=v2", {"gptq:zeros=v1"}},
      {{{"a.weight", DType::u32, {4, 8}}, {"a.scales", DType::f16, {4, 1}}, {"a.biases", DType::f16, {4, 1}}},
       "mlx:group=N",
       {"mlx:group=32"}},
      {{{"a.weight", DType::u32, {4, 4}}, {"a.scales", DType::u8, {4, 1}}}, "mlx:mode=mxfp4", {"mlx:mode=mxfp4"}},
      {{{"a.qweight", DType::i32, {32, 16}}, {"a.qzeros", DType::i32, {32, 1}}, {"a.scales", DType::f16, {32, 8}}},
       "awq:group=N",
       {"awq:group=64"}},
      {{{"a.weight_packed", DType::i32, {2, 25}},
        {"a.weight_scale", DType::bf16, {2, 1}},
        {"a.weight_shape", DType::i64, {2}, "02000000000000006400000000000000"}},
       "compressed-tensors:bits=N",
       {"compressed-tensors:bits=8"}},
      {{{"a.weight._data._data", DType::u8, {16, 128}},
        {"a.weight._scale", DType::bf16, {32, 1}},
        {"a.weight._shift", DType::bf16, {32, 1}}},
       "quanto:columns=N",
       {"quanto:columns=256"}},
  };
  for (const Open& each : all) {
    const Match open = only(each.parts);
    EXPECT_EQ(open.refused, Refused::question) << each.hint << ": " << open.refusal;
    EXPECT_EQ(open.hint.name, "scheme");
    EXPECT_EQ(open.hint.value, each.hint);
    EXPECT_TRUE(open.refusal.ends_with(" as " + each.hint)) << open.refusal;
    EXPECT_TRUE(only(each.parts, {}, each.said).recipe) << each.hint << ": " << only(each.parts, {}, each.said).refusal;
  }
}

// Codes of elements below a byte were divided by zero.
TEST(Recipes, ElementsBelowAByteAreNotRead) {
  const StoredPart parts[] = {{"a.weight", DType::f4, {512, 1}},
                              {"a.weight.absmax", DType::f32, {16}},
                              {"a.weight.quant_map", DType::f32, {16}},
                              {"a.weight.quant_state.bitsandbytes__nf4", DType::u8, {2}}};
  for (const Match& match : matches_of(made_of(parts), {})) EXPECT_FALSE(match.recipe) << match.name;
}

TEST(Recipes, WhatIsSaidCountsBeforeTheConfig) {
  const StoredPart parts[] = {{"a.weight", DType::f8_e4m3, {64, 64}}, {"a.weight_scale_inv", DType::f32, {2, 2}}};
  const std::string_view config = R"({"quant_method":"fp8","weight_block_size":[128,128]})";
  EXPECT_EQ(only(parts, config).refused, Refused::malformed);
  const Match said = only(parts, config, {"fp8:block=32x32"});
  ASSERT_TRUE(said.recipe);
  EXPECT_EQ(said.recipe->scale.columns, 32U);
}

// The block of a grid that is not whole was inferred.
TEST(Recipes, NoBlockSizeIsInferred) {
  const StoredPart parts[] = {{"a.weight", DType::f8_e4m3, {72, 40}}, {"a.weight_scale_inv", DType::f32, {3, 2}}};
  EXPECT_EQ(only(parts).refused, Refused::question);
  EXPECT_EQ(only(parts, R"({"quant_method":"fp8","weight_block_size":[24,20]})").recipe->scale.columns, 20U);
}

// A negative size counted as none, and nothing named it.
TEST(Recipes, ASizeThatIsNotPositiveIsNamed) {
  const std::string config = R"({"quant_method":"fp8","weight_block_size":[-128,128]})";
  const Match blocks = only(
      std::vector<StoredPart>{{"a.weight", DType::f8_e4m3, {256, 128}}, {"a.weight_scale_inv", DType::f32, {2, 1}}},
      config);
  EXPECT_EQ(blocks.refused, Refused::question);
  EXPECT_NE(blocks.refusal.find("weight_block_size that is not positive"), std::string::npos) << blocks.refusal;
  ASSERT_EQ(blocks.faults.size(), 1U);
  EXPECT_EQ(blocks.faults[0].expected, "a positive weight_block_size");
  const Match one =
      only(std::vector<StoredPart>{{"a.weight", DType::f8_e4m3, {256, 128}}, {"a.weight_scale_inv", DType::f32, {1}}},
           config);
  EXPECT_TRUE(one.recipe) << one.refusal;
  EXPECT_EQ(one.faults.size(), 1U);
  EXPECT_EQ(only(gptq_layer("77777777"), R"({"quant_method":"gptq","bits":4,"group_size":-32})").faults.size(), 1U);
  EXPECT_TRUE(only(gptq_layer("77777777"), R"({"quant_method":"gptq","bits":4,"group_size":-1})").faults.empty());
}

// An FP8 weight whose scale is in another shard was a value: no name of a file says so after a move.
TEST(Recipes, Fp8BesideScalesOfOtherLayersIsNoValue) {
  const StoredPart weight{"a.weight", DType::f8_e4m3, {64, 32}}, other{"b.weight", DType::f8_e4m3, {64, 32}};
  const auto refusal_of_a = [](std::vector<StoredPart> parts) {
    for (const Match& match : matches_of(made_of(parts, ""), {}))
      if (match.name == "a.weight") return match.refusal;
    return std::string();
  };
  const std::string text = "its scale may be in another file of the model";
  EXPECT_EQ(refusal_of_a({weight, {"b.weight_scale_inv", DType::f32, {1, 1}}}).substr(0, text.size()), text);
  EXPECT_EQ(refusal_of_a({weight, other, {"b.weight_scale", DType::f32, {1}}}).substr(0, text.size()), text);
  EXPECT_EQ(refusal_of_a({weight, other}), "");
}

// The message said that nothing is known of the scales, where the cause was known.
TEST(Recipes, WhatIsNotDecodedIsNamedByItsCause) {
  const auto refusal = [](std::vector<StoredPart> parts) { return only(parts).refusal; };
  EXPECT_EQ(refusal({{"a.weight", DType::f8_e4m3, {64, 32}}, {"a.weight_scale", DType::f64, {1}}}),
            "its scales have the type f64, which no recipe has");
  EXPECT_EQ(refusal({{"a.weight", DType::f8_e4m3, {64}}, {"a.weight_scale", DType::f32, {1}}}),
            "its codes are not a matrix");
  EXPECT_EQ(refusal({{"a.weight", DType::f8_e4m3fnuz, {64, 32}}, {"a.weight_scale", DType::f32, {1}}}),
            "its codes have the type f8_e4m3fnuz");
}

// A version that the shapes contradict was passed over.
TEST(Recipes, TheVersionOfAwqIsComparedWithItsShapes) {
  const std::vector<StoredPart> gemm = {
      {"a.qweight", DType::i32, {32, 2}, "07"}, {"a.qzeros", DType::i32, {1, 2}}, {"a.scales", DType::f16, {1, 16}}};
  EXPECT_EQ(only(gemm, "", {"awq:version=gemv"}).refusal, "its shapes are those of gemm, and not of AWQ's gemv");
  EXPECT_TRUE(only(gemm, "", {"awq:version=gemm"}).recipe);
  EXPECT_EQ(only(gptq_layer(), "", {"awq:version=gemm"}).refusal,
            "its shapes are those of GPTQ, and not of AWQ's gemm");
  const Match labeled = only(gemm, R"({"quant_method":"awq","version":"gemv","bits":4})");
  EXPECT_TRUE(labeled.recipe);
  ASSERT_EQ(labeled.faults.size(), 1U);
  EXPECT_EQ(labeled.faults[0].found, "the shapes of gemm");
}

// ---- zeros of GPTQ ----

float zero_of(const Match& match) {
  float out = -1;
  match.recipe->zero.values->read(0, 1, std::as_writable_bytes(std::span(&out, 1)), {});
  return out;
}

TEST(Recipes, SymDecidesBetweenV1AndV2WhereTheLabelIsWrong) {
  const std::string v1 = R"({"quant_method":"gptq","bits":4,"group_size":32,"sym":true,"checkpoint_format":"gptq"})";
  const std::string v2 = R"({"quant_method":"gptq","bits":4,"group_size":32,"sym":true,"checkpoint_format":"gptq_v2"})";
  const Match right = only(gptq_layer("77777777"), v1), wrong = only(gptq_layer("88888888"), v1);
  EXPECT_EQ(zero_of(right), 8);
  EXPECT_TRUE(right.faults.empty());
  EXPECT_EQ(zero_of(wrong), 8);
  ASSERT_EQ(wrong.faults.size(), 1U);
  EXPECT_EQ(wrong.faults[0].rule->id, "gptq/label");
  EXPECT_EQ(zero_of(only(gptq_layer("77777777"), v2)), 8);
  EXPECT_EQ(zero_of(only(gptq_layer("88888888"), v2)), 8);
  EXPECT_EQ(zero_of(only(gptq_layer("88888888"), v1, {"gptq:zeros=v1"})), 9);
  EXPECT_EQ(only(gptq_layer("78787878"), v1).faults[0].rule->id, "gptq/label");
}

TEST(Recipes, AZeroOfAllOnesNeedsAWord) {
  const std::string config =
      R"({"quant_method":"gptq","bits":4,"group_size":32,"sym":false,"checkpoint_format":"gptq"})";
  const Match refused = only(gptq_layer("f7777777"), config);
  EXPECT_EQ(refused.refused, Refused::question);
  EXPECT_EQ(refused.hint.value, "gptq:zeros=v1");
  ASSERT_EQ(refused.faults.size(), 1U);
  EXPECT_EQ(refused.faults[0].rule->id, "gptq/zero-overflow");
  const Match said = only(gptq_layer("7f777777"), config, {"gptq:zeros=v1"});
  ASSERT_TRUE(said.recipe);
  EXPECT_EQ(zero_of(said), 0);
  EXPECT_EQ(zero_of(only(gptq_layer("7f777777"), config, {"gptq:zeros=v2"})), 15);
}

// ---- settings of one layer ----

TEST(Recipes, ALayerHasTheSettingsThatTheConfigGivesIt) {
  const auto layer = [](std::string name) {
    return std::vector<StoredPart>{{name + ".weight_packed", DType::i32, {2, 25}},
                                   {name + ".weight_scale", DType::bf16, {2, 1}},
                                   {name + ".weight_shape", DType::i64, {2}, "02000000000000006400000000000000"}};
  };
  const std::string_view config =
      R"({"quant_method":"compressed-tensors","format":"pack-quantized","version":"0.17.0","config_groups":{)"
      R"("a":{"targets":["re:.*down_proj"],"weights":{"num_bits":7,"group_size":null}},)"
      R"("b":{"targets":["model.up_proj"],"weights":{"num_bits":8}}}})";
  EXPECT_EQ(only(layer("model.down_proj"), config).recipe->bits, 7U);
  EXPECT_EQ(only(layer("model.up_proj"), config).recipe->bits, 8U);
  const std::string_view mlx = R"({"group_size":64,"bits":4,"model.up_proj":{"group_size":32,"bits":8}})";
  const auto words = [](std::string name) {
    return std::vector<StoredPart>{{name + ".weight", DType::u32, {4, 16}},
                                   {name + ".scales", DType::f16, {4, 2}},
                                   {name + ".biases", DType::f16, {4, 2}}};
  };
  EXPECT_EQ(only(words("language_model.model.up_proj"), mlx).recipe->bits, 8U);
  EXPECT_EQ(only(words("model.down_proj"), mlx).recipe->bits, 4U);
  EXPECT_TRUE(only(words("model.down_proj"), mlx).faults.empty());
}

// quantize_config.json was not read, so that such a folder was a question.
TEST(Recipes, TheConfigMayBeAFileOfItsOwn) {
  WB_REQUIRE_TEST_DATA(root, "quantized");
  for (const auto& [name, scheme] : {std::pair{"gptq_v2_b4_g32_asym", "quantize_config.json"},
                                     std::pair{"modelopt_fp8_block", "hf_quant_config.json"}}) {
    const test::TemporaryFolder folder;
    const fs::path from = fs::path(root) / name, to = folder / "case";
    fs::copy(from, to, fs::copy_options::recursive);
    ASSERT_TRUE(fs::exists(to / scheme));
    std::ofstream(to / "config.json") << R"({"model_type":"llama","dtype":")"
                                      << (name[0] == 'g' ? "float16" : "bfloat16") << "\"}";
    EXPECT_EQ(fault_of(from, open_case(to)), "") << name;
    fs::remove(to / scheme);
    EXPECT_NE(fault_of(from, open_case(to)), "") << name;
  }
}

// config.json was followed, and quantize_config.json, which said otherwise, was not named.
TEST(Recipes, TwoConfigsThatDifferInTheZerosAreAQuestion) {
  WB_REQUIRE_TEST_DATA(root, "quantized");
  for (const auto& [name, sure] : {std::pair{"gptq_v1_b4_g32_asym", false}, std::pair{"gptq_v1_b4_g32_sym", true}}) {
    const test::TemporaryFolder folder;
    const fs::path to = folder / "case";
    fs::copy(fs::path(root) / name, to, fs::copy_options::recursive);
    std::ofstream(to / "quantize_config.json") << R"({"bits":4,"group_size":32,"checkpoint_format":"gptq_v2"})";
    const Match match = matches_of(open_case(to), {})[0];
    EXPECT_EQ(match.recipe != nullptr, sure) << name;
    EXPECT_EQ(match.hint.value, sure ? "" : "gptq:zeros=v1 or gptq:zeros=v2");
    ASSERT_EQ(match.faults.size(), 1U);
    EXPECT_EQ(match.faults[0].found, "'gptq_v2' in quantize_config.json");
  }
}

// Patterns of a config are compared with every layer, within a bound.
TEST(Recipes, ManyPatternsAndLayersTakeBoundedTime) {
  std::string config = R"({"quant_method":"compressed-tensors","bits":4,"ignore":["re:(a*)*b")";
  for (int i = 0; i < 20000; ++i) config += ",\"*" + std::to_string(i) + "*x*y\",\"re:.*{9}" + std::to_string(i) + "\"";
  Builder builder;
  builder.attribute("quantization_config", Value::text(config + "]}"));
  const auto data = held(std::vector<std::byte>(16));
  for (int i = 0; i < 3000; ++i) {
    const std::string name = "model.layers." + std::to_string(i) + std::string(40, 'a');
    builder.tensor(name + ".weight", DType::f8_e4m3, {4, 4}, data);
    builder.tensor(name + ".weight_scale", DType::f32, {4, 1}, data);
  }
  const Model model = builder.build();
  const std::clock_t begin = std::clock();
  EXPECT_EQ(matches_of(model, {}).size(), 3000U);
  EXPECT_LT(std::clock() - begin, 20 * CLOCKS_PER_SEC);
}

TEST(Recipes, AContradictionOfTheConfigNamesBoth) {
  const auto faults = [](std::vector<StoredPart> parts, std::string_view config) {
    const Match match = only(parts, config);
    EXPECT_TRUE(match.recipe) << match.refusal;
    return match.faults.empty()
               ? std::string()
               : std::string(match.faults[0].rule->id) + " " + match.faults[0].expected + " / " + match.faults[0].found;
  };
  EXPECT_EQ(faults(gptq_layer("77777777"), R"({"quant_method":"gptq","bits":8,"group_size":32})"),
            "quantized/config 8 bits / 4 bits");
  EXPECT_EQ(faults(gptq_layer("77777777"), R"({"quant_method":"gptq","bits":4,"group_size":16})"),
            "quantized/config groups of 16 / groups of 32");
  EXPECT_EQ(faults(gptq_layer("77777777"), R"({"quant_method":"gptq","bits":4,"dynamic":{"-:a":{}}})"),
            "quantized/config a layer that the config leaves as it is / codes of gptq");
  EXPECT_EQ(faults({kSmall[0].parts[0], {"a.weight_scale", DType::f32, {1}}}, R"({"quant_method":"gptq","bits":8})"),
            "quantized/config quant_method 'gptq' / tensors of FP8 with scales");
}

TEST(Recipes, LayoutsThatAreNotDecodedAreRefusedByName) {
  struct Named {
    std::vector<StoredPart> parts;
    std::string_view config, word;
  };
  const std::vector<StoredPart> fp8 = {{"a.weight", DType::f8_e4m3, {64, 32}}, {"a.weight_scale", DType::f32, {1}}};
  const auto more = [](std::vector<StoredPart> parts, StoredPart part) {
    parts.push_back(std::move(part));
    return parts;
  };
  const Named all[] = {
      {{{"a.weight", DType::f8_e4m3, {64, 32}},
        {"a.scale_weight", DType::f32, {1}},
        {"scaled_fp8", DType::f8_e4m3, {2}}},
       "",
       "scaled_fp8"},
      {more(fp8, {"a.pre_quant_scale", DType::f32, {32}}), "", "pre_quant_scale"},
      {more(fp8, {"a.comfy_quant", DType::u8, {2}}), "", "swizzled"},
      {fp8, R"({"quant_method":"compressed-tensors","sparsity_config":{"format":"sparse-24-bitmask"}})",
       "sparse-24-bitmask"},
      {{{"a.weight", DType::u8, {32, 128}}, {"a.weight_scale", DType::f32, {64, 1}}}, "", "W4A16_AWQ"},
      {{{"a._weight_qdata", DType::i8, {16, 64}}, {"a._weight_scale", DType::f32, {16}}}, "", "torchao"},
      {gptq_layer(), R"({"quant_method":"awq","version":"marlin"})", "marlin"},
      {gptq_layer(), R"({"quant_method":"gptq","checkpoint_format":"marlin"})", "marlin"},
      {gptq_layer(), R"({"quant_method":"auto-round","packing_format":"auto_round:auto_gptq"})",
       "auto_round:auto_gptq"},
      {{{"a.W_q", DType::u8, {16, 64}},
        {"a.scale", DType::f16, {32, 1}},
        {"a.zero", DType::f16, {32, 1}},
        {"a.quant_zero", DType::u8, {}, "01"}},
       "",
       "quant_zero"},
      {{{"a.weight_packed", DType::i32, {8, 8}},
        {"a.weight_scale", DType::bf16, {8, 1}},
        {"a.weight_zero_point", DType::i8, {8, 1}},
        {"a.weight_shape", DType::i64, {2}, "08000000000000004000000000000000"}},
       R"({"quant_method":"compressed-tensors","bits":4})",
       "0.9.3"},
  };
  for (const Named& each : all) {
    bool named = false;
    for (const Match& match : matches_of(made_of(each.parts, each.config), {})) {
      EXPECT_FALSE(match.recipe) << each.word;
      named = named || match.refusal.find(each.word) != match.refusal.npos;
    }
    EXPECT_TRUE(named) << each.word;
  }
}

// Codes of random bits, of every packing that is read across its rows or in one pass, with numbers as parameters.
Recipe random_recipe(Packing packing, std::uint32_t bits, std::uint64_t rows, std::uint64_t columns, DType result) {
  std::mt19937 random(static_cast<unsigned>(bits));
  const auto bytes = [&](std::uint64_t size) {
    auto out = std::make_shared<std::vector<std::byte>>(base::to_size(size));
    for (std::byte& each : *out) each = static_cast<std::byte>(random());
    return Bytes{*out, out};
  };
  const auto numbers = [&](std::uint64_t count) {
    auto out = std::make_shared<std::vector<float>>(base::to_size(count));
    for (float& each : *out) each = std::ldexp(static_cast<float>(random() % 4096) - 2048, -14);
    return core::held_elements(DType::f32, count, {std::as_bytes(std::span(*out)), out});
  };
  Recipe r{.id = "random"};
  r.shape = {rows, columns};
  r.rows = rows;
  r.columns = columns;
  r.packing = packing;
  r.bits = bits;
  r.row_bytes = columns * bits / 8;
  r.codes = core::held_elements(DType::u8, rows * columns * bits / 8, bytes(rows * columns * bits / 8));
  r.value = bits == 8 ? floats(DType::f8_e4m3) : integers(bits, 0);
  r.result = result;
  const std::uint64_t groups = columns / 64;
  r.scale = {.values = numbers(rows * groups), .rows = 1, .columns = 64, .row_step = 1, .column_step = rows};
  if (packing == Packing::stream || packing == Packing::elements) {
    r.scale.row_step = groups;
    r.scale.column_step = 1;
  }
  r.zero = r.scale;
  if (bits <= 4) {
    r.zero.values = numbers(rows * groups);
    r.step = Step::subtract;
  } else {
    r.zero.values = nullptr;
  }
  return r;
}

TEST(Recipes, LargeReadsGiveWhatReadsOfSingleRowsGive) {
  constexpr std::uint64_t kRows = 256, kColumns = 1984;
  for (const Packing packing : {Packing::elements, Packing::stream, Packing::columns, Packing::awq})
    for (const std::uint32_t bits : {3U, 4U, 8U})
      for (const bool in_groups : {false, true})
        for (const DType result : {DType::f16, DType::bf16, DType::f32}) {
          if ((packing == Packing::elements && bits != 8) || (packing == Packing::awq && bits != 4)) continue;
          Recipe made = random_recipe(packing, bits, kRows, kColumns, result);
          for (std::uint32_t c = 0; in_groups && c < kColumns; ++c) made.groups.push_back(c * 7 % (kColumns / 64));
          const auto recipe = std::make_shared<const Recipe>(std::move(made));
          const std::size_t width = info(result).bits / 8;
          const auto plain = elements_of(recipe, true, codecs::all_kernels()[0]);
          std::vector<std::byte> rows(base::to_size(plain->count()) * width);
          for (std::uint64_t row = 0; row < kRows; ++row)
            plain->read(row * kColumns, kColumns,
                        std::span(rows).subspan(base::to_size(row * kColumns) * width, base::to_size(kColumns) * width),
                        {});
          for (const codecs::Kernels* const set : codecs::all_kernels()) {
            const auto elements = elements_of(recipe, true, set);
            EXPECT_TRUE(all_of(*elements) == rows) << set->name << " " << static_cast<int>(packing) << " " << bits;
            std::vector<std::byte> some(base::to_size(plain->count()) / 3 * width);
            elements->read(12345, some.size() / width, some, {});
            EXPECT_TRUE(std::ranges::equal(some, std::span(rows).subspan(12345 * width, some.size())))
                << set->name << " " << static_cast<int>(packing) << " " << bits;
          }
        }
}

// Codes of more than one panel.
TEST(Recipes, ColumnsOfALargeTensorGiveWhatSingleRowsGive) {
  constexpr std::uint64_t kRows = 8192, kColumns = 2112;
  for (const Packing packing : {Packing::columns, Packing::awq}) {
    const auto elements =
        elements_of(std::make_shared<const Recipe>(random_recipe(packing, 4, kRows, kColumns, DType::bf16)), true);
    const std::vector<std::byte> all = all_of(*elements);
    std::vector<std::byte> row(kColumns * 2);
    for (std::uint64_t r = 0; r < kRows; r += 17) {
      elements->read(r * kColumns, kColumns, row, {});
      ASSERT_TRUE(std::ranges::equal(row, std::span(all).subspan(base::to_size(r * kColumns) * 2, row.size()))) << r;
    }
  }
}

}  // namespace
}  // namespace weighbridge::recipes
