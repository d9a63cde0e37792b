// SPDX-License-Identifier: Apache-2.0
// What the families of layouts share: finding companions, reading what they state, and the ways in which a match ends.
// matcher.cc has these, and one file each has the families: match.cc weights with scales, match_words.cc GPTQ, AWQ and
// MLX, match_states.cc bitsandbytes, HQQ and Quanto.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/checked.h"
#include "core/payload/elements.h"
#include "recipes/layer_settings.h"
#include "recipes/match.h"

namespace weighbridge::recipes {

// Parameters, in f32.
core::ElementsPtr as_f32(const Part&);
core::ElementsPtr by_code(const Part&, const std::array<float, 256>& values);
core::ElementsPtr changed(core::ElementsPtr from, std::function<float(float)> change);
std::array<float, 256> exponents();  // 2^(code - 127); 255: infinite
// Codes of `bits` in words along the rows of a matrix, as `value` gives them.
core::ElementsPtr stream_of(const Part&, std::uint64_t rows, std::uint64_t columns, std::uint64_t row_bytes,
                            std::uint32_t bits, const std::function<float(std::uint32_t)>& value);

// Calls each(value) for the first `count` of f32 elements. [reads]
template <class Each>
void for_each_number(const core::Elements& from, std::uint64_t count, const Context& context, Each each) {
  std::vector<float> values(base::to_size(std::min(count, core::Elements::kAtOnce)));
  for (std::uint64_t at = 0; at < count; at += values.size()) {
    const auto some = std::span(values).first(base::to_size(std::min<std::uint64_t>(values.size(), count - at)));
    from.read(at, some.size(), std::as_writable_bytes(some), context);
    for (const float value : some) each(value);
  }
}

constexpr bool is_fp8(DType d) noexcept { return d == DType::f8_e4m3 || d == DType::f8_e5m2; }
constexpr std::uint64_t quotient_up(std::uint64_t n, std::uint64_t by) noexcept { return n / by + (n % by != 0); }
bool is_real(DType) noexcept;  // of 16 or 32 bits, as parameters are
std::uint64_t count_of(const Tensor&) noexcept;

class Matcher {
 public:
  Matcher(const Model&, const Context&, Look);
  std::vector<Match> run();

 private:
  using RecipePtr = std::shared_ptr<Recipe>;

  static bool is_plain(const Tensor&);
  std::optional<Tensor> find(const std::string& name) const;
  // A companion of the codes, which the match then has.
  std::optional<Tensor> take(const std::string& name);
  // Reads a tensor that describes others.
  std::vector<std::byte> whole(const Tensor&);
  std::vector<std::uint64_t> integers_of(const Tensor&);
  std::optional<std::uint64_t> integer_of(const std::optional<Tensor>&);  // its only element
  float number_of(const Tensor&);                                         // likewise; not a number if it has others
  std::string_view answer(std::string_view id, std::string_view key) const;
  std::uint64_t number_answer(std::string_view id, std::string_view key) const;
  const schemes::Settings& settings() const noexcept { return said_.settings; }
  const std::string& method() const noexcept { return layers_.config().method; }
  DType result_of(DType otherwise) const;

  // The ways in which a match ends. `text` continues the name of the tensor: "its scales do not fit".
  void finish(const Tensor& codes, std::string name, RecipePtr);
  void refuse(const Tensor& codes, std::string name, Refused, std::string text, Hint = {});
  void malformed(const Rule&, const Tensor& codes, std::string name, std::string text);
  void misfit(const Tensor& codes, std::string name, std::string text);
  void missing(const Tensor& codes, std::string name, std::string text);
  void unsupported(const Tensor& codes, std::string name, std::string text);
  void ask(const Tensor& codes, std::string name, std::string text, std::string answer);
  void note(const Rule&, const Tensor&, std::string expected = {}, std::string found = {}, std::string detail = {});
  void compare_with_config(const Tensor& codes, const Recipe&);

  // A matrix, or several: leading dimensions count as one.
  static void set_shape(Recipe&, Shape codes, std::uint64_t rows, std::uint64_t columns);
  // The grid of a row-major tensor of parameters [.., rows, columns] over blocks of the matrix. nullopt: not its shape.
  static std::optional<Grid> grid_of(const Recipe&, Shape given, std::uint64_t block_rows, std::uint64_t block_columns);
  // Takes a g_idx. False if it does not fit, which is reported.
  bool read_groups(Recipe&, const Tensor&, std::uint64_t count, bool may_be_none);

  void try_one(const Tensor&);
  bool refuse_by_name(const Tensor&, const std::string& name);
  void leave(const Tensor&);  // codes that no family took
  bool refuse_method(const Tensor&, const std::string& name);
  void find_strays();

  void scaled(const Tensor&, const std::string& name);
  void pairs(const Tensor&, const std::string& name, const Tensor& scale, const std::optional<Tensor>& factor);
  void packed(const Tensor&, const std::string& name);
  void packed_floats(const Tensor&, const std::string& name, const Tensor& scale, const std::optional<Tensor>& global);
  void gpt_oss(const Tensor&, const std::string& name);

  void words(const Tensor&, const std::string& name);
  void gptq(const Tensor&, const std::string& weight, const Tensor& zeros, const Tensor& scales,
            const std::optional<Tensor>& groups);
  void awq_gemm(const Tensor&, const std::string& weight, const Tensor& zeros, const Tensor& scales);
  void awq_gemv(const Tensor&, const std::string& weight, const Tensor& zeros, const Tensor& scales);
  struct Zeros;
  Zeros look_at_zeros(const core::Elements& stored, std::uint32_t bits) const;
  void mlx(const Tensor&, const std::string& stem);

  void nibbles(const Tensor&, const Tensor& state, const std::string& kind);
  void int8(const Tensor&, const std::string& stem);
  void hqq(const Tensor&, const std::string& name);
  void quanto(const Tensor&, const std::string& before);

  const Model& model_;
  const Context& context_;
  const Look look_;
  LayersOfConfig layers_;
  LayersOfConfig::Said said_;  // of the layer that is being tried
  std::uint64_t left_;         // bytes of tensors that describe others, which may still be read
  std::vector<std::uint32_t> used_;
  std::vector<Fault> faults_;
  std::set<std::uint32_t> taken_;
  std::vector<Match> out_;
};

}  // namespace weighbridge::recipes
