// SPDX-License-Identifier: Apache-2.0
// Reads the sizes of a language model and reports which tensor or key is wrong.
#include "runtime/llama/config.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/fail.h"
#include "convert/llama_cpp.h"
#include "convert/naming.h"
#include "core/model/floats.h"
#include "core/model/words.h"
#include "runtime/llama/weights.h"

namespace weighbridge::llama {
namespace {

constexpr std::uint64_t kMaxSetting = UINT32_MAX;
constexpr std::size_t kMaxColumns = 65536;  // so that a sum of products of bytes fits in 32 bits
constexpr std::string_view kTiedKey = "flags";

const Value& value_of(const Model& model, std::string_view field) {
  if (const Value* found = model.attribute("slm." + std::string(field))) return *found;
  fail("missing-key", {},
       "the model's metadata has no key '" + convert::given_key(model, field) +
           "', which a language model needs: a Llama runs, and no other kind of model");
}

std::size_t count_of(const Model& model, std::string_view field) {
  const Value& value = value_of(model, field);
  const auto number = value.as_u64();
  if (!number || *number == 0 || *number > kMaxSetting)
    fail("key", {},
         "the model's metadata key '" + convert::given_key(model, field) + "' is " + value.to_text() +
             ", where a whole number from 1 to 4,294,967,295 is needed");
  return static_cast<std::size_t>(*number);
}

double real_of(const Model& model, std::string_view field) {
  const Value& value = value_of(model, field);
  const auto number = value.as_f64();
  if (!number || !std::isfinite(*number) || *number <= 0)
    fail("key", {},
         "the model's metadata key '" + convert::given_key(model, field) + "' is " + value.to_text() +
             ", where a positive number is needed");
  return *number;
}

void require_fit(bool fits, std::string message) {
  if (!fits) fail("heads", {}, std::move(message));
}

void check_numbers(const Model& model, const Config& c) {
  const auto text = [](std::size_t n) { return std::to_string(n); };
  const auto key = [&](std::string_view field) { return convert::given_key(model, field) + " "; };
  require_fit(c.head % 2 == 0 && c.heads * c.head == c.hidden,
              key("head_count") + text(c.heads) + " times " + key("head_dim") + text(c.head) +
                  ", which is even, has to be " + key("hidden_size") + text(c.hidden));
  require_fit(c.kv_heads <= c.heads && c.heads % c.kv_heads == 0,
              key("kv_head_count") + text(c.kv_heads) + " does not divide " + key("head_count") + text(c.heads));
  if (c.hidden > kMaxColumns || c.ffn > kMaxColumns)
    base::unsupported("generate/width", "the model is " + text(std::max(c.hidden, c.ffn)) +
                                            " wide, and this build runs models of at most " + text(kMaxColumns));
}

}  // namespace

void fail(std::string_view what, std::string_view tensor, std::string message) {
  base::malformed("generate/" + std::string(what), std::move(message), tensor);
}

std::string layer_name(std::size_t layer, std::string_view part) {
  return "layers." + std::to_string(layer) + "." + std::string(part) + ".weight";
}

Tensor require(const Model& model, const std::string& name, std::size_t rows, std::size_t columns) {
  const auto found = model.find(name);
  if (!found) {
    const std::string given = convert::given_tensor(model, name);
    fail("missing-tensor", given, "the model has no tensor '" + given + "'");
  }
  std::vector<std::uint64_t> shape{rows};
  if (columns != 0) shape.push_back(columns);
  if (!found->has_shape() || !std::ranges::equal(found->shape(), shape)) {
    const std::string given = convert::given_tensor(model, name);
    fail("shape", given,
         "tensor '" + given + "' has to be " + core::shape_text(shape) + ", and is " +
             (found->has_shape() ? core::shape_text(found->shape()) : "of no known shape"));
  }
  return *found;
}

namespace {
// Linear scaling by slm.rope_factor, and a factor for each pair in the tensor rope_freqs.
void read_divisors(const Model& model, Config& c) {
  constexpr std::string_view kFactor = "slm.rope_factor";
  const auto factors = model.find(convert::kRopeFactors);
  if (!factors && !model.attribute(kFactor)) return;
  c.divisors.assign(c.head / 2, model.attribute(kFactor) ? real_of(model, "rope_factor") : 1.0);
  if (!factors) return;
  const core::Floats floats(require(model, std::string(convert::kRopeFactors), c.head / 2, 0));
  for (std::size_t i = 0; i < c.divisors.size(); ++i) {
    const auto factor = static_cast<double>(floats.data()[i]);
    if (!(factor > 0) || !std::isfinite(factor))
      fail("not-finite", convert::kRopeFactors, "a factor of the rotation is not a positive number");
    c.divisors[i] *= factor;
  }
}
}  // namespace

Config read_config(const Model& model, std::uint64_t context) {
  Config c;
  c.vocabulary = count_of(model, "vocab_size");
  c.hidden = count_of(model, "hidden_size");
  c.layers = count_of(model, "layer_count");
  c.heads = count_of(model, "head_count");
  c.kv_heads = count_of(model, "kv_head_count");
  c.head = count_of(model, "head_dim");
  c.ffn = count_of(model, "ffn_size");
  c.context = count_of(model, "max_context");
  c.theta = real_of(model, "rope_theta");
  c.epsilon = static_cast<float>(real_of(model, "rms_norm_epsilon"));
  c.tied = (value_of(model, kTiedKey).as_u64().value_or(0) & 1U) != 0;
  check_numbers(model, c);
  if (c.layers > model.size())
    fail("layers", {},
         convert::given_key(model, "layer_count") + " is " + std::to_string(c.layers) + ", and the model has " +
             std::to_string(model.size()) + " tensors");
  if (context > c.context)
    base::misuse("context", "a context of " + std::to_string(context) + " tokens is more than the " +
                                std::to_string(c.context) + " that the model was made for");
  if (context != 0) c.context = static_cast<std::size_t>(context);
  // Containers other than .slm store each head once.
  const auto keys = model.find(layer_name(0, "wk"));
  const bool grouped = c.kv_heads < c.heads && keys && keys->has_shape() && !keys->shape().empty() &&
                       keys->shape()[0] == c.kv_heads * c.head;
  c.kv_rows = grouped ? c.kv_heads * c.head : c.hidden;
  read_divisors(model, c);
  if (!grouped) c.repeats = repeated_heads(model, c);
  c.kv_heads /= c.repeats;
  return c;
}

}  // namespace weighbridge::llama
