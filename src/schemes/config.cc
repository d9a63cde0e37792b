// SPDX-License-Identifier: Apache-2.0
// Reads one JSON object. What is not JSON says nothing.
#include "schemes/recognize.h"

#include <algorithm>
#include <array>

#include "wire/json_reader.h"

namespace weighbridge::schemes {
namespace {

constexpr std::size_t kMaxConfigBytes = std::size_t{4}
                                        << 20;  // bytes of a config that are read; far more than real ones have
constexpr int kDeepest = 6;                     // objects within objects, read by recursion; deeper than real ones

constexpr std::array<std::string_view, 3> kConfigs{"quantization_config", "compression_config", "quantization"};
// Configs of a part of a model with a vision tower and the like.
constexpr std::array<std::string_view, 5> kParts{"text_config", "llm_config", "language_config", "thinker_config",
                                                 "language_model_config"};

bool is_one_of(std::string_view key, const auto& keys) { return std::ranges::find(keys, key) != keys.end(); }
std::string_view last_of(std::string_view key) { return key.substr(key.find_last_of('.') + 1); }

// Finds bits and group size of the weights, wherever a library writes them; ignores those of activations. False: an
// object without members, or malformed.
bool read_numbers(wire::JsonReader& in, Config& out, int depth) {
  if (!in.enter_object()) return false;
  std::string scratch;
  bool any = false;
  for (wire::JsonString key; in.next_key(key);) {
    any = true;
    const std::string_view name = key.raw;
    std::uint64_t number = 0;
    wire::JsonString text;
    bool flag = false;
    if (depth == 0 && name == "quant_method" && in.read_string(text)) {
      out.method = wire::json_text(text, scratch);
      std::ranges::transform(out.method, out.method.begin(),
                             [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
    } else if (depth == 0 && (name == "load_in_8bit" || name == "load_in_4bit") && in.read_bool(flag)) {
      if (flag && out.method.empty()) out.method = "bitsandbytes";
    } else if (depth == 0 && name == "quant_algo" && in.read_string(text)) {
      if (out.method.empty()) out.method = "modelopt";
    } else if ((name == "bits" || name == "nbits" || name == "num_bits" || name == "w_bit") && in.read_u64(number)) {
      if (out.bits == 0) out.bits = number;
    } else if ((name == "group_size" || name == "q_group_size") && in.read_u64(number)) {
      if (out.group == 0) out.group = number;
    } else if (depth < kDeepest && in.peek() == wire::JsonKind::object && name.find("activation") == name.npos &&
               name.find("cache") == name.npos) {
      read_numbers(in, out, depth + 1);
    } else if (!in.skip_value()) {
      break;
    }
  }
  return any && in.ok();
}

// Reads the members of a config. False for {} and null, which quantize nothing.
void read_one(wire::JsonReader& in, bool mlx, Config& out) {
  if (in.peek() != wire::JsonKind::object) {
    in.skip_value();
    return;
  }
  Config found;
  if (!read_numbers(in, found, 0)) return;
  // mlx writes bits and group size, and no method; it copies them to quantization_config.
  if (found.method == "none") return;
  if (mlx && found.bits == 0) return;  // another kind of "quantization"
  if (found.method.empty() && found.bits > 0 && (mlx || found.group > 0)) found.method = "mlx";
  out.stated = true;
  if (out.method.empty()) out.method = std::move(found.method);
  if (out.bits == 0) out.bits = found.bits;
  if (out.group == 0) out.group = found.group;
}

}  // namespace

bool may_hold_config(std::string_view key) noexcept {
  const std::string_view last = last_of(key);
  return is_one_of(last, kConfigs) || is_one_of(last, kParts);
}

void read_config(std::string_view key, std::string_view text, Config& out) {
  if (text.size() > kMaxConfigBytes) return;
  wire::JsonReader in(text);
  const std::string_view last = last_of(key);
  if (is_one_of(last, kConfigs)) return read_one(in, last == "quantization", out);
  if (!in.enter_object()) return;
  for (wire::JsonString inner; in.next_key(inner);) {
    if (is_one_of(inner.raw, kConfigs))
      read_one(in, inner.raw == "quantization", out);
    else if (!in.skip_value())
      return;
    if (!in.ok()) return;
  }
}

}  // namespace weighbridge::schemes
